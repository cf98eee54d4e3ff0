"""The rows of a scanner in the columns and types of :mod:`kafka_log.read.columns`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import ValueRefused, Where
from kafka_log.logs.partitions import Segment
from kafka_log.read.batch_sizes import held_bytes
from kafka_log.read.columns import COLUMNS, HEADERS_TYPE, MS_MAX, TIMESTAMP, unread_row
from kafka_log.read.losses import OnLost
from kafka_log.segment.columnar import Scanner, Unread
from kafka_log.segment.control import read_control
from kafka_log.segment.model import Lost, codec_label
from kafka_log.segment.row_masks import numbers

if TYPE_CHECKING:
    from kafka_log.read.splits import Scan

_CODECS = [codec_label(number) for number in range(8)]
_CONTROL_TYPE = "controlType"
_PROBLEM = "problem"


class SparkRows:
    """What a scan wants of the rows of a segment."""

    def __init__(self, segment: Segment, scan: Scan) -> None:
        self.segment = segment
        self.scan = scan
        self.checked = TIMESTAMP in scan.columns and scan.timestamp_unit == "us"
        self.explains = scan.on_damage == "keep" and _PROBLEM in scan.columns
        needed = {source for name in scan.columns if (source := COLUMNS[name].source) is not None}
        needed |= {"offset", "position"} if self.checked else set()
        needed |= {"damage"} if _PROBLEM in scan.columns else set()
        needed |= {"key", "is_control"} if _CONTROL_TYPE in scan.columns else set()
        self.needed = tuple(sorted(needed or {"position"}))
        self._constant: dict[str, Any] = {}

    def of(self, scanner: Scanner, on_lost: OnLost) -> Iterator[pa.RecordBatch]:
        """The rows, in batches that are not too large. Raises ValueRefused for a timestamp that has no place in its column, if damage is
        an error, after the rows before it; else it is null, or its record is left out, which ``on_lost`` is told."""
        for part in scanner.parts():
            if isinstance(part, Unread):
                if self.explains:
                    yield unread_row(part, self.scan.schema, self.segment)
                continue
            beyond = _beyond(part) if self.checked else None
            if beyond is None:
                yield from self._pieces(part)
            elif self.scan.on_damage == "keep":
                yield from self._pieces(part)  # null
            elif self.scan.on_damage == "drop":
                for row in beyond.nonzero()[0].tolist():
                    self._lose(part.slice(row, 1), on_lost)
                yield from self._pieces(part.filter(pa.array(~beyond)))
            else:
                first = int(beyond.argmax())
                yield from self._pieces(part.slice(0, first))
                raise self._too_large(part.slice(first, 1))

    def _lose(self, row: pa.RecordBatch, on_lost: OnLost) -> None:
        error = self._too_large(row)
        offset, position = (int(numbers(row, name)[0]) for name in ("offset", "position"))
        reason = f"a record that is left out: {error}"
        on_lost(self.segment.path, Lost(position, position, reason, offset - 1, offset + 1))

    def _too_large(self, row: pa.RecordBatch) -> ValueRefused:
        time, offset, position = (
            int(numbers(row, name)[0]) for name in ("timestamp", "offset", "position")
        )
        reason = f"{time} ms of offset {offset} is more than a timestamp in microseconds can hold"
        file = os.fspath(self.segment.path)
        return ValueRefused(reason, Where(path=TIMESTAMP, position=position, file=file))

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        scan = self.scan
        arrays = [self._array(field, batch) for field in scan.schema]
        rows = pa.RecordBatch.from_arrays(arrays, schema=scan.schema)
        for start in range(0, rows.num_rows, scan.batch_rows):
            yield from _cut(rows.slice(start, scan.batch_rows), scan.batch_bytes)

    def _array(self, field: pa.Field, batch: pa.RecordBatch) -> Any:
        column = COLUMNS[field.name]
        if column.once is not None:
            return self._repeated(field, batch.num_rows)
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

    def _repeated(self, field: pa.Field, rows: int) -> Any:
        """The value that all rows of a segment have, made once for as many as there were at most."""
        held = self._constant.get(field.name)
        if held is None or len(held) < rows:
            once = COLUMNS[field.name].once
            assert once is not None
            held = pa.repeat(pa.scalar(once(self.segment), field.type), rows)
            self._constant[field.name] = held
        return held.slice(0, rows)


def _beyond(batch: pa.RecordBatch) -> Any:
    """Which timestamps microseconds cannot hold, None when all fit."""
    times = numbers(batch, "timestamp")
    beyond = (times < -MS_MAX) | (times > MS_MAX)
    return beyond if beyond.any() else None


def _cut(rows: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    if rows.num_rows <= 1 or held_bytes(rows) <= most:
        yield rows
        return
    half = rows.num_rows // 2
    yield from _cut(rows.slice(0, half), most)
    yield from _cut(rows.slice(half), most)


def _timestamps(values: Any, kind: Any) -> Any:
    """Timestamps in the unit of the column, null where that cannot hold them."""
    if values.type == kind:
        return values
    times = values.view(pa.int64()).to_numpy()
    fit = (times >= -MS_MAX) & (times <= MS_MAX)
    if not fit.all():
        values = pc.if_else(pa.array(fit), values, None)
    return values.cast(kind)


def _control_types(batch: pa.RecordBatch, kind: Any) -> Any:
    """The types of control records, of which there are few."""
    types: list[str | None] = [None] * batch.num_rows
    keys = batch.column("key")
    for i in np.flatnonzero(numbers(batch, "is_control")).tolist():
        # Strict readers have raised what is wrong with it.
        types[i] = read_control(keys[i].as_py(), None, strict=False, file="", position=0).type
    return pa.array(types, kind)


def _headers(values: Any) -> Any:
    """The lists with null in the place of empty ones, and every part of them nullable."""
    if values.offset:
        values = pa.concat_arrays([values])  # without the rows in front
    inner = values.values
    pairs = pa.StructArray.from_arrays(
        [inner.field(0), inner.field(1)], fields=list(HEADERS_TYPE.value_type)
    )
    none = pc.equal(pc.list_value_length(values), 0)
    return pa.ListArray.from_arrays(values.offsets, pairs, type=HEADERS_TYPE, mask=none)
