"""The batch headers of a partition as a stream of Arrow record batches, also past damage."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from codecgen.runtime.errors import ParseError
from kafka_log.logs.incomplete_tails import find_incomplete_tail
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.logs.removed_segments import history_options
from kafka_log.read.selection import Selection, limit_to_segment
from kafka_log.segment.model import Policy
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.scanner import header_scanner

OnDamage = Callable[[str], None]
"""What is told of damage: a line with file and bytes."""


def raise_damage(line: str) -> None:
    """Damage that nobody wants to be told of is an error."""
    raise ParseError(line)


class PartitionHeaders:
    """One pass over the batch headers of a partition, segment by segment, in columns of the view batches: all, or those that are
    ``wanted``. No checksum is verified.

    Bytes that are no batch are passed over, and ``on_damage`` is told, but for what a live or killed broker leaves at the end of the
    segment that it writes to. After the pass ``end_offset`` is the offset that follows the
    last batch that came (None: there is none), and ``is_cut`` says whether bytes between batches were lost, or a file
    of the partition; at the very end of a partition bytes are not counted: a broker cuts them off.

    Raises UnreadableError for a segment that retention removes meanwhile (see :func:`~kafka_log.logs.removed_segments.read_history`).
    """

    def __init__(
        self,
        partition: Partition,
        columns: Sequence[str],
        on_damage: OnDamage,
        wanted: RowSelection | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.advance = advance
        self.wanted = Selection().batches() if wanted is None else wanted
        self.partition = partition
        self.columns = tuple(dict.fromkeys((*columns, "next_offset")))
        self.on_damage = on_damage
        self.end_offset: int | None = None
        self.is_cut = partition.error is not None

    def __iter__(self) -> Iterator[tuple[Segment, pa.RecordBatch]]:
        for segment in self.partition.segments:
            scanner = header_scanner(
                segment.path,
                self.columns,
                Policy.SALVAGE,
                selection=limit_to_segment(self.wanted, segment),
                **history_options(segment),
            )
            for batch in scanner:
                if batch.num_rows:
                    last = batch.column("next_offset")[batch.num_rows - 1].as_py()
                    self.end_offset = max(last, self.end_offset or 0)
                    yield segment, _with_numbers(batch)
            end = scanner.end
            for lost in () if end is None else end.lost:
                is_tail = lost.before_offset is None and segment is self.partition.segments[-1]
                if is_tail and find_incomplete_tail(segment, lost.start) is not None:
                    continue
                self.is_cut = self.is_cut or not is_tail
                name = os.fspath(segment.path)
                what = f"bytes {lost.start} to {lost.end} are passed over: {lost.reason}"
                self.on_damage(f"{name}: {what}")
            self.advance(segment.size)


def _with_numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Timestamps as milliseconds: some are more than a datetime can hold."""
    arrays = [
        column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
