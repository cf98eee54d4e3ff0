"""Segments that lost bytes after their directory was listed."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.names import CLEANER
from kafka_log.report.check.base import Check
from kafka_log.report.check.finding import Finding
from kafka_log.report.check.walk import Walked
from kafka_log.segment.positioned_reads import DELETED


class ShrunkCheck(Check):
    """A rolled segment that is shorter than it was, and ends before the next one begins. A cleaner puts shorter files in the place of others; it
    renames these, and notes how far it came."""

    def segment(self, walked: Walked) -> Iterable[Finding]:
        segment, next_base = walked.segment, walked.next_base
        if next_base is None or walked.size >= segment.size or self._is_cleaned(walked):
            return
        if any(run.end == walked.size for run in walked.lost):
            return  # the tail says that it was cut
        first = int(walked.headers.last.max(initial=segment.base_offset - 1)) + 1
        if first >= next_base:
            return
        self.context.missing.append(range(first, next_base))
        yield self.context.finding(
            "error",
            "segment_shrunk",
            segment.path,
            f"The file became shorter while it was checked: it had {segment.size} bytes when it was found, and has {walked.size} now. Brokers"
            " do not write to it any more.",
            "Find out what truncates the file, and copy the partition from another replica.",
            byte=walked.size,
            first_offset=first,
            last_offset=next_base - 1,
            records=next_base - first,
        )

    def _is_cleaned(self, walked: Walked) -> bool:
        """Return whether a cleaner may have put the file there."""
        path = walked.segment.path
        if path.with_name(path.name + DELETED).exists():
            return True
        now = read_broker_files(self.context.broker.directory)
        return now.offset(CLEANER, self.context.key) is not None
