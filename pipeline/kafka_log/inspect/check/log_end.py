"""Base class of checks that compare the end of a log with what other files say about it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kafka_log.inspect.check.base import Check, Context
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.segment_scan import ScannedSegment, find_tail_kind
from kafka_log.logs.listing import list_base_offsets
from kafka_log.logs.partitions import Segment
from kafka_log.segment.model import Lost

KILLED = "Nothing to do if the broker was killed right after it truncated the log for a new leader: it writes high watermarks every five seconds. Otherwise start it only while another replica leads the partition: if this broker leads first, the other replicas truncate theirs. If the partition has other errors or warnings, follow these first. Without another replica, the broker starts without these records."


class _ReadEnd(NamedTuple):
    """End of a segment when it was read: its size, the lost ranges there, and the kind of tail that they are."""

    segment: Segment
    size: int
    lost: tuple[Lost, ...]
    tail_kind: str | None
    is_active: bool


class EndCheck(Check):
    """Check that knows the end offset of the log, by its batches and the names of its segments."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.log_end = 0
        self.is_known = context.is_whole
        self.is_reported = (
            False  # a finding about damage at the end explains why the log ends too early
        )
        self.read: _ReadEnd | None = None
        """The end of the last segment when it was read."""

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        headers = scanned.headers
        ends = tuple(run for run in scanned.lost if run.end == scanned.size)
        self.read = _ReadEnd(
            scanned.segment, scanned.size, ends, scanned.tail_kind, scanned.is_active
        )
        placed = headers.last[scanned.placed]  # no checksum covers offsets
        last = int(placed.max()) + 1 if len(placed) else 0
        self.log_end = max(self.log_end, scanned.segment.base_offset, last)
        first, last_of = headers.first[~scanned.placed], headers.last[~scanned.placed]
        for i in np.argsort(first).tolist():
            if first[i] == self.log_end:  # it only lies elsewhere
                self.log_end = max(self.log_end, int(last_of[i]) + 1)
        is_torn = self.context.broker.was_clean_shutdown or not scanned.is_active
        self.is_reported = any(is_torn or scanned.tail_kind_of(run) is None for run in ends)
        self.is_reported |= len(headers) > 0 and not scanned.placed[-1]
        return ()

    def skip_segment(self, segment: Segment) -> None:
        self.is_known = False

    def is_resolved(self) -> bool:
        """Return whether the end of the log is certain. All segments must have been read, and the
        last one, if there is one, must still have the same size and the same kind of incomplete
        tail. Return False if it can no longer be opened.
        """
        if not self.is_known or self.read is None:
            return self.is_known
        read = self.read
        try:
            if read.segment.path.stat().st_size != read.size:
                return False
            # A file that was made longer in advance keeps its size when a batch is written over its zeros.
            kinds = [find_tail_kind(read.segment, run, read.is_active) for run in read.lost]
        except OSError:
            return False
        return all(kind == read.tail_kind for kind in kinds)

    def describe_end(self) -> str:
        """Return ``the last offset of the log is N``, or ``the log is empty`` if it has no segment
        or ends where its first segment begins.
        """
        bases = self.context.bases
        if not bases or self.log_end <= bases[0]:
            return "the log is empty"
        return f"the last offset of the log is {self.log_end - 1}"

    def report_beyond_end(self, code: str, path: Path, what: str, offset: int) -> Iterable[Finding]:
        """Yield the finding ``code`` about ``path`` if ``offset`` is above the end of the log, its
        recovery point and its high watermark. ``what`` begins its sentence. Yield nothing if damage
        at the end is reported, the end is uncertain (:meth:`is_resolved`), or a segment with that
        base offset or a higher one has appeared. Raise OSError if the partition directory cannot be
        listed.

        Args:
            code: Id of the finding.
            path: File that names the offset.
            what: Start of a sentence that the offset completes.
            offset: End offset of the log when the file was written.
        """
        context = self.context
        reached = max(self.log_end, context.broker.reached_offset(context.key))
        if self.is_reported or offset <= reached or not self.is_resolved():
            return
        if offset <= max(list_base_offsets(context.partition.directory), default=0):
            return  # a broker goes on writing
        yield context.finding(
            code,
            path,
            f"{what} {offset}, but {self.describe_end()}.",
            first_offset=self.log_end,
            last_offset=offset - 1,
            records=offset - self.log_end,
        )
