"""Select the batches that ``stat`` counts by the log start offset, and warn about those that it leaves out or counts twice."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka_log.logs.log_start import LOG_STATES, LogStarts
from kafka_log.logs.names import State
from kafka_log.logs.partitions import Partition
from kafka_log.logs.tiers import find_repeated_offsets, merge_tiered_segments
from kafka_log.read.selection import Selection
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.ranges import offsets_from

MAX_LISTED = 5


class PartitionSelection(NamedTuple):
    """Selections of the batches of one partition. Offsets are absolute.

    Attributes:
        in_log: Selection for live and remote segments, without batches below the log start offset unless these are selected.
        others: Selection for segments in other states.
    """

    in_log: Selection
    others: Selection

    def for_state(self, state: State) -> Selection:
        """Return the selection for segments in a state."""
        return self.in_log if state in LOG_STATES else self.others


def select_in_partitions(
    partitions: Sequence[Partition], selection: Selection, *, of_records: bool = False
) -> list[PartitionSelection]:
    """Return the selections for each partition, in order. The log start offset of copies in tiered
    storage is that of the live partition to which they belong. Issue a Python warning, with up to
    MAX_LISTED partitions, if that offset may exclude selected batches; with ``of_records`` it is
    about records. Raise OSError if the directory of a checkpoint may not be searched, and what
    :meth:`Selection.resolve_offsets` raises.
    """
    starts: list[int | None] = [None] * len(partitions)
    if not selection.deleted_records:
        starts = _log_starts(partitions)
        if places := list_before_log_start(partitions, selection):
            what, whole = "batches", "; the batch with this offset counts as a whole"
            if of_records:
                what, whole = "records", ""
            warnings.warn(
                f"kafka-log: {what} below the log start offset were skipped: {places}{whole}; add --deleted-records to include them",
                stacklevel=3,
            )
    found = []
    for partition, start in zip(partitions, starts, strict=True):
        resolved = selection.resolve_offsets(partition.segments)
        in_log = resolved
        if start is not None:
            in_log = resolved.but(offsets=offsets_from(resolved.offsets, start))
        found.append(PartitionSelection(in_log, resolved))
    return found


def _log_starts(partitions: Sequence[Partition]) -> list[int | None]:
    """Return the log start offset of each partition, None if it is unknown or not above the first
    base offset of the log. Raise OSError if the directory of a checkpoint may not be searched.
    """
    starts = LogStarts()
    logs = merge_tiered_segments(partitions)
    of_directories = {log.directory: starts.get(log) for log in logs}
    of_keys: dict[tuple[str, int], int | None] = {}
    for log in logs:
        if log.state in LOG_STATES:
            of_keys.setdefault(log.key, of_directories[log.directory])
    return [
        of_keys.get(p.key) if p.state == "remote" else of_directories.get(p.directory)
        for p in partitions
    ]


def warn_of_copies(partitions: Sequence[Partition]) -> None:
    """Issue a Python warning if partitions have the same offsets in several copies in tiered
    storage, or there and in live segments. It names up to MAX_LISTED partitions.
    """
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
