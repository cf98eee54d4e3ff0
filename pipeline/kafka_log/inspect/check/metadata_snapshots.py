"""Check of metadata snapshots: files of batches, complete from the header record to the footer record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.check.base import Check
from kafka_log.inspect.check.batches import find_framed_batches
from kafka_log.inspect.check.catalog import Severity
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.segment_scan import ScannedSegment, ScanOptions, scan_segment
from kafka_log.logs.partitions import Segment
from kafka_log.segment.header_arrays import Headers
from kafka_log.segment.model import Lost, Policy
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.reader import SegmentReader

NAME = re.compile(r"\d{20}-\d{10}\.checkpoint\Z")

HEADER, FOOTER = "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER"

_OLDER = "Nothing to do: a broker reads the newest snapshot, and deletes this one later."


class MetadataSnapshotCheck(Check):
    """Reports damaged and incomplete .checkpoint files of the metadata log: errors for the newest
    one, from which a broker starts, warnings for older ones.

    Offsets inside a snapshot count from 0 and are not those of the log.
    """

    def check_end(self) -> Iterable[Finding]:
        if not self.context.is_whole:
            return
        there = self.context.partition.directory.iterdir()
        paths = sorted((path for path in there if NAME.match(path.name)), reverse=True)
        for path in paths:
            if path.is_file():
                yield from self._check_file(path, path == paths[0])

    def _check_file(self, path: Path, is_newest: bool) -> Iterator[Finding]:
        """Yield the findings about one snapshot: errors if ``is_newest``, else warnings. These are
        ``metadata_snapshot_damaged`` for damaged batches and unreadable bytes; only if there are
        none, ``metadata_snapshot_incomplete`` for a missing header, footer or offset. Raise OSError
        if the file cannot be read.
        """
        segment = Segment(path, *self.context.key, 0, path.stat().st_size, "snapshot", True)
        reading = ScanOptions(False, "auto")
        scanned = scan_segment(segment, MAX_OFFSET, reading.read_pieces([segment]), reading)
        for run in scanned.lost:
            yield from self._check_lost_range(scanned, run, is_newest)
        if not scanned.lost:
            yield from self._check_completeness(scanned, is_newest)

    def _check_lost_range(
        self, scanned: ScannedSegment, run: Lost, is_newest: bool
    ) -> Iterator[Finding]:
        """Yield ``metadata_snapshot_damaged`` for each batch that the length fields delimit from
        the start of a lost range (at most 100), and one for the bytes after them, if any. They are
        errors if ``is_newest`` (it is the newest snapshot), else warnings. Checksums are not
        verified here: the caller found the range damaged. Raise OSError if the file cannot be
        opened.
        """
        position, path = run.start, scanned.segment.path
        for entry, first, last in find_framed_batches(scanned, run):
            what = f"The batch of {entry.frame.size} bytes that begins at this byte is damaged: its checksum does not match its bytes."
            known = first is not None and 0 <= first <= last
            records = last - first + 1 if known else None
            yield self._damage_finding(path, what, entry.position, is_newest, records)
            position = entry.position + entry.frame.size
        if position < run.end:
            what = f"{count_noun(run.end - position, 'byte')} from this byte on cannot be read as batches."
            yield self._damage_finding(path, what, position, is_newest)

    def _damage_finding(
        self, path: Path, what: str, byte: int, is_newest: bool, records: int | None = None
    ) -> Finding:
        """Return the ``metadata_snapshot_damaged`` finding about a damaged batch or unreadable
        bytes, which the sentence ``what`` describes. It is an error for the newest snapshot, else a
        warning. ``records`` is the number of records at risk, None if unknown.
        """
        return self._finding(
            "metadata_snapshot_damaged", path, what, byte, is_newest, records=records
        )

    def _check_completeness(self, scanned: ScannedSegment, is_newest: bool) -> Iterator[Finding]:
        """Yield ``metadata_snapshot_incomplete`` for each part that is missing: the header record
        in the first batch, records at the first gap between offsets (which count from 0), and the
        footer record in the last batch. They are errors if ``is_newest`` (it is the newest
        snapshot), else warnings. A file without batches lacks header and footer. Raise
        FileNotFoundError if it is gone.
        """
        path, headers = scanned.segment.path, scanned.headers
        missing: list[tuple[str, int]] = []
        if HEADER not in _control_types(path, headers, 0):
            missing.append(("It does not begin with the header record of a snapshot.", 0))
        expected = np.append(0, headers.last[:-1] + 1)[: len(headers)]
        for i in np.flatnonzero(headers.first != expected)[:1].tolist():
            what = f"Records are missing: offset {headers.first[i]} of the snapshot follows instead of {expected[i]}."
            missing.append((what, int(headers.position[i])))
        if FOOTER not in _control_types(path, headers, -1):
            missing.append(
                (
                    f"The file ends at byte {scanned.size} without the footer record. It was truncated.",
                    scanned.size,
                )
            )
        for what, byte in missing:
            yield self._finding("metadata_snapshot_incomplete", path, what, byte, is_newest)

    def _finding(
        self,
        code: str,
        path: Path,
        what: str,
        byte: int,
        is_newest: bool,
        *,
        records: int | None = None,
    ) -> Finding:
        """Return a finding about a snapshot: an error with the remedy of the catalog if
        ``is_newest``, else a warning that needs no action. ``what`` is the sentence about the
        problem; another one before it says which snapshot it is. ``records`` is the number at risk,
        None if unknown.
        """
        severity: Severity = "error" if is_newest else "warning"
        of = "an older snapshot of the metadata"
        if is_newest:
            of = "the newest snapshot of the metadata, from which the node starts"
        return self.context.finding(
            code,
            path,
            f"This is {of}. {what}",
            severity=severity,
            remedy=None if is_newest else _OLDER,
            byte=byte,
            records=records,
        )


def _control_types(path: Path, headers: Headers, i: int) -> set[str | None]:
    """Return the types of the control records in the batch with the index ``i`` (0 first, -1 last):
    ``UNKNOWN`` for an unknown type, None for one that cannot be read. Return an empty set if the
    file has no batches, or the batch has no control record or cannot be read or decoded. Raise
    FileNotFoundError if the file is gone.
    """
    if not len(headers):
        return set()
    start = int(headers.position[i])
    reader = SegmentReader(
        path, policy=Policy.SALVAGE, start=start, stop=start + 1, salvage_records=False
    )
    try:
        records = [record for batch in reader for record in batch.records]
    except CodecError:
        return set()
    return {record.control.type for record in records if record.control is not None}
