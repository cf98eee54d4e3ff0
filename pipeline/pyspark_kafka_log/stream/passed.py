"""Segments that a stream has passed. A broker changes none of them any more; what copies logs, into a store say, may put them there late."""

from __future__ import annotations

from itertools import pairwise

from kafka_log.logs.partitions import Segment
from pyspark_kafka_log.logs import Log

Key = tuple[str, int]


class Passed:
    """What was read of segments that have another one after them: of how many bytes, by their base offsets and those of the next ones."""

    def __init__(self) -> None:
        self._read: dict[Key, dict[tuple[int, int], int]] = {}

    def read(self, key: Key, log: Log, first: int) -> None:
        """Keep in mind what is there of a log that is read from an offset on."""
        known = self._read.get(key, {})
        self._read[key] = {
            (base, following): segment.size
            if following > first
            else known.get((base, following), segment.size)
            for segment, base, following in _followed(log)
        }

    def late(self, key: Key, log: Log, offset: int) -> list[str]:
        """What has come of a log that was read up to an offset, to places that lie before it."""
        known = self._read.get(key)
        if not known:
            return []
        ends = {following for _, following in known}
        found = []
        for segment, base, following in _followed(log):
            if following > offset:
                break
            before = known.get((base, following))
            if before is None and base > min(known)[0] and following in ends and base not in ends:
                found.append(f"{segment.path} came")
            elif before is not None and segment.size > before:
                found.append(f"{segment.path} grew from {before} to {segment.size} bytes")
        return found


def _followed(log: Log) -> list[tuple[Segment, int, int]]:
    live = [one for one in log.segments if one.state == "live" and one.has_canonical_name]
    return [(one, one.base_offset, following.base_offset) for one, following in pairwise(live)]
