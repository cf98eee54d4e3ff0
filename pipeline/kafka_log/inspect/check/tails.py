"""Checks of the ends of segments: incomplete batches, zeros, and segments that became shorter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.check.base import Check
from kafka_log.inspect.check.catalog import CATALOG, COPY_LOST, FOLLOW_FIRST, TRUNCATE_AT_START
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.repairs import describe_range_repairs
from kafka_log.inspect.check.segment_scan import ScannedSegment
from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.incomplete_tails import is_tail_error
from kafka_log.logs.names import (
    CLEAN_SHUTDOWN,
    CLEANER,
    HIGH_WATERMARK,
    REMOTE_LOG_METADATA,
)
from kafka_log.segment.model import Lost
from kafka_log.segment.positioned_reads import DELETED


class TailCheck(Check):
    """Finds an incomplete batch or zeros at the end of a segment.

    They are normal in the active segment after a crash. In other segments records may be lost. After a clean
    shutdown a broker does not look for them when it starts, except in the metadata log.
    """

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        for run in scanned.lost:
            kind = scanned.tail_kind_of(run)
            if kind is not None:
                finding = self._tail_finding(scanned, run, kind)
                repair = describe_range_repairs(scanned, run).get(run.start, "")
                yield replace(finding, meaning=finding.meaning + repair)

    def _tail_finding(self, scanned: ScannedSegment, run: Lost, kind: str) -> Finding:
        """Return the finding ``kind`` (``torn_tail`` or ``zero_tail``) about the bytes after the
        last batch. Active segment: a note, but an error after a clean shutdown, except in the
        metadata log, with the offsets that the log had reached by its checkpoints. Rolled segment: an error, with the offsets up to the next segment if they are
        known; without offsets if none is missing before the next segment.
        """
        size = count_noun(run.end - run.start, "byte")
        first = scanned.segment.base_offset if run.after_offset is None else run.after_offset + 1
        if kind == "zero_tail":
            what = f"{size} of zeros follow the last batch"
        else:
            what = f"The last {size} are a batch that was not written completely"
        if scanned.is_active and is_tail_error(self.context.key[0], self.context.broker):
            reached = self.context.broker.reached_offset(self.context.key)
            is_short = reached > first
            if is_short:
                what += f". By the checkpoints, the log reached offset {reached}"
            return self.context.finding(
                kind,
                scanned.segment.path,
                f"{what}. The file {CLEAN_SHUTDOWN} exists, so the broker does not truncate the segment when it starts: it fails, or appends after these bytes.",
                remedy=TRUNCATE_AT_START,
                byte=run.start,
                first_offset=first,
                last_offset=reached - 1 if is_short else None,
                records=reached - first if is_short else None,
            )
        if scanned.is_active:
            return self.context.finding(
                kind,
                scanned.segment.path,
                f"{what}. The segment is the active one: the broker removes these bytes when it starts.",
                severity="note",
                remedy=self._judge_loss(first),
                byte=run.start,
                first_offset=first,
            )
        what = f"{what}. The segment is rolled: no broker writes to it any more."
        last = None if scanned.next_base is None else scanned.next_base - 1
        is_complete = last is not None and last < first
        if is_complete:
            what += f" No offset is missing: the next segment begins at offset {scanned.next_base}."
        elif last is not None:
            which = f"Offset {first} is" if first == last else f"Offsets {first} to {last} are"
            what += f" {which} missing."
        is_cut = kind == "torn_tail" and not is_complete
        return self.context.finding(
            kind,
            scanned.segment.path,
            what,
            remedy=COPY_LOST if is_cut else CATALOG["zeroed_bytes"].remedy,
            byte=run.start,
            first_offset=None if is_complete else first,
            last_offset=None if is_complete else last,
            records=None if is_complete or last is None else last - first + 1,
        )

    def _judge_loss(self, end: int) -> str:
        """Return the remedy for an active segment after a crash. It says whether committed records
        may be missing from the offset ``end`` on, by the high watermark in the checkpoint file.
        """
        known = self.context.broker.offset(HIGH_WATERMARK, self.context.key)
        of = f"({HIGH_WATERMARK}, written every five seconds)"
        if known is None:
            return f"Nothing to do if no committed record is missing: records below the high watermark of the partition {of} were committed. Otherwise: {FOLLOW_FIRST[0].lower()}{FOLLOW_FIRST[1:]}"
        if known <= end:
            return f"Nothing to do for the records below the high watermark {known} {of}: none is missing. For records that were committed after it was written: {FOLLOW_FIRST[0].lower()}{FOLLOW_FIRST[1:]}"
        return f"Committed records are missing: the high watermark of the partition is {known} {of}. {FOLLOW_FIRST}"


class ShrunkCheck(Check):
    """Finds a rolled segment that became shorter during the check and now ends before the next one
    begins, and a copy in tiered storage that is shorter than ``__remote_log_metadata`` says.

    The log cleaner replaces segments by shorter ones too, but renames the old ones and writes a checkpoint.
    """

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        segment, next_base = scanned.segment, scanned.next_base
        if segment.missing:
            yield self._report_copy(scanned)
            return
        if next_base is None or scanned.size >= segment.size or self._is_cleaned(scanned):
            return
        if any(run.end == scanned.size for run in scanned.lost):
            return  # the tail says that it was cut
        first = _end_offset(scanned)
        if first >= next_base:
            return
        self.context.missing.append(range(first, next_base))
        yield self.context.finding(
            "segment_shrunk",
            segment.path,
            f"The file became shorter during the check: it had {count_noun(segment.size, 'byte')} when it was found, and has {scanned.size} now. Brokers do not write to a rolled segment.",
            byte=scanned.size,
            first_offset=first,
            last_offset=next_base - 1,
            records=next_base - first,
        )

    def _report_copy(self, scanned: ScannedSegment) -> Finding:
        """Return the finding about a copy that is shorter than its metadata says."""
        segment = scanned.segment
        return self.context.finding(
            "segment_shrunk",
            segment.path,
            f"The copy lacks its last {count_noun(segment.missing, 'byte')}: {REMOTE_LOG_METADATA} says that it has {count_noun(segment.size, 'byte')}. Records from offset {_end_offset(scanned)} on are missing in it.",
            remedy="Keep the copy. Read the missing records from a local segment or from another copy of them, if there is one, and restore the file from a backup of the tier.",
            byte=segment.size - segment.missing,
            first_offset=_end_offset(scanned),
        )

    def _is_cleaned(self, scanned: ScannedSegment) -> bool:
        """Return whether the log cleaner may have replaced the segment: its .log.deleted exists, or
        the checkpoint of the cleaner, which is read again, has the partition.
        """
        path = scanned.segment.path
        if path.with_name(path.name + DELETED).exists():
            return True
        now = read_broker_files(self.context.broker.directory)
        return now.offset(CLEANER, self.context.key) is not None


def _end_offset(scanned: ScannedSegment) -> int:
    """Return the offset after the last batch of a segment, its base offset if it has none."""
    return int(scanned.headers.last.max(initial=scanned.segment.base_offset - 1)) + 1
