"""Runs of entries -> Arrow record batches, by the kernels of a view.

A chunk is indexed, compressed runs are decompressed into a buffer that is used again, and rows are checked and written in
one go into Arrow buffers of about the size that the rows before them took. What does not fit comes with the next ones.
What the kernels do not take is named, and passed over.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.runs import NUMBERS
from codecgen.runtime.arrow.view import Codec, Column, View
from codecgen.runtime.compression import CODECS
from codecgen.runtime.compression.lz4 import UNCHECKED_HEADER
from codecgen.runtime.errors import UnsupportedCodec
from codecgen.runtime.source import Limits

ENTRIES = 8192
"""Entries that are indexed at a time."""

SCRATCH = 8 << 20
"""Decompressed bytes after which rows are written. A single entry may have more."""

MOST_BYTES = (1 << 31) - 1
"""What 32-bit offsets can count."""

MARGIN = 1.03
SPARE = 1024
PROBE = 64 << 10
"""Buffers are larger than what is expected of them by a factor, and by some bytes. What to expect of the first rows is
measured on so many bytes of them."""

_STATUS, _AT, _CASE, _START, _END, _CODEC, _RUN, _RUN_END, _COUNT = range(9)
"""What a row of the index says of an entry, or of a run of entries that are rows themselves."""

_ROWS, _ENTRIES, _LAST, _NEXT, _LEAVES = range(5)
"""What the kernels say of what they have written: rows, entries, where the last one is, where the next one; and then for
each leaf its bytes or elements, and for each leaf its nulls."""


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
    """The kernels of a view; where they cannot be compiled, the readers that do the same by NumPy. Raises ImportError.

    With ``NUMBA_DISABLE_JIT`` they are the kernels nevertheless, as plain Python.
    """
    kernels = importlib.import_module(view.kernels)
    numba = sys.modules.get("numba")  # the kernels have tried to import it
    return kernels if numba is not None and sys.byteorder == "little" else load_vectors(view)


def load_vectors(view: View) -> ModuleType:
    """The readers of a view that need no compiler. Raises ImportError if there are none."""
    if view.vectors is None:
        raise ImportError(f"the view {view.name} can only be read with numba")
    return importlib.import_module(view.vectors)


@dataclass(frozen=True, slots=True)
class Runs:
    """A kernel that decompresses runs. ``kinds`` and ``limits`` say by case and number of the codec how it reads them (0:
    not at all), and how much they may hold."""

    kernel: Any
    kinds: Any
    limits: Any


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
    ) -> None:
        self.view = view
        self.columns = tuple(columns)
        self.schema = schema_of(columns)
        self.limits = limits or Limits()
        self.careful = careful
        self.most_rows = most_rows
        self.kernels = kernels or load_kernels(view)
        self.vectors = None
        if hasattr(self.kernels, "LAYOUTS"):
            from codecgen.runtime.arrow.vector_decoder import VectorDecoder

            self.vectors = VectorDecoder(
                view, columns, self.kernels, limits=self.limits, careful=careful
            )
        self.table = np.zeros((ENTRIES, view.row_size // 8), np.int64)
        self.scratch = Chunk(SCRATCH)
        self.leaves = [leaf for column in view.columns for leaf in (column, *column.members)]
        self.out = np.zeros(3 * len(self.leaves), np.int64)
        self.state = np.zeros(_LEAVES + 2 * len(self.leaves), np.int64)
        self.room = np.zeros(_LEAVES + len(self.leaves), np.int64)
        self.runs: dict[str, Runs | None] = {}
        self.least = np.array([case.least for case in view.cases] or [1], np.int64)
        self.shares: Any = None  # what of a run each leaf takes, as far as is known

    def decode(self, chunk: Chunk, position: int) -> Iterator[Rows | Odd]:
        """The rows of the entries in a chunk, whose first byte is ``position`` in the file.

        After an :class:`Odd` whose end is known it goes on behind that. It ends where no whole entry is left.
        """
        if self.vectors is not None:
            yield from self.vectors.decode(chunk, position)
            return
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
        self, chunk: Chunk, count: int, bias: int, kernels: tuple[Any, Any]
    ) -> Iterator[Rows | Odd]:
        first = 0
        while first < count:
            last = self._decompressed(chunk, first, count)
            self._bound(first, last)
            while first < last:
                if self.table[first, _STATUS] == 0:
                    start = self._begin(first)
                    first, batch = self._batch(kernels[1], first, last, bias)
                    state = self.state
                    if batch is not None:
                        at, end = int(state[_LAST]) + bias, int(state[_NEXT]) + bias
                        yield Rows(batch, start + bias, at, end, int(state[_ENTRIES]))
                        continue
                yield self._odd(first, bias)
                first = self._past(first)

    def _bound(self, first: int, last: int) -> None:
        """More rows than there are bytes for are odd: no memory is set aside for them."""
        part = self.table[first:last]
        good = part[:, _STATUS] == 0
        least = self.least[np.where(good, part[:, _CASE], 0)]
        too_many = part[:, _COUNT] * least > part[:, _RUN_END] - part[:, _RUN]
        part[good & too_many, _STATUS] = -1

    def _begin(self, i: int) -> int:
        """Where the first entry is that is not decoded yet."""
        row = self.table[i]
        return int(row[_RUN] if self._is_run(i) else row[_START])

    def _is_run(self, i: int) -> bool:
        """Whether a row of the index stands for entries that are rows themselves."""
        row = self.table[i]
        return bool(row[_RUN] < row[_RUN_END]) and self.view.cases[row[_CASE]].each_entry

    def _odd(self, i: int, bias: int) -> Odd:
        row = self.table[i]
        start, end = self._begin(i) + bias, int(row[_END]) + bias
        at = int(row[_AT]) + bias
        return Odd(start, end, int(row[_STATUS]), at if start <= at <= end else None)

    def _past(self, i: int) -> int:
        """Go on behind an odd entry: the row of the index that has the next one."""
        row = self.table[i]
        if not self._is_run(i) or row[_END] >= row[_RUN_END]:
            return i + 1
        row[_STATUS] = 0
        row[_RUN] = row[_END]
        row[_COUNT] -= 1
        return i

    def _batch(
        self, decode: Any, first: int, last: int, bias: int
    ) -> tuple[int, pa.RecordBatch | None]:
        """Rows of the entries from ``first`` on, as many as fit. Which entry is next, and no batch if there are none."""
        if self.shares is None:
            ends = np.cumsum(self.table[first:last, _RUN_END] - self.table[first:last, _RUN])
            some = min(last, first + 1 + int(np.searchsorted(ends, PROBE)))
            self._measure(decode, first, some)
        behind, batch = self._attempt(decode, first, last, bias, self._expected(first, last))
        if batch is None and self.table[first, _STATUS] == 0:
            # The first entry alone takes more than was expected of all of them.
            exact = self._measure(decode, first, first + 1)
            if int(exact.max()) <= MOST_BYTES:
                behind, batch = self._attempt(decode, first, first + 1, bias, exact)
            else:
                self.table[first, _STATUS] = -1
        return behind, batch

    def _left(self, first: int, last: int) -> int:
        """Bytes of runs that are to be read."""
        part = self.table[first:last]
        return int((part[:, _RUN_END] - part[:, _RUN]).sum())

    def _expected(self, first: int, last: int) -> Any:
        """Rows that entries have, and what their leaves take, going by those before them."""
        part = self.table[first:last]
        part = part[part[:, _STATUS] == 0]
        runs = part[:, _RUN_END] - part[:, _RUN]
        room = (self.shares * (int(runs.sum()) * MARGIN)).astype(np.int64) + SPARE
        counted = part[:, _COUNT] >= 0
        if counted.all():
            room[_ROWS] = part[:, _COUNT].sum()
        room[_ROWS] = min(room[_ROWS], self.most_rows)
        return np.minimum(room, MOST_BYTES)

    def _measure(self, decode: Any, first: int, last: int) -> Any:
        """What entries need, by going through them without writing anything."""
        before = self.table[first:last].copy()
        self.out[:] = 0
        self.room[:] = MOST_BYTES
        left = self._left(first, last)
        self._run(decode, first, last, 0)
        self._learn(left - self._left(first, last))
        self.table[first:last] = before
        return self._used()

    def _used(self) -> Any:
        """The rows, and what each leaf takes."""
        used = self.state[: len(self.room)].copy()
        used[_ENTRIES:_LEAVES] = 0
        return used

    def _learn(self, read: int) -> None:
        """Note what share of the bytes that were read each leaf took."""
        if read or self.shares is None:
            self.shares = self._used() / max(read, 1)

    def _attempt(
        self, decode: Any, first: int, last: int, bias: int, room: Any
    ) -> tuple[int, pa.RecordBatch | None]:
        parts = [_Part(column, int(room[_ROWS]), room) for column in self.columns]
        self.out[:] = 0
        for part in parts:
            part.addresses(self.out)
        self.room[:] = room
        left = self._left(first, last)
        behind = self._run(decode, first, last, bias)
        if self.state[_ENTRIES] == 0:
            return behind, None
        self._learn(left - self._left(first, last))
        nulls = self.state[len(self.room) :]
        arrays = [part.array(int(self.state[_ROWS]), self.state, nulls) for part in parts]
        return behind, pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _run(self, decode: Any, first: int, last: int, bias: int) -> int:
        self.state[:] = 0
        out, state, room = self.out.ctypes.data, self.state.ctypes.data, self.room.ctypes.data
        table, most = self.table.ctypes.data, self.limits.elements
        return int(decode(table, first, last, most, bias, out, state, room))

    def _decompressed(self, chunk: Chunk, first: int, count: int) -> int:
        """Decompress what entries need it, as far as there is room. The first entry that is not ready."""
        part = self.table[first:count]
        wanted = np.flatnonzero((part[:, _CODEC] != 0) & (part[:, _STATUS] == 0))
        if not len(wanted):
            return count
        data, base = chunk.view(), chunk.address
        scratch, address = self.scratch.view(), self.scratch.address
        used = 0
        ready = first  # all before this one are
        columns = part[wanted][:, (_CASE, _CODEC, _RUN, _RUN_END)].tolist()
        for i, (case, number, start, end) in zip((wanted + first).tolist(), columns, strict=True):
            if i < ready:
                continue
            codec = self.view.cases[case].codecs.get(number, _UNKNOWN)
            if codec is None:
                continue
            if used >= SCRATCH:
                return i
            plain = None
            if codec is not _UNKNOWN:
                if codec.name not in self.runs:
                    self.runs[codec.name] = self._runs(codec.name)
                runs = self.runs[codec.name]
                if runs is not None and runs.kinds[case, number]:
                    ready, used = self._by_kernel(runs, i, count, used)
                    if ready > i:
                        continue
                plain = self._plain(codec, data[start - base : end - base])
            if plain is None:
                self.table[i, _STATUS] = -1
                continue
            size = len(plain)
            if used + size > self.scratch.capacity:
                if used:
                    return i
                self.scratch.grow(size)
                scratch, address = self.scratch.view(), self.scratch.address
            scratch[used : used + size] = plain
            row = self.table[i]
            row[_CODEC] = 0
            row[_RUN] = address + used
            used += size
            row[_RUN_END] = address + used
        return count

    def _by_kernel(self, runs: Runs, first: int, count: int, used: int) -> tuple[int, int]:
        """Let a kernel decompress what it can, from one entry on. Where it stops, and how much room is used."""
        start = self.scratch.address
        ready, behind = runs.kernel(
            self.table.ctypes.data,
            self.view.row_size,
            first,
            count,
            runs.kinds.ctypes.data,
            runs.limits.ctypes.data,
            start + used,
            start + self.scratch.capacity,
        )
        return int(ready), int(behind) - start

    def _limit(self, codec: Codec) -> int:
        return codec.limit if self.limits.decompressed is None else self.limits.decompressed

    def _runs(self, name: str) -> Runs | None:
        """The kernel for a codec; None when there is none, or no compiler."""
        kinds_of = KERNELS_OF_CODECS.get(name)
        if kinds_of is None or not self.kernels.JIT:
            return None
        kernel = importlib.import_module(f"codecgen.runtime.arrow.{name}")
        kinds = np.zeros((len(self.view.cases), NUMBERS), np.int64)
        limits = np.zeros_like(kinds)
        for i, case in enumerate(self.view.cases):
            for number, codec in case.codecs.items():
                if codec is not None and codec.name == name and number < NUMBERS:
                    kinds[i, number] = kinds_of.get(codec.variant, 0)
                    limits[i, number] = self._limit(codec)
        return Runs(kernel.runs, kinds, limits)

    def _plain(self, codec: Codec, run: memoryview) -> bytes | None:
        """A run without compression; None when there is anything to be said about it."""
        try:
            result = CODECS[codec.name].read(run, self._limit(codec), codec.variant)
        except UnsupportedCodec:
            return None
        odd = result.error is not None or result.notes or result.unused
        return None if odd else result.data


_UNKNOWN: Any = object()

KERNELS_OF_CODECS: Mapping[str, Mapping[str | None, int]] = {
    "lz4": {None: 1, UNCHECKED_HEADER: 2},
    "snappy": {None: 1},
}
"""The codecs that have kernels, and the kinds of runs that these know, by the variant."""

_WIDTHS = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "timestamp_ms": 8}


class _Part:
    """The buffers of one column, with room for some rows and, for each leaf, some bytes or elements."""

    def __init__(self, column: Column, rows: int, room: Any) -> None:
        self.column = column
        self.validity = _ones(rows) if column.nullable else None
        self.offsets: Any = None
        self.data: Any = None
        self.members: list[_Part] = []
        size = int(room[_LEAVES + column.index])
        if column.type == "list":
            self.offsets = _offsets(rows)
            self.members = [_Part(member, size, room) for member in column.members]
        elif column.type in ("binary", "string"):
            self.offsets = _offsets(rows)
            self.data = _buffer(size)
        elif column.type == "bool":
            self.data = _ones(rows)
        else:
            self.data = _buffer(rows * _WIDTHS[column.type])

    def addresses(self, out: Any) -> None:
        at = 3 * self.column.index
        for i, buffer in enumerate((self.data, self.validity, self.offsets)):
            out[at + i] = 0 if buffer is None else buffer.address
        for member in self.members:
            member.addresses(out)

    def array(self, rows: int, used: Any, nulls: Any) -> Any:
        """The rows that were written, of which the leaves have used so much."""
        column = self.column
        kind = arrow_type(column)
        size, missing = int(used[_LEAVES + column.index]), int(nulls[column.index])
        validity = self.validity if missing else None
        if self.members:
            arrays = [member.array(size, used, nulls) for member in self.members]
            struct = pa.Array.from_buffers(kind.value_type, size, [None], 0, children=arrays)
            offsets = self.offsets.slice(0, 4 * (rows + 1))
            return pa.Array.from_buffers(
                kind, rows, [validity, offsets], missing, children=[struct]
            )
        if self.offsets is None:
            return pa.Array.from_buffers(kind, rows, [validity, self.data], missing)
        buffers = [validity, self.offsets.slice(0, 4 * (rows + 1)), self.data.slice(0, size)]
        return pa.Array.from_buffers(kind, rows, buffers, missing)


def _buffer(size: int) -> Any:
    """Memory from Arrow's pool. Kernels may write up to 64 bytes behind the end."""
    return pa.allocate_buffer(size + 64).slice(0, size)


def _ones(bits: int) -> Any:
    size = (bits + 7) // 8
    buffer = _buffer(size)
    ctypes.memset(buffer.address, 0xFF, size)
    return buffer


def _offsets(rows: int) -> Any:
    buffer = _buffer(4 * (rows + 1))
    ctypes.memset(buffer.address, 0, 4)
    return buffer
