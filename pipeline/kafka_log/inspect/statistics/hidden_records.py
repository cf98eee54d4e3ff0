"""What sums of batches count although consumers do not get it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.partitions import Partition
from kafka_log.logs.tiers import find_tiered_partitions, merge_tiered_segments
from kafka_log.read.selection import Selection
from kafka_log.segment.arrow_text import utf8

PLACES_SAID = 5


def warn_of_counted(partitions: Sequence[Partition], selection: Selection) -> None:
    """Warn which batches are counted although they lie before the start of their log, and which are counted twice."""
    if places := before_starts(partitions, selection):
        warnings.warn(
            f"kafka-log: counted too, though consumers do not get what lies before the start of a log: {places}",
            stacklevel=2,
        )
    copied = (
        f"{utf8(p.topic)}-{p.partition} from {base}"
        for p, base in find_tiered_partitions(partitions)
    )
    if places := _listed(copied):
        warnings.warn(
            f"kafka-log: counted twice, in tiered storage and in live segments: {places}",
            stacklevel=2,
        )


def before_starts(partitions: Sequence[Partition], selection: Selection) -> str:
    """Return partitions that have records before the start of their log, with these starts; "" if there are none."""
    starts = LogStarts()
    return _listed(
        f"{utf8(p.topic)}-{p.partition} before {start}"
        for p in merge_tiered_segments(partitions)
        if (start := starts.get(p)) is not None
        and ((low := selection.resolve_offsets(p.segments).offsets[0]) is None or low < start)
    )


def _listed(found: Iterable[str]) -> str:
    """Return the first places, and how many more there are."""
    places = list(found)
    more = f" and {len(places) - PLACES_SAID} more" if len(places) > PLACES_SAID else ""
    return f"{', '.join(places[:PLACES_SAID])}{more}"
