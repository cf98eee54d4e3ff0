"""Runs of entries -> Arrow record batches, by the kernels of a view.

A chunk is indexed, compressed runs are decompressed into a buffer that is used again, rows are measured and checked,
and then written into Arrow buffers of exactly their size. What the kernels do not take is named, and passed over.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.view import Column, View
from codecgen.runtime.compression import decompress
from codecgen.runtime.errors import UnsupportedCodec
from codecgen.runtime.source import Limits

ENTRIES = 8192
"""Entries that are indexed at a time."""

SCRATCH = 8 << 20
"""Decompressed bytes after which rows are written. A single entry may have more."""

MOST_BYTES = (1 << 31) - 1
"""What 32-bit offsets can count."""

_SLOT = {
    name: i
    for i, name in enumerate(
        ("STATUS", "AT", "CASE", "START", "END", "CODEC", "RUN", "RUN_END", "COUNT", "ROWS")
    )
}
_STATUS, _CASE, _START, _END = (_SLOT[name] for name in ("STATUS", "CASE", "START", "END"))
_CODEC, _RUN, _RUN_END = (_SLOT[name] for name in ("CODEC", "RUN", "RUN_END"))
_AT, _ROWS = _SLOT["AT"], _SLOT["ROWS"]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of some entries: from the byte ``start`` of the file to ``end``; ``last`` is where the last entry is."""

    batch: pa.RecordBatch
    start: int
    last: int
    end: int
    entries: int


@dataclass(frozen=True, slots=True)
class Odd:
    """An entry that the kernels do not take: for the line ``line`` of its YAML, noticed at the byte ``at`` (None: in
    decompressed bytes). ``end`` is None when it is not known where the entry ends."""

    start: int
    end: int | None
    line: int = 0
    at: int | None = None


class Chunk:
    """Memory for bytes of a file, with the slack behind them that kernels read."""

    def __init__(self, capacity: int) -> None:
        self.array = np.empty(capacity, np.uint8)
        self.size = 0
        self.grow(capacity)

    def grow(self, capacity: int) -> None:
        """Make room for so many bytes; those that are in it are lost."""
        slack = 64
        self.array = np.empty(capacity + slack, np.uint8)
        self.array[-slack:] = 0
        self.capacity = capacity
        self.size = 0

    @property
    def address(self) -> int:
        return int(self.array.ctypes.data)

    def view(self) -> memoryview:
        return self.array.data


@cache
def arrow_type(column: Column) -> Any:
    """The Arrow type of a column."""
    if column.type == "list":
        fields = [pa.field(m.name, arrow_type(m), m.nullable) for m in column.members]
        return pa.list_(pa.field("element", pa.struct(fields), False))
    if column.type == "timestamp_ms":
        return pa.timestamp("ms", "UTC")
    return {
        "int8": pa.int8(),
        "int16": pa.int16(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "bool": pa.bool_(),
        "binary": pa.binary(),
        "string": pa.string(),
    }[column.type]


def choose(view: View, names: Sequence[str] | None) -> tuple[Column, ...]:
    """Columns by their names; None: all that are there without being asked for. Raises ValueError."""
    if names is None:
        return tuple(column for column in view.columns if not column.on_request)
    if len(set(names)) != len(names):
        raise ValueError("a column is asked for twice")
    return tuple(view.column(name) for name in names)


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([pa.field(c.name, arrow_type(c), c.nullable) for c in columns])


def load_kernels(view: View) -> ModuleType:
    """The kernels of a view. Raises ImportError without numpy."""
    return importlib.import_module(view.kernels)


class Decoder:
    """Decodes chunks into the columns of a view. Not for several threads at once."""

    def __init__(
        self,
        view: View,
        columns: Sequence[Column],
        *,
        limits: Limits | None = None,
        careful: bool = False,
        most_rows: int = 1 << 20,
        kernels: ModuleType | None = None,
        allocate: Callable[[int], Any] = pa.allocate_buffer,
    ) -> None:
        self.view = view
        self.columns = tuple(columns)
        self.schema = schema_of(columns)
        self.limits = limits or Limits()
        self.careful = careful
        self.most_rows = most_rows
        self.kernels = kernels or load_kernels(view)
        self.allocate = allocate
        self.table = np.zeros((ENTRIES, view.row_size // 8), np.int64)
        self.scratch = Chunk(SCRATCH)
        leaves = [leaf for column in view.columns for leaf in (column, *column.members)]
        self.out = np.zeros(1 + 3 * len(leaves), np.int64)
        self.state = np.zeros(1 + len(leaves), np.int64)
        self.totals = np.zeros(1 + len(view.sums), np.int64)

    def decode(self, chunk: Chunk, position: int) -> Iterator[Rows | Odd]:
        """The rows of the entries in a chunk, whose first byte is ``position`` in the file.

        After an :class:`Odd` whose end is known it goes on behind that. It ends where no whole entry is left.
        """
        start, end = chunk.address, chunk.address + chunk.size
        bias = position - start
        while True:
            kind = self._kind(chunk, start)
            if kind is None:
                return
            kernels = self.kernels.KERNELS.get(kind)
            if kernels is None:
                yield Odd(start + bias, None)
                return
            count, start, why = kernels[0](
                self.table.ctypes.data, ENTRIES, start, end, self.limits.elements, int(self.careful)
            )
            yield from self._entries(chunk, int(count), bias, kernels)
            if why < 0:
                yield Odd(start + bias, None)
            if why <= 0:
                return

    def _kind(self, chunk: Chunk, start: int) -> int | None:
        """The number that says what the entry at an address is; None when the bytes end before it."""
        kind = self.view.kind
        at = start - chunk.address + kind.offset
        if at + kind.size > chunk.size:
            return None
        data = bytes(chunk.view()[at : at + kind.size])
        return int.from_bytes(data, kind.endian, signed=kind.signed)

    def _entries(
        self, chunk: Chunk, count: int, bias: int, kernels: tuple[Any, Any, Any]
    ) -> Iterator[Rows | Odd]:
        first = 0
        while first < count:
            last = self._decompressed(chunk, first, count)
            while first < last:
                self.totals[:] = 0
                behind = kernels[1](
                    self.table.ctypes.data,
                    first,
                    last,
                    self.limits.elements,
                    self.most_rows,
                    MOST_BYTES,
                    self.totals.ctypes.data,
                )
                if behind > first and self.totals[1:].max(initial=0) <= MOST_BYTES:
                    batch = self._fill(first, behind, bias, kernels[2])
                    row, end = self.table[first], self.table[behind - 1]
                    yield Rows(
                        batch,
                        int(row[_START]) + bias,
                        int(end[_START]) + bias,
                        int(end[_END]) + bias,
                        behind - first,
                    )
                    first = behind
                else:
                    row = self.table[first]
                    start, end = int(row[_START]) + bias, int(row[_END]) + bias
                    at = int(row[_AT]) + bias
                    yield Odd(start, end, int(row[_STATUS]), at if start <= at <= end else None)
                    first += 1

    def _decompressed(self, chunk: Chunk, first: int, count: int) -> int:
        """Decompress what entries need it, as far as there is room. The first entry that is not ready."""
        table = self.table
        part = table[first:count]
        wanted = np.flatnonzero((part[:, _CODEC] != 0) & (part[:, _STATUS] == 0))
        if not len(wanted):
            return count
        base = chunk.address
        data = chunk.view()
        used = 0
        ready: list[tuple[int, int, int]] = []
        full = count
        for i in wanted.tolist():
            row = table[first + i]
            codec = self.view.cases[row[_CASE]].codecs.get(int(row[_CODEC]), _UNKNOWN)
            if codec is None:
                continue
            if used >= SCRATCH:
                full = first + i
                break
            plain = None
            if codec is not _UNKNOWN:
                limit = (
                    codec.limit if self.limits.decompressed is None else self.limits.decompressed
                )
                run = data[int(row[_RUN]) - base : int(row[_RUN_END]) - base]
                plain = self._plain(codec, run, limit)
            if plain is None:
                row[_STATUS] = -1
                continue
            size = len(plain)
            if used + size > self.scratch.capacity:
                if ready:
                    full = first + i
                    break
                self.scratch.grow(size)
            self.scratch.view()[used : used + size] = plain
            ready.append((first + i, used, size))
            used += size
        address = self.scratch.address
        for i, at, size in ready:
            row = table[i]
            row[_RUN] = address + at
            row[_RUN_END] = address + at + size
            row[_CODEC] = 0
        return full

    def _plain(self, codec: Any, run: memoryview, limit: int) -> bytes | None:
        """A run without compression; None when there is anything to be said about it."""
        try:
            result = decompress(codec.name, run, limit=limit, variant=codec.variant)
        except UnsupportedCodec:
            return None
        odd = result.error is not None or result.notes or result.unused
        return None if odd else result.data

    def _fill(self, first: int, behind: int, bias: int, fill: Any) -> pa.RecordBatch:
        rows = int(self.totals[0])
        out, state = self.out, self.state
        out[:] = 0
        state[:] = 0
        sums = {
            (s.index, s.what): int(n) for s, n in zip(self.view.sums, self.totals[1:], strict=True)
        }
        parts = [_Part(column, rows, sums, self.allocate) for column in self.columns]
        for part in parts:
            part.addresses(out)
        out[0] = int(any(column.varies for column in self.columns))
        fill(
            self.table.ctypes.data,
            first,
            behind,
            self.limits.elements,
            bias,
            out.ctypes.data,
            state.ctypes.data,
        )
        return pa.RecordBatch.from_arrays([part.array() for part in parts], schema=self.schema)


_UNKNOWN: Any = object()
_WIDTHS = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "timestamp_ms": 8}


class _Part:
    """The buffers of one column, of exactly the size that its values have."""

    def __init__(
        self,
        column: Column,
        rows: int,
        sums: dict[tuple[int, str], int],
        allocate: Callable[[int], Any],
    ) -> None:
        self.column = column
        self.rows = rows
        self.nulls = sums.get((column.index, "nulls"), 0)
        self.validity = _ones(rows, allocate) if self.nulls else None
        self.offsets = None
        self.data = None
        self.members: list[_Part] = []
        if column.type == "list":
            self.offsets = _offsets(rows, allocate)
            count = sums[column.index, "count"]
            self.members = [_Part(member, count, sums, allocate) for member in column.members]
        elif column.type in ("binary", "string"):
            self.offsets = _offsets(rows, allocate)
            self.data = _buffer(sums[column.index, "bytes"], allocate)
        elif column.type == "bool":
            self.data = _ones(rows, allocate)
        else:
            self.data = _buffer(rows * _WIDTHS[column.type], allocate)

    def addresses(self, out: Any) -> None:
        at = 1 + 3 * self.column.index
        for i, buffer in enumerate((self.data, self.validity, self.offsets)):
            out[at + i] = 0 if buffer is None else buffer.address
        for member in self.members:
            member.addresses(out)

    def array(self) -> Any:
        kind = arrow_type(self.column)
        if self.members:
            arrays = [member.array() for member in self.members]
            count = self.members[0].rows
            struct = pa.Array.from_buffers(kind.value_type, count, [None], 0, children=arrays)
            buffers = [self.validity, self.offsets]
            return pa.Array.from_buffers(kind, self.rows, buffers, self.nulls, children=[struct])
        buffers = [self.validity, self.data]
        if self.offsets is not None:
            buffers.insert(1, self.offsets)
        return pa.Array.from_buffers(kind, self.rows, buffers, self.nulls)


def _buffer(size: int, allocate: Callable[[int], Any]) -> Any:
    """Memory from Arrow's pool. Kernels may write up to 64 bytes behind the end."""
    return allocate(size + 64).slice(0, size)


def _ones(bits: int, allocate: Callable[[int], Any]) -> Any:
    size = (bits + 7) // 8
    buffer = _buffer(size, allocate)
    ctypes.memset(buffer.address, 0xFF, size)
    return buffer


def _offsets(rows: int, allocate: Callable[[int], Any]) -> Any:
    buffer = _buffer(4 * (rows + 1), allocate)
    ctypes.memset(buffer.address, 0, 4)
    return buffer
