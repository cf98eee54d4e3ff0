"""Which records of a split become rows, and what becomes of damage."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from codecgen.runtime.errors import CodecError, ValueRefused, Where
from kafka_log.segment.model import Batch, End, Record, record_size
from kafka_log.segment.reader import damage
from kafka_log.tables.columns import COLUMNS, Row, to_arrow

if TYPE_CHECKING:
    from typing import Protocol

    from kafka_log.tables.splits import Scan, Split

    class Ended(Protocol):
        @property
        def end(self) -> End | None: ...


class RowFilter:
    """What a scan wants of a split. Once ``done``, nothing that follows is wanted: offsets rise in a log."""

    def __init__(self, part: Split, scan: Scan) -> None:
        self.part = part
        self.scan = scan
        self.raises = scan.on_damage == "raise"
        self.drops = scan.on_damage == "drop"
        self.explains = scan.on_damage == "keep" and "problem" in scan.columns
        self.done = False
        self.aborted: dict[int, list[tuple[int, int]]] = {}
        for producer, first, last in sorted(part.aborted):
            self.aborted.setdefault(producer, []).append((first, last))

    def rows(self, batch: Batch) -> Iterator[Row]:
        """The rows of a batch that the reference codecs read."""
        part = self.part
        wrong = damage(batch)
        if not wrong:
            if part.end_offset is not None and (batch.base_offset or 0) >= part.end_offset:
                self.done = True
                return
            if part.first_offset is not None and batch.last_offset < part.first_offset:
                return
        elif self.raises:
            raise wrong[0]
        elif self.drops:
            return
        if batch.is_control and not self.scan.control_records:
            return
        data = batch.is_transactional and not batch.is_control
        if data and self.is_aborted(batch.producer_id, batch.last_offset):
            return
        yield from self._of_batch(batch, wrong)

    def _of_batch(self, batch: Batch, wrong: list[CodecError]) -> Iterator[Row]:
        problem = "; ".join(map(str, wrong)) or None
        low, high = self.part.first_offset, self.part.end_offset
        if problem and not batch.records and "problem" in self.scan.columns:
            yield Row(batch.position, batch, problem=problem)
        for i, record in enumerate(batch.records):
            if (low is not None and record.offset < low) or (
                high is not None and record.offset >= high
            ):
                continue
            if self.scan.overflows(record.timestamp):
                if self.raises:
                    raise self._too_large(i, record, batch)
                if self.drops:
                    continue
            yield Row(batch.position, batch, record, problem)

    def _too_large(self, i: int, record: Record, batch: Batch) -> CodecError:
        reason = (
            f"the timestamp {record.timestamp} ms of offset {record.offset} is more than a timestamp"
            " in microseconds can hold"
        )
        path, file = f"records[{i}].timestamp", os.fspath(self.part.segment.path)
        return ValueRefused(reason, Where(path=path, position=batch.position, file=file))

    def is_aborted(self, producer: int, last_offset: int) -> bool:
        """Whether a batch is of an aborted transaction, by its producer and its last offset."""
        ranges = self.aborted.get(producer)
        if not ranges:
            return False
        at = bisect_right(ranges, (last_offset, 1 << 63)) - 1
        return at >= 0 and last_offset <= ranges[at][1]

    @contextmanager
    def reading(self, reader: Ended) -> Iterator[None]:
        """Around what reads the file: its error is raised only if damage is."""
        try:
            yield
        except CodecError:
            if self.raises or reader.end is None:
                raise

    def end(self, end: End | None) -> Iterator[Row]:
        """What there is to say after the last batch."""
        if end is None:
            return
        if end.error is not None and self.raises:
            raise end.error
        if self.explains:
            for lost in end.lost:
                problem = f"bytes {lost.start}..{lost.end} are lost: {lost.reason}"
                yield Row(lost.start, problem=problem)
            if end.error is not None:
                yield Row(end.iterated_bytes, problem=f"the rest is not read: {end.error}")


def in_batches(rows: Iterable[Row], part: Split, scan: Scan) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow, in batches of the size that the scan wants. An error comes after the rows before it."""
    held: list[Row] = []
    total = 0
    fixed = _fixed_bytes(part, scan)
    raised: CodecError | None = None
    try:
        for row in rows:
            size = fixed + _size(row)
            if held and (len(held) >= scan.batch_rows or total + size > scan.batch_bytes):
                yield to_arrow(held, scan.schema, part.segment)
                held, total = [], 0
            held.append(row)
            total += size
    except CodecError as error:
        raised = error
    if held:
        yield to_arrow(held, scan.schema, part.segment)
    if raised is not None:
        try:
            raise raised
        finally:
            del raised  # its traceback holds this frame


def _fixed_bytes(part: Split, scan: Scan) -> int:
    """Bytes that every row has in columns of text that are the same for the whole split."""
    named = [COLUMNS[name].once for name in ("topic", "segment") if name in scan.columns]
    return sum(len(once(part.segment).encode()) for once in named if once is not None)


def _size(row: Row) -> int:
    return len(row.problem or "") + (0 if row.record is None else record_size(row.record))
