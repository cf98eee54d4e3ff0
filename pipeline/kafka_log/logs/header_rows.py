"""Some batch headers of a segment as rows: by the kernels where that is faster, one by one where these are not installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from kafka_log.logs.partitions import Segment
from kafka_log.segment.batch_headers import headers
from kafka_log.segment.kernels import KERNEL_MIN_BYTES_OF_HEADERS, use_kernels
from kafka_log.segment.model import Batch, Policy
from kafka_log.segment.reader import HeaderReader, SegmentReader

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.segment.kernels import Engine

MIN_KERNEL_BYTES = 1 << 20
"""Bytes of segments up to which the kernels do not pay, even where those of records are loaded: these are others."""


class DamageHandling(Enum):
    """What becomes of bytes that are no batch. They are searched for the next one where that is not an error."""

    RAISE = "raise"
    """They are an error. No checksum is verified."""
    RESYNCHRONIZE = "resynchronize"
    """They are passed over. No checksum is verified."""
    VERIFY = "verify"
    """They are passed over, and so are batches with a wrong checksum: any byte of them may be wrong, and one of a producer's id would
    make a transaction that hides the log."""


def should_use_kernels(size: int, engine: Engine) -> bool:
    """Whether the kernels are to read the headers of so many bytes of segments."""
    if engine == "auto" and size < MIN_KERNEL_BYTES:
        return False
    return use_kernels(size, engine, KERNEL_MIN_BYTES_OF_HEADERS)


def read_header_rows(
    segment: Segment,
    columns: Sequence[str],
    where: str,
    damage: DamageHandling,
    *,
    columnar: bool,
    engine: Engine = "auto",
    start: int = 0,
) -> Iterator[tuple[Any, ...]]:
    """``columns`` of the view batches of each batch whose column ``where`` is true. Timestamps are in milliseconds.

    Raises CodecError for damage, if that is asked for, with file and byte. ``engine`` says which kernels, if ``columnar``. ``start`` is
    where a batch begins, the first one that is looked at.
    """
    if columnar:
        return _by_kernels(segment, columns, where, damage, engine, start)
    if damage is DamageHandling.RAISE:
        rows = headers(segment.path, (*columns, where), segment.tail, start)
        return (tuple(values) for *values, wanted in rows if wanted)
    reads = SegmentReader if damage is DamageHandling.VERIFY else HeaderReader
    return _of_batches(reads(segment.path, start=start, **_salvage(segment)), columns, where)


def _salvage(segment: Segment) -> dict[str, Any]:
    options = {"policy": Policy.SALVAGE, "tail": segment.tail, "size": segment.size}
    return options | {"records": False, "rescue": False}


def _of_batches(
    batches: SegmentReader, columns: Sequence[str], where: str
) -> Iterator[tuple[Any, ...]]:
    row, wanted = _row(columns), attrgetter(where)
    return (row(batch) for batch in batches if wanted(batch))


def _row(columns: Sequence[str]) -> Callable[[Batch], tuple[Any, ...]]:
    values = [attrgetter(name) for name in columns]
    return lambda batch: tuple([value(batch) for value in values])


def _by_kernels(
    segment: Segment,
    columns: Sequence[str],
    where: str,
    damage: DamageHandling,
    engine: Engine,
    start: int,
) -> Iterator[tuple[Any, ...]]:
    if damage is not DamageHandling.VERIFY:  # no other damage is walked from the middle
        from kafka_log.segment.scanner import header_scanner

        scanner = header_scanner(
            segment.path,
            (*columns, where),
            Policy.KAFKA if damage is DamageHandling.RAISE else Policy.SALVAGE,
            engine=engine,
            start=start,
            tail=segment.tail,
            size=segment.size,
        )
        for batch in scanner:
            yield from _tuples(batch, columns, where)
        return
    from kafka_log.segment.block_reader import BlockReader
    from kafka_log.segment.blocks import Block

    row = _row(columns)
    for part in BlockReader(segment.path, engine=engine, **_salvage(segment)).parts():
        if isinstance(part, Block):
            yield from _tuples(part.batch_headers, columns, where)
        elif getattr(part, where):
            yield row(part)


def _tuples(batch: pa.RecordBatch, columns: Sequence[str], where: str) -> Iterator[tuple[Any, ...]]:
    return iter_row_tuples(batch.select([*columns]).filter(batch.column(where)))


def iter_row_tuples(rows: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Rows of Arrow as tuples of plain values."""
    import pyarrow as pa

    found = []
    for column in rows.columns:
        # Timestamps as numbers: some are more than a datetime can hold.
        is_time = pa.types.is_timestamp(column.type)
        found.append((column.view(pa.int64()) if is_time else column).to_pylist())
    return zip(*found, strict=True)
