"""Results of SQL in the output formats."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from kafka_log.inspect.dump import WIDTH
from kafka_log.text.output import ROW_WRITERS, JsonRowWriter, RowWriter
from kafka_log.text.text_rows import TextRowWriter
from kafka_log.text.text_table import format_table

if TYPE_CHECKING:
    import duckdb

_FEW_ROWS = 1000
"""Number of rows of a result up to which columns of text are aligned."""

_REFUSED = frozenset({"union", "uhugeint", "bignum", "varint", "bit", "time with time zone"})
"""Types of DuckDB whose values do not reach Arrow, or as bytes that only DuckDB can read."""


class ResultTypeError(ValueError):
    """A column of a result has a type that cannot be printed."""


def write_result(rows: pa.RecordBatchReader, output: str, out: BinaryIO, width: int | None) -> None:
    """Write the result of a query to ``out`` in the format ``output``: ``text``, ``jsonl`` or one
    of ROW_WRITERS (csv, arrow, parquet), batch by batch. Text of at most 1,000 rows has aligned
    columns that fit ``width`` (None: unlimited). Raise ResultTypeError, before anything is written,
    for a column that is or has a type that Parquet does not know if that is the format; and what
    reading ``rows`` raises.

    Args:
        rows: The result of a query from :func:`make_printable`.
        output: ``text``, ``jsonl``, ``csv``, ``parquet`` or ``arrow``.
        out: Where it is written.
        width: Width of the terminal, for text. None: lines are as long as their cells.
    """
    for field in rows.schema:
        if output == "parquet" and (found := _find_unknown_to_parquet(field)) is not None:
            path, what = found
            raise ResultTypeError(
                f"{path} is {what}, which Parquet cannot hold: cast it to VARCHAR, leave it out, or add --format arrow, jsonl or csv"
            )
    if output == "text":
        _write_text(rows, out, width)
        return
    writer: RowWriter
    if output == "jsonl":
        writer = JsonRowWriter(out)
    else:
        writer = ROW_WRITERS[output](out, rows.schema)
    is_text = output in ("jsonl", "csv")
    for batch in rows:
        writer.write(_with_short_values(batch) if is_text else batch)
    writer.close()


def make_printable(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Return a query with its columns of intervals as DuckDB's text, such as ``3 days 00:00:00.5``,
    because an interval of Arrow holds fewer. Raise ResultTypeError for a column that is or has one
    of the types that cannot be printed, or has an interval inside of another type.
    """
    columns = list(zip(relation.columns, relation.types, strict=True))
    for name, kind in columns:
        if (found := _find_refused(kind)) is not None:
            raise ResultTypeError(
                f"column {name!r} is or has the type {found}: cast it, such as to VARCHAR"
            )
    if all(kind.id != "interval" for _, kind in columns):
        return relation
    chosen = []
    for number, (name, kind) in enumerate(columns, 1):
        quoted = name.replace('"', '""')
        cast = "::VARCHAR" if kind.id == "interval" else ""
        chosen.append(f'#{number}{cast} AS "{quoted}"')
    return relation.project(", ".join(chosen))


def _find_refused(kind: Any, *, is_inner: bool = False) -> str | None:
    """Return the name of the first type of DuckDB in a type that cannot be printed; None if there
    is none. ``is_inner`` tells that the type is inside of another one, where intervals are refused.
    """
    if kind.id in _REFUSED or (is_inner and kind.id == "interval"):
        return str(kind.id).upper()
    if kind.id not in ("struct", "map", "list", "array"):
        return None
    inner = (child for _, child in kind.children if not isinstance(child, int))
    return next((name for one in inner if (name := _find_refused(one, is_inner=True))), None)


def _find_unknown_to_parquet(field: pa.Field) -> tuple[str, str] | None:
    """Return the path of the first field that Parquet cannot hold, such as ``a.b``, and what its
    type is: a struct without fields, or a map with keys of the type NULL. Return None if there is
    none.
    """
    kind = field.type
    if pa.types.is_struct(kind) and not kind.num_fields:
        return field.name, "a STRUCT without fields"
    if pa.types.is_map(kind) and pa.types.is_null(kind.key_type):
        return field.name, "a MAP whose keys have no type"
    for i in range(kind.num_fields):
        if (found := _find_unknown_to_parquet(kind.field(i))) is not None:
            return f"{field.name}.{found[0]}", found[1]
    return None


def _write_text(rows: pa.RecordBatchReader, out: BinaryIO, width: int | None) -> None:
    """Write a result as text, with lines that fit ``width`` (None: unlimited). Up to 1,000 rows
    become a table with aligned columns, which is laid out after all rows were read; more rows are
    written one by one. Without rows write ``no rows``. Raise what reading ``rows`` raises.
    """
    first: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in first) <= _FEW_ROWS:
        batch = next(rows, None)
        if batch is None:
            table = pa.Table.from_batches(first, rows.schema).combine_chunks()
            if table.num_rows:
                shown = pa.Table.from_batches(map(_with_short_values, table.to_batches()))
                out.write(format_table(shown, width).encode("utf-8", "backslashreplace"))
            else:
                out.write(b"no rows\n")
            out.flush()
            return
        first.append(batch)
    writer = TextRowWriter(out, rows.schema.names, {}, WIDTH, width)
    for batch in map(_with_short_values, chain(first, rows)):
        writer.write(batch)
    writer.close()


def _with_short_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with times in milliseconds if none of a column is finer, and integers for whole decimals."""
    batch = _with_integers(batch)
    for i, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit != "ms":
            with suppress(pa.ArrowInvalid):
                column = batch.column(i).cast(pa.timestamp("ms", field.type.tz))
                batch = batch.set_column(i, field.name, column)
    return batch


def _with_integers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a batch with whole decimals, such as sums, as 64-bit integers if all of a
    column in this batch fit; other columns stay decimals.
    """
    for i, field in enumerate(batch.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            try:
                column = batch.column(i).cast(pa.int64())
            except pa.ArrowInvalid:
                continue
            batch = batch.set_column(i, field.name, column)
    return batch
