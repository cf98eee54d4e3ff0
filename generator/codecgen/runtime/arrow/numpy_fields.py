"""What generated readers are made of where there is no compiler: one field of many structures at once, by NumPy.

A :class:`StructureReader` stands at one place in each of many structures of the same layout, and each of its methods reads the
next field of all of them. What is wrong with a structure is kept in ``bad``; the reader goes on all the same, so three
things keep it in its memory. Places only grow. Lengths and counts are compared with what is left of the window before
they are used, and are 0 where they are too large. Every load is clipped to the memory. A reader that has gone beyond a
window is never back at the end of it, where :meth:`StructureReader.close` looks: so fields of fixed size need no look of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from codecgen.runtime.arrow.numpy_memory import Bytes, Fields, List, Memory, NoFields, Vector
from codecgen.runtime.checksums import Mask, checksum

ROUNDS = 1000
"""Elements of one array inside a structure from which on the structure is left to the reference codecs: a reader goes
through the elements of all arrays side by side, which is slow where a single one is long."""

BLOCK = 32
"""Bytes that are read at once where fields of fixed size lie side by side: as many as there are after every chunk."""


class StructureReader:
    """Reader of many structures of one layout at once, with one position in each. A structure that
    is invalid is marked in ``bad``, and no error is raised.

    Attributes:
        p: Current positions.
        end: Ends of the current windows.
        root: Text is validated when it is read. Other readers leave that to the reader that started them.
    """

    def __init__(
        self, memory: Memory, p: Vector, end: Vector, max_elements: int, *, root: bool = True
    ) -> None:
        self.memory = memory
        self.p = p
        self.end = end
        self.max_elements = max_elements
        self.root = root
        self.bad = np.zeros(len(p), np.bool_)
        self.outer: list[Vector] = []
        self._block: tuple[Vector, int, Vector] | None = None

    def refuse(self, condition: Vector) -> None:
        """Mark the structures where ``condition`` is true as bad."""
        self.bad |= np.asarray(condition, np.bool_)  # one of constants alone is no vector

    def zero(self) -> Vector:
        """Return 0 for each structure."""
        return np.zeros(len(self.p), np.int64)

    def none(self) -> Vector:
        """Return -1 for each structure: a count that is not stated."""
        return self.zero() - 1

    def nothing(self) -> Bytes:
        """Return null bytes for each structure."""
        return Bytes(self.memory, self.p, self.none())

    # ------------------------------------------------------------ numbers

    def at(self, kind: str, offset: int) -> Vector:
        """Return the number at ``offset`` from the current position, without moving it; ``kind`` is
        a NumPy dtype string.
        """
        return self._load(kind, self.p + offset)

    def fixed(self, kind: str) -> Vector:
        """Return the numbers of the NumPy type ``kind`` at the positions, one per structure, as
        int64, and move behind them. Positions beyond the memory are clipped, not checked.
        """
        size = np.dtype(kind).itemsize
        block, at, p = self._block or (None, 0, None)
        if p is not self.p or at + size > BLOCK:
            if size == 1:
                value = self._load(kind, self.p)
                self.p = self.p + size
                return value
            block, at = self.memory.byte_windows(self.p, BLOCK), 0
        if len(self.p):
            value = np.ndarray(len(self.p), kind, block, at, (BLOCK,)).astype(np.int64)
        else:
            value = self.zero()  # no block has a place to begin at
        self.p = self.p + size
        self._block = (block, at + size, self.p)
        return value

    def _load(self, kind: str, at: Vector) -> Vector:
        """Return the numbers at positions ``at``; ``kind`` is a NumPy dtype string."""
        size = np.dtype(kind).itemsize
        found = self.memory.bytes(at) if size == 1 else self.memory.byte_windows(at, size)
        return found.view(kind).astype(np.int64)

    def boolean(self) -> Vector:
        """Read a boolean byte; values other than 0 and 1 mark the structure as bad."""
        value = self.fixed("u1")
        self.refuse(value > 1)
        return value

    def skip(self, size: int) -> None:
        """Move ``size`` bytes forward in each structure, without a check of the window. A block of
        bytes that was loaded before stays in use.
        """
        block, at, p = self._block or (None, 0, None)
        known = p is self.p
        self.p = self.p + size
        if known:
            self._block = (block, at + size, self.p)

    def uvarint(self) -> Vector:
        """Read an unsigned 32-bit varint. Structures become bad if it is not in its shortest form
        or has more bits.
        """
        return self._varint(32).astype(np.int64)

    def compact(self) -> Vector:
        """Read an unsigned 32-bit varint that encodes the number plus one, and return the number:
        -1 for the byte 0. Structures become bad if it is not in its shortest form.
        """
        return self.uvarint() - 1

    def varint(self) -> Vector:
        """Read a zigzag varint of 32 bits. Structures become bad if it is not in its shortest form
        or has more bits.
        """
        return _zigzag(self._varint(32))

    def varlong(self) -> Vector:
        """Read a zigzag varint of 64 bits. Structures become bad if it is not in its shortest form
        or has more bits.
        """
        return _zigzag(self._varint(64))

    def _varint(self, bits: int) -> Vector:
        """Read a varint of ``bits`` bits in each structure, and move behind it. Return its bits
        before zigzag decoding, as uint8 or uint16 if all values fit, else as uint64. Structures
        whose varint is not in its shortest form or has too many bits become bad.
        """
        first = self.memory.bytes(self.p)
        if first.max(initial=0) < 0x80:
            self.p = self.p + 1
            return first
        longer = first > 0x7F
        second = self.memory.bytes(self.p + 1)
        second *= longer
        self.bad |= longer & (second == 0)
        value = second.astype(np.uint16) << 7 & 0x3FFF | (first & 0x7F)
        start = self.p
        self.p = start + 1 + longer
        if second.max(initial=0) < 0x80:
            return value
        rows = np.flatnonzero(second > 0x7F)
        value = value.astype(np.uint64)
        self._long(rows, start, value, bits)
        return value

    def _long(self, rows: Vector, start: Vector, value: Vector, bits: int) -> None:
        """Add the third and later bytes to ``value`` for the varints of the structures ``rows``,
        and move behind them. Varints that are not in their shortest form or have too many bits make
        their structures bad.
        """
        last = (bits - 1) // 7
        for i in range(2, last + 1):
            byte = self.memory.bytes(start[rows] + i)
            value[rows] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * i)
            self.p[rows] += 1
            wrong = byte == 0
            if i == last:
                wrong |= byte >= 1 << bits - 7 * last
            self.bad[rows] |= wrong
            rows = rows[byte > 0x7F]
            if not len(rows):
                return

    # ------------------------------------------------------------ windows

    def open(self, size: Vector) -> None:
        """Open a window of ``size`` bytes from the current position on, inside the one that is
        open. Structures with a negative size, or one beyond the window, become bad and get an empty
        window.
        """
        size = self._check_sizes(size, size < 0)
        self.outer.append(self.end)
        self.end = self.p + size

    def close(self) -> None:
        """Close the current window. Structures that were not read to its end become bad."""
        self.bad |= self.p != self.end
        self.end = self.outer.pop()

    def _check_sizes(self, size: Vector, wrong: Vector) -> Vector:
        """Return ``size`` with 0 for structures that are in the mask ``wrong`` or have less left in
        their window; these become bad.
        """
        wrong = wrong | (size > self.end - self.p)
        if wrong.any():
            self.bad |= wrong
            size = np.where(wrong, 0, size)
        return size

    def checksum(
        self, name: str, stored: Vector, start: Vector, end: Vector, mask: Mask | None = None
    ) -> None:
        """Mark structures as bad whose checksum of the bytes ``start`` to ``end`` (excluded), changed by
        ``mask``, differs from ``stored``. Raise UnsupportedCodec for an unknown checksum, or if its
        package is not installed.
        """
        ranges = self.memory.iterate_ranges(start, end)
        found = np.fromiter(map(checksum(name, mask), ranges), np.uint64, len(start))
        self.bad |= found.view(np.int64) != stored

    # ------------------------------------------------------------ bytes

    def rest(self, after: int) -> Vector:
        """Return the number of bytes left in the window, without the last ``after`` bytes."""
        return self.end - self.p - after

    def bytes(self, size: Vector | int, *, null: int | None = None, text: bool = False) -> Bytes:
        """Return ``size`` bytes per structure as Bytes, and move behind them; the size ``null``, a
        negative number, means null. Structures with a negative size or too few bytes become bad,
        and get no bytes; with ``text``, a root reader also marks those with invalid UTF-8.
        """
        if isinstance(size, int):
            size = np.full(len(self.p), size, np.int64)
        wrong = size < 0
        if null is not None and wrong.any():
            wrong &= size != null
            size = np.maximum(size, -1)
        size = self._check_sizes(size, wrong)
        found = Bytes(self.memory, self.p, size, text)
        self.p = self.p + np.maximum(size, 0)
        self._look(found, None)
        return found

    def _look(self, found: Any, rows: Vector | None) -> None:
        """Mark structures as bad whose text in ``found`` (Bytes, a List or Fields) is not valid
        UTF-8. ``rows`` has the structure of each value, None for all in order. Do nothing in a reader
        that another one started.
        """
        if not self.root:
            return
        for value in vars(found).values() if isinstance(found, Fields) else (found,):
            if isinstance(value, Bytes) and value.text:
                broken = value.broken()
                if broken is not None:
                    places = np.flatnonzero(broken)
                    self.bad[places if rows is None else rows[places]] = True
            elif isinstance(value, List):
                self._look(value.fields, _owners(value.offsets))

    # ------------------------------------------------------------ what some have, and arrays

    def _select(self, rows: Vector) -> StructureReader:
        """Return a reader over the structures ``rows``, from their current positions."""
        return StructureReader(
            self.memory, self.p[rows], self.end[rows], self.max_elements, root=False
        )

    def _join(self, rows: Vector, some: StructureReader) -> None:
        """Take over the positions and bad marks of ``some``, a reader over the structures ``rows``."""
        self.p = self.p.copy()
        self.p[rows] = some.p
        self.bad[rows] |= some.bad

    def when(self, condition: Vector, read: Callable[[StructureReader], Any]) -> Any:
        """Read an optional field: call ``read`` on a reader over the structures where ``condition``
        holds, and return its values for all structures. Where the condition is false, no bytes are
        read, numbers are 0 and bytes null. Return None if ``read`` returns None, or if it returns a
        List and the condition is false somewhere.
        """
        condition = np.broadcast_to(np.asarray(condition, np.bool_), len(self.p))
        if condition.all():
            return read(self)
        rows = np.flatnonzero(condition)
        some = self._select(rows)
        found = read(some)
        self._join(rows, some)
        whole: Any = None
        if isinstance(found, Bytes):
            whole = Bytes(self.memory, self.p.copy(), self.none(), found.text)
            whole.start[rows] = found.start
            whole.size[rows] = found.size
            self._look(whole, None)
        elif isinstance(found, List):
            owners = _owners(found.offsets)
            self._look(found.fields, rows[owners])
        elif found is not None:
            whole = np.zeros(len(self.p), np.int64)
            whole[rows] = found
        return whole

    def numbers(
        self, count: Vector, size: int, *, at_least: int = 0, null: int | None = None
    ) -> None:
        """Skip an array of ``count`` numbers of ``size`` bytes in each structure; the count
        ``null`` means a null array. Structures with fewer than ``at_least`` numbers, more than the
        limit, or too few bytes become bad.
        """
        few = count < at_least
        if null is not None:
            few &= count != null
            count = np.where(count == null, 0, count)
        count = self._check_sizes(count, few | (count > self.max_elements))
        self.p = self.p + self._check_sizes(count * size, count < 0)

    def elements(
        self,
        count: Vector | None,
        read: Callable[[StructureReader], Fields],
        *,
        at_least: int = 0,
        null: int | None = None,
    ) -> List:
        """Return the elements of an array in each structure as a List, in order, each read by
        ``read``; only their byte string fields are kept. With a ``count`` of None, they are all
        that fill the window; the count ``null`` means a null array. Structures become bad if an
        element is invalid, there are fewer than ``at_least`` or more than the limit, or more than
        1000.
        """
        nulls: Vector | None = None
        if count is not None:
            few = (count < 0) | (count < at_least)
            if null is not None:
                nulls = count == null
                few, count = few & ~nulls, np.where(nulls, 0, count)
            count = self._check_sizes(count, few | (count > self.max_elements))
        found: list[tuple[Vector, Fields]] = []
        for rows in self._rounds(count):
            some = self._select(rows)
            found.append((rows, read(some)))
            self._join(rows, some)
        sizes = np.bincount(_concatenate([rows for rows, _ in found]), minlength=len(self.p))
        if count is None:
            self.bad |= (sizes < at_least) | (sizes > self.max_elements)
        offsets = np.zeros(len(self.p) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        if not found:
            return List(offsets, NoFields(self.memory), nulls)
        places = [offsets[rows] + k for k, (rows, _) in enumerate(found)]
        fields = _merge_fields([fields for _, fields in found], places, int(offsets[-1]))
        self._look(fields, _owners(offsets))
        return List(offsets, fields, nulls)

    def _rounds(self, count: Vector | None) -> Iterator[Vector]:
        """Yield the indexes of the structures with a first element, then of those with a second
        one, and so on, by ``count`` or, if it is None, as long as bytes are left in the window. Bad
        structures are left out of later rounds; those with more than 1000 elements become bad.
        """
        rows = np.flatnonzero(self.p < self.end if count is None else count > 0)
        k = 0
        while len(rows):
            if k == ROUNDS:
                self.bad[rows] = True
                return
            yield rows
            k += 1
            more = self.p[rows] < self.end[rows] if count is None else count[rows] > k
            rows = rows[more & ~self.bad[rows]]


def _zigzag(value: Vector) -> Vector:
    """Return the signed numbers of zigzag encoded values, in the same width."""
    signed = value >> 1 ^ -(value & 1)
    return signed.view(f"i{value.itemsize}").astype(np.int64)


def _owners(offsets: Vector) -> Vector:
    """Return the index of the structure that each element belongs to; structure ``i`` has the
    elements from ``offsets[i]`` to ``offsets[i + 1]``.
    """
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _concatenate(parts: list[Vector]) -> Vector:
    """Concatenate index vectors; return an empty int64 vector for an empty list."""
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _merge_fields(found: list[Fields], places: list[Vector], total: int) -> Fields:
    """Return the byte string fields of elements from several rounds as one Fields: the values of
    round k go to the indexes ``places[k]`` of arrays of length ``total``; indexes without a value
    are empty strings. Other fields are dropped. ``found`` must not be empty; its first round
    determines names and memory, and every round has the same fields.
    """
    out: dict[str, Any] = {}
    for name, sample in vars(found[0]).items():
        if not isinstance(sample, Bytes):
            continue
        start, size = np.zeros(total, np.int64), np.zeros(total, np.int64)
        for fields, at in zip(found, places, strict=True):
            value = getattr(fields, name)
            start[at] = value.start
            size[at] = value.size
        out[name] = Bytes(sample.memory, start, size, sample.text)
    return Fields(**out)


def choose(count: int, *cases: tuple[Any, Any, int]) -> Vector:
    """Return for each of ``count`` structures the number of the first case whose condition holds.
    It is -1 if none holds, or if the second mask of that case (``care``) holds. Each case is
    (condition, care, number).
    """
    out = np.full(count, -1, np.int64)
    free = np.ones(count, np.bool_)
    for condition, care, number in cases:
        out[free & condition & np.logical_not(care)] = number
        free &= np.logical_not(condition)
    return out


def wrap_32(value: Vector) -> Vector:
    """Return the values wrapped to 32 bits in two's complement."""
    return np.asarray(value).astype(np.int32).astype(np.int64)


def wrap_16(value: Vector) -> Vector:
    """Return the values wrapped to 16 bits in two's complement."""
    return np.asarray(value).astype(np.int16).astype(np.int64)


def wrap_8(value: Vector) -> Vector:
    """Return the values wrapped to 8 bits in two's complement."""
    return np.asarray(value).astype(np.int8).astype(np.int64)
