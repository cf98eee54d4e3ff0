"""How much of what is there a micro-batch takes: as Spark's Kafka source has it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kafka_log.read.progress import Key
from pyspark_kafka_log.options.table import MAX_DELAY


@dataclass(frozen=True)
class Limits:
    """``most`` and ``least`` offsets of a micro-batch, None: any. After ``delay_ms`` milliseconds less than the least will do."""

    most: int | None = None
    least: int | None = None
    delay_ms: int = MAX_DELAY.default


def cut(most: int, start: Mapping[Key, int], end: Mapping[Key, int]) -> dict[Key, int]:
    """The end of a micro-batch of about ``most`` offsets: each partition has its share by what is left in it, and none of them starves.

    ``start`` has all partitions of ``end``.
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
    """When a micro-batch is due that waits for a least number of offsets. ``now`` are milliseconds of a clock that does not go back."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._last: int | None = None

    def waits(self, now: int, start: Mapping[Key, int], end: Mapping[Key, int]) -> bool:
        """Whether there is too little yet. The first micro-batch never waits."""
        least = self._limits.least
        if least is None:
            return False
        due = self._last is None or now - self._last >= self._limits.delay_ms
        fresh = sum(max(0, offset - start.get(key, 0)) for key, offset in end.items())
        if not due and fresh < least:
            return True
        self._last = now
        return False


def behind(consumed: Mapping[Key, int], latest: Mapping[Key, int]) -> dict[str, str]:
    """How far a stream is behind, by the names of Spark's Kafka source. Nothing without partitions."""
    lags = [max(0, offset - consumed[key]) for key, offset in latest.items() if key in consumed]
    if not lags:
        return {}
    return {
        "minOffsetsBehindLatest": str(min(lags)),
        "maxOffsetsBehindLatest": str(max(lags)),
        "avgOffsetsBehindLatest": str(sum(lags) / len(lags)),
    }
