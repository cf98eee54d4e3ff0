"""Records as rows in the columns and types of :mod:`pyspark_kafka_log.columns`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import ValueRefused, Where
from kafka_log.logs.partitions import Segment
from kafka_log.segment.control import read_control
from kafka_log.segment.model import Lost, codec_label
from kafka_log.segment.row_masks import numbers
from kafka_log.segment.scanner import Unread
from kafka_log.segment.times import MS_MAX
from pyspark_kafka_log.columns import COLUMNS, HEADERS_TYPE, TIMESTAMP, unread_row
from pyspark_kafka_log.scan import Scan

_CODECS = [codec_label(number) for number in range(8)]
_CONTROL_TYPE = "controlType"
_PROBLEM = "problem"


class SparkRows:
    """Row format of records in the columns and types of a :class:`~pyspark_kafka_log.scan.Scan`."""

    def __init__(self, scan: Scan) -> None:
        """Determine the columns to decode for the columns of ``scan``."""
        self.scan = scan
        self._checks_times = TIMESTAMP in scan.columns and scan.timestamp_unit == "us"
        self._shows_unread = scan.on_damage == "keep" and _PROBLEM in scan.columns
        needed = {source for name in scan.columns if (source := COLUMNS[name].source) is not None}
        needed |= {"offset", "position"} if self._checks_times else set()
        needed |= {"damage"} if _PROBLEM in scan.columns else set()
        needed |= {"key", "is_control"} if _CONTROL_TYPE in scan.columns else set()
        self.schema = scan.schema
        self.columns = tuple(sorted(needed or {"position"}))
        self._segment: Segment | None = None
        self._constant: dict[str, Any] = {}

    def convert(
        self, item: pa.RecordBatch | Unread, segment: Segment
    ) -> Iterator[pa.RecordBatch | Lost]:
        """Yield decoded records in Spark's columns, in batches of at most ``batch_rows`` rows and
        about ``batch_bytes`` bytes. For an Unread position yield a row if damage is kept and shown,
        else nothing. For a timestamp out of the column's range raise ValueRefused after the rows
        before it; if damage is dropped, yield a Lost before all rows instead; if kept, null.
        """
        if segment is not self._segment:
            self._segment, self._constant = segment, {}
        if isinstance(item, Unread):
            if self._shows_unread:
                yield unread_row(item, self.scan.schema, segment)
            return
        out_of_range = _times_out_of_range(item) if self._checks_times else None
        if out_of_range is None or self.scan.on_damage == "keep":
            yield from self._split_rows(item, segment)
        elif self.scan.on_damage == "drop":
            for row in out_of_range.nonzero()[0].tolist():
                yield _lost_record(item.slice(row, 1), segment)
            yield from self._split_rows(item.filter(pa.array(~out_of_range)), segment)
        else:
            first = int(out_of_range.argmax())
            yield from self._split_rows(item.slice(0, first), segment)
            raise _time_error(item.slice(first, 1), segment)

    def _split_rows(self, batch: pa.RecordBatch, segment: Segment) -> Iterator[pa.RecordBatch]:
        """Yield rows in Spark's columns, in batches of at most ``batch_rows`` rows and
        ``batch_bytes`` bytes, unless a single row is larger. Timestamps out of range become null.
        """
        scan = self.scan
        arrays = [self._array(field, batch, segment) for field in scan.schema]
        rows = pa.RecordBatch.from_arrays(arrays, schema=scan.schema)
        for start in range(0, rows.num_rows, scan.batch_rows):
            yield from _halve(rows.slice(start, scan.batch_rows), scan.batch_bytes)

    def _array(self, field: pa.Field, batch: pa.RecordBatch, segment: Segment) -> Any:
        """Return the column ``field`` of decoded rows: a constant of the segment, a description of
        damage (null without), a control record's type, or the decoded values converted to Spark's
        type. Timestamps out of range become null.
        """
        column = COLUMNS[field.name]
        if column.once is not None:
            return self._repeat(field, batch.num_rows, segment)
        if field.name == _PROBLEM:
            return batch.column("damage")
        if field.name == _CONTROL_TYPE:
            return _control_types(batch, field.type)
        assert column.source is not None
        values = batch.column(column.source)
        if pa.types.is_timestamp(field.type):
            return _timestamps(values, field.type)
        if column.source == "codec":
            return pa.array(_CODECS, field.type).take(values)
        if field.name == "headers":
            return _headers(values)
        return values if values.type == field.type else values.cast(field.type)

    def _repeat(self, field: pa.Field, rows: int, segment: Segment) -> Any:
        """Return a column of ``rows`` rows that all have the segment's value of ``field``: topic,
        partition or segment (its path). Other columns are an AssertionError. The array is cached
        until :meth:`convert` gets another segment.
        """
        cached = self._constant.get(field.name)
        if cached is None or len(cached) < rows:
            once = COLUMNS[field.name].once
            assert once is not None
            cached = pa.repeat(pa.scalar(once(segment), field.type), rows)
            self._constant[field.name] = cached
        return cached.slice(0, rows)


def _times_out_of_range(batch: pa.RecordBatch) -> Any:
    """Return the mask of timestamps that a column of microseconds cannot hold, None if all fit."""
    times = numbers(batch, "timestamp")
    mask = (times < -MS_MAX) | (times > MS_MAX)
    return mask if mask.any() else None


def _lost_record(row: pa.RecordBatch, segment: Segment) -> Lost:
    """Return the record in the only row of ``row`` as a Lost of 0 bytes at the record's position,
    between the offsets before and after it. The reason is its timestamp.
    """
    offset, position = (int(numbers(row, name)[0]) for name in ("offset", "position"))
    reason = f"a record that is left out: {_time_error(row, segment)}"
    return Lost(position, position, reason, offset - 1, offset + 1)


def _time_error(row: pa.RecordBatch, segment: Segment) -> ValueRefused:
    """Return the ValueRefused that says that the timestamp in the only row of ``row`` does not fit
    into microseconds, with its file and position.
    """
    time, offset, position = (
        int(numbers(row, name)[0]) for name in ("timestamp", "offset", "position")
    )
    reason = f"{time} ms of offset {offset} is more than a timestamp in microseconds can hold"
    file = os.fspath(segment.path)
    return ValueRefused(reason, Where(path=TIMESTAMP, position=position, file=file))


def _halve(rows: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    """Yield rows in order, cut in halves and these again until each batch has at most ``most``
    bytes or a single row. Yield one empty batch for no rows.
    """
    if rows.num_rows <= 1 or rows_bytes(rows) <= most:
        yield rows
        return
    half = rows.num_rows // 2
    yield from _halve(rows.slice(0, half), most)
    yield from _halve(rows.slice(half), most)


def _timestamps(values: Any, kind: Any) -> Any:
    """Return an array of millisecond timestamps, without nulls, as the type ``kind``. A timestamp
    that does not fit into 64-bit microseconds becomes null. Return the array itself if it has that
    type.
    """
    if values.type == kind:
        return values
    times = values.view(pa.int64()).to_numpy()
    fit = (times >= -MS_MAX) & (times <= MS_MAX)
    if not fit.all():
        values = pc.if_else(pa.array(fit), values, None)
    return values.cast(kind)


def _control_types(batch: pa.RecordBatch, kind: Any) -> Any:
    """Return an array with the type name of each control record, such as COMMIT, UNKNOWN for a type
    that is not known, and null for data records. A control record whose key is unreadable has null
    too.
    """
    types: list[str | None] = [None] * batch.num_rows
    keys = batch.column("key")
    for i in np.flatnonzero(numbers(batch, "is_control")).tolist():
        # Strict readers have raised what is wrong with it.
        types[i] = read_control(keys[i].as_py(), None, strict=False, file="", position=0).type
    return pa.array(types, kind)


def _headers(values: Any) -> Any:
    """Return an array of lists of record headers in Spark's type, whose nested fields are nullable.
    An empty list becomes null.
    """
    if values.offset:
        values = pa.concat_arrays([values])  # without the rows in front
    inner = values.values
    pairs = pa.StructArray.from_arrays(
        [inner.field(0), inner.field(1)], fields=list(HEADERS_TYPE.value_type)
    )
    none = pc.equal(pc.list_value_length(values), 0)
    return pa.ListArray.from_arrays(values.offsets, pairs, type=HEADERS_TYPE, mask=none)


def rows_bytes(rows: pa.RecordBatch) -> int:
    """Return the bytes of the rows, as ``rows.nbytes``, without memory of Arrow's default
    allocator. Columns are numbers, bytes, text, lists or structs, no views; without rows, each
    column of bytes, text or lists takes 4 bytes.

    ``nbytes`` itself needs memory of Arrow's default allocator, which reserves up to a gigabyte of addresses: too much in
    a process whose addresses are limited.
    """
    return sum(map(_count_bytes, rows.columns))


def _count_bytes(column: Any) -> int:
    """Return the number of bytes that the values of an Arrow array of numbers, bytes, text, lists
    or structs take, with the validity bitmap if it has one, and 4 bytes per offset, of which an
    empty array has one too. For a slice only its own values count.
    """
    kind, count = column.type, len(column)
    validity = 0 if column.buffers()[0] is None else (count + 7) // 8
    if pa.types.is_list(kind):
        start, end = _value_bounds(column)
        return validity + 4 * (count + 1) + _count_bytes(column.values.slice(start, end - start))
    if pa.types.is_struct(kind):
        return validity + sum(_count_bytes(column.field(i)) for i in range(kind.num_fields))
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        start, end = _value_bounds(column)
        return validity + 4 * (count + 1) + end - start
    bits: int = kind.bit_width
    return validity + (count * bits + 7) // 8


def _value_bounds(column: Any) -> tuple[int, int]:
    """Return the first and the end position, in the child array or data buffer, of the values of an
    array of lists, bytes or text. Return (0, 0) for an empty array.
    """
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return 0, 0
    offsets = np.frombuffer(buffer, np.int32, len(column) + 1, 4 * column.offset)
    return int(offsets[0]), int(offsets[-1])
