"""What changed in the metadata of a cluster between two offsets."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

import pyarrow as pa

from kafka_log.inspect.metadata.answer import answer, metadata_replicas
from kafka_log.inspect.metadata.metadata_log import earliest
from kafka_log.inspect.metadata.table import Kind, Row, in_order, kind_of, table_of
from kafka_log.inspect.partition_headers import OnDamage
from kafka_log.logs.partitions import Partition
from kafka_log.text.columns import format_rows_as_json

DIFFERENCES = pa.schema(
    [
        pa.field("change", pa.string(), False, {"doc": "added, removed or changed."}),
        pa.field("columns", pa.list_(pa.string()), False, {"doc": "Those that differ."}),
        pa.field("before", pa.string(), True, {"doc": "What these said, as JSON."}),
        pa.field("after", pa.string(), True, {"doc": "What these say, as JSON."}),
    ]
)
"""The columns of changes: after the first one come those that identify the thing."""


def change_table(
    partitions: Sequence[Partition],
    what: str,
    first: int | None,
    last: int | None,
    *,
    topics: Collection[str] | None = None,
    numbers: Collection[int] | None = None,
    salvage: bool = False,
    on_damage: OnDamage | None = None,
    show_secrets: bool = False,
) -> pa.Table:
    """What is not the same of a kind as of the offsets ``first`` (None: the earliest that can be told) and ``last`` (None: the end): a row for each thing that was added, removed or
    changed. ``columns`` are those that differ; ``before`` and ``after`` what these say, as JSON.

    Where one of the two cannot be told, the last offset before it that can be is compared in its place, and ``on_damage`` is told; None:
    the reason is raised, as it is where nothing is left to compare. The rest is as of :func:`~kafka_log.inspect.metadata.table.state_table`.
    """
    kind = kind_of(what)
    replicas = metadata_replicas(partitions, on_damage)
    asked = earliest(replicas[0]) if first is None else first, last
    ends = [answer(replicas, kind.views, kind.rows, as_of, salvage=salvage) for as_of in asked]
    one_offset = last is not None and asked[0] >= last
    if ends[0].as_of >= ends[1].as_of and not one_offset:
        ends[1].raise_for_reason()
    for end, name in zip(ends, ("before", "after"), strict=True):
        if on_damage is not None:
            for line in end.said():
                on_damage(f"{name}: {line}")
        elif not salvage:
            end.raise_for_reason()
    was, now = (_by_key(kind, table_of(kind, end.rows, topics, numbers)) for end in ends)
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
    return pa.Table.from_pylist(in_order(kind, rows), pa.schema([first, *own, *rest]))


def by_column(changes: pa.Table) -> pa.Table:
    """The same for people: a row for each column that changed, and for each thing that was added or removed; what this said is there
    where it is no more than a value."""
    rows = []
    for row in changes.to_pylist():
        before, after = (json.loads(row[name] or "{}") for name in ("before", "after"))
        each = row["change"] == "changed" or len(row["columns"]) == 1
        for name in row["columns"] if each else [None]:
            said = {"column": name, "before": _shown(before, name), "after": _shown(after, name)}
            rows.append(row | said)
    schema = pa.schema(
        [pa.field("column", pa.string()) if f.name == "columns" else f for f in changes.schema]
    )
    return pa.Table.from_pylist(rows, schema)


def _shown(said: Row, name: str | None) -> str | None:
    if name is None or not said:
        return None
    value = said[name]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _by_key(kind: Kind, table: pa.Table) -> dict[str, tuple[Row, Row]]:
    """Rows of a table by what identifies them: that, and all columns in the words of JSON."""
    out = {}
    keys = table.select(list(kind.key)).to_pylist() if kind.key else [{}] * table.num_rows
    for identity, line in zip(keys, format_rows_as_json(table), strict=True):
        said = json.loads(line)
        out[json.dumps([said[name] for name in kind.key])] = (identity, said)
    return out


def _difference(
    kind: Kind, before: Row | None, after: Row | None, show_secrets: bool
) -> Row | None:
    if before == after:
        return None
    names = [
        name
        for name in kind.schema.names
        if name not in kind.key and (before or {}).get(name) != (after or {}).get(name)
    ]

    def said(row: Row | None) -> str | None:
        if row is None:
            return None
        shown = row if show_secrets else next(kind.without_secrets([row]))
        return json.dumps({n: shown[n] for n in names}, ensure_ascii=False)

    change = "added" if before is None else "removed" if after is None else "changed"
    return {"change": change, "columns": names, "before": said(before), "after": said(after)}
