"""Batch headers of a segment as rows, read by the compiled kernels where that is faster, one by one otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from kafka_log.logs.partitions import Segment
from kafka_log.segment.batch_headers import headers
from kafka_log.segment.kernels import KERNEL_MIN_BYTES_OF_HEADERS, use_kernels
from kafka_log.segment.model import Batch, Policy
from kafka_log.segment.offset_order import COLUMNS as COMPARED
from kafka_log.segment.reader import HeaderReader, SegmentReader

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.segment.kernels import Engine
    from kafka_log.segment.offset_order import OffsetOrder

MIN_KERNEL_BYTES = 1 << 20
"""Minimum size of segments for the kernels. They are other kernels than those of records, and have to be loaded too."""


class DamageHandling(Enum):
    """What to do with bytes that are not a batch."""

    RAISE = "raise"
    """Raise an error. No checksum is verified."""
    RESYNCHRONIZE = "resynchronize"
    """Skip to the next batch. No checksum is verified."""
    VERIFY = "verify"
    """Skip to the next batch, and skip batches with a wrong checksum. A wrong producer id would begin a transaction that never ends."""


def should_use_kernels(size: int, engine: Engine) -> bool:
    """Return whether to read the batch headers of ``size`` bytes of segments with the kernels:
    always for the engine ``arrow``, never for ``construct``; for ``auto`` from 1 MiB on if they are
    loaded, else from 64 MiB on if they are installed.
    """
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
    order: OffsetOrder | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of ``columns``, as a tuple, for each batch of a segment from byte ``start``
    (VERIFY may ignore it) on whose column ``where`` is true, in file order, read by the kernels if
    ``columnar``. Timestamps are in milliseconds. With RAISE, iterating raises CodecError at bytes
    that are no batch, except an incomplete tail of an active segment; and UnreadableError, a
    CodecError too, for an unreadable file. Otherwise such bytes are skipped, and an unreadable file
    yields nothing. Only VERIFY verifies checksums: it skips batches with a wrong one.

    Args:
        segment: The segment.
        columns: Columns of the view ``batches``.
        where: A boolean column of that view.
        damage: What to do with bytes that are not a batch.
        columnar: Whether to use the kernels.
        engine: Which kernels to use.
        start: Position of the first batch to read.
        order: All batches are added to it, also those on which ``where`` is false. ``columns`` must have those that it compares.
    """
    if columnar:
        return _read_with_kernels(segment, columns, where, damage, engine, start, order)
    if damage is DamageHandling.RAISE:
        rows = headers(segment.path, (*columns, where), segment.tail, start)
        return _filter_values(rows, columns, order)
    reads = SegmentReader if damage is DamageHandling.VERIFY else HeaderReader
    return _filter_batches(
        reads(segment.path, start=start, **_salvage_options(segment)), columns, where, order
    )


def _filter_values(
    rows: Iterator[tuple[Any, ...]], columns: Sequence[str], order: OffsetOrder | None
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of ``columns`` of each row whose last value, which follows them, is true.
    Add all batches to ``order``.
    """
    compared = [] if order is None else [columns.index(name) for name in COMPARED]
    for *values, wanted in rows:
        if order is not None:
            order.add_batch(*(values[i] for i in compared))
        if wanted:
            yield tuple(values)


def _salvage_options(segment: Segment) -> dict[str, Any]:
    """Return the options of a reader of headers that resynchronizes after damage."""
    options = {"policy": Policy.SALVAGE, "tail": segment.tail, "size": segment.size}
    return options | {"records": False, "salvage_records": False}


def _filter_batches(
    batches: SegmentReader, columns: Sequence[str], where: str, order: OffsetOrder | None
) -> Iterator[tuple[Any, ...]]:
    """Yield the attributes ``columns`` of each batch whose attribute ``where`` is true, as tuples.
    Add all batches to ``order``.
    """
    row, wanted = _row_getter(columns), attrgetter(where)
    for batch in batches:
        if order is not None:
            order.add(batch)
        if wanted(batch):
            yield row(batch)


def _row_getter(columns: Sequence[str]) -> Callable[[Batch], tuple[Any, ...]]:
    """Return a function that returns ``columns`` of a batch as a tuple."""
    values = [attrgetter(name) for name in columns]
    return lambda batch: tuple([value(batch) for value in values])


def _read_with_kernels(
    segment: Segment,
    columns: Sequence[str],
    where: str,
    damage: DamageHandling,
    engine: Engine,
    start: int,
    order: OffsetOrder | None,
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of ``columns`` of each batch whose column ``where`` is true, as
    :func:`read_header_rows`, with the kernels. Add all batches to ``order``. ``start`` is a byte; VERIFY ignores it. If
    ``damage`` is RAISE, raise CodecError at bytes that are no batch, and UnreadableError for an
    unreadable file; otherwise skip both. Only VERIFY verifies checksums, and skips batches with a
    wrong one.
    """
    if damage is not DamageHandling.VERIFY:  # VERIFY never starts in the middle of a segment
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
            if order is not None:
                order.add_headers(batch)
            yield from _filter_rows(batch, columns, where)
        return
    from kafka_log.segment.block_reader import BlockReader
    from kafka_log.segment.blocks import Block

    row = _row_getter(columns)
    for part in BlockReader(segment.path, engine=engine, **_salvage_options(segment)).items():
        if isinstance(part, Block):
            if order is not None:
                order.add_headers(part.batch_headers)
            yield from _filter_rows(part.batch_headers, columns, where)
            continue
        if order is not None:
            order.add(part)
        if getattr(part, where):
            yield row(part)


def _filter_rows(
    batch: pa.RecordBatch, columns: Sequence[str], where: str
) -> Iterator[tuple[Any, ...]]:
    """Yield ``columns`` of the rows of an Arrow batch whose column ``where`` is true."""
    return iter_row_tuples(batch.select([*columns]).filter(batch.column(where)))


def iter_row_tuples(rows: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Return an iterator over the rows of an Arrow batch as tuples of Python values. Timestamps are
    integers in the column's unit, since some exceed the range of datetime.
    """
    import pyarrow as pa

    found = []
    for column in rows.columns:
        # Some timestamps exceed the range of datetime.
        is_time = pa.types.is_timestamp(column.type)
        found.append((column.view(pa.int64()) if is_time else column).to_pylist())
    return zip(*found, strict=True)
