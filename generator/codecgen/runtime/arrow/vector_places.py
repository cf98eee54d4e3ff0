"""Where the elements of many entries are, by the lengths in front of them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from itertools import repeat

import numpy as np

from codecgen.runtime.arrow.vector_cases import Case, Lead
from codecgen.runtime.arrow.vector_memory import Bytes, Fields, Memory, Vector
from codecgen.runtime.arrow.vectors import Walk

STEP = 1 << 16
"""Places that are held as a list."""

ROUND = 80
"""Elements that the plain loop passes in the time in which all entries are moved on by one element."""


def places(
    case: Case, memory: Memory, start: Vector, end: Vector, count: Vector, bad: Vector, most: int
) -> tuple[Vector, Vector, Vector]:
    """Where the elements of entries are, how many each entry has, and which entries are not as they should be.

    ``count`` is -1 where it is not said how many they are: then they go on to the end. ``bad`` entries have none.
    """
    bad = bad | (count > end - start) | (count > most)
    start, count = np.where(bad, end, start), np.where(bad, 0, count)
    said = bool(count.min(initial=0) >= 0)
    if case.lead is None:
        rows, counts, wrong = _by_reading(case, memory, start, end, count if said else None, most)
    elif said and case.lead.is_varint and ROUND * int(count.max(initial=0)) < count.sum():
        rows, counts, wrong = _side_by_side(case.lead, memory, start, end, count)
    else:
        rows, counts, wrong = _one_by_one(case.lead, memory, start, end, count, most)
    bad = bad | wrong | (counts > most) | (counts < case.at_least)
    if bad.any():
        rows = rows[np.repeat(~bad, counts)]
        counts = np.where(bad, 0, counts)
    return rows, counts, bad


def _by_reading(
    case: Case, memory: Memory, start: Vector, end: Vector, count: Vector | None, most: int
) -> tuple[Vector, Vector, Vector]:
    """Elements that do not begin with a length: what is behind one is known when it was read."""
    walk = Walk(memory, start, end, most, root=False)

    def read(some: Walk) -> Fields:
        at = some.p
        case.read(some)
        return Fields(at=Bytes(memory, at, np.zeros(len(at), np.int64)))

    elements = walk.elements(count, read)
    return elements.fields.at.start, np.diff(elements.offsets), walk.bad | (walk.p != end)


def _side_by_side(
    lead: Lead, memory: Memory, start: Vector, end: Vector, count: Vector
) -> tuple[Vector, Vector, Vector]:
    """All entries are moved on by one element at a time."""
    shift = 1 if lead.kind == "zigzag" else 0
    order = np.argsort(-count, kind="stable")  # those that have another element are in front
    p = start[order]
    first = (np.cumsum(count) - count)[order]
    rows = np.empty(int(count.sum()), np.int64)
    left = np.searchsorted(-count[order], -np.arange(int(count.max(initial=0))))
    for k, n in enumerate(left.tolist()):
        at = p[:n]
        rows[first[:n] + k] = at
        byte = memory.bytes(at)
        size = (byte & 0x7F).astype(np.int64)
        more = byte > 0x7F
        if more.any():
            second = memory.bytes(at + 1) * more
            if second.max() > 0x7F:
                walk = Walk(memory, at, end, 0, root=False)
                size = walk.uvarint()
                p[:n] = walk.p + (size >> shift)
                continue
            size |= second.astype(np.int64) << 7
        p[:n] = at + 1 + more + (size >> shift)
    return rows, count, (p != end[order])[np.argsort(order)]


def _one_by_one(
    lead: Lead, memory: Memory, start: Vector, end: Vector, count: Vector, most: int
) -> tuple[Vector, Vector, Vector]:
    """One entry after the other, by a plain loop."""
    step = _varints if lead.is_varint else _numbers
    move = partial(step, lead, memory.view)
    parts: list[Vector] = []
    held: list[int] = []
    counts, bad = [], []
    for p, last, number in zip(start.tolist(), end.tolist(), count.tolist(), strict=True):
        got = 0
        while True:
            wanted = min(STEP, most + 1 - got if number < 0 else number - got)
            before = len(held)
            p = move(p, last, wanted, held.append)
            found = len(held) - before
            got += found
            if len(held) >= STEP:
                parts.append(np.array(held, np.int64))
                held.clear()
            if found < wanted or not wanted:
                break
        counts.append(got)
        bad.append(p != last or (number >= 0 and got != number))
    parts.append(np.array(held, np.int64))
    return np.concatenate(parts), np.array(counts, np.int64), np.array(bad, np.bool_)


def _varints(
    lead: Lead, view: memoryview, p: int, end: int, number: int, add: Callable[[int], object]
) -> int:
    """Pass elements that begin with a varint. The byte behind the last of them."""
    shift = 1 if lead.kind == "zigzag" else 0
    for _ in repeat(None, number):
        if p >= end:
            break
        add(p)
        byte = view[p]
        if byte < 0x80:
            p += 1 + (byte >> shift)
            continue
        second = view[p + 1]
        if second < 0x80:
            p += 2 + ((byte & 0x7F | second << 7) >> shift)
        else:
            p = _long(view, p, shift)
    return p


def _long(view: memoryview, p: int, shift: int) -> int:
    """The byte behind an element whose length takes three bytes or more. Readers refuse those that are too long."""
    size = 0
    for i in range(10):
        byte = view[p + i]
        size |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            break
    return p + i + 1 + (size >> shift)


def _numbers(
    lead: Lead, view: memoryview, p: int, end: int, number: int, add: Callable[[int], object]
) -> int:
    """Pass elements whose length is a number of fixed size. The byte behind the last of them."""
    unpack = struct.Struct(f"{lead.order}{lead.offset}x{lead.format()}").unpack_from
    for _ in repeat(None, number):
        if end - p < lead.head:
            break
        add(p)
        size = unpack(view, p)[0]
        if size < 0:
            break
        p += lead.behind + size
    return p
