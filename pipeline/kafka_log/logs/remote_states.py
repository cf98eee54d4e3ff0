"""Which copies in tiered storage count: what the topic ``__remote_log_metadata`` says of them."""

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
from kafka_log.logs.names import parse_remote_ids
from kafka_log.segment.model import Policy
from kafka_log.segment.reader import SegmentReader, damage

if TYPE_CHECKING:
    from kafka_log.logs.partitions import Partition, Segment
TOPIC = "__remote_log_metadata"

_OF_SEGMENTS = (
    RemoteLogMetadataRecordType.REMOTE_LOG_SEGMENT_METADATA_RECORD,
    RemoteLogMetadataRecordType.REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD,
)


@dataclass(slots=True)
class RemoteStates:
    """How far copies are, and partitions of which all copies are to be deleted, by the ids of their topics."""

    segments: dict[UUID, int] = field(default_factory=dict)
    deleted: set[tuple[UUID, int]] = field(default_factory=set)

    def is_unfinished(self, path: Path, partition: int) -> bool:
        """Whether a copy was not finished, or its deletion has begun. What nothing is said of is neither."""
        topic, segment = parse_remote_ids(path)
        if topic is not None and (topic, partition) in self.deleted:
            return True
        state = None if segment is None else self.segments.get(segment)
        return state is not None and state != RemoteLogSegmentState.COPY_SEGMENT_FINISHED


def mark_unfinished_copies(found: Sequence[Partition]) -> list[Partition]:
    """Partitions where copies that do not count are called what they are, if the topic that says it is among these."""
    told = [s.path for p in found if p.topic == TOPIC for s in p.segments if s.state == "live"]
    states = read_remote_states(told)

    def of(s: Segment) -> Segment:
        is_one = s.state == "remote" and states.is_unfinished(s.path, s.partition)
        return replace(s, state="unfinished") if is_one else s

    return [replace(p, segments=tuple(map(of, p.segments))) for p in found]


def read_remote_states(paths: Iterable[Path]) -> RemoteStates:
    """What segments of the topic say, of all its partitions and replicas. What cannot be read says nothing."""
    found = RemoteStates()
    for path in paths:
        for value in _values(path):
            try:
                record = REMOTE_LOG_METADATA_RECORD.parse(value, strict=False)
            except CodecError:
                continue
            _add(found, record.api_key, record.body)
    return found


def _add(found: RemoteStates, kind: Any, body: Any) -> None:
    if kind in _OF_SEGMENTS:
        # A copy goes from one state to the next only, so the order of the records is no matter.
        name, state = body.remote_log_segment_id.id, int(body.remote_log_segment_state)
        found.segments[name] = max(found.segments.get(name, 0), state)
    elif kind == RemoteLogMetadataRecordType.REMOTE_PARTITION_DELETE_METADATA_RECORD:
        place = body.topic_id_partition
        found.deleted.add((place.id, place.partition))


def _values(path: Path) -> Iterator[bytes]:
    try:
        for batch in SegmentReader(path, policy=Policy.SALVAGE):
            if batch.is_control or not batch.is_valid or damage(batch):
                continue
            yield from (record.value for record in batch.records if record.value is not None)
    except OSError:
        return
