"""How far the logs of partitions go, and which of several replicas goes furthest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from codecgen.runtime.errors import CodecError, ValueRefused, Where
from kafka_log.disk.directory import Partition, Segment
from kafka_log.segment.columnar import BatchScanner

LAST_OFFSET = (1 << 63) - 1


class LogEnd(NamedTuple):
    """Where a log ends. Ends compare as Kafka compares replicas: the later epoch, then the larger offset.

    ``leader_epoch`` is that of the last batch, -1 without one; ``offset`` that of the next record."""

    leader_epoch: int
    offset: int


def log_end(segments: Sequence[Segment]) -> LogEnd | None:
    """Where the log of a partition ends, from the header of its last batch. A batch that is cut off at the end is not there, as
    for a broker that starts. None where there is no segment, or a file does not say: what it holds is no batches, or it has no
    batch and no name that says an offset. Raises OSError."""
    if not segments:
        return None
    last = segments[-1]
    for segment in reversed(segments):
        try:
            found = _end_of(segment)
        except CodecError:
            return None
        if found is not None:
            # an empty segment that was begun later has the end in its name
            named = last.base_offset if last.is_named else 0
            return LogEnd(found.leader_epoch, max(found.offset, named))
    return LogEnd(-1, last.base_offset) if last.is_named else None


def _end_of(segment: Segment) -> LogEnd | None:
    """Where a segment ends, None when it has no batch. Raises CodecError."""
    if not segment.size:
        return None
    from kafka_log.disk.index_files import first_position  # layouts of indexes

    start = first_position(segment, LAST_OFFSET, None)
    columns = ("last_offset", "leader_epoch")
    found: LogEnd | None = None
    for batch in BatchScanner(segment.path, columns, start=start):
        if batch.num_rows:
            offset, epoch = (batch.column(name)[-1].as_py() for name in columns)
            if offset >= LAST_OFFSET:
                where = Where(path="last_offset", file=os.fspath(segment.path))
                raise ValueRefused(f"{offset} has none after it", where)
            found = LogEnd(epoch, offset + 1)
    return found


def furthest(partitions: Iterable[Partition]) -> list[Partition]:
    """One of each partition, by topic and number: of several replicas the one whose log goes furthest, which is what Kafka would make
    the leader of those. The first of them where they are alike, or nothing is known of any. Raises OSError."""
    replicas: dict[tuple[str, int], list[Partition]] = {}
    for partition in partitions:
        replicas.setdefault((partition.topic, partition.partition), []).append(partition)
    return [
        found[0] if len(found) == 1 else max(found, key=lambda p: _rank(p.segments))
        for found in replicas.values()
    ]


def _rank(segments: Sequence[Segment]) -> tuple[int, int]:
    return log_end(segments) or (-2, -1)
