"""Warn of commits that the log cleaner removed, which a question about the past cannot count."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from codecgen.runtime.errors import CodecError
from kafka_log.logs.partitions import Partition
from kafka_log.segment.batch_headers import headers
from kafka_log.text.values import format_time

_MAX_NAMED = 5
_COLUMNS = ("base_offset", "last_offset", "record_count", "max_timestamp")


def warn_of_removed_commits(partitions: Sequence[Partition], at: int, stacklevel: int) -> None:
    """Warn with a UserWarning that names the partitions of ``__consumer_offsets`` from which
    records up to the time ``at`` (milliseconds since 1970) may have been removed that later
    records replaced. Do nothing if there are none. ``stacklevel`` 1 is the line of the caller.
    """
    if found := [str(p.partition) for p in partitions if _has_removed_records(p, at)]:
        more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
        warnings.warn(
            f"kafka-log: commits up to {format_time(at)} that were replaced or deleted later may be missing, because log compaction removed records:"
            f" __consumer_offsets partition {', '.join(found[:_MAX_NAMED])}{more}",
            stacklevel=stacklevel + 1,
        )


def _has_removed_records(partition: Partition, at: int) -> bool:
    """Return whether any offset from 0 to the first batch with a later maximum timestamp than
    ``at`` has no record, by the batch headers. Return False if no batch is later, because all
    replaced commits were replaced by then, and if damage or an unreadable file comes before it.
    """
    expected = 0
    has_gap = False
    for segment in partition.segments:
        try:
            for first, last, count, time in headers(segment.path, _COLUMNS):
                base = expected if first is None else first
                has_gap = has_gap or base > expected
                if time > at:
                    return has_gap
                has_gap = has_gap or (count is not None and count < last - base + 1)
                expected = last + 1
        except CodecError:
            return False
    return False
