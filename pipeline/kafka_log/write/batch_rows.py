"""The headers of a segment's batches whose checksums are right, as rows, and what else the segment holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kafka_log.logs.header_rows import iter_row_tuples
from kafka_log.logs.incomplete_tails import separate_incomplete_tail
from kafka_log.logs.partitions import Segment
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.blocks import Block
from kafka_log.segment.model import Lost, Policy
from kafka_log.segment.row_values import OF_BATCHES


class BatchRows:
    """Iterate for ``columns`` of the view batches, a tuple for each batch; timestamps are in milliseconds, -1 for none. What lies
    between them is passed over; then ``lost`` says what it was, and ``unfinished`` what its broker has not written to its end."""

    def __init__(self, segment: Segment, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.lost: tuple[Lost, ...] = ()
        self.unfinished: Lost | None = None
        self._segment = segment
        self._reader = BlockReader(
            segment.path,
            policy=Policy.SALVAGE,
            records=False,
            rescue=False,
            tail=segment.tail,
            size=segment.size,
        )

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        values = [OF_BATCHES[name] for name in self.columns]
        for part in self._reader.parts():
            if isinstance(part, Block):
                yield from iter_row_tuples(part.batch_headers.select(self.columns))
            else:
                yield tuple([value(part, None) for value in values])
        self.lost, self.unfinished = separate_incomplete_tail(self._segment, self._reader.end)
