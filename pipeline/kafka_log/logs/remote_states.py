"""States of copies in tiered storage, according to the topic ``__remote_log_metadata``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from codecgen.runtime.errors import CodecError
from kafka_codecs import (
    REMOTE_LOG_METADATA_RECORD,
    RemoteLogMetadataRecordType,
    RemoteLogSegmentState,
)
from kafka_log.logs.names import REMOTE_LOG_METADATA, parse_remote_ids
from kafka_log.logs.partitions import SkippedPath
from kafka_log.segment.model import Policy
from kafka_log.segment.reader import SegmentReader, damage

if TYPE_CHECKING:
    from kafka_log.logs.partitions import Partition, Segment

_OF_SEGMENTS = (
    RemoteLogMetadataRecordType.REMOTE_LOG_SEGMENT_METADATA_RECORD,
    RemoteLogMetadataRecordType.REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD,
)


@dataclass(slots=True)
class RemoteStates:
    """States of remote segments (copies in tiered storage), as the topic ``__remote_log_metadata``
    records them.

    Attributes:
        segments: State number of each copy by segment id. It only increases.
        contents: Size in bytes, and offset after the last one, of each copy by segment id.
        deleted: Partitions whose copies are all being deleted: topic id and partition number.
        damaged: Segments of the topic that were not read completely.
    """

    segments: dict[UUID, int] = field(default_factory=dict)
    contents: dict[UUID, tuple[int, int]] = field(default_factory=dict)
    deleted: set[tuple[UUID, int]] = field(default_factory=set)
    damaged: set[Path] = field(default_factory=set)

    def is_unfinished(self, path: Path, partition: int) -> bool:
        """Return whether the copy of a segment at ``path`` in tiered storage is incomplete or being
        deleted, or its partition was deleted. Return False for a copy without a record in
        ``__remote_log_metadata``, or whose names have no ids. The file is not read.
        """
        topic, segment = parse_remote_ids(path)
        if topic is not None and (topic, partition) in self.deleted:
            return True
        state = None if segment is None else self.segments.get(segment)
        return state is not None and state != RemoteLogSegmentState.COPY_SEGMENT_FINISHED

    def add_contents(self, segment: Segment) -> Segment:
        """Return a copy in tiered storage with its ``stated_end``, and with ``missing`` bytes if it
        is shorter than ``__remote_log_metadata`` says. Return it unchanged if that has no record.
        """
        _, name = parse_remote_ids(segment.path)
        stated = None if name is None else self.contents.get(name)
        if stated is None or segment.problem is not None:
            return segment
        size = max(segment.size, stated[0])
        return replace(segment, size=size, missing=size - segment.size, stated_end=stated[1])


DAMAGED = "a log with damage, in which the states of remote segments may be lost: unfinished copies count as complete"
"""What is said about a segment of the topic that was not read completely."""


def mark_unfinished_copies(
    found: Sequence[Partition],
) -> tuple[list[Partition], list[SkippedPath]]:
    """Return the partitions with the state of remote segments changed to ``unfinished`` if
    ``__remote_log_metadata``, which must be among the partitions, says that the copy is incomplete
    or being deleted, and with ``missing`` and ``stated_end`` of other copies. Without that topic nothing changes. Return also a SkippedPath for each segment of the topic that
    was not read completely, and each of its directories that cannot be read.
    """
    segments = (
        s for p in found if p.topic == REMOTE_LOG_METADATA for s in p.segments if s.state == "live"
    )
    states = read_remote_states(segments)

    def mark(s: Segment) -> Segment:
        if s.state != "remote":
            return s
        if states.is_unfinished(s.path, s.partition):
            return replace(s, state="unfinished")
        return states.add_contents(s)

    marked = [replace(p, segments=tuple(map(mark, p.segments))) for p in found]
    unreadable = {
        p.directory for p in found if p.topic == REMOTE_LOG_METADATA and p.error is not None
    }
    damaged = sorted(states.damaged | unreadable)
    return marked, [SkippedPath(path, DAMAGED) for path in damaged]


def read_remote_states(segments: Iterable[Segment]) -> RemoteStates:
    """Return the states of copies and deleted partitions in segments of ``__remote_log_metadata``,
    of all its partitions and replicas. Damaged batches (also by their checksum) and invalid records
    are skipped, and their segments, like those that cannot be read, noted as damaged. Of several
    states of a copy the highest counts.
    """
    found = RemoteStates()
    for segment in segments:
        for value in _read_values(segment, found):
            try:
                record = REMOTE_LOG_METADATA_RECORD.parse(value, strict=False)
            except CodecError:
                found.damaged.add(segment.path)
                continue
            _add_record(found, record.api_key, record.body)
    return found


def _add_record(found: RemoteStates, kind: Any, body: Any) -> None:
    """Add the state of a segment's copy, or a deletion of a partition, to ``found``. Of several
    states of a copy the highest counts. Ignore other types of records.
    """
    if kind in _OF_SEGMENTS:
        # The state of a copy only increases, so that the order of records does not matter.
        name, state = body.remote_log_segment_id.id, int(body.remote_log_segment_state)
        found.segments[name] = max(found.segments.get(name, 0), state)
        if kind == RemoteLogMetadataRecordType.REMOTE_LOG_SEGMENT_METADATA_RECORD:
            found.contents[name] = body.segment_size_in_bytes, body.end_offset + 1
    elif kind == RemoteLogMetadataRecordType.REMOTE_PARTITION_DELETE_METADATA_RECORD:
        place = body.topic_id_partition
        found.deleted.add((place.id, place.partition))


def _read_values(segment: Segment, found: RemoteStates) -> Iterator[bytes]:
    """Yield the record values in a segment, except null ones, and those in control batches and
    damaged batches (also by their checksum). Note the segment in ``found`` if a batch is damaged or
    the file cannot be read.
    """
    reader = SegmentReader(
        segment.path, policy=Policy.SALVAGE, tail=segment.tail, size=segment.size
    )
    try:
        for batch in reader:
            if not batch.is_valid or damage(batch):
                found.damaged.add(segment.path)
            elif not batch.is_control:
                yield from (record.value for record in batch.records if record.value is not None)
    except OSError:
        found.damaged.add(segment.path)
    if reader.end is not None and not reader.end.is_normal:
        found.damaged.add(segment.path)
