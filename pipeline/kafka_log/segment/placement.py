"""Checks of the offsets of batches: within the range of their segment, and in ascending order."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np

from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.segment.ranges import MAX_OFFSET


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


def unambiguous(first: Any, last: Any, excluded: Any) -> Any:
    """Return the mask of :func:`find_ascending` without both of two batches that contradict only each other."""
    from_the_end = find_ascending(-last[::-1], -first[::-1], excluded[::-1])[::-1]
    return find_ascending(first, last, excluded) & from_the_end


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
