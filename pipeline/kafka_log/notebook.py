"""Arrow tables in notebooks: ``%load_ext kafka_log`` shows them as HTML."""

from __future__ import annotations

from html import escape
from typing import Any

import pyarrow as pa

from codecgen.runtime.nouns import count_noun
from kafka_log.text.columns import fill_null, format_text_column
from kafka_log.text.text_table import format_columns

ROWS = 50
"""Number of rows of a table that are shown."""
MAX_BYTES = 100
"""Number of bytes that are shown of a binary value."""


def load_ipython_extension(shell: Any) -> None:
    """Show tables and record batches of pyarrow as HTML in an IPython shell: ``%load_ext kafka_log``."""
    formatter = shell.display_formatter.formatters["text/html"]
    for kind in (pa.Table, pa.RecordBatch):
        formatter.for_type(kind, format_html)


def unload_ipython_extension(shell: Any) -> None:
    """Show tables and record batches as before: ``%unload_ext kafka_log``."""
    formatter = shell.display_formatter.formatters["text/html"]
    for kind in (pa.Table, pa.RecordBatch):
        formatter.pop(kind, None)


def format_html(rows: pa.Table | pa.RecordBatch) -> str:
    """Return the first :data:`ROWS` rows as an HTML table, with cells as ``kafka-log`` prints them
    and at most :data:`MAX_BYTES` of a binary value; below it the number of all rows. The title of
    a column is its documentation, if the field has one.
    """
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    shown = table.slice(0, ROWS)
    head = "".join(map(_format_name, table.schema))
    columns = [_format_cells(shown.select([i])) for i in range(shown.num_columns)]
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in zip(*columns, strict=True)
    )
    count = count_noun(table.num_rows, "row")
    if shown.num_rows < table.num_rows:
        count += f", of which the first {shown.num_rows} are shown"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{count}</p>"


def _format_cells(column: pa.Table) -> list[str]:
    """Return the cells of a table of one column."""
    (field,) = column.schema
    kind = _drop_views(field.type)
    if kind != field.type:
        field = field.with_type(kind)
        column = column.cast(pa.schema([field]))
    if pa.types.is_duration(kind):
        return ["-" if value is None else str(value) for value in column.column(0).to_pylist()]
    if not pa.types.is_binary(field.type):
        return format_columns(column)[0].cells
    texts = (format_text_column(field, chunk, MAX_BYTES) for chunk in column.column(0).chunks)
    return [cell for part in texts for cell in fill_null(part, "-").to_pylist()]


def _drop_views(kind: pa.DataType) -> pa.DataType:
    """Return a type with ``binary_view`` replaced by ``binary``, also in lists and structs."""
    if kind == pa.binary_view():
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_drop_views(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([member.with_type(_drop_views(member.type)) for member in kind])
    return kind


def _format_name(field: pa.Field) -> str:
    """Return the heading of a column, with its documentation as the title."""
    doc = (field.metadata or {}).get(b"doc", b"").decode("utf-8", "replace")
    title = f' title="{escape(doc)}"' if doc else ""
    return f"<th{title}>{escape(field.name)}</th>"


__all__ = ["format_html", "load_ipython_extension", "unload_ipython_extension"]
