"""The largest batches, or records, of logs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.disk.directory import Partition, Segment, utf8
from kafka_log.report.stat_asked import Asked
from kafka_log.report.stat_columns import TIME
from kafka_log.report.stat_sums import codec_name
from kafka_log.segment.columnar import Scanner
from kafka_log.segment.model import Policy
from kafka_log.tables.selection import Selection

_PLACE = [
    pa.field("topic", pa.string(), False),
    pa.field("partition", pa.int64(), False),
]

LARGEST_BATCHES = pa.schema(
    [
        *_PLACE,
        pa.field("bytes", pa.int64(), False, metadata={"doc": "Of the batch, as it is stored."}),
        pa.field("records", pa.int64(), False),
        pa.field("first_offset", pa.int64(), False),
        pa.field("last_offset", pa.int64(), False),
        pa.field("timestamp", TIME, metadata={"doc": "The largest one."}),
        pa.field("codec", pa.string(), False),
        pa.field("producer_id", pa.int64(), metadata={"doc": "Null for none."}),
        pa.field("position", pa.int64(), False),
        pa.field("segment", pa.string(), False),
    ]
)

LARGEST_RECORDS = pa.schema(
    [
        *_PLACE,
        pa.field("bytes", pa.int64(), False, metadata={"doc": "Of key, value and headers."}),
        pa.field("offset", pa.int64(), False),
        pa.field("timestamp", TIME),
        pa.field("key_bytes", pa.int64(), metadata={"doc": "Null: it has no key."}),
        pa.field("value_bytes", pa.int64(), metadata={"doc": "Null: a tombstone."}),
        pa.field("header_bytes", pa.int64(), False),
        pa.field("producer_id", pa.int64(), metadata={"doc": "Null for none."}),
        pa.field("segment", pa.string(), False),
    ]
)

_BATCH = (
    "position",
    "size",
    "codec",
    "producer_id",
    "first",
    "last",
    "records",
    "least_timestamp",
    "largest_timestamp",
)
_RECORD = ("offset", "timestamp", "key", "value", "headers", "producer_id")


def largest_table(partitions: Sequence[Partition], count: int, asked: Asked) -> pa.Table:
    """The largest batches, or records if it is ``deep``: the largest first, those of one size as they lie. Raises ValueError."""
    if count < 0:
        raise ValueError(f"{count} is no number of rows")
    for partition in partitions:
        if partition.error is not None:
            asked.on_problem(str(partition.error))
    owners = [(partition, s) for partition in partitions for s in partition.segments]
    parts = (_records if asked.deep else _batches)(owners, asked)
    schema = LARGEST_RECORDS if asked.deep else LARGEST_BATCHES
    found = schema.empty_table()
    for part in parts:
        found = _top(pa.concat_tables([found, _top(part, count)]), count)
    return found


def _top(table: pa.Table, count: int) -> pa.Table:
    sizes = np.asarray(table.column("bytes"))
    if len(sizes) > count:
        least = np.partition(sizes, len(sizes) - count)[len(sizes) - count] if count else 0
        table = table.filter(pa.array(sizes >= least))
        sizes = sizes[sizes >= least]
    return table.take(pa.array(np.argsort(-sizes, kind="stable")[:count]))


def _batches(owners: Sequence[tuple[Partition, Segment]], asked: Asked) -> Iterator[pa.Table]:
    segments = [segment for _, segment in owners]
    places = iter(owners)
    begins = True
    owner = owners[0] if owners else None
    for piece in asked.pass_over(segments, _BATCH)(segments):
        if begins:
            owner = next(places)
        begins = piece.is_last
        assert owner is not None
        for line in chain(piece.noted, () if piece.error is None else [piece.error]):
            asked.on_problem(f"{piece.segment.path}: {line}")
        asked.advance(piece.done)
        a = asked.chosen(piece.arrays)
        if not len(a["size"]):
            continue
        columns = {
            "bytes": a["size"],
            "records": a["records"],
            "first_offset": a["first"],
            "last_offset": a["last"],
            "timestamp": pa.array(a["largest_timestamp"], mask=a["largest_timestamp"] < 0),
            "codec": list(map(codec_name, a["codec"].tolist())),
            "producer_id": pa.array(a["producer_id"], mask=a["producer_id"] < 0),
            "position": a["position"],
        }
        yield _table(LARGEST_BATCHES, columns, *owner, len(a["size"]))


def _records(owners: Sequence[tuple[Partition, Segment]], asked: Asked) -> Iterator[pa.Table]:
    wanted = asked.selection
    rows = Selection(
        offsets=wanted.offsets, timestamps=wanted.timestamps, producers=wanted.producers
    ).rows()
    for partition, segment in owners:
        scanner = Scanner(
            segment.path,
            _RECORD,
            Policy.SALVAGE,
            selection=rows,
            limits=asked.limits,
            engine=asked.engine,
            tail=segment.tail,
            size=segment.size,
        )
        for batch in scanner:
            sizes = [
                pc.binary_length(batch.column(name)).cast(pa.int64()) for name in ("key", "value")
            ]
            headers = _header_bytes(batch.column("headers"))
            zeros = [np.asarray(size.fill_null(0)) for size in sizes]
            producers = batch.column("producer_id")
            columns = {
                "bytes": zeros[0] + zeros[1] + headers,
                "offset": batch.column("offset"),
                "timestamp": batch.column("timestamp"),
                "key_bytes": sizes[0],
                "value_bytes": sizes[1],
                "header_bytes": headers,
                "producer_id": pc.if_else(pc.less(producers, 0), None, producers),
            }
            yield _table(LARGEST_RECORDS, columns, partition, segment, batch.num_rows)
        for lost in () if scanner.end is None else scanner.end.lost:
            what = f"bytes {lost.start} to {lost.end} are lost: {lost.reason}"
            asked.on_problem(f"{segment.path}: {what}")
        asked.advance(segment.size)


def _header_bytes(headers: Any) -> Any:
    """Bytes of the names and values of each record's headers."""
    total = np.zeros(len(headers), np.int64)
    inner = headers.flatten()
    if len(inner):
        owners = np.asarray(pc.list_parent_indices(headers))
        for i in range(inner.type.num_fields):
            sizes = np.asarray(pc.binary_length(inner.field(i)).fill_null(0)).astype(np.int64)
            total += np.bincount(owners, sizes, len(headers)).astype(np.int64)
    return total


def _table(
    schema: pa.Schema, columns: dict[str, Any], partition: Partition, segment: Segment, rows: int
) -> pa.Table:
    columns["topic"] = pa.repeat(utf8(partition.topic), rows)
    columns["partition"] = pa.repeat(partition.partition, rows)
    columns["segment"] = pa.repeat(utf8(os.fspath(segment.path)), rows)
    arrays = []
    for f in schema:
        array = columns[f.name]
        array = array if isinstance(array, pa.Array) else pa.array(array)
        arrays.append(array.cast(f.type))
    return pa.table(arrays, schema)
