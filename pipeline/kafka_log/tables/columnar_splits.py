"""Splits of segments by the Arrow kernels, in the columns of :mod:`kafka_log.tables.columns`.

Of what the kernels read, whole batches are chosen by their headers, rows by their offsets and timestamps; the rest is what
:mod:`kafka_log.tables.row_filter` makes of the batches that the reference codecs read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_codecs import Compression
from kafka_log.segment.block_reader import BlockScanner
from kafka_log.segment.blocks import Block
from kafka_log.segment.control import read_control
from kafka_log.segment.model import codec_label
from kafka_log.segment.row_masks import numbers
from kafka_log.tables.columns import COLUMNS, HEADERS_TYPE, MS_MAX, TIMESTAMP
from kafka_log.tables.row_filter import RowFilter, in_batches

if TYPE_CHECKING:
    from kafka_log.tables.splits import Scan, Split

NAMES: Mapping[str, str] = {
    name: column.source for name, column in COLUMNS.items() if column.source is not None
}
"""The columns that come from the view ``records``, by what they are called there."""

_CODECS = [codec_label(number) for number in range(max(Compression) + 1)]


def read(
    part: Split, scan: Scan, slow: Callable[[Split, Scan], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The rows of a split. ``slow`` reads from the first batch on whose timestamps are an error."""
    scanner = BlockScanner(
        part.segment.path,
        _needed(part, scan),
        scan.policy,
        limits=scan.limits,
        engine=scan.engine,
        start=part.start,
        stop=part.stop,
        tail=part.segment.tail,
        size=part.segment.size,
    )
    row_filter = RowFilter(part, scan)
    checked = TIMESTAMP in scan.columns and scan.timestamp_unit == "us"
    with row_filter.reading(scanner.reader):
        for item in scanner.items():
            if not isinstance(item, Block):
                yield from in_batches(row_filter.rows(item), part, scan)
            else:
                mask = _chosen(item, row_filter)
                beyond = _settle_timestamps(item, row_filter, mask) if checked else None
                if mask.any():
                    yield from _pieces(item, mask, row_filter)
                if beyond is not None:
                    yield from slow(replace(part, start=beyond), scan)
                    return
            if row_filter.done:
                return
    yield from in_batches(row_filter.end(scanner.end), part, scan)


def _needed(part: Split, scan: Scan) -> tuple[str, ...]:
    """The columns of the view that this takes."""
    wanted = {NAMES[name] for name in scan.columns if name in NAMES} | {"position"}
    if part.end_offset is not None:
        wanted |= {"base_offset"}
    if part.first_offset is not None or part.end_offset is not None:
        wanted |= {"offset"}
    if "controlType" in scan.columns and scan.control_records:
        wanted |= {"key", "is_control"}
    return tuple(wanted)


# ---------------------------------------------------------------- rows


def _chosen(block: Block, row_filter: RowFilter) -> Any:
    """Which rows of a block are wanted, as a mask, whatever their timestamps."""
    part = row_filter.part
    mask = np.repeat(_entries(block, row_filter), np.diff(block.starts()))
    if part.first_offset is not None:
        mask &= numbers(block.batch, "offset") >= part.first_offset
    if part.end_offset is not None:
        mask &= numbers(block.batch, "offset") < part.end_offset
    return mask


def _entries(block: Block, row_filter: RowFilter) -> Any:
    """Which entries of a block have rows that are wanted."""
    part, batch_headers = row_filter.part, block.batch_headers
    keep = np.ones(batch_headers.num_rows, bool)
    control = numbers(batch_headers, "is_control")
    if part.end_offset is not None:
        after = np.flatnonzero(block.base_offsets() >= part.end_offset)
        if len(after):
            keep[after[0] :] = False
            row_filter.done = True
    if part.first_offset is not None:
        keep &= numbers(batch_headers, "last_offset") >= part.first_offset
    if not row_filter.scan.control_records:
        keep &= ~control
    if row_filter.aborted:
        producers, lasts = (numbers(batch_headers, name) for name in ("producer_id", "last_offset"))
        candidates = keep & numbers(batch_headers, "is_transactional") & ~control
        for i in np.flatnonzero(candidates & np.isin(producers, list(row_filter.aborted))).tolist():
            keep[i] = not row_filter.is_aborted(int(producers[i]), int(lasts[i]))
    return keep


def _settle_timestamps(block: Block, row_filter: RowFilter, mask: Any) -> int | None:
    """See to timestamps that microseconds cannot hold. Where they are an error, the position of the first batch that
    has one; no row from it on is left in the mask."""
    times = numbers(block.batch, "timestamp")
    beyond = mask & ((times < -MS_MAX) | (times > MS_MAX))
    if not beyond.any():
        return None
    if row_filter.raises:
        positions = numbers(block.batch, "position")
        position = int(positions[beyond.argmax()])
        mask &= positions < position
        return position
    if row_filter.drops:
        mask &= ~beyond
    return None


# ---------------------------------------------------------------- columns


def _pieces(block: Block, mask: Any, row_filter: RowFilter) -> Iterator[pa.RecordBatch]:
    """The rows of the mask in the columns of the scan, in batches that are not too large."""
    scan = row_filter.scan
    batch = block.batch if mask.all() else block.batch.filter(pa.array(mask))
    arrays = [_array(field, batch, row_filter) for field in scan.schema]
    rows = pa.RecordBatch.from_arrays(arrays, schema=scan.schema)
    for start in range(0, rows.num_rows, scan.batch_rows):
        yield from _cut(rows.slice(start, scan.batch_rows), scan.batch_bytes)


def _cut(rows: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    if rows.num_rows <= 1 or rows.nbytes <= most:
        yield rows
        return
    half = rows.num_rows // 2
    yield from _cut(rows.slice(0, half), most)
    yield from _cut(rows.slice(half), most)


def _array(field: pa.Field, batch: pa.RecordBatch, row_filter: RowFilter) -> Any:
    once = COLUMNS[field.name].once
    if once is not None:
        return pa.repeat(pa.scalar(once(row_filter.part.segment), field.type), batch.num_rows)
    if field.name == "problem":
        return pa.nulls(batch.num_rows, field.type)
    if field.name == "controlType":
        return _control_types(batch, field.type, row_filter)
    values = batch.column(NAMES[field.name])
    if pa.types.is_timestamp(field.type):
        return _timestamps(values, field.type)
    if NAMES[field.name] == "codec":
        return pa.array(_CODECS, field.type).take(values)
    if field.name == "headers":
        return _headers(values)
    return values if values.type == field.type else values.cast(field.type)


def _timestamps(values: Any, kind: Any) -> Any:
    """Timestamps in the unit of the column, null where that cannot hold them."""
    if values.type == kind:
        return values
    times = values.view(pa.int64()).to_numpy()
    fit = (times >= -MS_MAX) & (times <= MS_MAX)
    if not fit.all():
        values = pc.if_else(pa.array(fit), values, None)
    return values.cast(kind)


def _control_types(batch: pa.RecordBatch, kind: Any, row_filter: RowFilter) -> Any:
    """The types of control records, of which there are few."""
    types: list[str | None] = [None] * batch.num_rows
    if row_filter.scan.control_records:
        keys = batch.column("key")
        for i in np.flatnonzero(numbers(batch, "is_control")).tolist():
            # Strict readers have their control records from the reference codecs.
            control = read_control(keys[i].as_py(), None, strict=False, file="", position=0)
            types[i] = control.type
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
