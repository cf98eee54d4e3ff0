"""The report of a rewrite: a row for what is kept of each segment, and for everything that is not kept as it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from kafka_log.write.segment_contents import SegmentContents

REPORT_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Topic name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Partition number."}),
        pa.field(
            "file",
            pa.string(),
            False,
            {
                "doc": "Segment that was read, of a merge its path; for what = open, the segment that was written."
            },
        ),
        pa.field(
            "what",
            pa.string(),
            False,
            {
                "doc": "kept: written unchanged. copied: a metadata snapshot, written unchanged. rewritten: "
                "written with new batches. left out: not selected. twice: not written, because the same "
                "offsets were written from elsewhere. repaired: flipped bits were repaired, before "
                "what follows was done with the batch. not repaired: a damaged batch that could not be repaired. lost: not written, because it is damaged or missing, "
                "or other batches have its offsets. "
                "unfinished: bytes that a broker had not finished writing, which is no damage. open: a "
                "transaction without an end. indexed: indexes were written. understated: a batch whose "
                "header, and so its index entries, state less than its records. Of a merge also: replaced: damaged "
                "bytes, written from another replica. absent: written, although this replica lacks it. diverged: "
                "not written, because another replica has a later leader epoch there."
            },
        ),
        pa.field("batches", pa.int64(), True, {"doc": "Number of batches."}),
        pa.field("records", pa.int64(), True, {"doc": "Number of records that consumers can get."}),
        pa.field(
            "control_records",
            pa.int64(),
            True,
            {"doc": "Number of control records, such as transaction markers."},
        ),
        pa.field(
            "byte",
            pa.int64(),
            metadata={
                "doc": "Position of the first byte in the file; null if the batches are not adjacent, or the path is no file."
            },
        ),
        pa.field(
            "bytes",
            pa.int64(),
            metadata={"doc": "Number of bytes in the file; null if the path is no file."},
        ),
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
    control_records: int | None = None
    byte: int | None = None
    bytes: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    reason: str | None = None

    def count_records(self, counts: Any, is_control: Any) -> None:
        """Set the numbers of records and of control records to the sums of ``counts``, which has
        the number of records of each batch; ``is_control`` is the mask of control batches.
        """
        self.records = int(np.sum(counts, where=~np.asarray(is_control)))
        self.control_records = int(np.sum(counts, where=is_control))


def as_rows(topic: str, partition: int, said: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the report rows of a partition as dictionaries with topic and partition."""
    return [{"topic": topic, "partition": partition, **asdict(one)} for one in said]


PROBLEMS = frozenset({"lost", "refused", "diverged"})
"""What rows say of data that is not in the output although somebody may expect it."""


_Place = tuple[Path, int, int]
"""A file, a position in it, and a number of bytes."""

MOVED = (
    "written by their offsets: they lie elsewhere than the offsets and the names of segments say"
)
MISPLACED = (
    "its offsets fit neither its place nor another one; no checksum covers a base offset: kafka-log check"
    " says which base offset fits, if one does"
)


class RewriteReport:
    """Collects the report rows of one partition, segment by segment."""

    def __init__(self) -> None:
        self.entries: list[ReportRow] = []
        self._doubtful: list[tuple[ReportRow, _Place | None]] = []
        """Rows about offsets that may have been written from elsewhere."""
        self._untaken: list[tuple[str, Path, Headers, Any, Any]] = []
        """Intact batches that were not taken: file name and path, headers, numbers of records, indexes."""
        self._kept: list[tuple[Path, Any, Any, Any, Any]] = []
        """Per file, first and last offsets, positions and sizes of batches that are written, by offset."""

    def rows(self) -> list[ReportRow]:
        """Return all rows, sorted by file name. Intact batches that were not taken are ``twice`` if
        the same bytes with the same offsets were kept, else ``lost``. Lost ranges, damaged batches
        and intact ones of segments in another state than the log are ``twice`` if batches with their
        offsets were kept, a single batch out of order only if one of these has the same bytes. Call
        it once: it changes these rows. Raise UnreadableError if a segment cannot be opened to compare
        bytes.

        Base offsets are in no checksum: that of a batch that does not continue the batch before it may be wrong.
        """
        kept = _KeptBatches(self._kept)
        for one, alone in self._doubtful:
            if one.batches is None:
                kept.bound(one)
            if not kept.cover(one.first_offset, one.last_offset):
                continue
            assert one.first_offset is not None
            if alone is None or kept.has_copy(alone, one.first_offset):
                one.what, one.reason = "twice", f"batches with these offsets are kept: {one.reason}"
            else:
                one.reason = f"other batches with these offsets are kept: {one.reason}"
        untaken = [row for one in self._untaken for row in _describe_untaken(*one, kept)]
        return sorted([*self.entries, *untaken], key=lambda one: one.file)

    def note_batches(self, found: SegmentContents, written: Any) -> None:
        """Note where the batches in the mask ``written`` are read from, in the order of offsets."""
        columns = (found.headers.first, found.headers.last, found.headers.position)
        first, last, position = (a[written] for a in columns)
        self._kept.append((found.segment.path, first, last, position, found.headers.size[written]))

    def add_taken(
        self, name: str, found: SegmentContents, taken: Any, rewritten: Any, moved: Any
    ) -> None:
        """Add rows for the batches without problems in the mask ``taken``. Those not in
        ``rewritten`` have one row ``kept`` (also if there are none at all), and one more for those
        that are ``moved``. Those that lose their producer have one row ``rewritten``.
        """
        headers = found.headers
        good = taken & found.is_good
        kept, without = good & ~rewritten, good & rewritten
        if (kept & ~moved).any() or not good.any():
            self.entries.append(_sum_batches(name, "kept", headers, kept & ~moved, found.rows))
        if (kept & moved).any():
            one = _sum_batches(name, "kept", headers, kept & moved, found.rows)
            one.reason = MOVED
            self.entries.append(one)
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

    def add_rewritten(self, name: str, found: SegmentContents, batch: RewrittenBatch) -> None:
        """Add rows for a batch with problems that was encoded again, in the file ``name``. Records
        that were written have a row ``rewritten``; records that were left out one ``lost``
        (``unfinished`` in an incomplete tail), with the error if there was one. Either is omitted
        if there are none. Fields of written records that were not kept have a row ``lost``.
        """
        row = _describe_batch(name, "rewritten", found, batch.index)
        if batch.written:
            row.count_records(batch.written, found.headers.is_control[batch.index])
            self.entries.append(row)
        if batch.left_out:
            row = _describe_batch(name, _name_missing(found, batch.index), found, batch.index)
            row.count_records(batch.left_out, found.headers.is_control[batch.index])
            if batch.error is not None:
                row.reason = f"it cannot be written: {utf8(batch.error)}"
            self.entries.append(row)
        if batch.unkept is not None:
            row = _describe_batch(name, "lost", found, batch.index)
            row.records = row.control_records = None
            row.reason = f"values of fields that have no column are not kept: {utf8(batch.unkept)}"
            self.entries.append(row)

    def note_untaken(self, name: str, found: SegmentContents, which: Any, *, is_main: bool) -> None:
        """Note selected batches (mask ``which``) that were not taken; :meth:`rows` decides later
        whether they are lost. Batches with problems and without records are ignored. If ``is_main``
        (the segment has the log's own state), intact ones are kept elsewhere only if the same bytes
        are. Else the same offsets suffice, except for a single batch that is first in its file or
        does not continue the one before.
        """
        good = np.flatnonzero(which & found.is_good)
        if is_main and len(good):
            headers, path = found.headers.take(good), found.segment.path
            self._untaken.append((name, path, headers, found.rows[good], good))
        for run in [] if is_main else _split_adjacent(good):
            one = _sum_batches(name, "lost", found.headers, run, found.rows)
            one.reason = MISPLACED
            self._add_doubtful(one, _locate_single_batch(found, run))
        for i in found.troubles:
            if which[i] and found.rows[i]:
                row = _describe_batch(name, _name_missing(found, i), found, i)
                self._add_doubtful(row, _locate_single_batch(found, np.array([i])))

    def _add_doubtful(self, row: ReportRow, alone: _Place | None) -> None:
        """Add a row that :meth:`rows` changes if batches with its offsets are kept."""
        self.entries.append(row)
        self._doubtful.append((row, alone))

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
        row = ReportRow(name, "lost")
        if lost.end > lost.start:
            row.byte, row.bytes = lost.start, lost.end - lost.start
        if lost.after_offset is not None:
            row.first_offset = lost.after_offset + 1
        if lost.before_offset is not None:
            row.last_offset = lost.before_offset - 1
        row.reason = utf8(lost.reason)
        self._add_doubtful(row, None)


class _KeptBatches:
    """The batches that are written, by offset.

    Args:
        parts: Per file, path, first and last offsets, positions and sizes of batches, ascending.
    """

    def __init__(self, parts: Sequence[tuple[Path, Any, Any, Any, Any]]) -> None:
        self._paths = [path for path, *_ in parts]
        none = np.empty(0, np.int64)
        self._file = np.repeat(np.arange(len(parts)), [len(first) for _, first, *_ in parts])
        self._first, self._last, self._position, self._size = (
            np.concatenate([none, *(part[i] for part in parts)]) for i in range(1, 5)
        )
        new = np.flatnonzero(np.append(True, self._first[1:] > self._last[:-1] + 1))
        new = new if len(self._first) else none
        self._begin = self._first[new]
        self._end = self._last[np.append(new[1:] - 1, len(self._last) - 1)] if len(new) else none

    def bound(self, row: ReportRow) -> None:
        """Lower the last offset of ``row``, a lost range, to before the next kept batch that begins
        after its first offset. None, an unknown offset, counts as the highest. Do nothing without a
        first offset or such a batch.
        """
        first, last = row.first_offset, row.last_offset
        at = (
            len(self._first) if first is None else int(np.searchsorted(self._first, first, "right"))
        )
        if at < len(self._first) and (last is None or last >= self._first[at]):
            row.last_offset = int(self._first[at]) - 1

    def cover(self, first: int | None, last: int | None) -> bool:
        """Return whether the offsets ``first`` to ``last`` (both included) all lie in kept batches.
        Return False if one is None, or ``last`` is below ``first``.
        """
        if first is None or last is None or first > last:
            return False
        at = int(np.searchsorted(self._begin, first, side="right")) - 1
        return at >= 0 and last <= int(self._end[at])

    def find_overlap(self, first: int, last: int) -> int | None:
        """Return the index of the first kept batch with one of the offsets ``first`` to ``last``
        (both included); None if there is none.
        """
        at = int(np.searchsorted(self._last, first))
        return at if at < len(self._first) and self._first[at] <= last else None

    def has_copy(self, place: _Place, first: int) -> bool:
        """Return whether a kept batch has ``first`` as its first offset and the same bytes as
        ``place`` (file, position, size); bytes that cannot be read count as zeros. Raise
        UnreadableError if one of the files cannot be opened.
        """
        at = int(np.searchsorted(self._first, first))
        if at == len(self._first) or self._first[at] != first or self._size[at] != place[2]:
            return False
        return _read_batch_bytes(self._place(at)) == _read_batch_bytes(place)

    def describe(self, at: int) -> str:
        """Return file and byte of the kept batch with the index ``at``."""
        path, position, _ = self._place(at)
        return f"{utf8(path.name)}, byte {position}"

    def _place(self, at: int) -> _Place:
        """Return path, position and size of the kept batch with the index ``at``."""
        path = self._paths[int(self._file[at])]
        return path, int(self._position[at]), int(self._size[at])


def _describe_untaken(
    name: str, path: Path, headers: Headers, rows: Any, index: Any, kept: _KeptBatches
) -> Iterator[ReportRow]:
    """Yield report rows for intact batches of one file that were not taken, one for adjacent ones
    of the same kind. They are ``twice`` if the same bytes are kept, ``lost`` if other batches with
    their offsets are kept, or none. Raise UnreadableError if a file cannot be opened to compare
    bytes.
    """
    before, run, reason = ("lost", ""), list[int](), MISPLACED

    def _sum_untaken(run: list[int]) -> ReportRow:
        """Return the row for adjacent batches of one kind."""
        row = _sum_batches(name, before[0], headers, np.array(run), rows)
        row.reason = reason
        return row

    for i in range(len(headers)):
        first, last = int(headers.first[i]), int(headers.last[i])
        at = kept.find_overlap(first, last)
        what = "lost"
        if at is not None:
            place = path, int(headers.position[i]), int(headers.size[i])
            what = "twice" if kept.has_copy(place, first) else "lost"
        kind = what, "" if at is None else kept.describe(at).rpartition(", ")[0]
        if run and (kind != before or index[i] != index[run[-1]] + 1):
            yield _sum_untaken(run)
            run = []
        if not run:
            before = kind
            if at is None:
                reason = MISPLACED
            else:
                same = "the same" if what == "twice" else "other"
                reason = f"{same} batches with these offsets are kept: {kept.describe(at)}"
        run.append(i)
    if run:
        yield _sum_untaken(run)


def _locate_single_batch(found: SegmentContents, run: Any) -> _Place | None:
    """Return file, position and size of the batch of a run of one, if its first offset is not the
    one after the batch before it in the file. Return None otherwise, and for a longer run.
    """
    headers, i = found.headers, int(run[0])
    if len(run) > 1 or (i and headers.first[i] == headers.last[i - 1] + 1):
        return None
    return found.segment.path, int(headers.position[i]), int(headers.size[i])


def _split_adjacent(rows: Any) -> list[Any]:
    """Return ascending indexes in arrays of adjacent ones; ``[]`` for none."""
    return np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if len(rows) else []


def _read_batch_bytes(place: _Place) -> bytes:
    """Return the bytes at a place, with zeros for those that cannot be read. Raise UnreadableError
    if the file cannot be opened.
    """
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
    found = ReportRow(name, what, count)
    found.count_records(rows[which], headers.is_control[which])
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
