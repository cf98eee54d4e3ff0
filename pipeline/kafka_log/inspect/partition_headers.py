"""Stream the batch headers of a partition as Arrow record batches, skipping damage."""

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
"""Called with a line of text, with file and bytes, for each damage."""


def raise_damage(line: str) -> None:
    """Raise ParseError with ``line``: the callback for callers that do not accept damage."""
    raise ParseError(line)


class PartitionHeaders:
    """Iterable over the batch headers of a partition: pairs of a segment and a record batch. No checksum is verified.

    Bytes that are not a batch are skipped and reported to ``on_damage``, except for the incomplete tail that a live or killed broker
    leaves in its active segment. After the iteration ``end_offset`` is the offset after the last batch (None without a batch).
    ``is_cut`` is True if a file, or bytes between batches, were lost. Bytes at the very end of a partition do not count, because a
    broker truncates them.

    Args:
        partition: The partition to read.
        columns: Columns of the view ``batches``; ``next_offset`` is added.
        on_damage: Called with a line for each lost range.
        wanted: Selects batches; None selects all.
        advance: Called with the size of each segment after it is read.

    Raises:
        UnreadableError: if retention removes a segment meanwhile (see :func:`~kafka_log.logs.removed_segments.read_history`).
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
                    yield segment, _timestamps_to_integers(batch)
            end = scanner.end
            for lost in () if end is None else end.lost:
                is_tail = lost.before_offset is None and segment is self.partition.segments[-1]
                if is_tail and find_incomplete_tail(segment, lost.start) is not None:
                    continue
                self.is_cut = self.is_cut or not is_tail
                name = os.fspath(segment.path)
                what = f"bytes {lost.start} to {lost.end} were skipped: {lost.reason}"
                self.on_damage(f"{name}: {what}")
            self.advance(segment.size)


def _timestamps_to_integers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with its timestamp columns as int64 milliseconds, because some are beyond
    the range of a datetime; all other columns stay.
    """
    arrays = [
        column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
