"""Arrow arrays of any like type as addresses that the kernels which write can go by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.casts import cast_column, refuse_broken, refuse_nulls
from codecgen.runtime.arrow.output_buffers import arrow_type
from codecgen.runtime.arrow.view import Column
from codecgen.runtime.arrow.writer import WriteKind, Writer

_BUFFERS = 7
_DATA, _OFFSETS, _VALIDITY, _BIT, _STEP, _END, _GIVEN = range(_BUFFERS)
_EACH_ROW, _EACH_ENTRY = 1, 2
"""Whether columns on request are looked at in each row, or, where they are constants, in the first row of an entry."""

_WIDTHS = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "timestamp_ms": 8}
_NUMPY = {"int8": np.int8, "int16": np.int16, "int64": np.int64, "timestamp_ms": np.int64}
_RANGES = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "timestamp_ms": 64}


@dataclass(frozen=True, slots=True)
class Source:
    """Rows to write, as kernels see them.

    Attributes:
        rows: Number of rows.
        address: Address of the table of buffer addresses.
        kept: Objects that own the buffers.
        batch: The rows as a record batch.
    """

    rows: int
    address: int
    kept: tuple[Any, ...]
    batch: pa.RecordBatch


class Columns:
    """Describes the rows of record batches to kernels that write them: columns of the batch,
    constants and defaults as buffer addresses.
    """

    def __init__(self, writer: Writer, kind: WriteKind, constants: Mapping[str, object]) -> None:
        self.writer = writer
        self.kind = kind
        self.view = writer.view
        self.constants = {
            name: _number(self.view.column(name), value) for name, value in constants.items()
        }
        self.leaves = [leaf for column in self.view.columns for leaf in column.leaves()]
        self.schema: tuple[pa.Schema, tuple[Column, ...]] | None = None

    def select(self, batch: pa.RecordBatch, row: int) -> pa.RecordBatch:
        """Return the columns of a batch that are written, cast to the view's types; if there is
        none, because all are constants, one column of nulls. Raise ValueError for an unknown,
        repeated or missing column, a type that cannot be cast, or an invalid array. Raise
        RowRefused, with rows counted from ``row``, for a value that does not fit, or a null where
        the column or its member is not nullable.
        """
        if self.schema is None or self.schema[0] != batch.schema:
            self.schema = (batch.schema, self._select_columns(batch.schema))
        arrays = []
        columns = self.schema[1]
        refuse_broken(batch, {column.name: arrow_type(column) for column in columns})
        for column in columns:
            array = cast_column(batch.column(column.name), column, row)
            refuse_nulls(array, column, row)
            arrays.append(array)
        if not arrays:  # all columns are constants, and something has to count the rows
            return pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows)], [""])
        fields = [pa.field(c.name, array.type) for c, array in zip(columns, arrays, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _select_columns(self, schema: pa.Schema) -> tuple[Column, ...]:
        """Return the columns of a schema that are written, in the view's order, without those that
        constants replace or that only say where a row was read. Raise ValueError for a name that is
        unknown or there twice, and if a needed column is neither there nor a constant.
        """
        known = {column.name for column in self.view.columns}
        unknown = [name for name in schema.names if name not in known]
        if unknown:
            what = ", ".join(unknown)
            raise ValueError(
                f"the columns {what} are not written: drop them; known: {', '.join(sorted(known))}"
            )
        if len(set(schema.names)) != len(schema.names):
            raise ValueError("the table has two columns of one name: rename or drop one")
        missing = [
            name
            for name in self.kind.needs
            if name not in schema.names and name not in self.constants
        ]
        if missing:
            raise ValueError(
                f"{self.kind.name} cannot be written without the columns {', '.join(missing)}: add them, or give them as constants"
            )
        aside = {*self.constants, *self.writer.places}
        return tuple(c for c in self.view.columns if c.name in schema.names and c.name not in aside)

    def source(self, batch: pa.RecordBatch) -> Source:
        """Return the rows of a batch from :meth:`select` as a Source: a table of buffer addresses,
        with constants and defaults for columns that the batch lacks. The Source keeps the batch and
        all buffers alive. Raise ValueError if the offsets of a column are negative, decrease, or
        exceed its values.
        """
        numbers = np.zeros(1 + _BUFFERS * len(self.leaves), np.int64)
        kept: list[Any] = []
        given = set(batch.schema.names)
        for column in self.view.columns:
            slots = self._slots(numbers, column)
            if column.name in given:
                _describe(batch.column(column.name), column, numbers, self._slots, kept)
                slots[_GIVEN] = 1
                if column.on_request:
                    numbers[0] = _EACH_ROW
            elif column.name in self.constants:
                self._constant(column, self.constants[column.name], slots, batch.num_rows, kept)
                slots[_GIVEN] = 1
                if column.name in self.writer.varying:
                    numbers[0] = _EACH_ROW
                elif column.on_request and not numbers[0]:
                    numbers[0] = _EACH_ENTRY
            else:
                self._default(column, batch, given, numbers, kept)
        return Source(batch.num_rows, int(numbers.ctypes.data), (numbers, *kept), batch)

    def _slots(self, numbers: Any, leaf: Column) -> Any:
        """Return the slots of ``numbers`` for the buffers of a leaf."""
        at = 1 + _BUFFERS * leaf.index
        return numbers[at : at + _BUFFERS]

    def _default(
        self,
        column: Column,
        batch: pa.RecordBatch,
        given: set[str],
        numbers: Any,
        kept: list[Any],
    ) -> None:
        """Write the buffer addresses of a column that is not given into ``numbers``: those of the
        column that is its default if ``batch`` has that one; else of an array with a constant (that
        of its default, or of the column that is its default); else of nulls, or zeros if it is not
        nullable. New arrays go to ``kept``, which keeps them alive. Raise ValueError if that column
        of ``batch`` has invalid offsets.
        """
        default = self.writer.defaults.get(column.name)
        if isinstance(default, str):
            other = self.view.column(default)
            if default in given:
                _describe(batch.column(default), other, numbers, self._slots, kept, column)
                return
            default = self.constants.get(default, self.writer.defaults.get(default))
        number = default if isinstance(default, int) else None
        self._constant(column, number, self._slots(numbers, column), batch.num_rows, kept)

    def _constant(
        self, column: Column, value: int | None, slots: Any, rows: int, kept: list[Any]
    ) -> None:
        """Write the addresses of an array that has ``value`` in all rows into ``slots``. None is
        null; 0 or an empty list or string if the column is not nullable. Columns that are read only
        on request get a single value. The new arrays go to ``kept``, which keeps them alive.
        """
        count = 1 if column.on_request else rows
        kind = _NUMPY.get(column.type, np.int32)
        data = np.full(
            count + 64, value or 0, kind
        )  # zeros are also offsets without anything between them
        if column.type == "bool" and value:
            data[:] = -1
        kept.append(data)
        slots[_DATA] = slots[_OFFSETS] = slots[_END] = data.ctypes.data
        if value is None and column.nullable:
            bits = np.zeros(count // 8 + 1, np.uint8)
            kept.append(bits)
            slots[_VALIDITY] = bits.ctypes.data

    def describe_value(self, source: Source, row: int, index: int) -> tuple[str, str]:
        """Return, for messages, the name of the column or member with ``index`` and the text of its
        value in ``row``, cut to 60 characters. The value comes from the batch (all of the list for
        a member), else from a constant or default; ``'what the row has'`` stands for one that
        Python cannot show.
        """
        leaf = self.leaves[index]
        column = next(c for c in self.view.columns if leaf is c or leaf in c.members)
        name = column.name if leaf is column else f"{column.name}.{leaf.name}"
        if column.name in source.batch.schema.names:
            array = source.batch.column(column.name)
            if pa.types.is_timestamp(array.type):
                array = array.cast(pa.int64())
            try:
                value = array[row].as_py()
            except (pa.ArrowException, UnicodeDecodeError, ValueError):
                value = "what the row has"
        else:
            value = self.constants.get(column.name, self.writer.defaults.get(column.name))
        text = repr(value)
        return name, text if len(text) <= 60 else f"{text[:57]}..."


def _number(column: Column, value: object) -> int | None:
    """Return a constant as an integer: milliseconds for a time, 0 or 1 for a bool. Return None for
    None if the column is nullable. Raise ValueError if the column has no number type, or the value
    is no number or time, or out of range.
    """
    if column.type in ("binary", "string", "list"):
        raise ValueError(
            f"{column.name} cannot be a constant, which only numbers can: give it as a column"
        )
    if value is None and column.nullable:
        return None
    if column.type == "timestamp_ms" and not isinstance(value, int):
        try:
            value = pa.scalar(value, pa.timestamp("ms", "UTC")).value
        except (pa.ArrowException, TypeError, ValueError):
            raise ValueError(
                f"{column.name} is {value!r}, which is not a time: give a datetime, or milliseconds since 1970"
            ) from None
    if not isinstance(value, int):
        raise ValueError(f"{column.name} is {value!r}: a number is needed")
    bits = _RANGES.get(column.type)
    low, high = (0, 1) if bits is None else (-(1 << bits - 1), (1 << bits - 1) - 1)
    if not low <= value <= high:
        raise ValueError(f"{column.name} is {value}: it must be in {low}..{high}")
    return int(value)


# ------------------------------------------------------------ types


def _describe(
    array: Any,
    column: Column,
    numbers: Any,
    slots_of: Any,
    kept: list[Any],
    into: Column | None = None,
    part: tuple[int, int] | None = None,
) -> None:
    """Write the buffer addresses of an array, and of the members of a list, into ``numbers``, at
    the slots of ``column`` or of ``into``, and keep the array alive in ``kept``. Raise ValueError
    if offsets decrease or exceed the values; ``part`` limits that check to a range of rows.
    """
    slots = slots_of(numbers, into or column)
    kept.append(array)
    buffers = array.buffers()
    start = array.offset
    slots[_STEP] = 1
    slots[_BIT] = start
    if buffers[0] is not None and array.null_count:
        slots[_VALIDITY] = buffers[0].address
    if column.type in ("list", "binary", "string"):
        content = len(array.values) if column.type == "list" else _size(buffers[2])
        offsets = _offsets(array, content, column.name, part)
        kept.append(offsets)
        slots[_OFFSETS] = offsets.ctypes.data
        if column.type == "list":
            for i, member in enumerate(column.members):
                field = array.values.field(i)
                used = int(offsets[0]), int(offsets[-1])
                _describe(field, member, numbers, slots_of, kept, part=used)
            return
        slots[_DATA] = offsets.ctypes.data if buffers[2] is None else buffers[2].address
        slots[_END] = slots[_DATA] + content
    else:
        width = 0 if column.type == "bool" else _WIDTHS[column.type]
        if buffers[1] is not None:  # arrays without values may be without it
            slots[_DATA] = buffers[1].address + width * start


def _size(buffer: Any) -> int:
    """Return the size of a buffer in bytes, 0 for None."""
    return 0 if buffer is None else int(buffer.size)


def _offsets(array: Any, content: int, name: str, part: tuple[int, int] | None) -> Any:
    """Return the 32-bit offsets of an array as a NumPy array, two zeros for an empty one. Raise
    ValueError if those of the rows in ``part`` (first, end; all by default) are negative, decrease
    or exceed ``content``.

    Kernels rely on valid offsets. Only offsets of rows in ``part`` are checked, of all rows by default.
    """
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(2, np.int32)
    offsets = np.frombuffer(buffer, np.int32, array.offset + len(array) + 1)[array.offset :]
    first, last = part or (0, len(array))
    used = offsets[first : last + 1]
    if len(used) and (used[0] < 0 or used[-1] > content or (used[1:] < used[:-1]).any()):
        raise ValueError(
            f"the record batch is broken: the offsets of the list column {name} do not ascend; make the batch again"
        )
    return offsets
