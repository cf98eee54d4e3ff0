"""The offsets of the batches before a place in a file, as far as they are believed: no checksum covers the first offset of a batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_log.segment.model import Record


class OffsetsBefore:
    """What one pass over a file knows of the good batches before its place.

    Most passes never ask. So only the places of batches that kernels read are noted, and their headers are read once more if there is
    damage. ``read`` gives bytes of the file, zeros for those that cannot be read; ``allowed`` are the offsets that there may be, None: all.
    """

    def __init__(self, read: Callable[[int, int], bytes], file: str, allowed: range | None) -> None:
        self._read = read
        self._file = file
        self._allowed = allowed
        self._last: int | None = None
        self._unread: int | None = None
        """The first batch of those before this place of which no header was looked at yet."""
        self._places: deque[int] = deque(maxlen=2)
        """Where the last batch lies, and before it one from which headers lead there."""

    def believes(self, offset: int) -> bool:
        """Whether there may be such an offset in the file."""
        return self._allowed is None or offset in self._allowed

    def is_between(self, after: int | None, records: list[Record], before: int | None) -> bool:
        """Whether records have offsets between these."""
        first, last = records[0].offset, records[-1].offset
        fits = (after is None or after < first) and (before is None or last < before)
        return fits and self.believes(first) and self.believes(last)

    def note(self, position: int, last_offset: int) -> None:
        """Note a batch that is good."""
        self._places.append(position)
        if self.believes(last_offset):
            self._last, self._unread = last_offset, None

    def note_run(self, first: int, last: int) -> None:
        """Note a run of batches, which are all good, by the places of the first and the last one."""
        if self._unread is None:
            self._unread = first
        self._places.extend(sorted({first, last}))

    def last(self) -> int | None:
        """The last one that is believed."""
        if self._unread is not None:
            first, self._unread = self._unread, None
            # The last batch alone says it, but for damage.
            if not self._ask(self._places[-1]):
                self._ask(first)
        return self._last

    def _ask(self, first: int) -> bool:
        """Take the last offset that is believed of the batches from ``first`` on. Whether the last one's is."""
        from kafka_log.segment.resynchronisation import headers_between

        believed = False
        for _, _, last in headers_between(self._read, first, self._places[-1], self._file):
            believed = self.believes(last)
            if believed:
                self._last = last
        return believed

    def doubted(self) -> int | None:
        """The last offset before the last batch, if that lies behind a gap: its own may be too high."""
        from kafka_log.segment.resynchronisation import headers_between

        if len(self._places) < 2:
            return None
        first, last = self._places
        found = deque(headers_between(self._read, first, last, self._file), maxlen=2)
        if len(found) < 2 or found[-1][0] != last:
            return None
        (_, _, before), (_, begins, _) = found
        known = self.last()
        gap = begins is None or begins > before + 1
        return before if gap and known is not None and before < known else None

    def go_back(self, offset: int) -> None:
        """Believe this offset to be the last one, and not that of the last batch."""
        self._last, self._unread = offset, None
