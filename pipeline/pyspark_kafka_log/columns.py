"""Columns of records: names, Arrow types and sources of their values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from kafka_codecs.columns.records import RECORDS
from kafka_log.logs.partitions import Segment
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.model import codec_label
from kafka_log.segment.row_values import MORE_OF_RECORD, OF_RECORD, OF_RECORDS

if TYPE_CHECKING:
    from kafka_log.read.topic_views import TopicView
    from kafka_log.segment.scanner import Unread

Unit = Literal["ms", "us"]
"""Unit of timestamps: ``ms`` as in the log, ``us`` as in Spark."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column and the source of its values.

    ``once`` computes one value for a whole segment. ``source`` is a column of the view records. A column with neither is computed from others.
    """

    name: str
    type: Any
    doc: str
    once: Callable[[Segment], Any] | None = None
    source: str | None = None


def _of_view(name: str, called: str, doc: str = "", kind: Any = None) -> Column:
    """Return a column of the view records under another name, with its description and type unless ``doc`` or ``kind`` replaces them."""
    column = RECORDS.column(name)
    return Column(called, kind or _TYPES[column.type](), doc or column.doc, source=name)


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
"""Columns of the view that are renamed as in Kafka's documents. All others only change to camel case."""

_LEFT_OUT = ("delete_horizon",)
"""Columns of the view that describe the batch, not the record."""


def _called(name: str) -> str:
    """Return the name of a view column in camel case, with the names of Kafka's documents."""
    first, *rest = _CALLED.get(name, name).split("_")
    return first + "".join(part.capitalize() for part in rest)


def _kind(name: str) -> Any:
    """Return the Arrow type of a view column if it differs from the view, else None."""
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
    Column("controlType", pa.string(), "ABORT, COMMIT, ...; null for data."),
    Column("segment", pa.string(), "Path of the file.", once=lambda s: utf8(os.fspath(s.path))),
    Column("problem", pa.string(), "What is wrong with the batch, or what was lost here."),
)

COLUMNS: dict[str, Column] = {column.name: column for column in _COLUMNS}
"""All columns by name."""

DEFAULT_COLUMNS = tuple(COLUMNS)[:8]
"""The columns of Spark's Kafka source, with headers."""

METADATA_COLUMNS = tuple(COLUMNS)[8:]
"""Columns on request, which say where a record comes from."""


def schema(columns: Iterable[str] = DEFAULT_COLUMNS, *, timestamp_unit: Unit = "us") -> pa.Schema:
    """Return the Arrow schema of columns in the given order, all nullable. ``timestamp_unit`` is
    the unit of the column ``timestamp`` only. Raise ValueError for an unknown column.
    """
    fields = []
    for name in columns:
        if name not in COLUMNS:
            raise ValueError(f"there is no column {name!r}; known: {', '.join(COLUMNS)}")
        kind = pa.timestamp(timestamp_unit, "UTC") if name == TIMESTAMP else COLUMNS[name].type
        fields.append(pa.field(name, kind))
    return pa.schema(fields)


def unread_row(place: Unread, wanted: pa.Schema, segment: Segment) -> pa.RecordBatch:
    """Return a batch with one row that stands for a position where no record could be read: topic,
    partition and other values of the segment, the position, the problem, and what a readable batch
    header states. Other columns are null.

    ``wanted`` is a schema of :func:`schema`.
    """
    arrays = [pa.array([_value_of_unread(COLUMNS[f.name], place, segment)], f.type) for f in wanted]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _value_of_unread(column: Column, place: Unread, segment: Segment) -> Any:
    """Return the value of one column for a position where no record could be read: the segment's
    value, the problem, the position, or the batch header's value. Return None if the header is
    unreadable or does not state it, as for key, value or offset.
    """
    if column.once is not None:
        return column.once(segment)
    if column.name == "problem":
        return utf8(place.problem)
    if column.source == "position":  # known also where no batch could be read
        return place.position
    if place.batch is None or column.source is None or column.source in OF_RECORD + MORE_OF_RECORD:
        return None
    value = OF_RECORDS[column.source](place.batch, None)
    return codec_label(value) if column.source == "codec" else value


UNSIGNED_64 = pa.uint64(), pa.decimal128(20, 0)
"""Numbers of 64 bits without a sign, and the type that Spark has for them."""

_SIGNED = {
    pa.binary(16): pa.binary(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    UNSIGNED_64[0]: UNSIGNED_64[1],
}


def view_schema(view: TopicView, unit: Unit) -> pa.Schema:
    """Return the Arrow schema of a view in types that Spark has, all nullable: bytes for uuids, signed numbers, decimals for ``uint64``."""
    return pa.schema([pa.field(f.name, _spark_type(f.type, unit)) for f in view.schema])


def _spark_type(kind: pa.DataType, unit: Unit) -> pa.DataType:
    """Return the Arrow type that Spark uses for a type of a view, also inside lists and structs:
    timestamps get ``unit`` and UTC, unsigned integers up to 32 bits the next larger signed type,
    those of 64 bits a decimal, 16 fixed bytes become binary. Return other types unchanged.
    """
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _spark_type(kind.value_type, unit)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _spark_type(f.type, unit)) for f in kind])
    if pa.types.is_timestamp(kind):
        return pa.timestamp(unit, "UTC")
    return _SIGNED.get(kind, kind)
