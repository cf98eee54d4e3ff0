"""Where the elements of many entries are, by the lengths before them."""

from __future__ import annotations

import numpy as np

from codecgen.runtime.arrow.numpy_cases import Case, LengthPrefix
from codecgen.runtime.arrow.numpy_chains import follow, pass_over
from codecgen.runtime.arrow.numpy_fields import StructureReader
from codecgen.runtime.arrow.numpy_memory import Bytes, Fields, Memory, Vector

STEP = 1 << 16
"""Places that are held as a list."""


def find_elements(
    case: Case,
    memory: Memory,
    start: Vector,
    end: Vector,
    count: Vector,
    bad: Vector,
    max_elements: int,
) -> tuple[Vector, Vector, Vector]:
    """Return the positions of the elements in the sections from ``start`` to ``end`` of entries,
    their number in each entry, and a mask of invalid entries: those in ``bad``, and those that do
    not parse, with another number than ``count`` (-1: all to the section's end), too few or more
    than ``max_elements`` elements, or bytes after the last one. Without length prefixes more than 1000
    elements are invalid too. Invalid entries get no elements.
    """
    bad = bad | (count > end - start) | (count > max_elements)
    start, count = np.where(bad, end, start), np.where(bad, 0, count)
    if case.prefix is None:
        is_counted = bool(count.min(initial=0) >= 0)
        rows, counts, wrong = _by_reading(
            case, memory, start, end, count if is_counted else None, max_elements
        )
    else:
        rows, counts, p = follow(case.prefix, memory, start, end, case.read)
        rows, counts, p = _go_on(case.prefix, memory, rows, counts, p, end, count, max_elements)
        wrong = (p != end) | (count >= 0) & (counts != count)
    bad = bad | wrong | (counts > max_elements) | (counts < case.at_least)
    if bad.any():
        rows = rows[np.repeat(~bad, counts)]
        counts = np.where(bad, 0, counts)
    return rows, counts, bad


def _by_reading(
    case: Case, memory: Memory, start: Vector, end: Vector, count: Vector | None, max_elements: int
) -> tuple[Vector, Vector, Vector]:
    """Find elements that have no length prefix by reading them field by field: ``count`` in each
    section, or all up to its end if that is None, at most ``max_elements``. Return their positions, their
    number in each entry, and a mask of entries that do not parse, have more than 1000 elements or
    do not end with their section.
    """
    reader = StructureReader(memory, start, end, max_elements, root=False)

    def read(some: StructureReader) -> Fields:
        at = some.p
        case.read(some)
        return Fields(at=Bytes(memory, at, np.zeros(len(at), np.int64)))

    elements = reader.elements(count, read)
    return elements.fields.at.start, np.diff(elements.offsets), reader.bad | (reader.p != end)


def _go_on(
    prefix: LengthPrefix,
    memory: Memory,
    rows: Vector,
    counts: Vector,
    after: Vector,
    end: Vector,
    count: Vector,
    max_elements: int,
) -> tuple[Vector, Vector, Vector]:
    """Find the elements that :func:`follow` left, by a plain loop, one entry after the other, up to
    ``count`` (or one more than ``max_elements`` if it is -1). ``rows``, ``counts`` and ``after`` are what
    it returned; the latter two are changed. Return all positions in ascending order, the number in
    each entry, and the position after the last one.
    """
    parts: list[Vector] = [rows]
    held: list[int] = []
    for i in np.flatnonzero(after < end).tolist():
        p, number = int(after[i]), int(count[i])
        left = (max_elements + 1 if number < 0 else number) - int(counts[i])
        while left > 0:
            wanted, before = min(STEP, left), len(held)
            p = pass_over(prefix, memory.view, p, int(end[i]), wanted, held.append)
            found = len(held) - before
            counts[i] += found
            left -= found
            if len(held) >= STEP:
                parts.append(np.array(held, np.int64))
                held.clear()
            if found < wanted:
                break
        after[i] = p
    parts.append(np.array(held, np.int64))
    return (np.sort(np.concatenate(parts)) if len(parts) > 2 or held else rows), counts, after
