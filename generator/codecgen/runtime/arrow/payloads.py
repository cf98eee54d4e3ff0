"""Decode payloads in Arrow columns of bytes into the rows of a payload view, as record batches.

A compiled kernel writes the rows of all valid payloads. The reference codecs read the payloads that the kernel rejects, and
return their rows or the error. Without a kernel the reference codecs read all payloads. The rows are the same.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.output_buffers import (
    LEAVES,
    ColumnBuffers,
    arrow_type,
    choose,
    schema_of,
)
from codecgen.runtime.arrow.primitives.memory import SLACK
from codecgen.runtime.arrow.view import Column, PayloadView
from codecgen.runtime.located_bytes import Limits
from codecgen.runtime.payloads import PartError, PayloadRows, Unknown

__all__ = ["MAX_BYTES", "Payloads", "Rejected", "decode", "load_kernels"]

MAX_BYTES = (1 << 31) - 1
"""Max bytes of a column in a record batch: 32-bit offsets count no more."""

MOST_BYTES = 256 << 20
"""Max bytes of a column buffer, and of rows by the reference codecs in a batch. A single payload may take more."""

MARGIN = 1.05
SPARE = 1024
PROBE = 256
"""Buffers are allocated for the expected size times MARGIN plus SPARE. The first PROBE payloads are measured for the first estimate."""

_ROWS, _REJECTED, _UNKNOWN, _ = range(LEAVES)
"""Indices of the kernel's state: numbers of rows, rejected and unknown payloads. The sizes and the nulls of each leaf follow."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A payload that does not parse.

    Attributes:
        row: Row of the input.
        part: Part of the payload that is wrong, None if its rows are too large for a batch.
        at: Byte of the part, None if unknown.
        field: Path of the field, None if unknown.
        place: Place of the field in YAML, None if unknown.
        message: What is wrong.
    """

    row: int
    part: str | None
    at: int | None
    field: str | None
    place: str | None
    message: str

    def __str__(self) -> str:
        what = [f"row {self.row}"] + [word for word in (self.part, self.field) if word]
        what += [f"byte {self.at}"] if self.at is not None else []
        what += [self.place] if self.place else []
        return f"{self.message} ({', '.join(what)})"


@dataclass(frozen=True, slots=True)
class Payloads:
    """The rows of consecutive payloads.

    Attributes:
        batch: The rows.
        rows: Row of the input for each row of ``batch``, ascending.
        rejected: Payloads that do not parse.
        unknown: Rows of the input whose kind is unknown: the deciding part is null, or its number has no case.
        start: First row of the input that was read.
        end: Row of the input after the last one.
    """

    batch: pa.RecordBatch
    rows: pa.Array
    rejected: tuple[Rejected, ...]
    unknown: pa.Array
    start: int
    end: int


def load_kernels(view: PayloadView) -> ModuleType | None:
    """Import and return the module of compiled kernels of a payload view. Return None, so that the
    slower reference codecs read it, if the view asks for no kernels, none were generated, numba is
    missing, or the machine is big-endian. Raise ModuleNotFoundError if another module that the
    kernels import is missing.

    With ``NUMBA_DISABLE_JIT`` the kernels are plain Python.
    """
    if view.kernels is None or sys.byteorder != "little":
        return None
    try:
        kernels = importlib.import_module(view.kernels)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{view.kernels}.".startswith(f"{error.name}."):
            raise
        return None
    return kernels if "numba" in sys.modules else None  # it has tried to import it


class _PartBytes:
    """The byte strings of a part, with the addresses that kernels read from."""

    def __init__(self, array: pa.Array) -> None:
        """Read the buffers of ``array``. Raise ValueError if its offsets descend or are out of bounds."""
        self.array = array.cast(pa.large_binary())
        validity, offsets, data = self.array.buffers()
        count = len(self.array)
        self.validity = validity if self.array.null_count else None
        self.first_bit = self.array.offset
        self.data = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        if count == 0 or offsets is None:
            self.offsets = np.zeros(count + 1, np.int64)
        else:
            whole = np.frombuffer(offsets, np.int64)
            self.offsets = whole[self.array.offset : self.array.offset + count + 1]
        steps = np.diff(self.offsets)
        if (steps < 0).any() or self.offsets[0] < 0 or self.offsets[-1] > len(self.data):
            raise ValueError(
                "the offsets of the Arrow array do not ascend, or point beyond its data: the array is damaged"
            )

    def get(self, i: int) -> bytes | None:
        """Return the bytes of row ``i``, None if it is null; a copy."""
        if self.validity is not None and not self.array[i].is_valid:
            return None
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()

    def safe_rows(self) -> int:
        """Return the number of leading rows that end at least SLACK bytes before the end of the memory: kernels may read that far."""
        return int(np.searchsorted(self.offsets[1:], len(self.data) - SLACK, side="right"))

    def table(self) -> list[int]:
        """Return the addresses of the bytes, the offsets and the validity bitmap (0 without nulls), and the first bit of the bitmap."""
        validity = 0 if self.validity is None else self.validity.address
        return [self.data.ctypes.data, self.offsets.ctypes.data, validity, self.first_bit]

    def tail(self, first: int) -> _PartBytes:
        """Return the rows from ``first`` on, copied to new memory with 64 zero bytes after them,
        since kernels may read beyond the end.
        """
        tail: _PartBytes = object.__new__(_PartBytes)
        tail.array = self.array.slice(first)
        tail.validity, tail.first_bit = self.validity, self.first_bit + first
        begin, end = int(self.offsets[first]), int(self.offsets[-1])
        tail.data = np.zeros(end - begin + SLACK, np.uint8)
        tail.data[: end - begin] = self.data[begin:end]
        tail.offsets = np.array(self.offsets[first:] - begin, np.int64)
        return tail


def _chunks_of_part(name: str, array: Any) -> pa.ChunkedArray:
    """Return the array of the part ``name`` as a chunked array. Raise TypeError, which names the
    part, if its type is not binary, large_binary, binary_view or null.
    """
    found = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    kind = found.type
    views = pa.types.is_binary_view(kind)
    plain = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if not (plain or views or pa.types.is_null(kind)):
        raise TypeError(f"{name} is {kind}, not binary, large_binary or binary_view: cast it")
    return found


def decode(
    view: PayloadView,
    parts: Mapping[str, Any],
    columns: Sequence[str] | None = None,
    *,
    strict: bool = False,
    limits: Limits | None = None,
    max_rows: int = 1 << 16,
    first_row: int = 0,
    compiled: bool = True,
) -> Iterator[Payloads]:
    """Yield the rows of payloads as Payloads, in input order, with those that do not parse
    (rejected) or have no case (unknown). Check the arguments at once: raise ValueError if ``parts``
    are not the view's or differ in length, or a column is unknown or named twice; TypeError if a
    part is not binary; ModuleNotFoundError if a module other than numba that the kernels import is
    missing. The iterator yields nothing for empty arrays, and raises ValueError if the offsets of
    an array are damaged.

    Args:
        view: Description of the view, from the generated package ``columns``.
        parts: Array or chunked array of binary, large_binary or binary_view by the name of each part. All have the same length.
        columns: Names of the columns. Without it all columns except those on request.
        strict: Reject what only the tolerances of the layouts (``accepts``) allow.
        limits: Limits for elements and decompressed bytes of a payload.
        max_rows: Approximate number of rows in a batch.
        first_row: Number of the first row of the input.
        compiled: Use the compiled kernels of the view if there are any. Otherwise the reference codecs read all payloads.

    Yields:
        Batches of rows, with the payloads that were rejected or unknown.
    """
    chosen = choose(view, columns)
    names = set(view.parts)
    if set(parts) != names:
        raise ValueError(
            f"the view needs the parts {', '.join(view.parts)}, not {', '.join(map(str, parts))}: give an array for each"
        )
    arrays = {name: _chunks_of_part(name, parts[name]) for name in view.parts}
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = ", ".join(f"{len(array)} of {name}" for name, array in arrays.items())
        raise ValueError(f"the arrays of the parts must have one length, but there are {lengths}")
    kernels = load_kernels(view) if compiled else None
    decoder = _Decoder(view, chosen, kernels, strict, limits or Limits(), max(1, max_rows))
    return decoder.decode(pa.table(arrays), first_row)


@dataclass(slots=True)
class _Gathered:
    """Rows that the reference codecs made, with the payloads that they rejected or did not know."""

    values: list[tuple[Any, ...]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    bytes: int = 0


class _Decoder:
    """Decoder of payloads (byte strings in one or several parts, such as key and value) into record
    batches, by a compiled kernel and, for what it rejects, by the reference codecs.
    """

    def __init__(
        self,
        view: PayloadView,
        columns: tuple[Column, ...],
        kernels: ModuleType | None,
        strict: bool,
        limits: Limits,
        max_rows: int,
    ) -> None:
        self.view = view
        self.columns = columns
        self.names = [column.name for column in columns]
        self.schema = schema_of(columns)
        self.kernels = kernels
        self.strict = strict
        self.limits = limits
        self.max_rows = max_rows
        module = importlib.import_module(view.rows)
        self.reference: PayloadRows = getattr(module, view.name.upper())
        leaves = sum(1 for column in view.columns for _ in column.leaves())
        self.state = np.zeros(LEAVES + 2 * leaves + 2, np.int64)
        self.room = np.zeros(LEAVES + leaves, np.int64)
        self.out = np.zeros(3 * leaves + 1, np.int64)
        self.leaves = leaves
        # Rows for each payload, and what each leaf takes for each byte of the input. None before the first run.
        self.shares: Any = None

    def decode(self, table: pa.Table, first_row: int) -> Iterator[Payloads]:
        """Yield the rows of the payloads in ``table``, a column for each part, by the kernel or,
        without one, by the reference codecs. The first payload has the number ``first_row``. Raise
        ValueError if the offsets of a part are out of order.
        """
        done = 0
        for chunk in table.to_batches():
            arrays = {
                name: _PartBytes(array)
                for name, array in zip(self.view.parts, chunk.columns, strict=True)
            }
            bias, count = first_row + done, chunk.num_rows
            done += count
            if self.kernels is None:
                yield from self._by_codecs(arrays, count, bias)
                continue
            safe = min(array.safe_rows() for array in arrays.values())
            if safe:
                yield from self._by_kernel(arrays, safe, bias)
            if safe < count:
                tails = {name: array.tail(safe) for name, array in arrays.items()}
                yield from self._by_kernel(tails, count - safe, bias + safe)

    # ------------------------------------------------------------ the kernel

    def _by_kernel(
        self, arrays: Mapping[str, _PartBytes], count: int, bias: int
    ) -> Iterator[Payloads]:
        """Yield the rows of the first ``count`` payloads, whose parts are ``arrays``, at most about
        ``max_rows`` at a time, decoded by the kernel. Payloads that it rejects, or whose rows are
        too large, go to the reference codecs. Numbers of payloads are counted from ``bias``.
        """
        assert self.kernels is not None
        table = np.array([n for array in arrays.values() for n in array.table()], np.int64)
        max_marks = min(count, self.max_rows)
        rejected, unknown = np.zeros(max_marks, np.int64), np.zeros(max_marks, np.int64)

        def run_kernel(first: int, last: int) -> int:
            self.state[:] = 0
            return int(
                self.kernels.KERNELS(  # type: ignore[union-attr]
                    *(int(table.ctypes.data), first, last, bias, int(self.out.ctypes.data)),
                    *(int(self.state.ctypes.data), int(self.room.ctypes.data)),
                    *(self.limits.elements, int(rejected.ctypes.data), int(unknown.ctypes.data)),
                )
            )

        first = 0
        while first < count:
            last = min(count, first + self.max_rows)
            if self.shares is None:
                self._unbounded()
                some = min(last, first + PROBE)
                self._learn(arrays, first, run_kernel(first, some))
            parts, numbers = self._outputs(self._estimate_buffers(arrays, first, last))
            stop = run_kernel(first, last)
            if stop == first:  # one payload takes more than was expected of all
                self._unbounded()
                stop = run_kernel(first, first + 1)
                room = self.state[: len(self.room)].copy()
                if stop > first and int(room.max()) <= MAX_BYTES:
                    parts, numbers = self._outputs(room + 1)
                    stop = run_kernel(first, first + 1)
                else:
                    stop = first + 1
                    self.state[:] = 0
                    self.state[_REJECTED] = 1
                    rejected[0] = first + bias
            else:
                self._learn(arrays, first, stop)
            batch, rows = self._finish_batch(parts, numbers)
            left = rejected[: self.state[_REJECTED]].copy()
            nobodys = unknown[: self.state[_UNKNOWN]].copy()
            yield from self._merge_rejected(arrays, batch, rows, left, nobodys, first, stop, bias)
            first = stop

    def _unbounded(self) -> None:
        """Set up a run that writes nothing and only measures the payloads: null addresses, and no limit on sizes."""
        self.out[:] = 0
        self.room[:] = MAX_BYTES

    def _bytes_of(self, arrays: Mapping[str, _PartBytes], first: int, last: int) -> int:
        """Return the size in bytes of payloads ``first`` to ``last`` (excluded), all their parts
        (``arrays``) together.
        """
        return sum(int(a.offsets[last] - a.offsets[first]) for a in arrays.values())

    def _learn(self, arrays: Mapping[str, _PartBytes], first: int, last: int) -> None:
        """Update, from the kernel's last run over the payloads ``first`` to ``last`` (excluded),
        how many rows they make per payload, and what each column takes per byte of input: the
        larger of the new share and 0.9 times the old one.
        """
        used = self.state[: len(self.room)].astype(np.float64)
        share = used / max(1, self._bytes_of(arrays, first, last))
        share[_ROWS] = used[_ROWS] / max(1, last - first)
        self.shares = share if self.shares is None else np.maximum(share, self.shares * 0.9)

    def _estimate_buffers(self, arrays: Mapping[str, _PartBytes], first: int, last: int) -> Any:
        """Return the buffer sizes to allocate for payloads ``first`` to ``last`` (excluded): what
        earlier ones took per byte and per payload, plus a margin. They are for at most ``max_rows``
        rows, and 2**28 bytes or elements of each column.
        """
        room = self.shares * (self._bytes_of(arrays, first, last) * MARGIN) + SPARE
        room[_ROWS] = min(self.shares[_ROWS] * (last - first) * MARGIN + SPARE, self.max_rows)
        return np.minimum(room, MOST_BYTES).astype(np.int64)

    def _outputs(self, room: Any) -> tuple[list[ColumnBuffers], Any]:
        """Allocate buffers of the sizes ``room``, and tell the kernel their addresses. Return the
        buffers of each column, and an array that receives the payload number of each row.
        """
        self.room[:] = room
        rows = int(room[_ROWS])
        parts = [
            ColumnBuffers(column, rows, room.tolist(), pa.allocate_buffer)
            for column in self.columns
        ]
        addresses = [0] * len(self.out)
        for part in parts:
            part.addresses(addresses)
        numbers = np.empty(rows, np.int64)
        addresses[-1] = int(numbers.ctypes.data)
        self.out[:] = addresses
        return parts, numbers

    def _finish_batch(self, parts: list[ColumnBuffers], numbers: Any) -> tuple[pa.RecordBatch, Any]:
        """Return the rows that the kernel wrote into the buffers ``parts`` as a record batch, and
        the payload number of each row (the beginning of ``numbers``). If no columns are asked for,
        the batch has rows without columns.
        """
        rows = int(self.state[_ROWS])
        used = self.state.tolist()
        nulls = used[LEAVES + self.leaves :]
        arrays = [part.array(rows, used, nulls) for part in parts]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema) if arrays else None
        if batch is None:  # a number of rows without columns
            batch = pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
        return batch, numbers[:rows]

    # ------------------------------------------------------------ the reference codecs

    def _by_codecs(
        self, arrays: Mapping[str, _PartBytes], count: int, bias: int
    ) -> Iterator[Payloads]:
        """Yield the rows of the first ``count`` payloads, whose parts are ``arrays``, decoded by
        the reference codecs, with the payloads that these reject or do not know: one Payloads for
        each ``max_rows`` payloads, or several if these make more than ``max_rows`` rows or 256 MiB.
        A Payloads has more only if one payload makes them. Numbers of payloads are counted from
        ``bias``.
        """
        for first in range(0, count, self.max_rows):
            last = min(count, first + self.max_rows)
            every, none = np.arange(first + bias, last + bias), np.empty(0, np.int64)
            nothing = self._batch([])
            yield from self._merge_rejected(arrays, nothing, none, every, none, first, last, bias)

    def _merge_rejected(
        self,
        arrays: Mapping[str, _PartBytes],
        batch: pa.RecordBatch,
        rows: Any,
        left: Any,
        unknown: Any,
        first: int,
        last: int,
        bias: int,
    ) -> Iterator[Payloads]:
        """Decode the payloads ``left``, which the kernel rejected, by the reference codecs, and
        yield their rows merged with those of ``batch`` (``rows`` has the payload of each) in the
        order of payloads ``first`` to ``last`` (excluded): as one Payloads, or as several if they
        have too many rows or bytes. ``unknown`` are the payloads that the kernel found unknown.
        """
        start = first + bias
        found = _Gathered()
        for number in left.tolist():
            values = self._rows_of(arrays, number, bias, found)
            size = sum(_size(value) for row in values for value in row)
            if found.values and (
                found.bytes + size > MOST_BYTES or len(found.values) + len(values) > self.max_rows
            ):
                yield self._merge_batches(batch, rows, found, unknown, start, number)
                start = number
                found = _Gathered(rejected=[], unknown=[])
            found.values += values
            found.rows += [number] * len(values)
            found.bytes += size
        yield self._merge_batches(batch, rows, found, unknown, start, last + bias)

    def _merge_batches(
        self,
        batch: pa.RecordBatch,
        rows: Any,
        found: _Gathered,
        unknown: Any,
        start: int,
        end: int,
    ) -> Payloads:
        """Return Payloads with the rows of payloads ``start`` to ``end`` (excluded) of the kernel's
        ``batch`` and those that the reference codecs ``found``, sorted by payload, with the
        rejected and the unknown payloads of both.
        """
        low, high = np.searchsorted(rows, [start, end]).tolist()
        batch, rows = batch.slice(low, high - low), rows[low:high]
        if found.values:
            both = [batch, self._batch(found.values)]
            rows = np.concatenate([rows, np.array(found.rows, np.int64)])
            order = np.argsort(rows, kind="stable")
            joined = pa.Table.from_batches(both).take(pa.array(order)).combine_chunks()
            batch, rows = joined.to_batches()[0], rows[order]
        low, high = np.searchsorted(unknown, [start, end]).tolist()
        nobodys = np.sort(np.concatenate([unknown[low:high], np.array(found.unknown, np.int64)]))
        return Payloads(
            batch, pa.array(rows), tuple(found.rejected), pa.array(nobodys, pa.int64()), start, end
        )

    def _rows_of(
        self, arrays: Mapping[str, _PartBytes], number: int, bias: int, found: _Gathered
    ) -> list[tuple[Any, ...]]:
        """Return the rows of payload ``number`` (counted from ``bias``) by the reference codecs, in
        the order of the columns. Return ``[]`` if it is rejected (does not parse, or a column has
        more than 2 GiB) or unknown, and add it to ``found``.
        """
        payload = {name: array.get(number - bias) for name, array in arrays.items()}
        try:
            made = self.reference.rows(
                payload, row=number, columns=self.names, strict=self.strict, limits=self.limits
            )
            values: list[tuple[Any, ...]] = []
            sizes = [0] * len(self.names)
            for row in made:
                sizes = [size + _size(value) for size, value in zip(sizes, row, strict=True)]
                if max(sizes, default=0) > MAX_BYTES:
                    message = f"its rows have more than {MAX_BYTES} bytes in a column"
                    found.rejected.append(Rejected(number, None, None, None, None, message))
                    return []
                values.append(row)
            return values
        except Unknown:
            found.unknown.append(number)
        except PartError as error:
            where = error.error.where
            found.rejected.append(
                Rejected(
                    *(number, error.part, where.position, where.path, where.schema),
                    error.error.reason,
                )
            )
        return []

    def _batch(self, values: list[tuple[Any, ...]]) -> pa.RecordBatch:
        """Return rows of Python values as a record batch with the decoder's columns; without
        columns, a batch with that many rows.
        """
        columns = zip(*values, strict=True) if values else [()] * len(self.columns)
        arrays = [
            pa.array(list(column), arrow_type(of))
            for column, of in zip(columns, self.columns, strict=True)
        ]
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(values), pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _size(value: Any) -> int:
    """Return the size of a value in bytes: UTF-8 bytes of a str, length of bytes, the sum over the
    elements of a tuple, and 0 for any other value.
    """
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return len(value)
    return sum(map(_size, value)) if isinstance(value, tuple) else 0
