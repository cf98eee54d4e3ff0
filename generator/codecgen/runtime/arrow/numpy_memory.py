"""What readers have read, and how it becomes Arrow: places in memory, bytes, lists, numbers with nulls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.view import Column

MAX_BYTES = (1 << 31) - 1
"""What 32-bit offsets can count."""

PIECES = 1024
"""Pieces of memory that are copied at once."""

SHORT = 1024
"""Bytes of a piece, with what lies before it, up to which it is copied."""

Vector = Any
"""An array of one number or truth value for each structure."""

Piece = bytes | memoryview


class Fields(SimpleNamespace):
    """Values that a reader has read, as attributes named after the fields."""


class Memory:
    """Bytes that NumPy readers read at many positions at once. If there are fewer than 64, 64 zeros
    follow them.
    """

    def __init__(self, array: Vector) -> None:
        if len(array) < 64:
            array = np.concatenate([array, np.zeros(64, np.uint8)])
        self.array = array
        self.view = memoryview(array)
        self._windows: dict[int, Vector] = {}

    def bytes(self, at: Vector) -> Vector:
        """Return the byte at each position. Positions outside the array are clipped to it."""
        return self.array.take(at, mode="clip")

    def byte_windows(self, at: Vector, size: int) -> Vector:
        """Return the ``size`` bytes from each position (not negative) on, as an array of voids
        without a copy of the memory. Positions closer to the end than ``size`` are replaced by the
        last one at which all bytes are there. A ``size`` up to 64 always fits, because short memory
        is padded.
        """
        window = self._windows.get(size)
        if window is None:
            window = np.ndarray(len(self.array) - size + 1, f"V{size}", self.array, strides=(1,))
            self._windows[size] = window
        return window[np.minimum(at, len(window) - 1)]

    def iterate_ranges(self, start: Vector, end: Vector) -> Iterator[Piece]:
        """Return an iterator over the bytes from each of ``start`` to the matching one of ``end``
        (excluded), in order: short ones as copies, others as memoryviews.
        """
        turns = range(0, len(start), PIECES)
        return chain.from_iterable(
            self._read_ranges(start[at : at + PIECES], end[at : at + PIECES]) for at in turns
        )

    def _read_ranges(self, start: Vector, end: Vector) -> Iterable[Piece]:
        """Return the bytes of each range, in order. If the ranges are in ascending order and
        average below 1 KiB, gaps included, Arrow copies all at once, which is faster; else each is
        a memoryview.
        """
        edges = np.column_stack([start, end]).ravel()
        if edges[-1] - edges[0] < SHORT * len(start) and _in_order(edges, self):
            whole = _contiguous_array(self, edges, len(edges) - 1)
            copies: list[Piece] = whole.to_numpy(zero_copy_only=False)[::2].tolist()
            return copies
        return map(self.view.__getitem__, map(slice, start.tolist(), end.tolist()))


def _in_order(edges: Vector, memory: Memory) -> bool:
    """Return True if the edges never decrease and lie in memory, in a span that int32 offsets can address."""
    low, high = int(edges[0]), int(edges[-1])
    inside = low >= 0 and high <= len(memory.array) and high - low <= MAX_BYTES
    return inside and not (edges[1:] < edges[:-1]).any()


def _contiguous_array(memory: Memory, edges: Vector, count: int) -> Any:
    """Return the ``count`` byte strings between consecutive edges as an Arrow binary array, which
    uses the memory without a copy. The edges must ascend, within 2 GiB.
    """
    low, high = int(edges[0]), int(edges[-1])
    buffers = [
        None,
        pa.py_buffer((edges - low).astype(np.int32)),
        pa.py_buffer(memory.view[low:high]),
    ]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


@dataclass(slots=True)
class Bytes:
    """Byte strings or text, one per structure, as start and size; size -1 is null."""

    memory: Memory
    start: Vector
    size: Vector
    text: bool = False
    _array: Any = None

    @property
    def null(self) -> Vector:
        """Mask of the values that are null."""
        return self.size < 0

    def select(self, rows: Vector) -> Bytes:
        """Return the values of ``rows``."""
        return Bytes(self.memory, self.start[rows], self.size[rows], self.text)

    def array(self) -> Any:
        """Return a copy of the byte strings as an Arrow array of type ``binary``, made on first use."""
        if self._array is None:
            self._array = _binary(self.memory, self.start, self.size)
        return self._array

    def broken(self) -> Vector | None:
        """Return a mask of the values that are not valid UTF-8 (null is valid). Return None if all
        are valid.
        """
        array = self.array()
        try:
            array.cast(pa.string())
        except pa.ArrowInvalid:
            return np.array([not _is_utf8(value) for value in array], np.bool_)
        return None


def _is_utf8(value: Any) -> bool:
    """Return True if an Arrow binary scalar is valid UTF-8 or null."""
    try:
        (value.as_py() or b"").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _binary(memory: Memory, start: Vector, size: Vector) -> Any:
    """Copy the byte strings at ``start`` with ``size`` bytes each into a new Arrow binary array; a
    size of -1 is null.

    Arrow takes every second value of an array that holds the strings and the gaps between them.
    """
    count = len(size)
    if not count:
        return pa.array([], pa.binary())
    there = size >= 0
    nulls = count - int(np.count_nonzero(there))
    validity = pa.py_buffer(np.packbits(there, bitorder="little")) if nulls else None
    if nulls:
        size = np.maximum(size, 0)
    edges = np.empty(2 * count + 1, np.int64)
    edges[0:-1:2] = start
    edges[1::2] = start + size
    edges[-1] = edges[-2]
    if not _in_order(edges, memory):
        # Only structures that are refused lie like this.
        places = map(slice, start.tolist(), (start + size).tolist())
        values = [bytes(memory.view[place]) for place in places]
        return pa.array(values, pa.binary(), mask=~there)
    whole = _contiguous_array(memory, edges, 2 * count)
    taken = whole.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))
    if not nulls:
        return taken
    _, offsets, data = taken.buffers()
    return pa.Array.from_buffers(pa.binary(), count, [validity, offsets, data], nulls)


class NoFields(Fields):
    """Fields of zero structures, which has every name."""

    def __init__(self, memory: Memory) -> None:
        self._of = memory

    def __getattr__(self, name: str) -> Bytes:
        none = np.zeros(0, np.int64)
        return Bytes(self._of, none, none)


@dataclass(slots=True)
class List:
    """Lists, one per structure.

    Attributes:
        fields: Fields of all elements.
        offsets: Index of the first element of each list, and the total.
        null: Mask of null lists, None if there is none.
    """

    offsets: Vector
    fields: Fields
    null: Vector | None = None


@dataclass(frozen=True, slots=True)
class Nullable:
    """Numbers with a mask of nulls."""

    value: Any
    null: Any


# ---------------------------------------------------------------- columns

_NUMBERS = {
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "timestamp_ms": np.int64,
}


def to_arrow(column: Column, kind: Any, value: Any, count: int, repeats: Vector | None) -> Any:
    """Return the values of a column as an Arrow array of type ``kind``: ``count`` values, or, with
    ``repeats``, each value in so many rows. ``value`` is Bytes, List, Nullable, a vector, or one
    number for all; Bytes and List are never repeated. Raise pyarrow.ArrowInvalid for text that is
    not UTF-8.

    Args:
        column: The column.
        kind: The Arrow type of the array.
        value: The values: Bytes, List, Nullable, a vector, or one number for all.
        count: The number of values.
        repeats: How many rows each value stands for; one row each by default.
    """
    if isinstance(value, Bytes):
        return value.array().cast(kind)
    if isinstance(value, List):
        members = [getattr(value.fields, m.name).array() for m in column.members]
        members = [array.cast(kind.value_type.field(i).type) for i, array in enumerate(members)]
        return _make_list_array(kind, count, value.offsets, members, value.null)
    null: Any = None
    if isinstance(value, Nullable):
        value, null = value.value, _repeat_values(np.asarray(value.null), count, repeats)
    if column.type == "bool":
        value = np.packbits(
            _repeat_values(np.asarray(value) != 0, count, repeats), bitorder="little"
        )
    else:
        # In the width of the column first: to repeat, and to fill, takes less time then.
        value = _repeat_values(np.asarray(value).astype(_NUMBERS[column.type]), count, repeats)
    rows = count if repeats is None else int(repeats.sum())
    validity, nulls = None, 0
    if null is not None and null.any():
        nulls = int(np.count_nonzero(null))
        validity = pa.py_buffer(np.packbits(~null, bitorder="little"))
    return pa.Array.from_buffers(
        kind, rows, [validity, pa.py_buffer(np.ascontiguousarray(value))], nulls
    )


def _repeat_values(values: Vector, count: int, repeats: Vector | None) -> Vector:
    """Return one value per row: expand a scalar to ``count`` values, and repeat values ``repeats`` times."""
    if values.ndim == 0:
        return np.full(count if repeats is None else int(repeats.sum()), values)
    return values if repeats is None else np.repeat(values, repeats)


def missing(column: Column, kind: Any, rows: int) -> Any:
    """Return an Arrow array of type ``kind`` with ``rows`` nulls; with ``rows`` empty lists if the
    column is a list that is not nullable. Members of a null struct are null only if their field is
    nullable, else 0 or empty: ``pa.nulls`` makes arrays that ``cast`` refuses.
    """
    return _make_empty_values(kind, rows, column.type != "list" or column.nullable)


def _make_empty_values(kind: Any, rows: int, is_null: bool) -> Any:
    """Return an Arrow array of type ``kind`` with ``rows`` values: nulls if ``is_null``, else
    zeros, empty strings, empty lists, or structs of these.
    """
    validity = pa.py_buffer(bytes(-(-rows // 8))) if is_null else None
    nulls = rows if is_null else 0
    if pa.types.is_struct(kind):
        children = [_make_empty_values(field.type, rows, field.nullable) for field in kind]
        return pa.Array.from_buffers(kind, rows, [validity], nulls, children=children)
    if pa.types.is_primitive(kind) or pa.types.is_fixed_size_binary(kind):
        data = pa.py_buffer(bytes(-(-rows * kind.bit_width // 8)))
        return pa.Array.from_buffers(kind, rows, [validity, data], nulls)
    offsets = pa.py_buffer(bytes(4 * (rows + 1)))
    if pa.types.is_list(kind):
        empty = [pa.array([], kind.value_type)]
        return pa.Array.from_buffers(kind, rows, [validity, offsets], nulls, children=empty)
    return pa.Array.from_buffers(kind, rows, [validity, offsets, pa.py_buffer(b"")], nulls)


def _make_list_array(
    kind: Any, rows: int, offsets: Vector, members: list[Any], null: Vector | None = None
) -> Any:
    """Return an Arrow array of the list type ``kind`` with ``rows`` lists of structs, from the
    offsets of the lists and one array for each member. ``null`` is a mask of null lists, None for
    no nulls.
    """
    count = int(offsets[-1])
    nulls = 0 if null is None else int(np.count_nonzero(null))
    validity = None
    if null is not None and nulls:
        validity = pa.py_buffer(np.packbits(~null, bitorder="little"))
    struct = pa.Array.from_buffers(kind.value_type, count, [None], 0, children=members)
    buffer = pa.py_buffer(offsets.astype(np.int32))
    return pa.Array.from_buffers(kind, rows, [validity, buffer], nulls, children=[struct])
