"""Where a log ends, beside what was written down of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from kafka_log.inspect.check.base import Check, Context
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.segment_scan import Walked
from kafka_log.inspect.check.tails import tail_kind
from kafka_log.logs.listing import list_base_offsets
from kafka_log.logs.names import HIGH_WATERMARK, RECOVERY_POINT
from kafka_log.logs.partitions import Segment

REACHED = (RECOVERY_POINT, HIGH_WATERMARK)
"""Checkpoints of offsets that the log has reached."""

KILLED = "Nothing if the broker was killed right after it truncated the log for a new leader: it writes high watermarks every five seconds. Else copy the partition from another replica before this broker becomes its leader."
TAKE_ANOTHER = "Copy the partition from another replica before this broker becomes its leader."


class EndCheck(Check):
    """A check that knows where the log ends, by its batches and the names of its segments."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.log_end = 0
        self.is_known = context.is_whole
        self.is_told = False  # that there is damage at the end, which hides what was there
        self.read: tuple[Path, int] | None = None
        """The last segment, and how many bytes it had."""

    def segment(self, walked: Walked) -> Iterable[Finding]:
        headers = walked.headers
        self.read = walked.segment.path, walked.size
        placed = headers.last[walked.placed]  # no checksum covers offsets
        last = int(placed.max()) + 1 if len(placed) else 0
        self.log_end = max(self.log_end, walked.segment.base_offset, last)
        first, last_of = headers.first[~walked.placed], headers.last[~walked.placed]
        for i in np.argsort(first).tolist():
            if first[i] == self.log_end:  # it only lies elsewhere
                self.log_end = max(self.log_end, int(last_of[i]) + 1)
        ends = [run for run in walked.lost if run.end == walked.size]
        is_torn = self.context.broker.was_clean_shutdown or not walked.is_active
        self.is_told = any(is_torn or tail_kind(walked, run) is None for run in ends)
        self.is_told |= len(headers) > 0 and not walked.placed[-1]
        return ()

    def unread(self, segment: Segment) -> None:
        self.is_known = False

    def is_settled(self) -> bool:
        """Return whether the log ends where it was read to: False if segments were not read, or a broker has gone on writing."""
        if not self.is_known or self.read is None:
            return self.is_known
        path, size = self.read
        try:
            return path.stat().st_size == size
        except OSError:
            return False

    def beyond_end(self, code: str, path: Path, what: str, offset: int) -> Iterable[Finding]:
        """A file that was written when the log had reached an offset, where the log ends before that. Nothing where that is told
        already: where damage is at the end, and where a checkpoint of the broker says as much."""
        context = self.context
        ends = (context.broker.offset(name, context.key) or 0 for name in REACHED)
        if self.is_told or offset <= max(self.log_end, *ends) or not self.is_settled():
            return
        if offset <= max(list_base_offsets(context.partition.directory), default=0):
            return  # a broker goes on writing
        yield context.finding(
            "warning",
            code,
            path,
            f"{what} {offset}, but the log ends before offset {self.log_end}.",
            TAKE_ANOTHER,
            first_offset=self.log_end,
            last_offset=offset - 1,
            records=offset - self.log_end,
        )
