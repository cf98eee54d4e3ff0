"""Transaction markers: whether a control batch commits or aborts."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from kafka_codecs import ControlRecordType
from kafka_log.segment import framing
from kafka_log.segment.reader import SegmentReader

_KINDS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)

BODY_BYTES = 64
"""The most bytes after the header of a batch that are remembered: markers have 17."""

BODIES = 4096
"""How many of them are remembered: markers of one kind differ in the epoch of the coordinator alone."""

MarkerBodies = dict[tuple[int, int, int, bytes], ControlRecordType | None]
"""What control batches say, by magic, codec, number of records and the bytes after the header."""


class Markers:
    """Reads the markers of one segment, which stays open meanwhile. Raises OSError.

    Control batches that have the same bytes after their headers say the same, so the reference codecs read one of each:
    ``known`` has what they found, also of other segments.
    """

    def __init__(self, path: Path, known: MarkerBodies) -> None:
        self._path = path
        self._known = known
        self._file = path.open("rb", buffering=0)

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
        """What a control batch with these columns of the view batches says about a transaction; None when it says nothing of one."""
        head = framing.layout_of(magic).head_size
        if not 0 <= size - head <= BODY_BYTES:
            return self._read(position)
        self._file.seek(position + head)
        body = magic, codec, record_count, self._file.read(size - head)
        if body not in self._known:
            found = self._read(position)
            if len(self._known) >= BODIES:
                return found
            self._known[body] = found
        return self._known[body]

    def _read(self, position: int) -> ControlRecordType | None:
        reader = SegmentReader(self._path, start=position, stop=position + 1)
        for batch in reader:
            for record in batch.records:
                if record.control is None or record.control.type_id is None:
                    continue
                for kind in _KINDS:
                    if record.control.type_id == kind:
                        return kind
        return None
