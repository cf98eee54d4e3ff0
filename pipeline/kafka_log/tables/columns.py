"""The columns that records have as Arrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import pyarrow as pa

from kafka_codecs.arrow.records import RECORDS
from kafka_log.disk.directory import Segment, utf8
from kafka_log.segment.model import Batch, Record, codec_label
from kafka_log.segment.row_values import MORE_OF_RECORD, OF_RECORD, OF_RECORDS

Unit = Literal["ms", "us"]
"""The unit of timestamps: ``ms`` is the format's own, ``us`` what Spark wants."""

MS_MAX = ((1 << 63) - 1) // 1000
"""The largest timestamp in milliseconds, either way, that microseconds can hold."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record in its batch, or (``record`` None) a place where no record could be read."""

    position: int
    batch: Batch | None = None
    record: Record | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column: what it is, and its values for rows. ``once`` are columns with one value for the whole split,
    ``source`` is what they are called in the view records."""

    name: str
    type: Any
    doc: str
    values: Callable[[Sequence[Row]], list[Any]] | None = None
    once: Callable[[Segment], Any] | None = None
    source: str | None = None


def _of_view(name: str, called: str, doc: str = "", kind: Any = None) -> Column:
    """A column of the view records under the name that it has here."""
    column = RECORDS.column(name)
    value, of_record = OF_RECORDS[name], name in OF_RECORD + MORE_OF_RECORD

    def values(rows: Sequence[Row]) -> list[Any]:
        if name == "position":  # known also where no batch could be read
            return [row.position for row in rows]
        return [
            None
            if row.batch is None or (of_record and row.record is None)
            else value(row.batch, row.record)
            for row in rows
        ]

    return Column(called, kind or _TYPES[column.type](), doc or column.doc, values, source=name)


_TYPES: Mapping[str, Callable[[], Any]] = {
    **dict.fromkeys(("int8", "int16", "int32"), pa.int32),  # the only ones that Spark has names for
    "int64": pa.int64,
    "bool": pa.bool_,
    "timestamp_ms": lambda: pa.timestamp("us", "UTC"),
    "binary": pa.binary,
    "string": pa.string,
}


TIMESTAMP = "timestamp"
HEADERS = "headers"

_HEADER_FIELDS = [pa.field("key", pa.string()), pa.field("value", pa.binary())]
HEADERS_TYPE = pa.list_(pa.field("element", pa.struct(_HEADER_FIELDS)))

_CALLED = {"codec": "compression", "leader_epoch": "partitionLeaderEpoch"}
"""Columns of the view that have another name here, as in Kafka's documents. The others only change their spelling."""

_LEFT_OUT = ("delete_horizon",)
"""Columns of the view that no record has for itself."""


def _called(name: str) -> str:
    first, *rest = _CALLED.get(name, name).split("_")
    return first + "".join(part.capitalize() for part in rest)


def _kind(name: str) -> Any:
    return pa.string() if name == "codec" else None


_COLUMNS = (
    _of_view("key", "key", "Key, null when it has none."),
    _of_view("value", "value", "Value, null for a tombstone."),
    Column("topic", pa.string(), "Topic.", once=lambda s: utf8(s.topic)),
    Column("partition", pa.int32(), "Partition.", once=lambda s: s.partition),
    _of_view("offset", "offset"),
    _of_view("timestamp", TIMESTAMP),
    _of_view("timestamp_type", "timestampType"),
    _of_view("headers", HEADERS, "Headers in their order, null when there are none.", HEADERS_TYPE),
    *(
        _of_view(column.name, _called(column.name), kind=_kind(column.name))
        for column in RECORDS.columns
        if column.on_request and column.type in _TYPES and column.name not in _LEFT_OUT
    ),
    Column(
        "controlType",
        pa.string(),
        "ABORT, COMMIT, ...; null for data.",
        lambda rows: [
            None if row.record is None or row.record.control is None else row.record.control.type
            for row in rows
        ],
    ),
    Column("segment", pa.string(), "Path of the file.", once=lambda s: utf8(os.fspath(s.path))),
    Column(
        "problem",
        pa.string(),
        "What is wrong with the batch, or what was lost here.",
        lambda rows: [None if row.problem is None else utf8(row.problem) for row in rows],
    ),
)

COLUMNS: dict[str, Column] = {column.name: column for column in _COLUMNS}
"""All columns there are, by name."""

DEFAULT_COLUMNS = tuple(COLUMNS)[:8]
"""Those of Spark's own Kafka source, with headers."""

METADATA_COLUMNS = tuple(COLUMNS)[8:]
"""Those that say where a record comes from, on request."""


def schema(columns: Iterable[str] = DEFAULT_COLUMNS, *, timestamp_unit: Unit = "us") -> pa.Schema:
    """The Arrow schema of the columns, all nullable. Raises ValueError for a column that is not there."""
    fields = []
    for name in columns:
        if name not in COLUMNS:
            raise ValueError(f"no column is called {name!r}; known: {', '.join(COLUMNS)}")
        kind = pa.timestamp(timestamp_unit, "UTC") if name == TIMESTAMP else COLUMNS[name].type
        fields.append(pa.field(name, kind))
    return pa.schema(fields)


def to_arrow(rows: Sequence[Row], wanted: pa.Schema, segment: Segment) -> pa.RecordBatch:
    """Rows of one segment as Arrow, in the columns of a schema that :func:`schema` gave."""
    arrays = [_array(COLUMNS[f.name], f.type, rows, segment) for f in wanted]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def fits(timestamp: int, unit: Unit) -> bool:
    """Whether a timestamp in milliseconds has a place in a column of that unit."""
    return unit == "ms" or -MS_MAX <= timestamp <= MS_MAX


def _array(column: Column, kind: Any, rows: Sequence[Row], segment: Segment) -> Any:
    if column.once is not None:
        return pa.repeat(pa.scalar(column.once(segment), kind), len(rows))
    assert column.values is not None
    values = column.values(rows)
    if pa.types.is_timestamp(kind):
        values = _timestamps(values, kind.unit)
    elif column.name == HEADERS:
        return _headers([headers or None for headers in values])
    elif column.source == "codec":
        values = [None if value is None else codec_label(value) for value in values]
    return pa.array(values, kind)


def _timestamps(values: list[int | None], unit: Unit) -> list[int | None]:
    if unit == "ms":
        return values
    return [None if v is None or not fits(v, unit) else v * 1000 for v in values]


def _headers(values: list[tuple[tuple[str, bytes | None], ...] | None]) -> Any:
    offsets: list[int | None] = []
    keys: list[str] = []
    contents: list[bytes | None] = []
    for headers in values:
        offsets.append(None if headers is None else len(keys))
        for key, content in headers or ():
            keys.append(key)
            contents.append(content)
    offsets.append(len(keys))
    pairs = pa.StructArray.from_arrays(
        [pa.array(keys, pa.string()), pa.array(contents, pa.binary())], fields=_HEADER_FIELDS
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pairs, type=HEADERS_TYPE)


def check_columns(columns: Sequence[str], known: Sequence[str]) -> None:
    """Refuse names that there are not, and what is no list of names. Raises ValueError."""
    if isinstance(columns, str):
        raise ValueError(f"columns is a string: write [{columns!r}]")
    if not columns:
        raise ValueError("no column is asked for")
    if len(set(columns)) != len(columns):
        raise ValueError("a column is asked for twice")
    for name in columns:
        if name not in known:
            close = get_close_matches(str(name), known, 1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise ValueError(f"no column is called {name!r}{hint}; known: {', '.join(known)}")
