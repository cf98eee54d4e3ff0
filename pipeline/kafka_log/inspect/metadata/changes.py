"""Compare the metadata of a cluster at two offsets."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence

import pyarrow as pa

from kafka_log.inspect.metadata.answer import answer_metadata, metadata_replicas
from kafka_log.inspect.metadata.metadata_log import find_earliest_offset
from kafka_log.inspect.metadata.table import Kind, Row, find_kind, make_table, sort_by_key
from kafka_log.inspect.partition_headers import OnDamage
from kafka_log.logs.partitions import Partition
from kafka_log.text.columns import format_rows_as_json

DIFFERENCES = pa.schema(
    [
        pa.field("change", pa.string(), False, {"doc": "added, removed or changed."}),
        pa.field(
            "columns", pa.list_(pa.string()), False, {"doc": "Names of the columns that differ."}
        ),
        pa.field("before", pa.string(), True, {"doc": "Old values of these columns, as JSON."}),
        pa.field("after", pa.string(), True, {"doc": "New values of these columns, as JSON."}),
    ]
)
"""Columns of changes. The key columns of the kind follow ``change``."""


def change_table(
    partitions: Sequence[Partition],
    what: str,
    first: int | None,
    last: int | None,
    *,
    topics: Container[str] | None = None,
    numbers: Container[int] | None = None,
    salvage: bool = False,
    on_damage: OnDamage | None = None,
    show_secrets: bool = False,
) -> pa.Table:
    """Return a row for each object of the kind ``what`` that was added, removed or changed between
    ``first`` (None: earliest known state) and ``last`` (None: end), sorted by its key. ``first``
    may be above ``last``, which compares backwards. ``topics`` and partition ``numbers`` select
    objects (None: all); secrets are hidden unless ``show_secrets``, but compared. An unreadable
    state is replaced by the one before. Raise ValueError for an unknown kind; NotFoundError without
    metadata log or offset; CodecError or DirectoryError for damage without ``on_damage`` and
    ``salvage``, or without two readable states.

    The columns are :data:`DIFFERENCES` with the kind's key. If the state at an offset cannot be read, the last readable offset before
    it takes its place, and ``on_damage`` is called.

    Args:
        partitions: Partitions with the metadata log among them.
        what: One of :data:`~kafka_log.inspect.metadata.table.KINDS`.
        first: Offset of the state before; None is the earliest offset whose state is known.
        last: Offset of the state after; None is the end of the log.
        topics: As for :func:`~kafka_log.inspect.metadata.table.state_table`.
        numbers: Likewise.
        salvage: Likewise.
        on_damage: Called with a line for each problem; None raises the problem.
        show_secrets: As for :func:`~kafka_log.inspect.metadata.table.state_table`.
    """
    kind = find_kind(what)
    needs_end = last is None and (on_damage is not None or not salvage)
    replicas = metadata_replicas(partitions, on_damage, checks_ends=needs_end)
    asked = find_earliest_offset(replicas[0]) if first is None else first, last
    ends = [
        answer_metadata(replicas, kind.views, kind.rows, as_of, salvage=salvage) for as_of in asked
    ]
    one_offset = last is not None and asked[0] >= last
    if ends[0].as_of >= ends[1].as_of and not one_offset:
        ends[1].raise_for_reason()
    for end, name in zip(ends, ("before", "after"), strict=True):
        if on_damage is not None:
            for line in end.describe_gaps():
                on_damage(f"{name}: {line}")
        elif not salvage:
            end.raise_for_reason()
    was, now = (_index_rows(kind, make_table(kind, end.rows, topics, numbers)) for end in ends)
    rows = []
    for key, (identity, _) in {**was, **now}.items():
        found = _difference(
            kind,
            was[key][1] if key in was else None,
            now[key][1] if key in now else None,
            show_secrets,
        )
        if found is not None:
            rows.append(identity | found)
    own = [kind.schema.field(name) for name in kind.key]
    first, *rest = DIFFERENCES
    return pa.Table.from_pylist(sort_by_key(kind, rows), pa.schema([first, *own, *rest]))


def list_changed_columns(changes: pa.Table) -> pa.Table:
    """Return a table of changes for text output, with one row per changed column. An added or
    removed object has one row, in which values are shown only if it has a single column.
    """
    rows = []
    for row in changes.to_pylist():
        before, after = (json.loads(row[name] or "{}") for name in ("before", "after"))
        each = row["change"] == "changed" or len(row["columns"]) == 1
        for name in row["columns"] if each else [None]:
            cells = {
                "column": name,
                "before": _value_text(before, name),
                "after": _value_text(after, name),
            }
            rows.append(row | cells)
    schema = pa.schema(
        [pa.field("column", pa.string()) if f.name == "columns" else f for f in changes.schema]
    )
    return pa.Table.from_pylist(rows, schema)


def _value_text(row: Row, name: str | None) -> str | None:
    """Return the value of the column ``name`` as text: a string as it is, else JSON. Return None if
    ``name`` is None or the row is empty.
    """
    if name is None or not row:
        return None
    value = row[name]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _index_rows(kind: Kind, table: pa.Table) -> dict[str, tuple[Row, Row]]:
    """Return for each row, by its key as JSON text, the key columns as Python values and all
    columns as JSON values.
    """
    out = {}
    keys = table.select(list(kind.key)).to_pylist() if kind.key else [{}] * table.num_rows
    for identity, line in zip(keys, format_rows_as_json(table), strict=True):
        values = json.loads(line)
        out[json.dumps([values[name] for name in kind.key])] = (identity, values)
    return out


def _difference(
    kind: Kind, before: Row | None, after: Row | None, show_secrets: bool
) -> Row | None:
    """Return the columns of :data:`DIFFERENCES` for an object, None if both rows are equal. It was
    added if ``before`` is None, removed if ``after`` is None, else changed. The differing columns
    have their values as JSON, secrets redacted unless ``show_secrets``.
    """
    if before == after:
        return None
    names = [
        name
        for name in kind.schema.names
        if name not in kind.key and (before or {}).get(name) != (after or {}).get(name)
    ]

    def to_json(row: Row | None) -> str | None:
        """Return the changed columns of a row as JSON, secrets redacted; None for None."""
        if row is None:
            return None
        shown = row if show_secrets else next(kind.without_secrets([row]))
        return json.dumps({n: shown[n] for n in names}, ensure_ascii=False)

    change = "added" if before is None else "removed" if after is None else "changed"
    return {"change": change, "columns": names, "before": to_json(before), "after": to_json(after)}
