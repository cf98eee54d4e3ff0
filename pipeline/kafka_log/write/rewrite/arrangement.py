"""Arrangement of a log whose segments have wrong names or overlap, or whose batches change places: which batches are written, in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from kafka_log.logs.partitions import Partition, pair_with_next_base_offset
from kafka_log.write.segment_contents import (
    SegmentContents,
    add_damaged,
    choose_intact,
    get_named_base_offset,
    mark_inside,
    read_contents,
)

CACHED_BATCHES = 1 << 20
"""Maximum of batches whose headers are kept in memory, unless one segment has more."""


@dataclass(frozen=True, slots=True)
class Run:
    """Batches of one segment that are written one after the other.

    Attributes:
        segment: Index of the segment in the partition.
        batches: Indexes of the batches, ascending.
        begins: Whether it has the first batches of that segment that are written.
    """

    segment: int
    batches: Any
    begins: bool


class ContentsCache:
    """The contents of the segments of a partition, of which the latest are kept in memory."""

    def __init__(self, partition: Partition) -> None:
        self._pairs = tuple(pair_with_next_base_offset(partition.segments))
        self._kept: dict[int, SegmentContents] = {}

    def __len__(self) -> int:
        return len(self._pairs)

    def next_base(self, k: int) -> int | None:
        """Return the base offset of the segment after the one with index ``k``, or None."""
        return self._pairs[k][1]

    def read(self, k: int) -> SegmentContents:
        """Return the contents of the segment with index ``k``, read again if they are not cached.
        Damage and unreadable files are part of the contents, and not raised.
        """
        found = self._kept.pop(k, None)
        if found is None:
            found = read_contents(*self._pairs[k])
        while self._kept and len(found.headers) + self._count_kept() > CACHED_BATCHES:
            del self._kept[next(iter(self._kept))]
        self._kept[k] = found
        return found

    def _count_kept(self) -> int:
        return sum(len(found.headers) for found in self._kept.values())


class Arrangement:
    """The batches of a partition that are written, by offset, so that their offsets ascend.

    Batches that lie where file names and the batches around them say come first. Others fill the
    gaps between them: several that ascend, or a single one, if it continues another one, its
    place in the file has no room for it, or there is no other batch. No checksum covers a base offset, so that of other single
    batches is probably wrong. Damaged batches come last.

    Memory holds four integers for each batch.
    """

    def __init__(self, partition: Partition, contents: ContentsCache, keep_damaged: bool) -> None:
        places: list[tuple[Any, Any, Any, Any]] = []
        self._leading: dict[int, int] = {}
        after, misplaced = -1, []
        for k in range(len(contents)):
            found = contents.read(k)
            next_base = contents.next_base(k)
            inside = mark_inside(found, next_base) & (found.headers.first > after)
            taken = choose_intact(found, next_base, inside)
            places.append(_list_batches(k, found, taken))
            if taken.any():
                after = int(found.headers.last[taken][-1])
                self._leading[k] = int(taken.argmax())
            if has_misplaced(partition, found, taken):
                misplaced.append(k)
        columns = [np.concatenate(column) for column in zip(*places, strict=True)]
        self._first, self._last, self._segment, self._index = columns
        self._is_moved = np.zeros(len(self._first), np.bool_)
        for k in misplaced:
            self._fill(k, contents, is_single=False)
        while any(self._fill(k, contents, is_single=True) for k in misplaced):
            pass  # what was added may confirm the offsets of others
        for k in range(len(contents)):
            self._add_damaged(k, contents, keep_damaged)

    def runs(self) -> Iterator[Run]:
        """Yield the batches to write, ascending by offset, as runs of batches that follow each
        other in one segment. Each run says whether it has the batch of that segment that is written
        first, and so begins a segment.
        """
        step = (np.diff(self._segment) != 0) | (np.diff(self._index) < 0)
        cuts = [0, *(np.flatnonzero(step) + 1).tolist(), len(self._segment)]
        leading = dict(self._leading)
        for start, end in pairwise(cuts):
            if start < end:
                k, batches = int(self._segment[start]), self._index[start:end]
                yield Run(k, batches, bool((batches == leading.setdefault(k, batches[0])).any()))

    def mark_taken(self, k: int, count: int) -> Any:
        """Return a mask of those of the ``count`` batches of segment ``k`` that are written."""
        return _mark(self._index[self._segment == k], count)

    def mark_moved(self, k: int, count: int) -> Any:
        """Return a mask of those of the ``count`` batches of segment ``k`` that are written, and
        lie elsewhere than they belong.
        """
        return _mark(self._index[(self._segment == k) & self._is_moved], count)

    def _add(self, k: int, found: SegmentContents, which: Any, *, is_moved: bool) -> None:
        """Add the batches of segment ``k`` in the mask ``which``, which overlap no other one; do
        nothing if there are none. ``is_moved`` is noted for them: they lie elsewhere in the files
        than their offsets belong.
        """
        if not which.any():
            return
        first, last, segment, index = _list_batches(k, found, which)
        order = np.argsort(np.concatenate([self._first, first]), kind="stable")
        self._first = np.concatenate([self._first, first])[order]
        self._last = np.concatenate([self._last, last])[order]
        self._segment = np.concatenate([self._segment, segment])[order]
        self._index = np.concatenate([self._index, index])[order]
        moved = np.full(len(first), is_moved)
        self._is_moved = np.concatenate([self._is_moved, moved])[order]

    def _find_gaps(self, found: SegmentContents) -> tuple[Any, Any]:
        """Return for each batch of a segment the number of added batches that begin at or below its
        first offset, and a mask of the batches that overlap no added one.
        """
        first, last = found.headers.first, found.headers.last
        at = np.searchsorted(self._first, first, side="right")
        lower = np.append(-1, self._last)[at]
        upper = np.append(self._first, np.iinfo(np.int64).max)[at]
        return at, (lower < first) & (first <= last) & (last < upper)

    def _fill(self, k: int, contents: ContentsCache, *, is_single: bool) -> bool:
        """Add intact batches of segment ``k`` that are not added yet and overlap no added one, and
        return whether there are any. Without ``is_single`` these are batches that ascend with one
        before or after them in the file. With it, they are those that continue an added batch, or
        have no room between the added ones around them in the file, or any if none is added yet.
        """
        found = contents.read(k)
        headers, there = found.headers, self.mark_taken(k, len(found.headers))
        at, fits = self._find_gaps(found)
        which = found.is_good & ~there & fits
        if is_single:
            between = (at > 0) & (at < len(self._first))
            between &= ~_has_room(found, there, contents.next_base(k))
            which &= between | self._mark_continuing(found, at) | (len(self._first) == 0)
        else:
            which &= _mark_ascending(found, which)
        rows = np.flatnonzero(which)
        end = -1
        for i in rows[np.argsort(headers.first[rows], kind="stable")].tolist():
            if headers.first[i] > end:
                end = int(headers.last[i])
            else:
                which[i] = False
        self._add(k, found, which, is_moved=True)
        return bool(which.any())

    def _mark_continuing(self, found: SegmentContents, at: Any) -> Any:
        """Return a mask of the batches of a segment that adjoin an added one. Their first offset is
        the next after the last one of the added batch below, or their last offset is the one before
        the first of the added batch above. ``at`` has, for each, the number of added batches below.
        """
        below, above = np.append(-2, self._last)[at], np.append(self._first, -2)[at]
        return (found.headers.first == below + 1) | (found.headers.last + 1 == above)

    def _add_damaged(self, k: int, contents: ContentsCache, keep_damaged: bool) -> None:
        """Add the damaged batches of segment ``k`` that have records to write; with
        ``keep_damaged`` records with a wrong checksum count too. They must fit between their
        neighbors in the file, overlap no other batch, and either belong to the segment or continue
        a neighbor.
        """
        found = contents.read(k)
        if not found.troubles:
            return
        headers, there = found.headers, self.mark_taken(k, len(found.headers))
        follows = headers.first[1:] == headers.last[:-1] + 1
        inside = mark_inside(found, contents.next_base(k))
        inside |= np.append(False, follows) | np.append(follows, False)
        inside &= self._find_gaps(found)[1]
        damaged = add_damaged(found, there, inside, keep_damaged) & ~there
        self._add(k, found, damaged, is_moved=False)


def _list_batches(k: int, found: SegmentContents, which: Any) -> tuple[Any, Any, Any, Any]:
    """Return the batches in the mask ``which`` as arrays: first and last offset, the index ``k`` of
    their segment, and their indexes in it.
    """
    rows = np.flatnonzero(which)
    return found.headers.first[rows], found.headers.last[rows], np.full(len(rows), k), rows


def _mark(rows: Any, count: int) -> Any:
    """Return a mask of ``count`` batches that is True for those with the indexes ``rows``."""
    found = np.zeros(count, np.bool_)
    found[rows] = True
    return found


def has_misplaced(partition: Partition, found: SegmentContents, taken: Any) -> bool:
    """Return whether intact batches of a segment are not in the mask ``taken``. Return False for a
    segment in another state than the partition: what the cleaner replaced overlaps live segments.
    """
    return found.segment.state == partition.state and bool((found.is_good & ~taken).any())


def _mark_ascending(found: SegmentContents, which: Any) -> Any:
    """Return a mask of the intact batches whose offsets fit to those of an intact neighbor, the one
    before or after in the file. They fit if one continues the other without a gap, or if both are
    in the mask ``which`` and the offsets ascend. All other batches are False.
    """
    headers = found.headers
    rows = np.flatnonzero(found.is_good)
    first, last, of = headers.first[rows], headers.last[rows], which[rows]
    ascends = (first[1:] > last[:-1]) & of[1:] & of[:-1]
    ascends |= first[1:] == last[:-1] + 1
    marked = np.zeros(len(headers), np.bool_)
    marked[rows] = np.append(False, ascends) | np.append(ascends, False)
    return marked


def _has_room(found: SegmentContents, taken: Any, next_base: int | None) -> Any:
    """Return a mask of the batches that would fit, with other offsets, between the batches of the
    mask ``taken`` before and after them in the file; False for those of ``taken``. At the ends of
    the file the base offset in its name (0 without one) and ``next_base`` (excluded; None: no
    limit) bound them.
    """
    headers, base = found.headers, get_named_base_offset(found.segment)
    low = np.maximum.accumulate(np.where(taken, headers.last, -1 if base is None else base - 1))
    high = np.where(
        taken, headers.first, np.iinfo(np.int64).max if next_base is None else next_base
    )
    high = np.minimum.accumulate(high[::-1])[::-1]
    return high - low - 1 >= headers.last - headers.first + 1
