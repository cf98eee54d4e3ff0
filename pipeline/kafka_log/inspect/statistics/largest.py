"""Find the largest batches or records of logs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import CodecError
from kafka_log.inspect.statistics.columns import PERIODS, TIME, By
from kafka_log.inspect.statistics.hidden_records import select_in_partitions
from kafka_log.inspect.statistics.options import (
    Asked,
    describe_batch,
    describe_control_records,
    describe_end,
)
from kafka_log.inspect.statistics.totals import format_codec
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.logs.removed_segments import read_options
from kafka_log.read.selection import Selection
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.scanner import Flagged, Scanner

_PLACE = [
    pa.field("topic", pa.string(), False, {"doc": "Topic name."}),
    pa.field("partition", pa.int64(), False, {"doc": "Partition number."}),
]

LARGEST_BATCHES = pa.schema(
    [
        *_PLACE,
        pa.field("bytes", pa.int64(), False, metadata={"doc": "Size of the batch, as stored."}),
        pa.field("records", pa.int64(), False, {"doc": "Number of records in the batch."}),
        pa.field("first_offset", pa.int64(), False, {"doc": "First offset of the batch."}),
        pa.field("last_offset", pa.int64(), False, {"doc": "Last offset of the batch."}),
        pa.field(
            "timestamp",
            TIME,
            metadata={"doc": "Largest timestamp of the batch; null if it has none."},
        ),
        pa.field("codec", pa.string(), False, {"doc": "Compression codec of the batch."}),
        pa.field(
            "producer_id", pa.int64(), metadata={"doc": "Producer id; null if there is none."}
        ),
        pa.field("position", pa.int64(), False, {"doc": "Position of the batch in the segment."}),
        pa.field("segment", pa.string(), False, {"doc": "Path of the segment file."}),
    ]
)

LARGEST_RECORDS = pa.schema(
    [
        *_PLACE,
        pa.field("bytes", pa.int64(), False, metadata={"doc": "Size of key, value and headers."}),
        pa.field("offset", pa.int64(), False, {"doc": "Offset of the record."}),
        pa.field("timestamp", TIME, True, {"doc": "Timestamp of the record; null if it has none."}),
        pa.field(
            "key_bytes",
            pa.int64(),
            metadata={"doc": "Size of the key; null if the record has no key."},
        ),
        pa.field(
            "value_bytes", pa.int64(), metadata={"doc": "Size of the value; null for a tombstone."}
        ),
        pa.field("header_bytes", pa.int64(), False, {"doc": "Size of header keys and values."}),
        pa.field("codec", pa.string(), False, metadata={"doc": "Compression codec of the batch."}),
        pa.field(
            "producer_id", pa.int64(), metadata={"doc": "Producer id; null if there is none."}
        ),
        pa.field("segment", pa.string(), False, {"doc": "Path of the segment file."}),
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
_CONTROL = ("position", "size", "is_control", "is_invalid")
_RECORD = ("offset", "timestamp", "key", "value", "headers", "producer_id", "codec")

_KEY_COLUMNS: dict[By, str] = {"topic": "topic_number", "partition": "place", "producer": "producer_id", "codec": "codec_number", **{name: name for name in PERIODS}}  # fmt: skip
"""Column to group by. Columns of ``_HIDDEN`` are in the tables only while rows are chosen."""
_HIDDEN = pa.schema([(name, pa.int64()) for name in ("place", "topic_number", "codec_number", *PERIODS)])  # fmt: skip


def largest_table(
    partitions: Sequence[Partition], count: int, by: Sequence[By], asked: Asked
) -> pa.Table:
    """Return the ``count`` largest batches by stored bytes, or data records if ``asked.deep``, by
    bytes of key, value and headers; largest first, equal sizes in log order. With ``by`` return at
    most ``count`` rows for each combination of keys, sorted by the keys first. Damage and
    unreadable files are reported to ``asked.on_problem``, not raised. Batches with a wrong
    checksum, and their records, count unless under ``strict``. Warn if batches or records below the
    log start offset are left out. Raise ValueError if ``count`` is negative.
    """
    if count < 0:
        raise ValueError(f"count is {count}: the number of rows must be at least 0")
    for partition in partitions:
        if partition.error is not None:
            asked.on_problem(str(partition.error))
    topics = {topic: i for i, topic in enumerate(dict.fromkeys(p.topic for p in partitions))}
    selections = select_in_partitions(partitions, asked.selection, of_records=asked.deep)
    owners = [
        _Owner(partition, segment, i, topics[partition.topic], wanted)
        for i, partition in enumerate(partitions)
        for segment in partition.segments
        for wanted in [selections[i].for_state(segment.state)]
    ]
    parts = (_scan_records if asked.deep else _scan_batches)(owners, asked)
    schema = LARGEST_RECORDS if asked.deep else LARGEST_BATCHES
    found = pa.schema([*schema, *_HIDDEN]).empty_table()
    keys = [_KEY_COLUMNS[name] for name in by]
    for part in parts:
        found = _largest_rows(
            pa.concat_tables([found, _largest_rows(part, keys, count)]), keys, count
        )
    return found.select(schema.names)


class _Owner(NamedTuple):
    """A segment with its partition, the numbers of partition and topic, and the selection for the partition."""

    partition: Partition
    segment: Segment
    place: int
    topic_number: int
    wanted: Selection


def _largest_rows(table: pa.Table, keys: Sequence[str], count: int) -> pa.Table:
    """Return the ``count`` largest rows for each combination of ``keys``, sorted by the keys (null
    first) and then largest first. Without keys return the ``count`` largest of all. Rows of equal
    size stay in their order.
    """
    sizes = np.asarray(table.column("bytes"))
    if not keys and len(sizes) > count:  # sorting all rows takes as long as reading them
        smallest = np.partition(sizes, len(sizes) - count)[len(sizes) - count] if count else 0
        table = table.filter(pa.array(sizes >= smallest))
        sizes = sizes[sizes >= smallest]
    least = np.iinfo(np.int64).min
    key_values = [np.asarray(pc.fill_null(table.column(name).combine_chunks(), least)) for name in keys]  # fmt: skip
    # lexsort sorts by its last key first.
    order = np.lexsort((-sizes, *reversed(key_values)))
    if keys and len(order):
        changes = np.zeros(len(order), np.bool_)
        for values in key_values:
            changes[1:] |= values[order][1:] != values[order][:-1]
        begins = np.maximum.accumulate(np.where(changes, np.arange(len(order)), 0))
        order = order[np.arange(len(order)) - begins < count]
    else:
        order = order[:count]
    return table.take(pa.array(order))


def _scan_batches(owners: Sequence[_Owner], asked: Asked) -> Iterator[pa.Table]:
    """Yield tables of the selected batches, in the columns of :data:`LARGEST_BATCHES` and
    ``_HIDDEN``. Damage and files that cannot be read are reported to ``asked.on_problem``, and not
    raised. Batches with a wrong checksum are included unless under ``strict``.
    """
    segments = [owner.segment for owner in owners]
    places = iter(owners)
    begins = True
    owner = owners[0] if owners else None
    for piece in asked.header_pass(segments, _BATCH)(segments):
        if begins:
            owner = next(places)
        begins = piece.is_last
        assert owner is not None
        file = os.fspath(piece.segment.path)
        for line in chain(piece.noted, () if piece.error is None else [piece.error]):
            asked.on_problem(f"{file}: {line}")
        for line in () if piece.end is None else describe_end(piece.end, file):
            asked.on_problem(line)
        asked.advance(piece.done)
        a = asked.select_batches(piece.arrays, owner.wanted)
        if not len(a["size"]):
            continue
        columns = {
            "bytes": a["size"],
            "records": a["records"],
            "first_offset": a["first"],
            "last_offset": a["last"],
            "timestamp": pa.array(a["largest_timestamp"], mask=a["largest_timestamp"] < 0),
            "producer_id": pa.array(a["producer_id"], mask=a["producer_id"] < 0),
            "position": a["position"],
        }
        yield _make_table(LARGEST_BATCHES, columns, owner, a["codec"])


def _scan_records(owners: Sequence[_Owner], asked: Asked) -> Iterator[pa.Table]:
    """Yield tables of the selected data records, in the columns of :data:`LARGEST_RECORDS` and
    ``_HIDDEN``. Damage and files that cannot be read are reported to ``asked.on_problem``, and not
    raised. Records of batches with a wrong checksum are included unless under ``strict``.
    """
    for owner in owners:
        segment, wanted = owner.segment, owner.wanted
        rows = Selection(
            offsets=wanted.offsets, timestamps=wanted.timestamps, producers=wanted.producers
        ).rows()
        scanner = Scanner(
            segment.path,
            _RECORD,
            asked.selection.policy,
            selection=rows,
            on_damage="keep",
            limits=asked.limits,
            engine=asked.engine,
            **read_options(segment),
        )
        file = os.fspath(segment.path)
        try:
            for item in scanner.items():
                if isinstance(item, pa.RecordBatch):
                    yield _measure_records(item, owner)
                elif isinstance(item, Flagged):
                    for line in describe_batch(item.batch):
                        asked.on_problem(f"{file}: {line}")
        except CodecError as error:  # under strict
            asked.on_problem(str(error))
        else:
            for piece in replace(asked, deep=False).header_pass([segment], _CONTROL)([segment]):
                for line in describe_control_records(piece):
                    asked.on_problem(line)
            for line in () if scanner.end is None else describe_end(scanner.end, file):
                asked.on_problem(line)
        asked.advance(segment.size)


def _measure_records(records: pa.RecordBatch, owner: _Owner) -> pa.Table:
    """Return a row with the sizes of each record, in the columns of :data:`LARGEST_RECORDS` and
    ``_HIDDEN``. ``records`` has the columns of ``_RECORD``.
    """
    sizes = [pc.binary_length(records.column(name)).cast(pa.int64()) for name in ("key", "value")]
    headers = _header_bytes(records.column("headers"))
    zeros = [np.asarray(size.fill_null(0)) for size in sizes]
    producers = records.column("producer_id")
    columns = {
        "bytes": zeros[0] + zeros[1] + headers,
        "offset": records.column("offset"),
        "timestamp": records.column("timestamp"),
        "key_bytes": sizes[0],
        "value_bytes": sizes[1],
        "header_bytes": headers,
        "producer_id": pc.if_else(pc.less(producers, 0), None, producers),
    }
    return _make_table(LARGEST_RECORDS, columns, owner, np.asarray(records.column("codec")))


def _header_bytes(headers: Any) -> Any:
    """Return the total bytes of the names and values of each record's headers as a NumPy array; 0
    for a record without headers, and for null values.
    """
    total = np.zeros(len(headers), np.int64)
    inner = headers.flatten()
    if len(inner):
        owners = np.asarray(pc.list_parent_indices(headers))
        for i in range(inner.type.num_fields):
            sizes = np.asarray(pc.binary_length(inner.field(i)).fill_null(0)).astype(np.int64)
            total += np.bincount(owners, sizes, len(headers)).astype(np.int64)
    return total


def _make_table(schema: pa.Schema, columns: dict[str, Any], owner: _Owner, codecs: Any) -> pa.Table:
    """Build a table with the columns of ``schema`` and ``_HIDDEN`` from rows of one segment, that
    of ``owner``, which gives topic, partition and segment. ``codecs`` are the rows' codec numbers.
    ``columns`` has the other columns and is changed.
    """
    rows = len(codecs)
    columns["topic"] = pa.repeat(utf8(owner.partition.topic), rows)
    columns["partition"] = pa.repeat(owner.partition.partition, rows)
    columns["segment"] = pa.repeat(utf8(os.fspath(owner.segment.path)), rows)
    columns["codec"] = pa.array(list(map(format_codec, codecs.tolist())), pa.string())
    columns["codec_number"] = codecs
    columns["place"] = pa.repeat(owner.place, rows)
    columns["topic_number"] = pa.repeat(owner.topic_number, rows)
    arrays: list[Any] = []
    for f in [*schema, *_HIDDEN]:
        if (length := PERIODS.get(f.name)) is not None:
            times = arrays[schema.get_field_index("timestamp")].cast(pa.int64())
            array = pa.array(np.asarray(times.fill_null(0)) // length, mask=np.asarray(times.is_null()))  # fmt: skip
        else:
            array = columns[f.name]
        array = array if isinstance(array, pa.Array) else pa.array(array)
        arrays.append(array.cast(f.type))
    return pa.table(arrays, pa.schema([*schema, *_HIDDEN]))
