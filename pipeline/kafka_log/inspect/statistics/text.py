"""The numbers of ``stat`` as text."""

from __future__ import annotations

from itertools import takewhile

import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.inspect.statistics.columns import BY, keys_of
from kafka_log.text.text_table import TextColumn, format_columns, lay_out, make_column

_KEYS = frozenset(f.name for deep in (True, False) for f in keys_of(BY, deep))
_SELDOM = (
    "first_problem",
    "trailing_bytes",
    "lost_bytes",
    "control_records",
    "transactional_batches",
    "empty_batches",
    "invalid_batches",
    "future",
    "producers",
    "stored_bytes",
)
"""Columns that people see only where there is something in them, if at all."""

_JOINED = (
    ("offsets", "..", ("first_offset", "last_offset")),
    ("epochs", "..", ("first_epoch", "last_epoch")),
    ("batch_sizes", "/", ("smallest_batch", "mean_batch", "largest_batch")),
)
"""Columns that are one for people."""


def stat_text(
    table: pa.Table, total: pa.Table | None, width: int | None, *, has_total: bool = True
) -> str:
    """A table in columns; where there are several rows that are summed up, with a last one for ``total`` if it ``has_total``. Columns in which there is
    nothing are left out. Problems have lines of their own."""
    if total is not None and has_total and table.num_rows > 1:
        table = _with_total(table, total)
    shown = [name for name in table.column_names if _says_something(table, name)]
    if "ratio" in shown:
        at = table.column_names.index("ratio")
        table = table.set_column(at, "ratio", pc.round(table.column("ratio"), 2))
    keys = len(list(takewhile(_KEYS.__contains__, shown)))
    columns = format_columns(table.select(shown), keys)
    if total is not None:
        for name, mark, parts in _JOINED:
            columns = _joined(columns, table, name, mark, parts)
    return lay_out(columns, width, keys)


def _joined(
    columns: list[TextColumn], table: pa.Table, name: str, mark: str, parts: tuple[str, ...]
) -> list[TextColumn]:
    """Several columns of numbers as one, in the place of the first."""
    names = [column.name for column in columns]
    if parts[0] not in names:
        return columns
    values = [table.column(part).to_pylist() for part in parts]
    cells = [
        "-" if None in row else mark.join(str(round(value)) for value in row)
        for row in zip(*values, strict=True)
    ]
    at = names.index(parts[0])
    rest = [column for column in columns if column.name not in parts]
    return [*rest[:at], make_column(name, cells, right=True, whole=True), *rest[at:]]


def _with_total(table: pa.Table, total: pa.Table) -> pa.Table:
    """The table with one more row; as it is where the first column cannot say that it is the total."""
    first = table.schema.field(0)
    if pa.types.is_integer(first.type):
        table = table.set_column(0, first.name, table.column(0).cast(pa.string()))
    elif not pa.types.is_string(first.type):
        return table
    schema = pa.schema([f.with_nullable(True) for f in table.schema])
    for f in schema:
        if f.name not in total.column_names:
            value = "total" if f.name == first.name else None
            total = total.append_column(f.name, pa.array([value], f.type))
    return pa.concat_tables([t.select(schema.names).cast(schema) for t in (table, total)])


def _says_something(table: pa.Table, name: str) -> bool:
    column = table.column(name)
    if name == "first_problem":
        return False
    if name == "batch_bytes" and "bytes" in table.column_names:
        return False
    if name == "state":
        return pc.any(pc.not_equal(column, "live")).as_py() is True
    if name == "directory":
        places = table.select(["topic", "partition", "state"]).group_by(
            ["topic", "partition", "state"]
        )
        return bool(len(places.aggregate([])) < table.num_rows)
    if name in _SELDOM:
        return bool(pc.sum(column).as_py())
    return name in _KEYS or column.null_count < len(column)
