"""Check of the base offset of the last batch, which no later batch contradicts, by checkpoints of the broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kafka_log.inspect.check.base import Check, Context
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.segment_scan import ScannedSegment
from kafka_log.logs.broker_files import REACHED
from kafka_log.logs.partitions import Segment


class _LastBatch(NamedTuple):
    """Last batch of the log: its place and offsets, and the offset after the batch before it."""

    path: Path
    position: int
    first: int
    last: int
    end_before: int


class LastBatchCheck(Check):
    """Finds a last batch whose base offset has a flipped bit, by a checkpoint that has the end of the
    log as it would be without the flip. A gap before the last batch alone proves nothing.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.last: _LastBatch | None = None

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        headers, segment = scanned.headers, scanned.segment
        self.last = None  # the name of a later segment, if it is empty, confirms the offset
        if len(headers):
            end = segment.base_offset if len(headers) == 1 else int(headers.last[-2]) + 1
            place = segment.path, int(headers.position[-1])
            self.last = _LastBatch(*place, int(headers.first[-1]), int(headers.last[-1]), end)
        return ()

    def skip_segment(self, segment: Segment) -> None:
        self.last = None

    def check_end(self) -> Iterable[Finding]:
        for name in REACHED:
            end = self.context.broker.offset(name, self.context.key)
            if self.last is not None and end is not None:
                found = list(self._compare(self.last, name, end))
                if found:
                    return found
        return ()

    def _compare(self, batch: _LastBatch, name: str, end: int) -> Iterator[Finding]:
        """Yield ``base_offset_implausible`` if a lower base offset that differs in one bit lets the
        log end at ``end``, the offset in the checkpoint ``name``, and the batch follow the one
        before it.
        """
        shift = batch.last + 1 - end
        first, last = batch.first - shift, batch.last - shift
        is_one_bit = 1 in ((batch.first ^ first).bit_count(), (batch.last ^ last).bit_count())
        if shift > 0 and is_one_bit and first >= batch.end_before:
            yield self.context.finding(
                "base_offset_implausible",
                batch.path,
                f"The last batch has the base offset {batch.first}. With {first}, which differs in one bit, the log would end at offset {end}, as {name} says.",
                byte=batch.position,
                first_offset=batch.first,
                last_offset=batch.last,
            )
