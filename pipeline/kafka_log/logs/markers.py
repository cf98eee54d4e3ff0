"""Transaction markers: whether a control batch commits or aborts."""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple, Self

from kafka_codecs import ControlRecordType
from kafka_log.logs.directory import Segment
from kafka_log.segment import framing
from kafka_log.segment.positioned_reads import UnreadableError, open_segment, read_exactly
from kafka_log.segment.reader import SegmentReader

_KINDS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)

BODY_BYTES = 64
"""The most bytes after the header of a batch that are remembered: markers have 17."""

BODIES = 4096
"""How many of them are remembered: markers of one kind differ in the epoch of the coordinator alone."""


class Marker(NamedTuple):
    """What a control batch says about a transaction."""

    kind: ControlRecordType
    coordinator_epoch: int


MarkerBodies = dict[tuple[int, int, int, bytes], Marker | None]
"""What control batches say, by magic, codec, number of records and the bytes after the header."""


class Markers:
    """Reads the markers of one segment, which stays open meanwhile. Raises UnreadableError.

    Control batches that have the same bytes after their headers say the same, so the reference codecs read one of each:
    ``known`` has what they found, also of other segments.
    """

    def __init__(self, segment: Segment, known: MarkerBodies) -> None:
        self._segment = segment
        self._known = known
        rolled = segment.size if segment.rolled else None
        self._file = open_segment(segment.path, is_listed=True, size=rolled)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def kind(
        self, position: int, size: int, magic: int, codec: int, record_count: int
    ) -> ControlRecordType | None:
        """Whether a control batch with these columns of the view batches commits or aborts; None when it does neither."""
        found = self.marker(position, size, magic, codec, record_count)
        return None if found is None else found.kind

    def marker(
        self, position: int, size: int, magic: int, codec: int, record_count: int
    ) -> Marker | None:
        """The same, with the epoch of the coordinator: -1 where the value cannot be read."""
        head = framing.layout_of(magic).head_size
        if not 0 <= size - head <= BODY_BYTES:
            return self._read(position)
        content = read_exactly(self._file, position + head, size - head)
        body = magic, codec, record_count, content
        if body not in self._known:
            found = self._read(position)
            if len(self._known) >= BODIES:
                return found
            self._known[body] = found
        return self._known[body]

    def _read(self, position: int) -> Marker | None:
        segment, end = self._segment, position + 1
        reader = SegmentReader(segment.path, start=position, stop=end, size=segment.size)
        for batch in reader:
            for record in batch.records:
                if record.control is None or record.control.type_id is None:
                    continue
                for kind in _KINDS:
                    if record.control.type_id == kind:
                        value = record.control.value or {}
                        return Marker(kind, value.get("coordinatorEpoch", -1))
        error = None if reader.end is None else reader.end.error
        if isinstance(error, UnreadableError):
            raise error
        return None
