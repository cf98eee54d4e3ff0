"""Where the entries of a chunk are, by the lengths before them."""

from __future__ import annotations

import struct
from itertools import repeat

import numpy as np

from codecgen.runtime.arrow.numpy_cases import Layout
from codecgen.runtime.arrow.numpy_chains import follow
from codecgen.runtime.arrow.numpy_fields import StructureReader
from codecgen.runtime.arrow.numpy_memory import Memory, Vector
from codecgen.runtime.arrow.view import Discriminator

FIRST = 64
"""Entries that the plain loop finds: where there are no more in a chunk, that is the fastest."""

ENOUGH, ENDED, REFUSED, OTHER = 1, 0, -1, 2
"""Why there are no more entries: there are enough, the bytes end, what follows is no entry, or one of another kind."""


def find(
    discriminator: Discriminator | None,
    layout: Layout,
    memory: Memory,
    at: int,
    size: int,
    max_entries: int,
) -> tuple[Vector, int]:
    """Find at most ``max_entries`` consecutive entries of a layout from byte ``at`` on, in a chunk of
    ``size`` bytes. Return an array with the start of each entry and the end of the last one (``at``
    alone if there is none), and why the search stopped: ENOUGH, ENDED (no whole entry is left),
    OTHER (another discriminator) or REFUSED (an invalid length). ``discriminator`` is None if entries have
    no discriminator.
    """
    if layout.prefix is None:
        return _alike(discriminator, layout, memory, at, size, max_entries)
    first, why = _one_by_one(discriminator, layout, memory, at, size, min(max_entries, FIRST))
    edges = np.array(first, np.int64)
    if why == ENOUGH and max_entries > FIRST:
        more = _at_once(discriminator, layout, memory, edges, size, max_entries - FIRST)
        left = max_entries - FIRST - len(more)
        at = int(more[-1]) if len(more) else first[-1]
        last, why = _one_by_one(discriminator, layout, memory, at, size, left)
        edges = np.concatenate([edges, more, np.array(last[1:], np.int64)])
    refused = np.flatnonzero(_refused(layout, np.diff(edges) - layout.prefix.after))
    return (edges[: refused[0] + 1], REFUSED) if len(refused) else (edges, why)


def _alike(
    discriminator: Discriminator | None,
    layout: Layout,
    memory: Memory,
    at: int,
    size: int,
    max_entries: int,
) -> tuple[Vector, int]:
    """Find at most ``max_entries`` consecutive entries of a constant size. Return an array with the start
    of each entry and the end of the last one, and why the search stopped: ENOUGH, ENDED or OTHER
    (the discriminator is of another layout).
    """
    count = min(max_entries, (size - at) // layout.size)
    edges = at + layout.size * np.arange(count + 1)
    if discriminator is not None:
        others = np.flatnonzero(~_has_key(discriminator, layout, memory, edges[:-1], edges[1:]))
        if len(others):
            return edges[: others[0] + 1], OTHER
    return edges, ENOUGH if count == max_entries else ENDED


def _has_key(
    discriminator: Discriminator, layout: Layout, memory: Memory, start: Vector, end: Vector
) -> Vector:
    """Return a mask of the entries (from ``start`` to ``end`` each) whose discriminator is one of
    the layout's ``keys``. ``discriminator`` says where it lies, and how it is encoded. That it lies before
    ``end`` is not checked: for a shorter entry the bytes after it are read, and at the end of the
    memory the last ones.
    """
    form = f"{_order(discriminator)}{'i' if discriminator.signed else 'u'}{discriminator.size}"
    found = StructureReader(memory, start, end, 0).at(form, discriminator.offset)
    good: Vector = np.logical_or.reduce([found == number for number in layout.keys])
    return good


def _refused(layout: Layout, lengths: Vector) -> Vector:
    """Return the mask of lengths that the layout refuses."""
    return np.zeros(len(lengths), np.bool_) if layout.refuse is None else layout.refuse(lengths)


def _order(discriminator: Discriminator) -> str:
    """Return ``>`` for a big-endian discriminator and ``<`` for a little-endian one: the ``struct`` byte
    order of the discriminator and the length.
    """
    return ">" if discriminator.endian == "big" else "<"


def _at_once(
    discriminator: Discriminator | None,
    layout: Layout,
    memory: Memory,
    edges: Vector,
    size: int,
    max_entries: int,
) -> Vector:
    """Return the ends of at most ``max_entries`` further entries after ``edges``, up to the first one that
    ends after ``size`` or has an invalid length or another discriminator. They are found by
    following lengths from many places at once.
    """
    assert layout.prefix is not None
    start = edges[-1:]
    mean = (int(edges[-1]) - int(edges[0])) // (len(edges) - 1) + 1
    end = np.array([min(size, int(edges[-1]) + mean * max_entries)])
    places, _, after = follow(layout.prefix, memory, start, end, None)
    ends = np.append(places, after)[1:]
    prefix = layout.prefix
    good = places <= size - max(
        0 if discriminator is None else discriminator.offset + discriminator.size, prefix.end
    )
    if discriminator is not None:
        good &= _has_key(discriminator, layout, memory, places, ends)
    good &= (ends <= size) & (ends - places >= prefix.after)
    wrong = np.flatnonzero(~good)
    return ends[: min(int(wrong[0]) if len(wrong) else len(ends), max_entries)]


def _one_by_one(
    discriminator: Discriminator | None,
    layout: Layout,
    memory: Memory,
    at: int,
    size: int,
    max_entries: int,
) -> tuple[list[int], int]:
    """Find at most ``max_entries`` consecutive entries from byte ``at`` on by a plain loop, in a chunk of
    ``size`` bytes. Return the start of each entry and the end of the last one, and why it stopped:
    ENOUGH, ENDED, OTHER or REFUSED (a negative or refused length). Lengths of entries that fit are
    not checked for being refused.
    """
    assert layout.prefix is not None
    prefix = layout.prefix
    numbers = [(prefix.offset, prefix.end - prefix.offset, prefix.format())]
    order, first = prefix.order, 0  # which of the two numbers is the discriminator
    if discriminator is not None:
        letter = {1: "b", 2: "h", 4: "i", 8: "q"}[discriminator.size]
        numbers.append(
            (
                discriminator.offset,
                discriminator.size,
                letter if discriminator.signed else letter.upper(),
            )
        )
        order, first = _order(discriminator), 0 if discriminator.offset < prefix.offset else 1
    form = order
    needed = 0
    for offset, width, letter in sorted(numbers):
        form += f"{offset - needed}x{letter}"
        needed = offset + width
    unpack = struct.Struct(form).unpack_from
    view, keys, after = memory.view, layout.keys, prefix.after
    edges = [at]
    add = edges.append
    last = size - needed
    for _ in repeat(None, max_entries):
        if at > last:
            return edges, ENDED
        pair = unpack(view, at)
        if discriminator is not None and pair[first] not in keys:
            return edges, OTHER
        length = pair[-1 if discriminator is None else 1 - first]
        end = at + after + length
        if length < 0 or end > size:
            beyond = length >= 0 and not _refused(layout, np.array([length]))[0]
            return edges, ENDED if beyond else REFUSED
        add(end)
        at = end
    return edges, ENOUGH
