"""Slices of segments by the Arrow kernels, in the columns of :mod:`kafka_log.columns`.

Only what is asked for as Spark's own Kafka source would give it comes this way: damage is raised, and no column needs what
the kernels do not have. The reference codecs take the rest, and small slices, for which loading the kernels does not pay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_codecs import Compression
from kafka_log.columns import COLUMNS, HEADERS_TYPE, TIMESTAMP, fits

if TYPE_CHECKING:
    from kafka_log.arrow import Scan, Slice

PAYS_FROM = 4 << 20
"""Bytes of a slice from which on the kernels are worth loading."""

NAMES: Mapping[str, str] = {
    "key": "key",
    "value": "value",
    "offset": "offset",
    TIMESTAMP: "timestamp",
    "timestampType": "timestamp_type",
    "headers": "headers",
    "baseOffset": "base_offset",
    "position": "position",
    "magic": "magic",
    "compression": "codec",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "sequence": "sequence",
    "partitionLeaderEpoch": "leader_epoch",
    "isTransactional": "is_transactional",
    "isControl": "is_control",
}
"""The columns that come from the view ``records``, by what they are called there."""

_CODECS = [codec.label for codec in Compression]


def takes(part: Slice, scan: Scan) -> bool:
    """Whether a slice can, and should, be read by the kernels."""
    known = all(name in NAMES or COLUMNS[name].once is not None for name in scan.columns)
    plain = scan.on_damage == "raise" and not part.aborted and part.end_offset is None
    if not known or not plain or scan.engine == "construct":
        return False
    if scan.engine == "arrow":
        return True
    size = (part.segment.size if part.stop is None else part.stop) - part.start
    return size >= PAYS_FROM and find_spec("numpy") is not None


def read(
    part: Slice, scan: Scan, slow: Callable[[Slice, Scan], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice. ``slow`` reads from the first batch on whose timestamps have no place in the column."""
    from kafka_log.scan import Scanner  # numpy is needed from here on

    checked = TIMESTAMP in scan.columns and scan.timestamp_unit == "us"
    wanted = {NAMES[name] for name in scan.columns if name in NAMES}
    wanted |= {"position"} if checked else set()
    wanted |= set() if scan.control_records else {"is_control"}
    scanner = Scanner(
        part.segment.path,
        tuple(wanted) or ("offset",),
        scan.policy,
        offsets=None if part.first_offset is None else (part.first_offset, None),
        limits=scan.limits,
        start=part.start,
        stop=part.stop,
    )
    for batch in scanner:
        beyond = _beyond(batch) if checked else None
        if beyond is not None:
            position = batch.column("position")[beyond].as_py()
            same = pc.equal(batch.column("position"), position)
            yield from _pieces(batch.slice(0, same.index(True).as_py()), part, scan)
            yield from slow(replace(part, start=position), scan)
            return
        yield from _pieces(batch, part, scan)


def _beyond(batch: pa.RecordBatch) -> int | None:
    """The first row whose timestamp does not fit microseconds."""
    milliseconds = batch.column("timestamp").cast(pa.int64())
    ends = pc.min_max(milliseconds)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is None or (fits(low, "us") and fits(high, "us")):
        return None
    return next(i for i, v in enumerate(milliseconds.to_pylist()) if not fits(v, "us"))


def _pieces(batch: pa.RecordBatch, part: Slice, scan: Scan) -> Iterator[pa.RecordBatch]:
    """The rows in the columns of the scan, in batches that are not too large."""
    if not scan.control_records:
        control = batch.column("is_control")
        if pc.any(control).as_py():
            batch = batch.filter(pc.invert(control))
    rows = pa.RecordBatch.from_arrays(
        [_array(field, batch, part) for field in scan.schema], schema=scan.schema
    )
    for start in range(0, rows.num_rows, scan.batch_rows):
        yield from _cut(rows.slice(start, scan.batch_rows), scan.batch_bytes)


def _cut(rows: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    if rows.num_rows <= 1 or rows.nbytes <= most:
        yield rows
        return
    half = rows.num_rows // 2
    yield from _cut(rows.slice(0, half), most)
    yield from _cut(rows.slice(half), most)


def _array(field: pa.Field, batch: pa.RecordBatch, part: Slice) -> Any:
    once = COLUMNS[field.name].once
    if once is not None:
        return pa.repeat(pa.scalar(once(part.segment), field.type), batch.num_rows)
    values = batch.column(NAMES[field.name])
    if field.name == "compression":
        return pa.array(_CODECS, field.type).take(values)
    if field.name == "headers":
        return _headers(values)
    return values if values.type == field.type else values.cast(field.type)


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
