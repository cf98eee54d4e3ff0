"""Arrow columns as kernels write them: their types, and buffers with room for rows."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from codecgen.runtime.arrow.view import Column, Columns

Allocate = Callable[[int], Any]
"""Function that returns a buffer of a number of bytes."""

LEAVES = 4
"""Number of totals before those of the leaves, such as the number of rows."""

_BITS = {"float": 32, "double": 64, "timestamp_ms": 64, "uuid": 128}
_BITS |= {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}
"""Bits of a value by the type of its column."""


VIEW_TYPES: Mapping[str, Any] = {"binary": pa.binary_view(), "string": pa.string_view()}
"""The Arrow types of columns whose values are views of bytes that lie elsewhere, by the type of the column."""

CAN_BUILD_VIEWS = int(pa.__version__.partition(".")[0]) >= 19
"""Whether pyarrow makes arrays of views from buffers. Version 18 expects no buffers beside those of the views."""

_VIEW_BYTES = 16


@cache
def arrow_type(column: Column) -> Any:
    """Return the Arrow type of a column, nested for structs and lists. Times are ``timestamp[ms,
    UTC]``; a uuid is ``binary(16)``, not the extension type. Raise KeyError for an unknown type.
    """
    if column.type in ("struct", "list"):
        fields = [pa.field(m.name, arrow_type(m), m.nullable) for m in column.children]
        if column.element is not None:
            return pa.list_(fields[0])
        struct = pa.struct(fields)
        return struct if column.type == "struct" else pa.list_(pa.field("element", struct, False))
    return {
        "int8": pa.int8(),
        "int16": pa.int16(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "uint8": pa.uint8(),
        "uint16": pa.uint16(),
        "uint32": pa.uint32(),
        "uint64": pa.uint64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "timestamp_ms": pa.timestamp("ms", "UTC"),
        "uuid": pa.binary(16),
        "binary": pa.binary(),
        "string": pa.string(),
    }[column.type]


def choose(view: Columns, names: Sequence[str] | None) -> tuple[Column, ...]:
    """Return the columns of a view called ``names``, in that order. For None return all columns in
    the view's order, except those that are read only on request. Raise ValueError if the view lacks
    a column, or one is named twice.
    """
    if names is None:
        return tuple(column for column in view.columns if not column.on_request)
    if len(set(names)) != len(names):
        raise ValueError("columns names a column twice: name each once")
    return tuple(view.column(name) for name in names)


def schema_of(columns: Sequence[Column], *, views: bool = False) -> pa.Schema:
    """Return the Arrow schema of columns. With ``views``, bytes and text outside lists and structs
    are ``binary_view`` and ``string_view``.
    """
    types = VIEW_TYPES if views else {}
    return pa.schema(
        [pa.field(c.name, types.get(c.type) or arrow_type(c), c.nullable) for c in columns]
    )


class ColumnBuffers:
    """The Arrow buffers that kernels write one column to, with those of the columns inside of it."""

    def __init__(
        self,
        column: Column,
        rows: int,
        room: Sequence[int],
        allocate: Allocate,
        viewed: Sequence[Any] | None = None,
    ) -> None:
        """Allocate buffers for ``rows`` rows, and for ``room[LEAVES + index]`` bytes or elements of
        the column with that index. If ``viewed`` is given, bytes and text are views of these
        buffers, and not copied.
        """
        self.column = column
        self.viewed = viewed if column.type in VIEW_TYPES else None
        self.validity = _ones(rows, allocate) if column.nullable else None
        self.offsets: Any = None
        self.data: Any = None
        self.parts: list[ColumnBuffers] = []
        size = room[LEAVES + column.index]
        if column.type == "struct":
            self.parts = [ColumnBuffers(part, rows, room, allocate) for part in column.children]
        elif column.type == "list":
            self.offsets = _offsets(rows, allocate)
            self.parts = [ColumnBuffers(part, size, room, allocate) for part in column.children]
        elif self.viewed is not None:
            self.data = _buffer(_VIEW_BYTES * rows, allocate)
            ctypes.memset(self.data.address, 0, self.data.size)
        elif column.type in VIEW_TYPES:
            self.offsets = _offsets(rows, allocate)
            self.data = _buffer(size, allocate)
        elif column.type == "bool":
            self.data = _ones(rows, allocate)
        else:
            self.data = _buffer(rows * (_BITS[column.type] // 8), allocate)

    def addresses(self, out: list[int]) -> None:
        """Write the addresses of the data, validity and offsets buffers into ``out``, three numbers
        per column from ``3 * index`` on, also for nested columns. A buffer that the column does not
        have gets 0.
        """
        at = 3 * self.column.index
        for i, buffer in enumerate((self.data, self.validity, self.offsets)):
            out[at + i] = 0 if buffer is None else buffer.address
        for part in self.parts:
            part.addresses(out)

    def array(self, rows: int, used: Sequence[int], nulls: Sequence[int]) -> Any:
        """Return the first ``rows`` rows as an Arrow array that uses the buffers without a copy.
        ``used`` has the bytes or elements of each column after LEAVES totals, ``nulls`` the nulls
        of each; without nulls the array has no validity buffer.
        """
        column = self.column
        kind = arrow_type(column)
        size, missing = used[LEAVES + column.index], nulls[column.index]
        validity = self.validity if missing else None
        if column.type == "struct":
            inside = [part.array(rows, used, nulls) for part in self.parts]
            return pa.Array.from_buffers(kind, rows, [validity], missing, children=inside)
        if column.type == "list":
            inside = [part.array(size, used, nulls) for part in self.parts]
            if column.element is None:
                inside = [pa.Array.from_buffers(kind.value_type, size, [None], 0, children=inside)]
            offsets = self.offsets.slice(0, 4 * (rows + 1))
            return pa.Array.from_buffers(kind, rows, [validity, offsets], missing, children=inside)
        if self.viewed is not None:
            kind, views = VIEW_TYPES[column.type], self.data.slice(0, _VIEW_BYTES * rows)
            return pa.Array.from_buffers(kind, rows, [validity, views, *self.viewed], missing)
        if self.offsets is None:
            return pa.Array.from_buffers(kind, rows, [validity, self.data], missing)
        buffers = [validity, self.offsets.slice(0, 4 * (rows + 1)), self.data.slice(0, size)]
        return pa.Array.from_buffers(kind, rows, buffers, missing)


def _buffer(size: int, allocate: Allocate) -> Any:
    """Allocate ``size`` bytes with 64 bytes after them, which kernels may write to."""
    return allocate(size + 64).slice(0, size)


def _ones(bits: int, allocate: Allocate) -> Any:
    """Allocate a bitmap of ``bits`` bits, all set, and return it. 64 bytes follow it that kernels
    may overwrite.
    """
    size = (bits + 7) // 8
    buffer = _buffer(size, allocate)
    ctypes.memset(buffer.address, 0xFF, size)
    return buffer


def _offsets(rows: int, allocate: Allocate) -> Any:
    """Allocate the 32-bit offsets of ``rows`` values, one more than rows; the first is set to 0."""
    buffer = _buffer(4 * (rows + 1), allocate)
    ctypes.memset(buffer.address, 0, 4)
    return buffer
