"""Totals of splits from batch headers: number of rows, and minimum and maximum of offsets and timestamps.

A header states the record count. It states first and last offset of the rows if no offset is missing between them, and a timestamp if
the broker has set it. Checksums are verified, and nothing is decompressed. Batches whose headers do not state what is needed are read in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_codecs import Compression, TimestampType
from kafka_log.read.plan import Split
from kafka_log.segment.model import Policy
from kafka_log.segment.reader import damage
from kafka_log.segment.row_masks import numbers, numbers_of
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.times import MS_MAX
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.task_reader import OnRead, choose_engine, read_split

if TYPE_CHECKING:
    from kafka_log.segment.block_reader import BlockScanner

OFFSET, TIMESTAMP = "offset", "timestamp"
EXTREMES = (OFFSET, TIMESTAMP)
"""Columns whose minimum and maximum are computed."""


@dataclass(frozen=True, slots=True)
class Totals:
    """A number of rows, and minimum and maximum of their offsets and of their timestamps in microseconds.

    Each pair is None if there are no rows, or the column is not requested.
    """

    rows: int = 0
    offsets: tuple[int, int] | None = None
    timestamps: tuple[int, int] | None = None

    def __add__(self, other: Totals) -> Totals:
        """Return the totals of two disjoint sets of rows."""
        return Totals(
            self.rows + other.rows,
            _both(self.offsets, other.offsets),
            _both(self.timestamps, other.timestamps),
        )

    def extremes(self, column: str) -> tuple[int, int] | None:
        """Return the minimum and maximum of a column, None if unknown."""
        return self.offsets if column == OFFSET else self.timestamps


def _both(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return the minimum and maximum of two pairs. None adds nothing."""
    if a is None or b is None:
        return a or b
    return min(a[0], b[0]), max(a[1], b[1])


def can_total(scan: Scan) -> bool:
    """Return whether totals may be used in place of rows: damage must be raised, under the policy ``kafka``, and no view may be read."""
    fails = scan.on_damage == "raise" and not scan.ends_corrupt_files
    return scan.view is None and fails and scan.policy is Policy.KAFKA


def totals_of(
    parts: Iterable[Split], scan: Scan, columns: Iterable[str], on_read: OnRead | None = None
) -> dict[tuple[str, int], Totals]:
    """Return the number of rows of splits by (topic, partition), with minimum and maximum of
    ``columns``, any of offset and timestamp (in microseconds). Partitions without rows are left
    out. Read batch headers and checksums only where they suffice; rows, if aborted transactions of
    a split are unverified. Raise CodecError for damage and unreadable files; errors inside batches
    with a valid checksum are found only if the batch is read, and damage after the selected offsets
    may stay unseen. The caller checks :func:`can_total`.

    Args:
        parts: Splits to count.
        scan: How rows would be read. Its columns decide which timestamps must fit into microseconds.
        columns: Columns whose extremes are needed.
        on_read: As for :func:`~pyspark_kafka_log.task_reader.read_splits`.
    """
    parts = tuple(parts)
    wanted = frozenset(columns)
    names = tuple(dict.fromkeys((*sorted(wanted), *(n for n in scan.columns if n in EXTREMES))))
    settled = replace(scan, columns=names or (OFFSET,), engine=choose_engine(parts, scan))
    found: dict[tuple[str, int], Totals] = {}
    for part in parts:
        key = part.segment.topic, part.segment.partition
        # Unverified transactions are compared with batches where rows are read.
        aborted = part.rows.aborted
        uses_headers = settled.engine == "arrow" and (aborted.is_verified or not aborted)
        by = _by_headers if uses_headers else _by_rows
        read = by(part, settled, wanted, on_read)
        for one in read:
            found[key] = found.get(key, Totals()) + one
    return found


def _by_rows(
    part: Split, scan: Scan, wanted: frozenset[str], on_read: OnRead | None
) -> Iterator[Totals]:
    """Yield the totals of each batch of rows of a split, with extremes only of the columns in
    ``wanted``, which ``scan`` must have (timestamps in its unit, by default microseconds); nothing
    without rows. Raise CodecError for damage and an unreadable file.
    """
    for batch in read_split(part, scan, on_read=on_read):
        if batch.num_rows:
            yield Totals(
                batch.num_rows,
                _extremes(batch.column(OFFSET)) if OFFSET in wanted else None,
                _extremes(batch.column(TIMESTAMP).view(pa.int64()))
                if TIMESTAMP in wanted
                else None,
            )


def _extremes(values: Any) -> tuple[int, int] | None:
    """Return the minimum and maximum of an array without nulls, None if all are null."""
    found = pc.min_max(values).as_py()
    return None if found["min"] is None else (found["min"], found["max"])


def _by_headers(
    part: Split, scan: Scan, wanted: frozenset[str], on_read: OnRead | None
) -> Iterator[Totals]:
    """Yield totals of a split from batch headers, after a check of the checksums; read the rows of
    batches whose headers do not suffice, and all from the first block with transactions on if these
    are unverified. Stop without an error at a damaged batch after the selected offsets. Raise
    CodecError for other damage and an unreadable file.
    """
    from kafka_log.segment.block_reader import BlockScanner
    from kafka_log.segment.blocks import COUNTED, Block

    scanner = BlockScanner(
        part.segment.path,
        COUNTED,
        scan.policy,
        records=False,
        limits=scan.limits,
        engine=scan.engine,
        start=part.start,
        stop=part.stop,
        tail=part.segment.tail,
        size=part.segment.size,
    )
    end = part.start
    high = part.rows.offsets[1]
    with _report_totals(scanner, on_read), closing(scanner.items()) as items:
        for item in items:
            if isinstance(item, Block):
                transactional = item.batch_headers.column("is_transactional")
                if not part.rows.aborted.is_verified and transactional.true_count:
                    break
                yield from _of_block(item, part, scan, wanted, on_read)
                end = item.end
            else:
                first = item.base_offset
                if high is not None and first is not None and first >= high and damage(item):
                    return  # nor is what follows it read for rows
                end = item.position + item.size
                of_item = replace(part, start=item.position, stop=end)
                yield from _by_rows(of_item, scan, wanted, on_read)
    if end < (part.segment.size if part.stop is None else part.stop):
        # Whoever reads the rows says what is wrong with the rest.
        yield from _by_rows(replace(part, start=end), scan, wanted, on_read)


@contextmanager
def _report_totals(scanner: BlockScanner, on_read: OnRead | None) -> Iterator[None]:
    """Run the block, then call ``on_read`` with the bytes that the scanner has read and 0 skipped
    batches, also if the block raises. Do nothing if ``on_read`` is None.
    """
    try:
        yield
    finally:
        if on_read is not None:
            on_read(scanner.bytes_read, 0)


def _of_block(
    block: Any, part: Split, scan: Scan, wanted: frozenset[str], on_read: OnRead | None
) -> Iterator[Totals]:
    """Yield one Totals for all batches of a block whose headers suffice, if any of these has rows,
    then totals from the rows of the others. Raise CodecError for damage in these rows.
    """
    headers = block.batch_headers
    said = _has_needed_values(headers, part.rows, scan, wanted)
    counted = said & _has_rows(headers, part.rows)
    if counted.any():
        count = numbers_of(headers.column("record_count").fill_null(0))[counted]
        first = numbers_of(headers.column("base_offset").fill_null(0))[counted]
        last = numbers(headers, "last_offset")[counted]
        times = _milliseconds(headers, "max_timestamp")[counted]
        yield Totals(
            int(count.sum(dtype=np.int64)),
            (int(first.min()), int(last.max())) if OFFSET in wanted else None,
            (int(times.min()) * 1000, int(times.max()) * 1000) if TIMESTAMP in wanted else None,
        )
    starts = numbers(headers, "position")
    edges = np.append(starts, block.end)
    for low, high in _true_ranges(~said):
        stop = int(edges[high])
        of_run = replace(part, start=int(edges[low]), stop=stop)
        yield from _by_rows(of_run, scan, wanted, on_read)


def _has_needed_values(
    headers: pa.RecordBatch, rows: RowSelection, scan: Scan, wanted: frozenset[str]
) -> Any:
    """Return a NumPy mask: True for each header whose batch can be counted without its records.
    Such a batch lies wholly in the selected offsets, holds no data that may be aborted, and its
    header states the extremes of the columns in ``wanted``. False for an unknown codec, an
    impossible record count, and, if the timestamp is read, times that microseconds cannot hold.
    """
    count = numbers_of(headers.column("record_count").fill_null(-1))
    first = numbers_of(headers.column("base_offset").fill_null(-1))
    last = numbers(headers, "last_offset")
    span = last - first + 1
    said = np.isin(numbers(headers, "codec"), list(Compression))
    said &= (count >= 0) & (count <= span) & (first >= 0)
    low, high = rows.offsets
    if low is not None:
        said &= first >= low
    if high is not None:
        said &= last < high
    if rows.aborted:
        said &= ~numbers(headers, "is_transactional").astype(bool) | numbers(
            headers, "is_control"
        ).astype(bool)
    if OFFSET in wanted:
        said &= (count == span) | (count == 0)
    largest = _milliseconds(headers, "max_timestamp")
    if TIMESTAMP in scan.columns:  # where microseconds cannot hold one, that is an error
        base = _milliseconds(headers, "base_timestamp")
        for times in (base, largest):
            said &= (times >= -MS_MAX) & (times <= MS_MAX)
    if TIMESTAMP in wanted:
        said &= numbers(headers, "timestamp_type") == TimestampType.LOG_APPEND_TIME
    return said


def _has_rows(headers: pa.RecordBatch, rows: RowSelection) -> Any:
    """Return a NumPy mask: True for each batch that has records to count. False for empty batches,
    and for control batches unless control records are selected.
    """
    counted = numbers_of(headers.column("record_count").fill_null(0)) > 0
    if not rows.control_records:
        counted &= ~numbers(headers, "is_control").astype(bool)
    return counted


def _milliseconds(headers: pa.RecordBatch, name: str) -> Any:
    """Return a column of timestamps as an array of milliseconds, 0 in place of null."""
    column = headers.column(name).view(pa.int64())
    return numbers_of(column.fill_null(0) if column.null_count else column)


def _true_ranges(mask: Any) -> list[tuple[int, int]]:
    """Return start and end (excluded) of each run of True in a mask."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
