"""Warn about records that ``stat`` counts although consumers do not get them, or that it counts twice."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.partitions import Partition
from kafka_log.logs.tiers import find_repeated_offsets, merge_tiered_segments
from kafka_log.read.selection import Selection
from kafka_log.segment.arrow_text import utf8

MAX_LISTED = 5


def warn_of_hidden_records(partitions: Sequence[Partition], selection: Selection) -> None:
    """Issue a Python warning if partitions may have selected records below the log start offset.
    Issue another one if they have the same offsets in several copies in tiered storage, or there
    and in live segments. Each names up to MAX_LISTED partitions. Raise OSError if the directory of
    a checkpoint may not be searched.
    """
    if places := list_before_log_start(partitions, selection):
        warnings.warn(
            f"kafka-log: records below the log start offset, which consumers do not get, are counted too; --offsets A: leaves them out: {places}",
            stacklevel=2,
        )
    copied = (
        f"{utf8(p.topic)}-{p.partition} from {base}"
        for p, base in find_repeated_offsets(partitions)
    )
    if places := _join_first(copied):
        warnings.warn(
            "kafka-log: records that are in several copies in tiered storage, or there and in live segments, are counted more than once;"
            f" without --include remote only local segments are counted: {places}",
            stacklevel=2,
        )


def list_before_log_start(partitions: Sequence[Partition], selection: Selection) -> str:
    """Return as text the first MAX_LISTED partitions that may have selected records below their log
    start offset, with these offsets, and the number of the others; "" if there are none. Only the
    first selected offset is compared, no record is read. Raise OSError if the directory of a
    checkpoint may not be searched.
    """
    starts = LogStarts()
    return _join_first(
        f"{utf8(p.topic)}-{p.partition} before {start}"
        for p in merge_tiered_segments(partitions)
        if (start := starts.get(p)) is not None
        and ((low := selection.resolve_offsets(p.segments).offsets[0]) is None or low < start)
    )


def _join_first(found: Iterable[str]) -> str:
    """Join the first 5 texts with commas, followed by the number of the remaining ones; "" if there are none."""
    places = list(found)
    more = f" and {len(places) - MAX_LISTED} more" if len(places) > MAX_LISTED else ""
    return f"{', '.join(places[:MAX_LISTED])}{more}"
