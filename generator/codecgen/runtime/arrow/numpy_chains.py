"""Chains of structures that begin with their lengths, followed from many places at once.

Where a chain is, only its beginning says. So in long windows it is guessed where structures begin: by a byte that those
at the front have in common. From each such place the chain is followed up to the next one. A chain that gets there
exactly, from the beginning of the window on, is the chain; from where one does not get there, nothing is taken.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from itertools import repeat

import numpy as np

from codecgen.runtime.arrow.numpy_cases import LengthPrefix
from codecgen.runtime.arrow.numpy_fields import StructureReader
from codecgen.runtime.arrow.numpy_memory import Fields, Memory, Vector

LANES = 512
"""Places from which chains are followed at once, where they are guessed."""

FEW = 48
"""Places from which the plain loop is faster."""

EACH = 24
"""Structures that are to be followed from each place at least."""

SAMPLE = 32
"""Structures at the front of a window that show what they have in common."""

REACH = 8
"""Bytes after a length that are looked at for that."""

NEAR = 512
"""Bytes that are searched for a structure at a time, less if they are short, more if they are long: in twice the
length most often there is one."""

LINKS = 3
"""Structures one after the other that have to have it."""

FOUND = 1 << 17
"""Bytes that are looked at as the one that structures have in common."""

MOST = 1 << 22
"""Structures that are followed at once: each takes memory, whoever counts them."""

BEYOND = 1 << 62
"""Behind a structure whose length makes no sense."""

Read = Callable[[StructureReader], Fields]


def follow(
    prefix: LengthPrefix, memory: Memory, start: Vector, end: Vector, read: Read | None
) -> tuple[Vector, Vector, Vector]:
    """Find the consecutive structures in each window (``start`` to ``end``) by their lengths.
    Return their positions, the number in each window, and the position after the last one of each
    window: equal to its end if the window is valid. The position is before the end if too many
    structures follow, before or beyond it if a length is invalid. ``read`` parses a structure, to
    check guessed starts (None: no check).
    """
    some = np.flatnonzero(start < end)
    counts, after = np.zeros(len(start), np.int64), start.copy()
    if not len(some):
        return np.zeros(0, np.int64), counts, after
    start, end = start[some], end[some]
    lanes, stop = start, end
    first: Vector = np.arange(len(start))
    if 2 * len(start) < LANES:
        guessed = _guess_starts(prefix, memory, start, end, read)
        if len(guessed):
            lanes = np.sort(np.concatenate([start, guessed]))
            first = np.searchsorted(lanes, start)
            stop = np.append(lanes[1:], 0)
            stop[np.append(first[1:], len(lanes)) - 1] = end
    places, owners, turns, last = _side_by_side(prefix, memory, lanes, stop)
    used = first
    if len(lanes) > len(first):
        broken = np.cumsum(last != stop) - (last != stop)
        number = np.diff(first, append=len(lanes))
        there = broken == np.repeat(broken[first], number)
        used = first + np.add.reduceat(there, first, dtype=np.int64) - 1
        if not there.all():
            keep = there[owners]
            places, owners, turns = places[keep], owners[keep], turns[keep]
    each = np.bincount(owners, minlength=len(lanes))
    rows = np.empty(len(places), np.int64)
    rows[(np.cumsum(each) - each)[owners] + turns] = places
    counts[some] = np.add.reduceat(each, first)
    after[some] = last[used]
    return rows, counts, after


def _side_by_side(
    prefix: LengthPrefix, memory: Memory, lanes: Vector, stop: Vector
) -> tuple[Vector, Vector, Vector, Vector]:
    """Follow the chains of structures from all ``lanes`` together, one structure per step, each
    until it reaches its ``stop``. Return the positions of structures, the chain of each, its index
    in the chain, and the end position of each chain. About 4 million structures are the most.
    """
    last = lanes.copy()
    held: list[Vector] = []
    owners: list[Vector] = []
    at, own, ends, total = lanes, np.arange(len(lanes)), stop, 0
    while len(own) > FEW and total < MOST:
        held.append(at)
        owners.append(own)
        total += len(at)
        at = _next_positions(prefix, memory, at)
        going = at < ends
        if not going.all():
            last[own] = at
            at, own, ends = at[going], own[going], ends[going]
    last[own] = at
    rounds = len(held)
    sizes = np.array([len(part) for part in held], np.int64)
    turns = [np.repeat(np.arange(rounds), sizes)]
    for lane, p, end in zip(own.tolist(), at.tolist(), ends.tolist(), strict=True):
        some: list[int] = []
        last[lane] = pass_over(prefix, memory.view, p, end, MOST - total, some.append)
        total += len(some)
        held.append(np.array(some, np.int64))
        owners.append(np.full(len(some), lane))
        turns.append(np.arange(rounds, rounds + len(some)))
    return np.concatenate(held), np.concatenate(owners), np.concatenate(turns), last


def _next_positions(prefix: LengthPrefix, memory: Memory, at: Vector) -> Vector:
    """Return, for each position in ``at``, the position after the structure that begins there,
    computed from its length. Return BEYOND (2**62) or a position behind it if a length of fixed
    size is negative or too large, or a varint is invalid; a negative varint -n counts as n - 1.
    """
    if not prefix.is_varint:
        found = memory.byte_windows(at + prefix.offset, prefix.end - prefix.offset)
        size = found.view(prefix.kind).astype(np.int64)
        after = at + prefix.after + size
        return np.where((size >= 0) & (after > at), after, BEYOND)
    pair = memory.bytes(at + 1).astype(np.int64)
    pair <<= 8
    pair |= memory.bytes(at)
    size = _steps(prefix.kind).take(pair)
    if not size.all():
        rows = np.flatnonzero(size == 0)
        reader = StructureReader(memory, at[rows], at[rows], 0, root=False)
        value = reader.uvarint() >> _shift(prefix)
        size[rows] = np.where(reader.bad, BEYOND, reader.p + value) - at[rows]
    return at + size


def _shift(prefix: LengthPrefix) -> int:
    """Return 1 if the varint is zigzag encoded, otherwise 0."""
    return 1 if prefix.kind == "zigzag" else 0


@cache
def _steps(kind: str) -> Vector:
    """Return a table of 65,536 sizes: from the first two bytes of a varint length (little-endian)
    to the size of the structure, length included; 0 if the varint has more than two bytes. A
    negative length -n counts as n - 1, so that -1 (null) is the varint alone. ``kind`` is
    ``zigzag`` or ``uvarint``.
    """
    pair = np.arange(1 << 16)
    first, second = pair & 0xFF, pair >> 8
    shift = _shift(LengthPrefix(kind))
    long = np.where(second < 0x80, 2 + ((first & 0x7F | second << 7) >> shift), 0)
    return np.where(first < 0x80, 1 + (first >> shift), long)


# ---------------------------------------------------------------- guesses


def _guess_starts(
    prefix: LengthPrefix, memory: Memory, start: Vector, end: Vector, read: Read | None
) -> Vector:
    """Return guessed start positions (bytes) of structures, spread over the windows and in no
    certain order. ``read`` parses them where several fit close together; without it (None) the
    first counts. Return an empty array if the longest window has fewer than 32 structures, the
    first 32 go beyond it or share no byte, the windows are too short to gain from guessing, or
    nothing fits.
    """
    none = np.zeros(0, np.int64)
    longest = int(np.argmax(end - start))
    sample: list[int] = []
    front, stop = int(start[longest]), int(end[longest])
    p = pass_over(prefix, memory.view, front, stop, SAMPLE, sample.append)
    if len(sample) < SAMPLE or p > stop:
        return none
    size = (p - front) // SAMPLE + 1
    total = int((end - start).sum())
    if total < size * EACH * FEW:
        return none
    mark = _common(prefix, memory, np.array(sample))
    if mark is None:
        return none
    width = -(-min(2 * size, max(size, NEAR), 1 << 14) // 64) * 64
    stride = max(total // LANES, size * EACH, 4 * width)
    number = (end - start) // stride
    window = np.repeat(np.arange(len(start)), number)
    turn = np.arange(1, len(window) + 1) - np.repeat(np.cumsum(number) - number, number)
    near, stop = start[window] + stride * turn, end[window]
    found = [none]
    for _ in range(4):
        inside = near + width <= stop
        near, stop = near[inside], stop[inside]
        if not len(near):
            break
        lanes, places = _search(prefix, memory, near, stop, width, 8 * size, mark, read)
        found.append(places)
        left = np.ones(len(near), np.bool_)
        left[lanes] = False
        near, stop = near[left] + width, stop[left]
    return np.concatenate(found)


def _common(prefix: LengthPrefix, memory: Memory, at: Vector) -> tuple[int, int] | None:
    """Return the first of the eight bytes after the length that is equal in the structures at all
    positions ``at``, as (offset after the length, value); None if none is.
    """
    found = memory.bytes(_content(prefix, memory, at)[:, np.newaxis] + np.arange(REACH))
    same = np.flatnonzero((found == found[0]).all(axis=0))
    return (int(same[0]), int(found[0, same[0]])) if len(same) else None


def _content(prefix: LengthPrefix, memory: Memory, at: Vector) -> Vector:
    """Return, for each position in ``at``, the position after the length prefix there. Varints
    longer than three bytes are taken as three.
    """
    if not prefix.is_varint:
        return at + prefix.after
    two = memory.bytes(at) > 0x7F
    return at + 1 + two + (two & (memory.bytes(at + 1) > 0x7F))


def _search(
    prefix: LengthPrefix,
    memory: Memory,
    near: Vector,
    stop: Vector,
    width: int,
    longest: int,
    mark: tuple[int, int],
    read: Read | None,
) -> tuple[Vector, Vector]:
    """Find, within ``width`` bytes from each position in ``near``, the first one where a structure
    probably begins: it and the next ones have the byte ``mark`` (offset after the length, value),
    at most ``longest`` bytes each, and end before ``stop``. If several fit, ``read`` decides by
    parsing. Return the indexes into ``near`` that have a match, and the positions of the matches.
    """
    offset, value = mark
    alike = memory.byte_windows(near, width).view(np.uint8).reshape(len(near), width) == value
    every = np.count_nonzero(alike) // FOUND + 1
    lane, at = np.divmod(np.flatnonzero(alike[::every]), width)
    lane *= every
    widths = np.array((1, 2, 3) if prefix.is_varint else (prefix.after,))
    p = np.sort(((near[lane] + at - offset)[:, np.newaxis] - widths).ravel())
    lane = np.searchsorted(near, p, "right") - 1
    good = (lane >= 0) & (p < (near + width)[lane]) & (np.diff(p, prepend=-1) > 0)
    after = p
    for _ in range(LINKS):
        p, lane, after = p[good], lane[good], after[good]
        good = memory.bytes(_content(prefix, memory, after) + offset) == value
        before, after = after, _next_positions(prefix, memory, after)
        good &= (after < stop[lane]) & (after - before <= longest)
    p, lane = p[good], lane[good]
    others = (lane[1:] == lane[:-1]) & (p[1:] != _next_positions(prefix, memory, p[:-1]))
    if read is not None and others.any():
        reader = StructureReader(memory, p, stop[lane], MOST, root=False)
        read(reader)
        p, lane = p[~reader.bad], lane[~reader.bad]
    first = np.flatnonzero(np.diff(lane, prepend=-1))
    return lane[first], p[first]


# ---------------------------------------------------------------- one after the other


def pass_over(
    prefix: LengthPrefix,
    view: memoryview,
    p: int,
    end: int,
    number: int,
    add: Callable[[int], object],
) -> int:
    """Skip at most ``number`` structures one by one from position ``p`` on, calling ``add`` with
    the position of each, until ``end`` is reached, or a fixed-size length is negative or does not
    fit before it. Return the position after the last one (that of a structure with a negative
    length), at most BEYOND (2**62).
    """
    step = _varints if prefix.is_varint else _numbers
    return min(step(prefix, view, p, end, number, add), BEYOND)


def _varints(
    prefix: LengthPrefix,
    view: memoryview,
    p: int,
    end: int,
    number: int,
    add: Callable[[int], object],
) -> int:
    """Skip at most ``number`` structures with a varint length prefix, calling ``add`` with the
    position of each, until ``end`` is reached. Return the position after the last one, which may
    lie beyond ``end``.
    """
    shift = _shift(prefix)
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
    """Return the position after the structure at ``p``, where a varint length of three bytes or
    more begins (at most 10 are read, even if it goes on). A ``shift`` of 1 halves the number, for
    zigzag; a negative length counts as positive then. Nothing is checked: the position may lie far
    beyond the view. Raise IndexError if the view ends inside the varint.

    Readers refuse lengths that are too long.
    """
    size = 0
    for i in range(10):
        byte = view[p + i]
        size |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            break
    return p + i + 1 + (size >> shift)


def _numbers(
    prefix: LengthPrefix,
    view: memoryview,
    p: int,
    end: int,
    number: int,
    add: Callable[[int], object],
) -> int:
    """Skip at most ``number`` structures with a length prefix of fixed size, calling ``add`` with
    the position of each, until the prefix does not fit before ``end``. Return the position after
    the last one; that of a structure with a negative length, which is passed to ``add`` too.
    """
    unpack = struct.Struct(f"{prefix.order}{prefix.offset}x{prefix.format()}").unpack_from
    prefix_end, after = prefix.end, prefix.after
    for _ in repeat(None, number):
        if end - p < prefix_end:
            break
        add(p)
        size = unpack(view, p)[0]
        if size < 0:
            break
        p += after + size
    return p
