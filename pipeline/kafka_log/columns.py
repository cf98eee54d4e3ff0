"""The columns that records have as Arrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from kafka_log.directory import Segment
from kafka_log.model import Batch, Record

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
    """A column: what it is, and its values for rows. ``once`` are columns with one value for the whole slice."""

    name: str
    type: Any
    doc: str
    values: Callable[[Sequence[Row]], list[Any]] | None = None
    once: Callable[[Segment], Any] | None = None


def _record(get: Callable[[Record], Any]) -> Callable[[Sequence[Row]], list[Any]]:
    return lambda rows: [None if row.record is None else get(row.record) for row in rows]


def _batch(get: Callable[[Batch], Any]) -> Callable[[Sequence[Row]], list[Any]]:
    return lambda rows: [None if row.batch is None else get(row.batch) for row in rows]


def _utf8(text: str) -> str:
    """Text that Arrow can hold: file names may have bytes that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


TIMESTAMP = "timestamp"
HEADERS = "headers"

_HEADER_FIELDS = [pa.field("key", pa.string()), pa.field("value", pa.binary())]
HEADERS_TYPE = pa.list_(pa.field("element", pa.struct(_HEADER_FIELDS)))

_COLUMNS = (
    Column("key", pa.binary(), "Key, null when it has none.", _record(lambda r: r.key)),
    Column("value", pa.binary(), "Value, null for a tombstone.", _record(lambda r: r.value)),
    Column("topic", pa.string(), "Topic.", once=lambda s: _utf8(s.topic)),
    Column("partition", pa.int32(), "Partition.", once=lambda s: s.partition),
    Column("offset", pa.int64(), "Offset.", _record(lambda r: r.offset)),
    Column(
        TIMESTAMP,
        pa.timestamp("us", "UTC"),
        "Timestamp; one millisecond before 1970 when the record has none.",
        _record(lambda r: r.timestamp),
    ),
    Column(
        "timestampType",
        pa.int32(),
        "-1 none, 0 set by the producer, 1 set by the broker.",
        _batch(lambda b: b.timestamp_type),
    ),
    Column(
        HEADERS,
        HEADERS_TYPE,
        "Headers in their order, null when there are none.",
        _record(lambda r: r.headers or None),
    ),
    Column("baseOffset", pa.int64(), "First offset of the batch.", _batch(lambda b: b.base_offset)),
    Column(
        "position",
        pa.int64(),
        "First byte of the batch in the file.",
        lambda rows: [row.position for row in rows],
    ),
    Column("magic", pa.int32(), "Version of the batch's format.", _batch(lambda b: b.magic)),
    Column(
        "compression",
        pa.string(),
        "none, gzip, snappy, lz4, zstd.",
        _batch(lambda b: b.compression),
    ),
    Column(
        "producerId",
        pa.int64(),
        "Producer id of the batch, -1 for none.",
        _batch(lambda b: b.producer_id),
    ),
    Column(
        "producerEpoch",
        pa.int32(),
        "Producer epoch of the batch, -1 for none.",
        _batch(lambda b: b.producer_epoch),
    ),
    Column(
        "sequence",
        pa.int32(),
        "Sequence number of the record, -1 for none.",
        _record(lambda r: r.sequence),
    ),
    Column(
        "partitionLeaderEpoch",
        pa.int32(),
        "Leader epoch of the batch, -1 for none.",
        _batch(lambda b: b.partition_leader_epoch),
    ),
    Column(
        "isTransactional",
        pa.bool_(),
        "Whether the batch is part of a transaction.",
        _batch(lambda b: b.is_transactional),
    ),
    Column(
        "isControl",
        pa.bool_(),
        "Whether it is a record of the broker's own.",
        _batch(lambda b: b.is_control),
    ),
    Column(
        "controlType",
        pa.string(),
        "ABORT, COMMIT, ...; null for data.",
        _record(lambda r: None if r.control is None else r.control.type),
    ),
    Column("segment", pa.string(), "Path of the file.", once=lambda s: _utf8(os.fspath(s.path))),
    Column(
        "problem",
        pa.string(),
        "What is wrong with the batch, or what was lost here.",
        lambda rows: [None if row.problem is None else _utf8(row.problem) for row in rows],
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


def record_size(record: Record) -> int:
    """Bytes of a record in a table, or a few more: a character of a header's key has at most 4 bytes."""
    headers = sum(4 * len(key) + len(value or b"") for key, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def fits(timestamp: int, unit: Unit) -> bool:
    """Whether a timestamp in milliseconds has a place in a column of that unit."""
    return unit == "ms" or -MS_MAX <= timestamp <= MS_MAX


def _array(column: Column, kind: Any, rows: Sequence[Row], segment: Segment) -> Any:
    if column.once is not None:
        return pa.repeat(pa.scalar(column.once(segment), kind), len(rows))
    assert column.values is not None
    values = column.values(rows)
    if column.name == TIMESTAMP:
        values = _timestamps(values, kind.unit)
    elif column.name == HEADERS:
        return _headers(values)
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
