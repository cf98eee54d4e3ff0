"""The search for the next valid entry after damage, and the offsets that were read before it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

# The codecs are imported where damage is met: most passes do not need them.
if TYPE_CHECKING:
    from kafka_log.segment.model import Record

MAX_LOOKUPS = 8
"""Number of entries after damage whose offset is compared with the allowed ones. In a file with the name of another none fits."""


class KnownOffsets:
    """Offsets of the undamaged batches that a pass has read so far, as a check for offsets after damage.

    No checksum covers the base offset of a batch. Most passes never need the offsets. So only positions are noted for batches that
    kernels decode; their headers are read again after damage.
    """

    def __init__(self, read: Callable[[int, int], bytes], file: str, allowed: range | None) -> None:
        """Begin without any offset.

        Args:
            read: Returns bytes of the file, zeros in place of unreadable ones.
            file: Name of the file, for errors.
            allowed: Offsets that the file may hold. None allows all.
        """
        self._read = read
        self._file = file
        self._allowed = allowed
        self._last: int | None = None
        self._unread: int | None = None
        """Position of the first batch whose header was not read yet."""
        self._positions: deque[int] = deque(maxlen=2)
        """Positions of the last batch, and before it of one from which headers lead to it."""

    def allows(self, offset: int) -> bool:
        """Return whether the file may hold ``offset``."""
        return self._allowed is None or offset in self._allowed

    def is_between(self, after: int | None, records: list[Record], before: int | None) -> bool:
        """Return whether the first and the last of ``records`` (at least one, in offset order) have
        allowed offsets between ``after`` and ``before``, both excluded. None is no limit.
        """
        first, last = records[0].offset, records[-1].offset
        fits = (after is None or after < first) and (before is None or last < before)
        return fits and self.allows(first) and self.allows(last)

    def note(self, position: int, last_offset: int) -> None:
        """Note the position of an undamaged batch, and its last offset if the file may hold it."""
        self._positions.append(position)
        if self.allows(last_offset):
            self._last, self._unread = last_offset, None

    def note_run(self, first: int, last: int) -> None:
        """Note consecutive undamaged batches by the positions of the first and the last one. Nothing
        is read: their offsets are unknown until :meth:`last` reads headers from the file.
        """
        if self._unread is None:
            self._unread = first
        self._positions.extend(sorted({first, last}))

    def last(self) -> int | None:
        """Return the last offset of the undamaged batches read so far that the segment's name
        allows; None if there is none. Headers that were not read yet are read from the file now.
        """
        if self._unread is not None:
            first, self._unread = self._unread, None
            # The last batch alone says it, but for damage.
            if not self._read_headers(self._positions[-1]):
                self._read_headers(first)
        return self._last

    def _read_headers(self, first: int) -> bool:
        """Read the headers of the batches from position ``first`` to the last noted one, and set
        the last offset to the last allowed one of theirs. Return whether that of the last batch is
        allowed.
        """
        from kafka_log.segment.resynchronization import headers_between

        is_allowed = False
        for _, _, last in headers_between(self._read, first, self._positions[-1], self._file):
            is_allowed = self.allows(last)
            if is_allowed:
                self._last = last
        return is_allowed

    def offset_before_gap(self) -> int | None:
        """Return the last offset before the last batch that was read, if offsets are missing
        between both: then the offset of the last batch may be wrong. Return None if there is no
        gap, the last known offset is not above it, fewer than two batches are known, or their
        headers are invalid.
        """
        from kafka_log.segment.resynchronization import headers_between

        if len(self._positions) < 2:
            return None
        first, last = self._positions
        found = deque(headers_between(self._read, first, last, self._file), maxlen=2)
        if len(found) < 2 or found[-1][0] != last:
            return None
        (_, _, before), (_, begins, _) = found
        known = self.last()
        gap = begins is None or begins > before + 1
        return before if gap and known is not None and before < known else None

    def go_back(self, offset: int) -> None:
        """Set the last offset to ``offset``; that of the last batch is ignored."""
        self._last, self._unread = offset, None


class EntrySearch:
    """Search for valid entries (record batches or legacy messages) after damage: those with a valid
    checksum and an offset above the last known one.
    """

    def __init__(
        self, read: Callable[[int, int], bytes], size: int, file: str, offsets: KnownOffsets
    ) -> None:
        """Prepare searches in one file.

        Args:
            read: Returns bytes of the file, zeros in place of unreadable ones.
            size: Size of the file in bytes.
            file: Name of the file, for errors.
            offsets: Offsets of the batches before the damage.
        """
        self._read = read
        self._size = size
        self._file = file
        self._offsets = offsets
        self._found: tuple[int, int | None, tuple[int, int | None] | None] | None = None
        """The last search: its start, the offset before it, and its result."""

    def is_at(self, position: int) -> bool:
        """Return whether a valid entry begins at byte ``position``: its checksum is valid, and its
        offset above the last known one. Return False at or after the end of the file.
        """
        from kafka_log.segment.resynchronization import base_offset_at

        if position >= self._size:
            return False
        after = self._offsets.last()
        return base_offset_at(self._read, position, self._size, self._file, after) is not None

    def next_from(self, start: int) -> tuple[int, int | None] | None:
        """Return (byte position, first offset) of the next valid entry at or after ``start``, None
        if :func:`find_entry` finds none. The offset is replaced by that of a later entry if it is
        not allowed, or not below that of the entry right after it. It is None if neither the entry
        nor the 8 after it have an allowed offset. If the found offset proves that the last known
        one is too high, that is set back first.
        """
        from kafka_log.segment.resynchronization import next_base_offset

        after = self._offsets.last()
        if self._found is not None:
            searched, offset, entry = self._found
            if offset == after and searched <= start and (entry is None or start <= entry[0]):
                return entry
        entry = found = self._next(start, self._size, after)
        for _ in range(MAX_LOOKUPS):
            if found is None or self._offsets.allows(found[1]):
                break
            found = self._next(found[0] + 1, self._size, after)
        other = self._next_before_gap(start, self._size if entry is None else entry[0])
        if other is not None:
            entry = found = other
            after = self._offsets.last()
        if found is not None and self._offsets.allows(found[1]):
            following = next_base_offset(self._read, found[0], self._size, self._file, after)
            if (
                following is not None and following <= found[1]
            ):  # the offset of the entry itself is invalid
                found = found[0], following
        if entry is not None:
            is_allowed = found is not None and self._offsets.allows(found[1])
            entry = entry[0], found[1] if found is not None and is_allowed else None
        self._found = (start, after, entry)
        return entry

    def _next(self, start: int, end: int, after: int | None) -> tuple[int, int] | None:
        """Return position and first offset of the next entry before ``end`` with an offset larger than ``after``, None if there is none."""
        from kafka_log.segment.resynchronization import find_entry

        return find_entry(self._read, start, end, self._file, after)

    def _next_before_gap(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the next entry before ``end`` if its offset proves that the last known offset,
        which follows a gap, is too high; the last offset is then set back to the one before the
        gap. Return None, and change nothing, otherwise.
        """
        after, before_gap = self._offsets.last(), self._offsets.offset_before_gap()
        if after is None or before_gap is None:
            return None
        found = self._next(start, end, before_gap)
        if found is None or found[1] > after:
            return None
        self._offsets.go_back(before_gap)
        return found
