"""The numbers of ``stat`` as text."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.report.stat_columns import BY, keys_of
from kafka_log.report.text_tables import as_text

_KEYS = frozenset(f.name for f in keys_of(BY))
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


def stat_text(table: pa.Table, total: pa.Table | None, width: int | None) -> str:
    """A table in columns; where there are several rows that are summed up, with a last one for ``total``. Columns in which there is
    nothing are left out. Problems have lines of their own."""
    if total is not None and table.num_rows > 1:
        table = _with_total(table, total)
    shown = [name for name in table.column_names if _says_something(table, name)]
    if "mean_batch" in shown:
        at = table.column_names.index("mean_batch")
        rounded = pc.round(table.column("mean_batch")).cast(pa.int64())
        table = table.set_column(at, "mean_batch", rounded)
    if "ratio" in shown:
        at = table.column_names.index("ratio")
        table = table.set_column(at, "ratio", pc.round(table.column("ratio"), 2))
    keys = sum(name in _KEYS for name in shown)
    return as_text(table.select(shown), width, keys)


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
