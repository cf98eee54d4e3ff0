"""End offsets of logs, and which of several replicas to read."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from codecgen.runtime.errors import CodecError, ValueRefused, Where
from kafka_log.logs.broker_files import find_topic_id
from kafka_log.logs.clusters import ClusterIds
from kafka_log.logs.log_start import LOG_STATES
from kafka_log.logs.names import State, parse_live_partition_name
from kafka_log.logs.partitions import DirectoryError, Partition, Segment
from kafka_log.segment.model import Batch, OnDamage, Policy
from kafka_log.segment.offsets_of_files import offsets_of
from kafka_log.segment.paths import resolve_links
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.reader import damage

if TYPE_CHECKING:
    from kafka_log.segment.blocks import Block

Replicas = Literal["error", "newest", "keep"]
"""What to do when several directories hold the same partition:

- ``error``: raise DirectoryError.
- ``newest``: read the copy whose last batch has the highest leader epoch, then the highest offset. It is an error if the end of
  another copy is damaged or cannot be read: that one may be newer. It is an error too if damage hides the topic id of a copy: that one
  may be of another topic. Raise DirectoryError if copies state different topic ids or cluster ids.
- ``keep``: read all copies, so that records occur several times.
"""


class LogEnd(NamedTuple):
    """The end of a log. Ends compare as Kafka compares replicas: by epoch, then by offset.

    Attributes:
        leader_epoch: Leader epoch of the last batch, -1 without a batch.
        offset: Offset of the next record.
    """

    leader_epoch: int
    offset: int


def read_log_end(segments: Sequence[Segment]) -> LogEnd | None:
    """Return the end of a partition's log: the leader epoch of the last complete batch and the
    offset after it, at least the base offset in the last file's name; without a batch epoch -1 and
    that base offset. Return None if there is no segment, the headers of the last batches are
    damaged or cannot be read, or there is no batch and no base offset in the file name. No checksum
    is verified.
    """
    return find_log_end(segments)[0]


def find_log_end(segments: Sequence[Segment]) -> tuple[LogEnd | None, CodecError | None]:
    """Return the end of a partition's log (leader epoch and next offset) as :func:`read_log_end`
    does, and the error that hides it; one of both is None. Both are None if there is no end: no
    segment, no batch and no base offset in the file name, or the files are gone since they were
    listed.
    """
    try:
        return _find_log_end(segments), None
    except CodecError as error:
        is_gone = isinstance(error, UnreadableError) and error.errno == errno.ENOENT
        return None, None if is_gone else error


def _find_log_end(segments: Sequence[Segment]) -> LogEnd | None:
    """Return the end of a log: the leader epoch of the last batch and the offset after it, at least
    the base offset in the last file's name. Without batches the epoch is -1, and the offset that
    base offset. Return None if there is no segment, or no batch and no base offset in the last
    name. Raise CodecError if damage or an unreadable file hides the end.
    """
    if not segments:
        return None
    last = segments[-1]
    for segment in reversed(segments):
        found = read_segment_end(segment)
        if found is not None:
            # the name of an empty last segment is the end offset
            named = last.base_offset if last.has_canonical_name else 0
            return LogEnd(found.leader_epoch, max(found.offset, named))
    return LogEnd(-1, last.base_offset) if last.has_canonical_name else None


def read_verified_end(segments: Sequence[Segment]) -> int | None:
    """Return the end offset of a partition's log as :func:`read_log_end` does, None if it does not
    know it. Return None too if the checksum of the last batch is wrong, or the name of its segment
    excludes its last offset: that offset may be damaged.
    """
    from kafka_log.logs.index_files import find_position_by_index  # layouts of indexes
    from kafka_log.segment.reader import SegmentReader

    end = read_log_end(segments)
    if end is None:
        return None
    last = next((segment for segment in reversed(segments) if not segment.is_empty), None)
    if last is None:
        return end.offset
    start = find_position_by_index(last, MAX_OFFSET, None)
    batch = None
    try:
        for batch in SegmentReader(  # noqa: B007 (the last one is wanted)
            last.path, start=start, records=False, tail=last.tail, size=last.size
        ):
            pass
    except CodecError:
        return None
    if batch is None:
        return end.offset
    allowed = offsets_of(last.path)
    is_possible = allowed is None or batch.last_offset in allowed
    return end.offset if batch.is_valid and is_possible else None


def read_end_offset(segments: Sequence[Segment], policy: Policy = Policy.KAFKA) -> int:
    """Return the offset after the last readable record of a partition's segments, in any state, at
    least the highest base offset in their names; 0 if nothing is known. Only the ends of segments
    are read. Damage and unreadable files are ignored, except that ``strict`` raises CodecError for
    those at the end of the last segment with batches, or after it. No wrong checksum is damage
    here. Under ``salvage`` records of torn batches count too, but not offsets that contradict the
    name of their segment. The result is above MAX_OFFSET if that is the last offset.
    """
    chains: dict[State, list[Segment]] = {}
    for segment in segments:
        state = "live" if segment.state in LOG_STATES else segment.state
        chains.setdefault(state, []).append(segment)
    return max((_read_chain_end(chain, policy) for chain in chains.values()), default=0)


def _read_chain_end(segments: Sequence[Segment], policy: Policy) -> int:
    """Return the offset after the last readable record of consecutive segments, at least the
    highest base offset in their names; 0 if neither exists. Ignore damage and unreadable files, and
    under ``salvage`` offsets that contradict the name of their segment. Raise CodecError under
    ``strict`` for damage at the end of the last segment with batches or after it.

    The last segment that has records is read under the policy; of the others the last headers suffice.
    """
    from kafka_log.logs.offset_ranges import read_offsets  # headers are read

    highest = max(
        (segment.base_offset for segment in segments if segment.has_canonical_name), default=0
    )
    for segment in segments[:-1]:
        held = read_offsets(segment)
        allowed = offsets_of(segment.path) if policy is Policy.SALVAGE else None
        if held is not None and (allowed is None or held[1] - 1 in allowed):
            highest = max(highest, held[1])
    for segment in reversed(segments):
        if policy is Policy.SALVAGE:
            end = _read_salvaged_end(segment)
        else:
            found = _read_last_header(segment, policy, on_damage="keep")
            end = None if found is None else found.offset
        if end is not None:
            return max(end, highest)
    return highest


def _read_salvaged_end(segment: Segment) -> int | None:
    """Return the offset after the last one of the undamaged batches of a segment, and of the records
    that ``salvage`` reads of others; None if it reads none, or the file cannot be read. Ignore
    offsets that contradict the file name.
    """
    from kafka_log.logs.index_files import find_position_by_index  # layouts of indexes
    from kafka_log.segment.block_reader import BlockScanner
    from kafka_log.segment.blocks import COUNTED  # numpy

    allowed = offsets_of(segment.path) or range(MAX_OFFSET)
    for start in dict.fromkeys((find_position_by_index(segment, MAX_OFFSET, None), 0)):
        scanner = BlockScanner(
            segment.path,
            COUNTED,
            Policy.SALVAGE,
            start=start,
            tail=segment.tail,
            size=segment.size,
        )
        offsets = (offset for item in scanner.items() for offset in _list_last_offsets(item))
        if (last := max((n for n in offsets if n in allowed), default=None)) is not None:
            return last + 1
    return None


def _list_last_offsets(item: Block | Batch) -> list[int]:
    """Return the last offset of each batch by its header if it is undamaged, else those of the
    records that could be read.
    """
    if not isinstance(item, Batch):
        offsets: list[int] = item.batch_headers.column("last_offset").to_pylist()
        return offsets
    records = [record.offset for record in item.records]
    return records if damage(item) else [item.last_offset, *records]


def read_segment_end(segment: Segment) -> LogEnd | None:
    """Return the end of a segment by the headers from its last index entry on; None if it has no
    batch. Verify no checksum, and ignore an incomplete batch at the end. Raise CodecError if the
    last offset is the largest possible one, a header there is damaged, or the file cannot be read.
    """
    found = _read_last_header(segment)
    if found is not None and found.offset > MAX_OFFSET:
        where = Where(path="last_offset", file=os.fspath(segment.path))
        raise ValueRefused(
            f"the last offset is {MAX_OFFSET}, the largest that Kafka has, so that the log has no end offset:"
            " kafka-log check tells whether the batch is damaged",
            where,
        )
    return found


def _read_last_header(
    segment: Segment, policy: Policy = Policy.KAFKA, on_damage: OnDamage = "raise"
) -> LogEnd | None:
    """Return leader epoch and last offset plus 1 of the last batch of a segment, by the headers
    from its last index entry on; None if it has no batch. Verify no checksum, and ignore an
    incomplete batch at the end. Raise CodecError if a header there is damaged by ``policy`` or the
    file cannot be read, unless ``on_damage`` is ``keep`` and the policy is not ``strict``.
    """
    if segment.is_empty:
        return None
    from kafka_log.logs.index_files import find_position_by_index  # layouts of indexes
    from kafka_log.segment.reader import last_offset_at
    from kafka_log.segment.scanner import header_scanner  # numpy

    start = find_position_by_index(segment, MAX_OFFSET, None)
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
            found = LogEnd(epoch, offset + 1)
    return found


def select_newest_replicas(partitions: Iterable[Partition]) -> list[Partition]:
    """Return one replica of each topic partition, in the order in which these come first: the one
    whose log end has the highest leader epoch, then offset, which Kafka would make the leader; the
    first of equal ones. A replica whose end is damaged or cannot be read counts as lowest, and the
    one that is returned instead has an ``error`` that says so; it also has one if
    ``partition.metadata`` of any replica is damaged or cannot be read. Raise DirectoryError if two
    replicas state different topic ids there, or lie in log directories of different clusters.
    """
    replicas: dict[tuple[str, int], list[Partition]] = {}
    for partition in partitions:
        replicas.setdefault(partition.key, []).append(partition)
    ids = ClusterIds()
    return [
        found[0] if len(found) == 1 else _select_newest(found, ids) for found in replicas.values()
    ]


def _select_newest(replicas: Sequence[Partition], ids: ClusterIds) -> Partition:
    """Return the replica whose log end has the highest leader epoch, then offset, the first of
    equal ones. One whose end is damaged or cannot be read counts as lowest; it may be the newest
    all the same, so that the one that is returned has an ``error``, as if damage hides the topic id
    of any. Raise DirectoryError if two of them state different topic ids, or lie in log directories
    of different clusters.
    """
    ids.find_only(replicas)
    first: tuple[bytes, Partition] | None = None
    reasons: list[tuple[Partition, str]] = []
    for replica in replicas:
        stated, hidden = find_topic_id(replica.directory)
        if hidden is not None:
            reason = f"the topic id of this log is not known ({hidden}), so that it may be of another topic with this name than the other replicas"
            reasons.append((replica, reason))
        if stated is None:
            continue
        first = first or (stated, replica)
        if stated != first[0]:
            reason = (
                f"its partition.metadata states another topic id than that of {first[1].directory}: these are different topics with the"
                " same name, of which one was deleted, and none is a replica of the other. Leave one of the directories out"
            )
            raise DirectoryError(replica.directory, reason)
    ends = [find_log_end(replica.segments) for replica in replicas]
    newest = replicas[max(range(len(ends)), key=lambda i: ends[i][0] or (-2, -1))]
    for replica, (_, problem) in zip(replicas, ends, strict=True):
        error = replica.error or problem
        if error is not None and replica is not newest:
            reason = f"the end of this log is not known ({error}), so that it may be newer than {newest.directory}, which is read"
            reasons.append((replica, reason))
    if not reasons or newest.error is not None:
        return newest
    replica, reason = reasons[0]
    where = Where(file=os.fspath(replica.directory))
    return replace(newest, error=UnreadableError(reason, where))


def select_replicas(partitions: Sequence[Partition], replicas: Replicas) -> list[Partition]:
    """Return the partitions to read, in the given order, by ``replicas``: all for ``keep``; for
    ``newest`` without live copies of a partition other than the one with the highest leader epoch,
    then end offset, which has an ``error`` if the end of another one or a topic id is not known;
    raise DirectoryError if such copies state different topic ids or cluster ids. For any other
    value, such as ``error``, raise DirectoryError if two directories hold the same partition in the
    same state, else return all.

    Only partitions in the same state in directories named like a partition compete. ``newest`` chooses among live ones only.
    """
    if replicas == "keep":
        return list(partitions)
    if replicas == "newest":
        live = [p for p in _keep_named(partitions) if p.state == "live"]
        newest = {(p.key, p.directory): p for p in select_newest_replicas(live)}
        others = {id(p) for p in partitions} - {id(p) for p in live}
        chosen = [p if id(p) in others else newest.pop((p.key, p.directory), None) for p in partitions]  # fmt: skip
        return [p for p in chosen if p is not None]
    if (duplicate := find_duplicate(partitions)) is not None:
        first, other = duplicate
        reason = (
            f"{first.directory} holds the same partition, so that its records would be read twice. Read one of the two, or add"
            " --replicas (replicas=): newest reads the copy with the highest leader epoch and offset, keep reads both"
        )
        raise DirectoryError(other.directory, reason)
    return list(partitions)


def find_duplicate(partitions: Iterable[Partition]) -> tuple[Partition, Partition] | None:
    """Return the first directory, and the next one, that hold the same partition in the same state.
    Return None if there are none. Directories that are not named like a partition are not compared.
    """
    seen: dict[tuple[str, int, State], Partition] = {}
    for p in _keep_named(partitions):
        first = seen.setdefault((p.topic, p.partition, p.state), p)
        if first is not p:
            return first, p
    return None


def _keep_named(partitions: Iterable[Partition]) -> list[Partition]:
    """Return the partitions whose directory is named like a live partition."""
    return [
        p for p in partitions if parse_live_partition_name(resolve_links(p.directory)) is not None
    ]
