"""Columns of Avro values by the kernel: memory for them, and the Arrow arrays that use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.arrow.primitives.memory import SLACK
from kafka_log.read.schemas import avro_kernel as kernel
from kafka_log.read.schemas.avro_programs import Column, Program

_ADDRESSES = 8
"""Bytes of a counter or an address."""


@dataclass(frozen=True)
class DecodedValues:
    """Values that the kernel has read.

    Attributes:
        array: The column, null in the rows that were rejected.
        rejected: Whether each row was rejected (NumPy bool).
    """

    array: Any
    rejected: Any


def run_program(program: Program, values: Any, skipped: Any) -> DecodedValues:
    """Decode ``values`` (Arrow binary, none of them null) by a compiled Avro schema. Return their
    column and a NumPy mask of the rejected rows, which are null in it. Rejected are the rows in the
    mask ``skipped``, which are not read, and values that the program cannot decode. No error is
    raised for these.

    Args:
        program: The compiled schema of the values.
        values: The values.
        skipped: Whether each row is rejected without a look at it (NumPy bool).
    """
    return _Run(program, values, skipped).decode()


class _Run:
    """Memory of one run of a program."""

    def __init__(self, program: Program, values: Any, skipped: Any) -> None:
        self._program = program
        self._rows = len(values)
        self._rejected = skipped.astype(np.uint8)
        _, offsets, data = values.buffers()
        self._offsets = np.frombuffer(offsets, np.int32)[values.offset :][: self._rows + 1]
        first, last = int(self._offsets[0]), int(self._offsets[-1])
        self._data = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        if last + SLACK > len(self._data):
            copied = np.zeros(last - first + SLACK, np.uint8)
            copied[: last - first] = self._data[first:last]
            self._data, self._offsets = copied, self._offsets - np.int32(first)
        self._offsets = np.ascontiguousarray(self._offsets)
        self._code = program.code.copy()
        self._counters = np.zeros(program.levels + len(program.counted), np.int64)
        self._kept: list[Any] = []
        self._memory: dict[int, Any] = {}
        self._bytes: dict[int, Any] = {}
        self._slots: list[Any] = []
        self._valid: dict[int, tuple[Any, int]] = {}
        self._link()

    def _link(self) -> None:
        """Replace the numbers of counters and of limits, in this run's copy of the instructions, by
        addresses of their memory.
        """
        base = self._counters.ctypes.data
        self._code[:, 1] = base + _ADDRESSES * self._code[:, 1]
        for i, number in enumerate(self._program.counted, self._program.levels):
            self._code[number, 3] = base + _ADDRESSES * i
        for number, limits in self._program.limits.items():
            found = np.array(limits, np.int64)
            self._kept.append(found)
            self._code[number, 3] = found.ctypes.data

    def decode(self) -> DecodedValues:
        """Return the column of the values and the mask of rejected rows, which are null in it. Read
        the values twice: to check and count them, and, after allocating memory, to write them. Call
        it once.
        """
        self._read()
        totals = self._counters.tolist()
        totals[0] = self._rows
        self._allocate(totals)
        self._counters[:] = 0
        self._read()
        counts = self._counters.tolist()
        counts[0] = self._rows
        self._slots[0][: self._rows] = 1 - self._rejected
        array = self._build(self._program.column, counts)
        return DecodedValues(array, self._rejected.astype(np.bool_))

    def _read(self) -> None:
        """Run the kernel over all rows that are not rejected; it marks those as rejected whose
        bytes are invalid. It only counts elements and bytes while the columns have no memory, else
        it writes them.
        """
        frames = np.empty(kernel.MAX_LISTS * kernel.FRAME, np.uint8)
        keys = np.empty(kernel.MAX_LISTS * kernel.KEYS, np.uint8)
        kernel.read_values(
            self._code.ctypes.data,
            self._data.ctypes.data,
            self._offsets.ctypes.data,
            self._rows,
            self._counters.ctypes.data,
            self._rejected.ctypes.data,
            frames.ctypes.data,
            keys.ctypes.data,
        )

    def _allocate(self, totals: list[int]) -> None:
        """Allocate memory for the validity, numbers, lengths and bytes of all columns, zeroed
        except for the bytes, and write its addresses into the program. ``totals`` are the counted
        elements of each level of lists, then the bytes of each column of texts or bytes.
        """
        slots = self._program.slots
        self._slots = [np.zeros(totals[level] + SLACK, np.uint8) for level, _ in slots]
        for slot, (_, number) in zip(self._slots[1:], slots[1:], strict=True):
            self._code[number, 2] = slot.ctypes.data
        counted = {n: i for i, n in enumerate(self._program.counted, self._program.levels)}
        pending = [self._program.column]
        while pending:
            column = pending.pop()
            pending += column.parts
            if column.form in ("number", "bytes", "list"):
                memory = np.zeros(totals[column.level] + SLACK, column.dtype)
                self._memory[column.code] = memory
                self._code[column.code, 2] = memory.ctypes.data
            if column.form == "bytes":
                data = np.empty(totals[counted[column.code]] + SLACK, np.uint8)
                self._bytes[column.code] = data
                self._code[column.code, 4] = data.ctypes.data

    def _validity(self, column: Column, count: int) -> tuple[Any, int]:
        """Return the bitmap of a column, and its number of nulls; None and 0 without nulls."""
        if column.slot is None:
            return None, 0
        found = self._valid.get(column.slot)
        if found is None:
            valid = self._slots[column.slot][:count]
            nulls = count - int(np.count_nonzero(valid))
            bitmap = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
            found = self._valid[column.slot] = (bitmap, nulls)
        return found

    def _build(self, column: Column, counts: list[int]) -> Any:
        """Return the Arrow array of a column of the program from the memory that the kernel has
        filled, with the columns inside it. ``counts`` has the number of elements of each level of
        lists. A column without values is null, or repeats its default.
        """
        count, kind = counts[column.level], column.shape.arrow
        validity, nulls = self._validity(column, count)
        if column.form == "null":
            return pa.nulls(count, kind)
        if column.form == "constant":
            array = pa.repeat(column.constant, count)
            if not nulls:
                return array
            valid = pa.array(self._slots[column.slot or 0][:count].astype(np.bool_))
            return pc.if_else(valid, array, pa.scalar(None, kind))
        if column.form == "struct":
            parts = [self._build(part, counts) for part in column.parts]
            return pa.Array.from_buffers(kind, count, [validity], nulls, children=parts)
        memory = self._memory[column.code][:count]
        if column.form == "number":
            return _number_array(column, memory, validity, nulls)
        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(memory, out=offsets[1:])
        buffers = [validity, pa.py_buffer(offsets)]
        if column.form == "bytes":
            data = pa.py_buffer(self._bytes[column.code]).slice(0, int(offsets[-1]))
            return pa.Array.from_buffers(kind, count, [*buffers, data], nulls)
        parts = [self._build(part, counts) for part in column.parts]
        if column.shape.is_map:
            entries = pa.struct([kind.key_field, kind.item_field])
            parts = [pa.Array.from_buffers(entries, len(parts[0]), [None], 0, children=parts)]
        return pa.Array.from_buffers(kind, count, buffers, nulls, children=parts)


def _number_array(column: Column, memory: Any, validity: Any, nulls: int) -> Any:
    """Return the Arrow array of the numbers in ``memory``: symbols for an enum, booleans from one
    byte each, floats converted to the column's type, else the numbers in its type. ``validity`` is
    the bitmap of rows that are not null (None: all), ``nulls`` the number of nulls.
    """
    kind, count = column.shape.type, len(memory)
    if column.symbols is not None:
        codes = pa.Array.from_buffers(pa.int32(), count, [validity, pa.py_buffer(memory)], nulls)
        return pa.array(column.symbols, pa.string()).take(codes)
    if pa.types.is_boolean(kind):
        memory = np.packbits(memory, bitorder="little")
    elif pa.types.is_floating(kind):
        memory = memory.astype(kind.to_pandas_dtype(), copy=False)
    return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(memory)], nulls)
