"""Where a pass over a file goes on after damage."""

from __future__ import annotations

from collections.abc import Callable

from kafka_log.segment.offsets_before import OffsetsBefore

LOOKS = 8
"""Entries after damage that are asked for an offset that can be; in a file that has the name of another none has one."""


class EntrySearch:
    """Finds whole batches behind damage. ``read`` gives bytes of the file, zeros for those that cannot be read; ``size`` is that of the
    file, and ``offsets`` are those before the damage."""

    def __init__(
        self, read: Callable[[int, int], bytes], size: int, file: str, offsets: OffsetsBefore
    ) -> None:
        self._read = read
        self._size = size
        self._file = file
        self._offsets = offsets
        self._found: tuple[int, int | None, tuple[int, int | None] | None] | None = None
        """The last search: from where, after which offset, and what it found."""

    def is_at(self, position: int) -> bool:
        """Whether a good entry begins at a place."""
        from kafka_log.segment.resynchronisation import entry_at

        if position >= self._size:
            return False
        after = self._offsets.last()
        return entry_at(self._read, position, self._size, self._file, after) is not None

    def next_from(self, start: int) -> tuple[int, int | None] | None:
        """Where the next whole batch begins at ``start`` or after it, and its first offset, or the first one after it that may be."""
        from kafka_log.segment.resynchronisation import offset_behind

        after, believes = self._offsets.last(), self._offsets.believes
        if self._found is not None:
            searched, offset, entry = self._found
            if offset == after and searched <= start and (entry is None or start <= entry[0]):
                return entry
        entry = found = self._next(start, self._size, after)
        for _ in range(LOOKS):
            if found is None or believes(found[1]):
                break
            found = self._next(found[0] + 1, self._size, after)
        other = self._of_doubt(start, self._size if entry is None else entry[0])
        if other is not None:
            entry = found = other
            after = self._offsets.last()
        if found is not None and believes(found[1]):
            behind = offset_behind(self._read, found[0], self._size, self._file, after)
            if behind is not None and behind <= found[1]:  # it is that one's which cannot be
                found = found[0], behind
        if entry is not None:
            can_be = found is not None and believes(found[1])
            entry = entry[0], found[1] if found is not None and can_be else None
        self._found = (start, after, entry)
        return entry

    def _next(self, start: int, end: int, after: int | None) -> tuple[int, int] | None:
        from kafka_log.segment.resynchronisation import next_entry

        return next_entry(self._read, start, end, self._file, after)

    def _of_doubt(self, start: int, end: int) -> tuple[int, int] | None:
        """The next whole batch before a place, if its offset says that the last one before the damage has one that is too high: that is
        not believed then."""
        after, doubted = self._offsets.last(), self._offsets.doubted()
        if after is None or doubted is None:
            return None
        found = self._next(start, end, doubted)
        if found is None or found[1] > after:
            return None
        self._offsets.go_back(doubted)
        return found
