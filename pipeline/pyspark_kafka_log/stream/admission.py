"""Limit the size of micro-batches as Spark's Kafka source does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kafka_log.read.progress import Key
from pyspark_kafka_log.options.table import MAX_DELAY


@dataclass(frozen=True)
class Limits:
    """The maximum (``most``) and minimum (``least``) number of offsets of a micro-batch, None for
    no limit. After ``delay_ms`` milliseconds fewer than ``least`` are enough.
    """

    most: int | None = None
    least: int | None = None
    delay_ms: int = MAX_DELAY.default


def share_offsets(most: int, start: Mapping[Key, int], end: Mapping[Key, int]) -> dict[Key, int]:
    """Return the end offset of each partition for a micro-batch of about ``most`` offsets. Each
    partition gets a share in proportion to the offsets between its ``start`` and ``end``, rounded
    down, but at least one offset if it has any. The end is never beyond ``end``; a partition
    without new offsets keeps its ``end``. Raise KeyError if ``start`` lacks a partition of ``end``.
    """
    sizes = {key: max(0, offset - start[key]) for key, offset in end.items()}
    total = sum(sizes.values())
    out = dict(end)
    for key, size in sizes.items():
        if size:
            share = most * size / total
            whole = math.ceil(share) if share < 1 else math.floor(share)
            out[key] = min(end[key], start[key] + whole)
    return out


class Pace:
    """A clock that decides when a micro-batch with a minimum number of offsets is due."""

    def __init__(self, limits: Limits) -> None:
        """Start without a previous micro-batch."""
        self._limits = limits
        self._last: int | None = None

    def should_wait(self, now: int, start: Mapping[Key, int], end: Mapping[Key, int]) -> bool:
        """Return True if fewer offsets than the minimum are new and the delay since the last
        micro-batch is not over at ``now`` (monotonic milliseconds). Partitions that ``start`` lacks
        count from offset 0. Return False otherwise, always for the first micro-batch or without a
        minimum, and note ``now`` as the time of the micro-batch.
        """
        least = self._limits.least
        if least is None:
            return False
        due = self._last is None or now - self._last >= self._limits.delay_ms
        fresh = sum(max(0, offset - start.get(key, 0)) for key, offset in end.items())
        if not due and fresh < least:
            return True
        self._last = now
        return False


def lag_metrics(consumed: Mapping[Key, int], latest: Mapping[Key, int]) -> dict[str, str]:
    """Return the minimum, maximum and average number of offsets by which a stream is behind, as
    text under the names of Spark's Kafka source. Only partitions in both mappings count, one that
    is consumed beyond ``latest`` with 0; ``{}`` if there is none.
    """
    lags = [max(0, offset - consumed[key]) for key, offset in latest.items() if key in consumed]
    if not lags:
        return {}
    return {
        "minOffsetsBehindLatest": str(min(lags)),
        "maxOffsetsBehindLatest": str(max(lags)),
        "avgOffsetsBehindLatest": str(sum(lags) / len(lags)),
    }
