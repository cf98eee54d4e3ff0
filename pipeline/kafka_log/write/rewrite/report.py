"""The report of a rewrite: a row for what is kept of each segment, and for everything that is not kept as it was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.header_arrays import Headers
from kafka_log.segment.model import Lost
from kafka_log.segment.positioned_reads import open_segment, read_what_there_is
from kafka_log.write.log_writer import RewrittenBatch
from kafka_log.write.rewrite.segment_contents import SegmentContents

REPORT_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Topic name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Partition number."}),
        pa.field(
            "file",
            pa.string(),
            False,
            {"doc": "Segment that was read; for what = open, the segment that was written."},
        ),
        pa.field(
            "what",
            pa.string(),
            False,
            {
                "doc": "kept: written unchanged. copied: a metadata snapshot, written unchanged. rewritten: "
                "written with new batches. left out: not selected. twice: not written, because the same "
                "offsets were written from elsewhere. lost: not written, because it is damaged or missing. "
                "unfinished: bytes that a broker had not finished writing, which is no damage. open: a "
                "transaction without an end. indexed: indexes were written. understated: a batch whose "
                "header, and so its index entries, state less than its records."
            },
        ),
        pa.field("batches", pa.int64(), True, {"doc": "Number of batches."}),
        pa.field(
            "records", pa.int64(), True, {"doc": "Number of records, including control records."}
        ),
        pa.field(
            "byte",
            pa.int64(),
            metadata={
                "doc": "Position of the first byte in the file; null if the batches are not adjacent."
            },
        ),
        pa.field("bytes", pa.int64(), metadata={"doc": "Number of bytes in the file."}),
        pa.field(
            "first_offset",
            pa.int64(),
            True,
            {"doc": "Lowest offset; for lost bytes, the first that may have been there."},
        ),
        pa.field(
            "last_offset",
            pa.int64(),
            True,
            {"doc": "Highest offset; for lost bytes, the last that may have been there."},
        ),
        pa.field(
            "reason", pa.string(), True, {"doc": "Reason; null if there is nothing to explain."}
        ),
    ]
)


@dataclass(slots=True)
class ReportRow:
    """A row of :data:`REPORT_SCHEMA` without topic and partition."""

    file: str
    what: str
    batches: int | None = None
    records: int | None = None
    byte: int | None = None
    bytes: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    reason: str | None = None


def as_rows(topic: str, partition: int, said: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the report rows of a partition as dictionaries with topic and partition."""
    return [{"topic": topic, "partition": partition, **asdict(one)} for one in said]


def is_lost(table: pa.Table) -> bool:
    """Return whether a report has a row for lost data."""
    return "lost" in table.column("what").to_pylist()


_Place = tuple[Path, int, int]
"""A file, a position in it, and a number of bytes."""

MISPLACED = "its offsets are lower than those before, or belong to another segment"


class RewriteReport:
    """Collects the report rows of one partition, segment by segment."""

    def __init__(self) -> None:
        self.entries: list[ReportRow] = []
        self._untaken: list[tuple[ReportRow, _Place | None]] = []
        self._firsts: list[Any] = []
        self._lasts: list[Any] = []
        self._places: list[tuple[Path, Any, Any]] = []
        """Per file, the positions and sizes of the batches that are taken, parallel to ``_firsts``."""

    def rows(self) -> list[ReportRow]:
        """Return all rows, sorted by file name. A noted batch that was not taken is ``lost``; it is
        ``twice`` if batches with its offsets were kept, and, for a single batch out of order, only
        if one of these has the same bytes.

        Base offsets are in no checksum: that of a batch that does not continue the batch before it may be wrong.
        """
        begin, end = self._find_kept_runs()
        for one, alone in self._untaken:
            if one.first_offset is None or one.last_offset is None:
                continue
            at = int(np.searchsorted(begin, one.first_offset, side="right")) - 1
            if not (at >= 0 and one.first_offset <= one.last_offset <= end[at]):
                continue
            if alone is None or self._is_taken_elsewhere(alone, one.first_offset):
                one.what, one.reason = "twice", f"batches with these offsets are kept: {one.reason}"
            else:
                one.reason = f"other batches with these offsets are kept: {one.reason}"
        return sorted([*self.entries, *(one for one, _ in self._untaken)], key=lambda one: one.file)

    def _is_taken_elsewhere(self, place: _Place, offset: int) -> bool:
        """Return whether a batch with the same first offset and the same bytes was taken from any
        place.
        """
        for firsts, (path, position, size) in zip(self._firsts, self._places, strict=True):
            i = int(np.searchsorted(firsts, offset))
            if i < len(firsts) and firsts[i] == offset and size[i] == place[2]:
                return _read_place((path, int(position[i]), int(size[i]))) == _read_place(place)
        return False

    def _find_kept_runs(self) -> tuple[Any, Any]:
        """Return two arrays: the first and the last offset of each run of kept batches without gaps
        between them. Both are empty if none were kept.
        """
        none = np.empty(0, np.int64)
        firsts, lasts = (np.concatenate([none, *some]) for some in (self._firsts, self._lasts))
        if not len(firsts):
            return firsts, lasts
        new = np.flatnonzero(np.append(True, firsts[1:] > lasts[:-1] + 1))
        return firsts[new], lasts[np.append(new[1:] - 1, len(lasts) - 1)]

    def add_taken(self, name: str, found: SegmentContents, taken: Any, rewritten: Any) -> None:
        """Note the batches in the mask ``taken``, and add rows for those without problems: ``kept``
        for those not in ``rewritten`` (also if there are none at all), and ``rewritten`` for those
        that lose their producer.
        """
        headers = found.headers
        first, position, size = (a[taken] for a in (headers.first, headers.position, headers.size))
        self._firsts.append(first)
        self._lasts.append(headers.last[taken])
        self._places.append((found.segment.path, position, size))
        good = taken & found.is_good
        kept, without = good & ~rewritten, good & rewritten
        if kept.any() or not without.any():
            self.entries.append(_sum_batches(name, "kept", headers, kept, found.rows))
        if without.any():
            one = _sum_batches(name, "rewritten", headers, without, found.rows)
            one.reason = "without producer and transaction"
            self.entries.append(one)

    def add_left_out(self, name: str, found: SegmentContents, which: Any, reason: str) -> None:
        """Add one row ``left out`` with ``reason`` for the batches in the mask ``which``; do
        nothing if there are none.
        """
        if which.any():
            one = _sum_batches(name, "left out", found.headers, which, found.rows)
            one.reason = reason
            self.entries.append(one)

    def add_rewritten(self, name: str, found: SegmentContents, one: RewrittenBatch) -> None:
        """Add rows for a batch with problems that was encoded again: ``rewritten`` for records that
        were written, and another one for records that were left out, with the error if there was
        one. Either is omitted if there are none.
        """
        row = _describe_batch(name, "rewritten", found, one.index)
        if one.written:
            row.records = one.written
            self.entries.append(row)
        if one.left_out:
            row = _describe_batch(name, _name_missing(found, one.index), found, one.index)
            row.records = one.left_out
            if one.error is not None:
                row.reason = f"it cannot be written: {utf8(one.error)}"
            self.entries.append(row)

    def note_untaken(self, name: str, found: SegmentContents, which: Any) -> None:
        """Note the batches in the mask ``which`` that are selected but were not taken, adjacent
        ones without problems together; batches with problems and no records are ignored. Whether
        they are lost is decided by :meth:`rows`.
        """
        good = np.flatnonzero(which & found.is_good)
        for run in np.split(good, np.flatnonzero(np.diff(good) > 1) + 1):
            if len(run):
                one = _sum_batches(name, "lost", found.headers, run, found.rows)
                one.reason = MISPLACED
                self._untaken.append((one, _place_single_batch(found, run)))
        for i in found.troubles:
            if which[i] and found.rows[i]:
                row = _describe_batch(name, _name_missing(found, i), found, i)
                self._untaken.append((row, _place_single_batch(found, np.array([i]))))

    def add_unfinished(self, name: str, found: Lost | None) -> None:
        """Add a row ``unfinished`` for the incomplete tail of a segment, which does not count as
        lost. Do nothing if it is None.
        """
        if found is not None:
            row = ReportRow(name, "unfinished", byte=found.start, bytes=found.end - found.start)
            if found.after_offset is not None:
                row.first_offset = found.after_offset + 1
            row.reason = found.reason
            self.entries.append(row)

    def add_lost(self, name: str, lost: Lost) -> None:
        """Add a row ``lost`` for a range of bytes that cannot be read completely, with the offsets
        that may be lost as far as its neighbors are known.
        """
        row = ReportRow(name, "lost", byte=lost.start, bytes=lost.end - lost.start)
        if lost.after_offset is not None:
            row.first_offset = lost.after_offset + 1
        if lost.before_offset is not None:
            row.last_offset = lost.before_offset - 1
        row.reason = utf8(lost.reason)
        self.entries.append(row)


def _place_single_batch(found: SegmentContents, run: Any) -> _Place | None:
    """Return file, position and size of the batch of a run of one, if its first offset is not the
    one after the batch before it in the file. Return None otherwise, and for a longer run.
    """
    headers, i = found.headers, int(run[0])
    if len(run) > 1 or (i and headers.first[i] == headers.last[i - 1] + 1):
        return None
    return found.segment.path, int(headers.position[i]), int(headers.size[i])


def _read_place(place: _Place) -> bytes:
    """Return the bytes at a place, as far as they can be read."""
    path, position, size = place
    with open_segment(path) as file:
        return read_what_there_is(file, position, size, 0)


def _name_missing(found: SegmentContents, i: int) -> str:
    """Return `unfinished` for a batch in the incomplete tail, else `lost`."""
    return "unfinished" if found.is_unfinished(i) else "lost"


def _sum_batches(name: str, what: str, headers: Headers, which: Any, rows: Any) -> ReportRow:
    """Return one report row ``what`` for batches given by a mask or by indexes: their number,
    records, bytes and offsets. It has a byte position only if they are adjacent in the file; no
    bytes and offsets without batches.
    """
    which = np.flatnonzero(which) if which.dtype == np.bool_ else which
    count = len(which)
    found = ReportRow(name, what, count, int(rows[which].sum()))
    if count:
        start, size = headers.position[which], headers.size[which]
        found.bytes = int(size.sum())
        if start[0] + found.bytes == start[-1] + size[-1]:
            found.byte = int(start[0])
        found.first_offset = int(headers.first[which].min())
        found.last_offset = int(headers.last[which].max())
    return found


def _describe_batch(name: str, what: str, found: SegmentContents, i: int) -> ReportRow:
    """Return the row for a batch with a problem."""
    row = _sum_batches(name, what, found.headers, np.array([i]), found.rows)
    row.reason = utf8(found.troubles[i].reason)
    return row
