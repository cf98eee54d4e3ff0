"""Snapshots of the metadata log: files of batches, whole from their header to their footer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from codecgen.runtime.errors import CodecError
from kafka_log.inspect.check.base import Check, are
from kafka_log.inspect.check.batches import framed
from kafka_log.inspect.check.finding import Finding, Severity
from kafka_log.inspect.check.segment_scan import Reading, Walked, walk
from kafka_log.logs.partitions import Segment
from kafka_log.segment.header_arrays import Headers
from kafka_log.segment.model import Lost, Policy
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.reader import SegmentReader

NAME = re.compile(r"\d{20}-\d{10}\.checkpoint\Z")

HEADER, FOOTER = "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER"

_NEWEST = "Copy the file from another controller; or move it away, if the log goes on where an older snapshot ends."
_OLDER = "Nothing: a broker reads the newest snapshot, and deletes this one in time."


class MetadataSnapshotCheck(Check):
    """The files .checkpoint of a partition: a broker begins with the newest one. Their offsets are not those of the log."""

    def end(self) -> Iterable[Finding]:
        if not self.context.is_whole:
            return
        there = self.context.partition.directory.iterdir()
        paths = sorted((path for path in there if NAME.match(path.name)), reverse=True)
        for path in paths:
            if path.is_file():
                yield from self._of(path, path == paths[0])

    def _of(self, path: Path, is_newest: bool) -> Iterator[Finding]:
        segment = Segment(path, *self.context.key, 0, path.stat().st_size, "snapshot", True)
        reading = Reading(False, "auto")
        walked = walk(segment, MAX_OFFSET, reading.pieces([segment]), reading)
        for run in walked.lost:
            yield from self._run(walked, run, is_newest)
        if not walked.lost:
            yield from self._parts(walked, is_newest)

    def _run(self, walked: Walked, run: Lost, is_newest: bool) -> Iterator[Finding]:
        position, path = run.start, walked.segment.path
        for entry, first, last in framed(walked, run):
            what = f"A batch of {entry.frame.size} bytes is damaged: its checksum does not agree with its bytes."
            known = first is not None and 0 <= first <= last
            records = last - first + 1 if known else None
            yield self._damaged(path, what, entry.position, is_newest, records)
            position = entry.position + entry.frame.size
        if position < run.end:
            what = f"{are(run.end - position, 'byte')} cannot be read as batches."
            yield self._damaged(path, what, position, is_newest)

    def _damaged(
        self, path: Path, what: str, byte: int, is_newest: bool, records: int | None = None
    ) -> Finding:
        return self._finding(
            "metadata_snapshot_damaged", path, what, byte, is_newest, records=records
        )

    def _parts(self, walked: Walked, is_newest: bool) -> Iterator[Finding]:
        """What is not there of a file of whole batches."""
        path, headers = walked.segment.path, walked.headers
        missing: list[tuple[str, int]] = []
        if HEADER not in _controls(path, headers, 0):
            missing.append(("It does not begin with the header of a snapshot.", 0))
        expected = np.append(0, headers.last[:-1] + 1)[: len(headers)]
        for i in np.flatnonzero(headers.first != expected)[:1].tolist():
            what = f"Its records are not whole: offset {headers.first[i]} of the snapshot follows where {expected[i]} should."
            missing.append((what, int(headers.position[i])))
        if FOOTER not in _controls(path, headers, -1):
            missing.append(
                ("It does not end with the footer of a snapshot: it was cut off.", walked.size)
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
        severity: Severity = "error" if is_newest else "warning"
        of = "the newest snapshot of the metadata" if is_newest else "an older snapshot"
        return self.context.finding(
            severity,
            code,
            path,
            f"This is {of}. {what}",
            _NEWEST if is_newest else _OLDER,
            byte=byte,
            records=records,
        )


def _controls(path: Path, headers: Headers, i: int) -> set[str | None]:
    """The kinds of control records in the first or the last batch."""
    if not len(headers):
        return set()
    start = int(headers.position[i])
    reader = SegmentReader(path, policy=Policy.SALVAGE, start=start, stop=start + 1, rescue=False)
    try:
        records = [record for batch in reader for record in batch.records]
    except CodecError:
        return set()
    return {record.control.type for record in records if record.control is not None}
