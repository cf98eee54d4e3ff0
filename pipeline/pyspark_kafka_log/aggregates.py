"""Aggregates that a query wants of a log and nothing else, as rows of their partial values: one for each task, or for each of its groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafka_log.read.plan import Split
from kafka_log.segment.arrow_text import utf8
from pyspark_kafka_log.task_reader import OnRead, Scan
from pyspark_kafka_log.totals import EXTREMES, TIMESTAMP, Totals, can_total, totals_of

GROUPS: Mapping[str, Any] = {"topic": pa.string(), "partition": pa.int32()}
_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Aggregates:
    """``functions`` are ``count`` with a column or ``*``, ``min`` and ``max`` with a column. ``groups`` are of :data:`GROUPS`."""

    functions: tuple[tuple[str, str], ...]
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Aggregates | None:
        """Those of a question of the JVM, None where it asks for rows."""
        if request.get("aggregates") is None:
            return None
        functions = tuple((name, column) for name, column in request["aggregates"])
        return cls(functions, tuple(request["groups"]))

    def can_be_had(self, scan: Scan) -> bool:
        """Whether they come out the same as from all rows."""
        known = all(
            column in ("*", *EXTREMES) if name == "count" else column in EXTREMES
            for name, column in self.functions
        )
        return known and set(self.groups) <= GROUPS.keys() and can_total(scan)

    @property
    def schema(self) -> pa.Schema:
        """The groups, then the values."""
        fields = [pa.field(name, GROUPS[name]) for name in self.groups]
        for name, column in self.functions:
            is_time = name != "count" and column == TIMESTAMP
            fields.append(pa.field(f"{name}({column})", _TIME if is_time else pa.int64()))
        return pa.schema(fields)

    def rows(
        self, parts: Iterable[Split], scan: Scan, on_read: OnRead | None = None
    ) -> pa.RecordBatch:
        """Their values over the rows of a task. ``on_read`` is called with what was read of each file. Raises CodecError for damage."""
        columns = {column for name, column in self.functions if name != "count"}
        by_log = totals_of(parts, scan, columns, on_read)
        found: dict[tuple[Any, ...], Totals] = {} if self.groups else {(): Totals()}
        for (topic, partition), of_log in by_log.items():
            if of_log.rows or not self.groups:
                values = {"topic": utf8(topic), "partition": partition}
                key = tuple(values[name] for name in self.groups)
                found[key] = found.get(key, Totals()) + of_log
        rows = [
            (*key, *(_value(one, *function) for function in self.functions))
            for key, one in found.items()
        ]
        return _batch(rows, self.schema)


def _value(of: Totals, name: str, column: str) -> int | None:
    if name == "count":
        return of.rows
    extremes = of.extremes(column)
    return None if extremes is None else extremes[name == "max"]


def _batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for i, field in enumerate(schema):
        values = [row[i] for row in rows]
        arrays.append(
            pa.array(values, pa.int64()).cast(field.type)
            if field.type == _TIME
            else pa.array(values, field.type)
        )
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
