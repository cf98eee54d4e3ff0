"""Checks of the offsets of batches: within the range of their segment, and in ascending order."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np

from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.segment.ranges import MAX_OFFSET, Range

FROM_ZERO: Range = (0, None)
"""All offsets that a log can have."""


def find_outside_segment(first: Any, last: Any, base: int | None, next_base: int | None) -> Any:
    """Return the mask of batches with an offset before the segment's ``base``, more than 2**31 - 1
    after it, or at or after ``next_base`` (None: no such limit). It is all False if ``base`` is
    None; batches whose last offset is below their first are not in it.
    """
    found = np.zeros(len(first), np.bool_)
    if base is None:
        return found
    found |= first < min(base, MAX_OFFSET)
    found |= last > min(base + MAX_RELATIVE, MAX_OFFSET)
    if next_base is not None:
        found |= last >= min(next_base, MAX_OFFSET)
    return found & (last >= first)  # else the batch says what cannot be


def find_ascending(first: Any, last: Any, excluded: Any) -> Any:
    """Return the mask of the batches to keep so that offsets ascend and the fewest are left out. Of
    two batches in the wrong order it keeps the second, of two copies the first. Batches in the mask
    ``excluded`` and those whose last offset is below their first are never kept.
    """
    kept = np.flatnonzero(~excluded)
    first, last = first[kept], last[kept]
    found = ~excluded
    if bool((last < first).any()) or bool((first[1:] <= last[:-1]).any()):
        found[kept[_not_rising(first.tolist(), last.tolist())]] = False
    return found


def find_placed(first: Any, last: Any, excluded: Any, allowed: Range = FROM_ZERO) -> Any:
    """Return the mask of the batches to keep as :func:`find_ascending` does. Of two batches that
    contradict only each other, leave out the one whose offsets exactly fill the room between the
    batches before and after it, if the other one has no room; the first one in the wrong order if
    that does not tell.

    A batch whose base offset is wrong leaves the room of its right offsets free.

    Args:
        first: First offsets of the batches, in file order.
        last: Last offsets.
        excluded: Mask of batches that are never kept.
        allowed: Offsets that the segment may hold.
    """
    found = find_ascending(first, last, excluded)
    dropped = np.flatnonzero(~found & ~excluded & (last >= first)).tolist()
    if not dropped:
        return found
    spans = list(zip(first.tolist(), last.tolist(), strict=True))
    kept = np.flatnonzero(found).tolist()
    for i in dropped:
        at = bisect_left(kept, i)
        low, high = spans[i]
        beside = range(max(at - 2, 0), min(at + 2, len(kept)))
        clashes = [
            k for k in beside if (spans[kept[k]][1] >= low if k < at else spans[kept[k]][0] <= high)
        ]
        room = _count_free(spans, kept, i, allowed)
        if len(clashes) != 1 or room is None or room > high - low:
            continue
        (k,) = clashes
        other, kept[k] = kept[k], i
        begin, stop = spans[other]
        room = _count_free(spans, kept, other, allowed)
        overlaps = (begin, stop) != (low, high) and begin <= high and low <= stop
        if overlaps if room is None else room == stop - begin + 1:
            found[i], found[other] = True, False
        else:
            kept[k] = other
    return found


def _count_free(
    spans: list[tuple[int, int]], kept: list[int], i: int, allowed: Range
) -> int | None:
    """Return how many offsets are free between the batches before and after batch ``i``, or the
    bounds ``allowed``; None without such a bound.

    Args:
        spans: First and last offset of each batch.
        kept: Indexes of the batches that are kept, ascending, without ``i``.
        i: Index of the batch.
        allowed: Offsets that the segment may hold.
    """
    at = bisect_left(kept, i)
    low, end = allowed
    begin = spans[kept[at - 1]][1] + 1 if at else low
    stop = spans[kept[at]][0] if at < len(kept) else end
    return None if begin is None or stop is None else stop - begin


def find_unambiguous(first: Any, last: Any, excluded: Any, allowed: Range = FROM_ZERO) -> Any:
    """Return the mask of :func:`find_placed` without both of two batches that contradict only each
    other, if that does not tell which one is wrong.
    """
    low, end = allowed
    mirrored = None if end is None else 1 - end, None if low is None else 1 - low
    from_the_end = find_placed(-last[::-1], -first[::-1], excluded[::-1], mirrored)[::-1]
    return find_placed(first, last, excluded, allowed) & from_the_end


def _not_rising(first: list[int], last: list[int]) -> list[int]:
    """Return the indexes, ascending, of the fewest batches without which offsets ascend, with all
    whose last offset is below their first. Of two batches in the wrong order it is the first one,
    of two copies the last one.
    """
    ends: list[int] = []
    chain: list[int] = []
    before: list[int] = [-1] * len(first)
    for i, (a, b) in enumerate(zip(first, last, strict=True)):
        if b < a:
            continue
        at = bisect_left(ends, a)
        before[i] = chain[at - 1] if at else -1
        if at == len(ends):
            ends.append(b)
            chain.append(i)
        elif b < ends[at]:
            ends[at], chain[at] = b, i
    kept = set()
    i = chain[-1] if chain else -1
    while i >= 0:
        kept.add(i)
        i = before[i]
    return [i for i in range(len(first)) if i not in kept]
