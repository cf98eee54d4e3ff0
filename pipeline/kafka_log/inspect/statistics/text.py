"""Text output of ``stat``."""

from __future__ import annotations

from itertools import takewhile

import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.inspect.statistics.columns import BY, key_fields
from kafka_log.text.text_table import TextColumn, format_columns, lay_out, make_column

_KEYS = frozenset(f.name for deep in (True, False) for f in key_fields(BY, deep))
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
"""Columns that text output shows only if they have a value other than 0."""

_JOINED = (
    ("offsets", "..", ("first_offset", "last_offset")),
    ("epochs", "..", ("first_epoch", "last_epoch")),
    ("batch_sizes", "/", ("smallest_batch", "mean_batch", "largest_batch")),
)
"""Columns of numbers that text output joins into one."""


def stat_text(
    table: pa.Table, total: pa.Table | None, width: int | None, *, has_total: bool = True
) -> str:
    """Return a table as text in columns that fit ``width`` (None: unlimited), without columns that
    have nothing to show. If ``total`` is given, the first and last offsets and epochs and the batch
    sizes are joined into one column each; ``total`` itself is the last row only if ``has_total``
    and the table has several rows.

    Args:
        table: The table of ``stat``, or of the largest batches or records.
        total: One row of totals; None if the rows are not sums.
        width: Width of the terminal; None for unlimited.
        has_total: Append ``total`` as the last row if the table has several rows.
    """
    if total is not None and has_total and table.num_rows > 1:
        table = _append_total(table, total)
    shown = [name for name in table.column_names if _is_shown(table, name)]
    if "ratio" in shown:
        at = table.column_names.index("ratio")
        table = table.set_column(at, "ratio", pc.round(table.column("ratio"), 2))
    keys = len(list(takewhile(_KEYS.__contains__, shown)))
    columns = format_columns(table.select(shown), keys)
    if total is not None:
        for name, mark, parts in _JOINED:
            columns = _join_columns(columns, table, name, mark, parts)
    return lay_out(columns, width, keys)


def _join_columns(
    columns: list[TextColumn], table: pa.Table, name: str, mark: str, parts: tuple[str, ...]
) -> list[TextColumn]:
    """Return ``columns`` with those named ``parts`` replaced by one column ``name`` at the position
    of the first: their rounded numbers with ``mark`` between them, ``-`` if one is null. Return
    ``columns`` unchanged if the first of ``parts`` is not among them.
    """
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


def _append_total(table: pa.Table, total: pa.Table) -> pa.Table:
    """Return the table with the row ``total`` appended, with the word ``total`` in its first
    column; numbers there become text. Return the table unchanged if its first column is neither
    text nor integers.
    """
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


def _is_shown(table: pa.Table, name: str) -> bool:
    """Return whether text output shows a column: keys, and columns with a value. Never
    ``first_problem``; ``batch_bytes`` only without ``bytes``; ``state`` if one is not live;
    ``directory`` if a partition occurs twice in one state; rare columns (``_SELDOM``) if their sum
    is not 0.
    """
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
