"""How far the logs of partitions go, and which of several replicas goes furthest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol, TypeVar

from codecgen.runtime.errors import CodecError, ValueRefused, Where
from kafka_log.logs.log_start import LOG_STATES
from kafka_log.logs.names import State, parse_live_partition_name
from kafka_log.logs.partitions import DirectoryError, Partition, Segment
from kafka_log.segment.model import OnDamage, Policy
from kafka_log.segment.offsets_of_files import offsets_of

LAST_OFFSET = MAX_END = (1 << 63) - 1

Replicas = Literal["error", "newest", "keep"]
"""What becomes of partitions that lie in several directories: that is an error; the newest one is read, whose log ends with the later
leader epoch, or the larger offset; all are read, and their records come more than once."""

T = TypeVar("T", bound="Log")


class Log(Protocol):
    """A partition of a topic."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def segments(self) -> Sequence[Segment]: ...


class LogEnd(NamedTuple):
    """Where a log ends. Ends compare as Kafka compares replicas: the later epoch, then the larger offset.

    ``leader_epoch`` is that of the last batch, -1 without one; ``offset`` that of the next record."""

    leader_epoch: int
    offset: int


def read_log_end(segments: Sequence[Segment]) -> LogEnd | None:
    """Where the log of a partition ends, from the header of its last batch, or from its records if that contradicts itself. A batch that is cut off at the end is not there, as
    for a broker that starts. None where there is no segment, or a file does not say: what it holds is no batches, or it has no
    batch and no name that says an offset. Raises OSError."""
    if not segments:
        return None
    last = segments[-1]
    for segment in reversed(segments):
        try:
            found = read_segment_end(segment)
        except CodecError:
            return None
        if found is not None:
            # an empty segment that was begun later has the end in its name
            named = last.base_offset if last.has_canonical_name else 0
            return LogEnd(found.leader_epoch, max(found.offset, named))
    return LogEnd(-1, last.base_offset) if last.has_canonical_name else None


def read_end_offset(segments: Sequence[Segment], policy: Policy = Policy.KAFKA) -> int:
    """Return the offset after the last record that can be read of a partition's segments. 0 if nothing says it. Raises OSError.

    Segments that are not part of the log, such as deleted ones, may go further than the log. Under ``salvage`` records of torn batches count;
    offsets that the name of their segment does not allow do not.
    """
    chains: dict[State, list[Segment]] = {}
    for segment in segments:
        state = "live" if segment.state in LOG_STATES else segment.state
        chains.setdefault(state, []).append(segment)
    return max((_end_of_chain(chain, policy) for chain in chains.values()), default=0)


def _end_of_chain(segments: Sequence[Segment], policy: Policy) -> int:
    """Return the offset after the last record of segments that follow each other."""
    named = max(
        (segment.base_offset for segment in segments if segment.has_canonical_name), default=0
    )
    for segment in reversed(segments):
        if policy is Policy.SALVAGE:
            end = _salvaged_end(segment)
        else:
            found = read_segment_end(segment, policy, on_damage="keep")
            end = None if found is None else found.offset
        if end is not None:
            return max(end, named)
    return named


def _salvaged_end(segment: Segment) -> int | None:
    """Return the offset after the last record that salvage reads of a segment, None if it reads none."""
    from kafka_log.logs.index_files import find_position_by_index  # layouts of indexes
    from kafka_log.segment.scanner import Scanner  # numpy

    allowed = offsets_of(segment.path) or range(LAST_OFFSET)
    for start in dict.fromkeys((find_position_by_index(segment, LAST_OFFSET, None), 0)):
        scanner = Scanner(
            segment.path,
            ("offset",),
            Policy.SALVAGE,
            start=start,
            tail=segment.tail,
            size=segment.size,
        )
        columns = (batch.column(0).to_numpy() for batch in scanner)
        inside = (c[(c >= allowed.start) & (c < allowed.stop)] for c in columns)
        if (last := max((int(c.max()) for c in inside if len(c)), default=None)) is not None:
            return last + 1
    return None


def read_segment_end(
    segment: Segment, policy: Policy = Policy.KAFKA, on_damage: OnDamage = "raise"
) -> LogEnd | None:
    """Where a segment ends, None when it has no batch. Raises CodecError, if damage is to be raised."""
    if not segment.size:
        return None
    from kafka_log.logs.index_files import find_position_by_index  # layouts of indexes
    from kafka_log.segment.reader import last_offset_at
    from kafka_log.segment.scanner import header_scanner  # numpy

    start = find_position_by_index(segment, LAST_OFFSET, None)
    columns = ("last_offset", "leader_epoch", "offset_bound", "position")
    found: LogEnd | None = None
    scanner = header_scanner(
        segment.path,
        columns,
        policy,
        on_damage=on_damage,
        start=start,
        tail=segment.tail,
        size=segment.size,
    )
    for batch in scanner:
        if batch.num_rows:
            offset, epoch, bound, position = (batch.column(name)[-1].as_py() for name in columns)
            if bound is None:
                offset = last_offset_at(segment.path, position, offset)
            if offset >= LAST_OFFSET:
                where = Where(path="last_offset", file=os.fspath(segment.path))
                raise ValueRefused(f"{offset} has none after it", where)
            found = LogEnd(epoch, offset + 1)
    return found


def select_newest_replicas(partitions: Iterable[T]) -> list[T]:
    """One of each partition, by topic and number: of several replicas the one whose log goes furthest, which is what Kafka would make
    the leader of those. The first of them where they are alike, or nothing is known of any. Raises OSError."""
    replicas: dict[tuple[str, int], list[T]] = {}
    for partition in partitions:
        replicas.setdefault((partition.topic, partition.partition), []).append(partition)
    return [
        found[0] if len(found) == 1 else max(found, key=lambda p: _rank(p.segments))
        for found in replicas.values()
    ]


def select_replicas(partitions: Sequence[Partition], replicas: Replicas) -> list[Partition]:
    """The partitions to read where several directories hold one. Those that are not live are each for themselves, as are files whose
    directory is not named like a partition's. Raises DirectoryError where that is an error, OSError."""
    if replicas == "keep":
        return list(partitions)
    if replicas == "newest":
        live = [p for p in _named(partitions) if p.state == "live"]
        left_out = {id(p) for p in live} - {id(p) for p in select_newest_replicas(live)}
        return [p for p in partitions if id(p) not in left_out]
    if (both := find_duplicate(partitions)) is not None:
        first, other = both
        reason = (
            f"the same partition lies in {first.directory}: its records would come twice. Read one of the two, or choose by"
            " --replicas (replicas=): newest reads the one whose log goes furthest, keep reads both"
        )
        raise DirectoryError(other.directory, reason)
    return list(partitions)


def find_duplicate(partitions: Iterable[Partition]) -> tuple[Partition, Partition] | None:
    """Return the first two directories that hold the same partition in the same state, None if there are none."""
    seen: dict[tuple[str, int, State], Partition] = {}
    for p in _named(partitions):
        first = seen.setdefault((p.topic, p.partition, p.state), p)
        if first is not p:
            return first, p
    return None


def _named(partitions: Iterable[Partition]) -> list[Partition]:
    return [p for p in partitions if parse_live_partition_name(p.directory.resolve()) is not None]


def _rank(segments: Sequence[Segment]) -> tuple[int, int]:
    return read_log_end(segments) or (-2, -1)
