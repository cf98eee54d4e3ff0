"""What is left at the end of a segment, after its last whole batch: a torn batch, or zeros."""

from __future__ import annotations

from collections.abc import Iterable

from codecgen.runtime.errors import CodecError
from kafka_log.inspect.check.base import Check, are, only_zeros
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.segment_scan import Walked
from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.names import CLEAN_SHUTDOWN, CLEANER, CLUSTER_METADATA
from kafka_log.segment import framing
from kafka_log.segment.model import Lost
from kafka_log.segment.positioned_reads import DELETED

UNWRITTEN = 32
"""Zeros at the end of a batch from which on it counts as one that was not written to its end."""


class TailCheck(Check):
    """A torn batch or zeros at the end: normal in the active segment after a crash, lost records in any other. A broker that was
    stopped in order leaves neither, and does not look for them when it starts; of the metadata log it always does."""

    def segment(self, walked: Walked) -> Iterable[Finding]:
        for run in walked.lost:
            kind = tail_kind(walked, run)
            if kind is not None:
                yield self._tail(walked, run, kind)

    def _tail(self, walked: Walked, run: Lost, kind: str) -> Finding:
        size = are(run.end - run.start, "byte")
        first = walked.segment.base_offset if run.after_offset is None else run.after_offset + 1
        if kind == "zero_tail":
            what = f"{size} of zeros follow the last batch"
        else:
            what = f"{size} at the end are a batch that was not written to its end"
        if (
            walked.is_active
            and self.context.broker.was_clean_shutdown
            and self.context.key[0] != CLUSTER_METADATA
        ):
            return self.context.finding(
                "error",
                kind,
                walked.segment.path,
                f"{what}, and {CLEAN_SHUTDOWN} says that the broker was stopped in order: it fails on them, or appends after them.",
                f"Move {CLEAN_SHUTDOWN} away before you start the broker: then it cuts them off. Other replicas may have the records.",
                byte=run.start,
                first_offset=first,
            )
        if walked.is_active:
            return self.context.finding(
                "note",
                kind,
                walked.segment.path,
                f"{what}: this is the active segment, and its broker cuts them off when it starts.",
                "Nothing, if another replica has the records; else compare with the high watermark of this partition.",
                byte=run.start,
                first_offset=first,
            )
        last = None if walked.next_base is None else walked.next_base - 1
        known = last is not None and first <= last
        return self.context.finding(
            "error",
            kind,
            walked.segment.path,
            f"{what}, in a segment that is no longer written to.",
            "Copy the partition from another replica: what should be there is lost on this disk.",
            byte=run.start,
            first_offset=first,
            last_offset=last if known else None,
            records=last - first + 1 if known and last is not None else None,
        )


def tail_kind(walked: Walked, run: Lost) -> str | None:
    """``zero_tail`` or ``torn_tail``; None when bytes are lost for another reason."""
    if run.end < walked.size:
        return None
    with walked.segment.path.open("rb") as file:
        if only_zeros(file, run.start, run.end):
            return "zero_tail"
        file.seek(run.start)
        data = file.read(framing.HEADER_START)
    if len(data) < framing.HEADER_START:
        return "torn_tail"
    try:
        frame = framing.frame_of(data, run.start, str(walked.segment.path))
    except CodecError:
        return None
    end = run.start + frame.size
    if end <= run.end and walked.is_active:
        # After a crash a file may be as long as it should be, with zeros where nothing was written.
        begin = max(end - UNWRITTEN, run.start + framing.HEADER_START)
        with walked.segment.path.open("rb") as file:
            return "torn_tail" if only_zeros(file, begin, run.end) else None
    return "torn_tail" if end > run.end else None


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
