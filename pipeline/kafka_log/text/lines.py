"""Rows of Arrow batches as lines of text: JSON objects, CSV, and cells for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.text.columns import (
    TEXT,
    build_json_objects,
    fill_null,
    format_csv_column,
    format_text_column,
    join,
    quote_csv_cells,
)

PART_BYTES = 1 << 20
"""Bytes of Arrow's buffers, about, that become lines at a time."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A column in a line for people.

    Attributes:
        prefix: Text before each value.
        null: Text in the place of null.
        pad: Bytes that a value takes at least: blanks stand before a number, and after any other value.
    """

    prefix: str
    null: str = "null"
    pad: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """Lines for people: the cells of each column, and the maximum number of bytes of a value."""

    cells: tuple[Cell, ...]
    max_bytes: int


def encode_json_lines(batch: pa.RecordBatch) -> Iterator[memoryview]:
    """Yield the rows as JSON objects, one a line, some MiB of lines at a time."""

    def line(part: pa.RecordBatch) -> Any:
        return build_json_objects(part.schema, part.columns, part.num_rows, "}\n")

    return _lines(batch, line)


def encode_csv_lines(batch: pa.RecordBatch) -> Iterator[memoryview]:
    """Yield the rows, without a header line, as lines of CSV that end with CRLF, some MiB at a
    time. Null is an empty cell, but ``""`` in a single column, whose line would be empty; empty
    text is ``""``; lists, structs and bytes that are no text are JSON. Yield nothing without rows
    or columns. Iterating raises ValueError for a text of a JSON column that is not JSON.
    """
    null = '""' if batch.num_columns == 1 else ""

    def line(part: pa.RecordBatch) -> Any:
        parts: list[Any] = []
        for field, column in zip(part.schema, part.columns, strict=True):
            parts += ["," if parts else "", fill_null(format_csv_column(field, column), null)]
        return join(*parts, "\r\n")

    return _lines(batch, line)


def encode_csv_header(names: Sequence[str]) -> bytes:
    """Return the line of CSV that names the columns."""
    return (",".join(quote_csv_cells(pa.array(names, TEXT)).to_pylist()) + "\r\n").encode("utf-8")


def encode_text_lines(batch: pa.RecordBatch, layout: Layout) -> Iterator[memoryview]:
    """Yield the rows as lines for people, some MiB at a time. `layout` has a cell for each column,
    with the prefix and padding of values and the text for null, and limits the bytes that are shown
    of a binary value. An empty or null list has no cell. Yield nothing without rows or columns.
    Iterating raises ValueError if `layout` has another number of cells.
    """

    def line(part: pa.RecordBatch) -> Any:
        columns = zip(part.schema, part.columns, layout.cells, strict=True)
        return join(*(_cell(*column, layout.max_bytes) for column in columns), "\n")

    return _lines(batch, line)


def _cell(field: pa.Field, column: Any, cell: Cell, max_bytes: int) -> Any:
    """Return a column as cells of lines for people: prefix, then the value or ``cell.null``, padded
    to ``cell.pad`` bytes (blanks before integers, after others and ``cell.null``). Of a binary value
    at most ``max_bytes`` are shown. A list is not padded; the cell of an empty or null list is
    ``""``, without the prefix.
    """
    texts = format_text_column(field, column, max_bytes)
    if pa.types.is_list(field.type):
        is_there = pc.greater(pc.fill_null(pc.list_value_length(column), 0), 0)
        return pc.if_else(is_there, join(cell.prefix, texts), "")
    if cell.pad:
        pad = pc.ascii_lpad if pa.types.is_integer(field.type) else pc.ascii_rpad
        texts = pad(texts, cell.pad)
        null = cell.null.ljust(cell.pad)
    else:
        null = cell.null
    return join(cell.prefix, fill_null(texts, null))


def _lines(batch: pa.RecordBatch, convert: Callable[[pa.RecordBatch], Any]) -> Iterator[memoryview]:
    """Yield, as bytes, the lines that `convert` returns for parts of the rows, one text a row, with
    about 1 MiB of columns each. Yield nothing if the batch has no rows or columns.
    """
    if not batch.num_columns:
        return
    rows = max(1, PART_BYTES * batch.num_rows // max(batch.nbytes, 1))
    for start in range(0, batch.num_rows, rows):
        lines = convert(batch.slice(start, rows))
        _, offsets, data = lines.buffers()
        yield memoryview(data)[: memoryview(offsets).cast("q")[len(lines)]]
