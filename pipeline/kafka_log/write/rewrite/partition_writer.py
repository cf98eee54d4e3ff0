"""Writing of one partition: its selected batches, and the files that a broker keeps beside segments."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kafka_log.logs.broker_files import read_producer_snapshot
from kafka_log.logs.offset_ranges import within_offsets
from kafka_log.logs.partitions import Partition, Segment, pair_with_next_base_offset
from kafka_log.logs.transactions import read_transactions
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.header_arrays import Headers
from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.segment.row_selection import Aborted
from kafka_log.segment.versions import WRITTEN_BATCH_VERSIONS, version_of
from kafka_log.write.checkpoints import copy_partition_metadata, write_leader_epochs
from kafka_log.write.indexes import write_indexes
from kafka_log.write.log_writer import (
    NO_PRODUCER,
    LogWriter,
    build_empty_batch,
    write_batches,
)
from kafka_log.write.rewrite.arrangement import Arrangement, ContentsCache, has_misplaced
from kafka_log.write.rewrite.report import ReportRow, RewriteReport
from kafka_log.write.rewrite.selection import (
    RewriteSelection,
    find_uncommitted,
    has_producer,
    mark_hidden,
)
from kafka_log.write.segment_contents import (
    SegmentContents,
    choose_batches,
    get_named_base_offset,
    read_contents,
)
from kafka_log.write.verification import NOT_READ_BACK

Advance = Callable[[int], None]


def write_partition(
    partition: Partition, out: Path, wanted: RewriteSelection, advance: Advance = lambda _: None
) -> list[ReportRow]:
    """Write the selected batches of a partition, and the files that a broker keeps beside segments,
    into an empty directory. Return report rows of what was kept, left out and lost, sorted by file
    name, then of open transactions. Damage and unreadable segments are reported, not raised. Raise
    OSError if writing fails; CodecError if what was written does not read as its source, or a file
    is gone when it is read a second time.

    Offsets ascend in what is written. If segments have wrong names or overlap, or batches change
    places, the log is read again and written by offset (:class:`Arrangement`).

    Memory holds the batch headers of one segment, and the offsets and positions of all batches.
    """
    wanted = wanted.resolve_offsets(partition.segments)
    hidden = find_uncommitted(partition.segments) if wanted.flatten else Aborted()
    job = _Job(partition, wanted, hidden)
    with LogWriter(out) as log:
        done = job.write_by_file(log, advance)
    if not done:
        for path, _ in log.segments:
            path.unlink()
        if wanted.flatten:
            hidden = _find_uncommitted_by_offset(partition, out)
        read, job = job.read, _Job(partition, wanted, hidden)
        with LogWriter(out) as log:
            job.write_by_offset(log)
        advance(partition.size - read)
    whose = not wanted.flatten
    segments = finish(partition, out, log.segments, job.epochs, job.last + 1, producers=whose)
    return [*job.report.rows(), *open_transactions(segments)]


def _find_uncommitted_by_offset(partition: Partition, out: Path) -> Aborted:
    """Return the offset ranges, by producer id, of uncommitted records of a log whose batches do
    not lie in the order of their offsets. Transactions are followed in an ordered copy below
    ``out``, which is removed. Raise OSError if the copy cannot be written, CodecError if it does
    not read as its source.
    """
    copy = out / ".by-offset"
    copy.mkdir()
    try:
        with LogWriter(copy) as log:
            job = _Job(partition, RewriteSelection(), Aborted())
            job.write_by_offset(log)
        return find_uncommitted(_list_written(partition, log.segments))
    finally:
        shutil.rmtree(copy)


def finish(
    source: Partition,
    out: Path,
    written: Sequence[tuple[Path, int]],
    epochs: Sequence[tuple[int, int]],
    end: int,
    *,
    producers: bool = True,
) -> list[Segment]:
    """Write the files that a broker keeps beside the segments ``written`` (paths and base offsets),
    and return the segments. The files are indexes, producer snapshots, leader epochs up to offset
    ``end`` and the topic id; without segments only the topic id. Without ``producers`` the first
    producer snapshot of ``source`` is not copied. Raise OSError if a file cannot be written, or a
    segment reads as damaged or cannot be read; CodecError if an index is wrong.
    """
    segments = _list_written(source, written)
    if segments:
        if producers:
            _copy_first_snapshot(source, segments[0], out)
        if write_indexes(segments, out):
            raise OSError(f"{out}: {NOT_READ_BACK}")
        write_leader_epochs(source.directory, out, epochs, segments[0].base_offset, end)
    copy_partition_metadata(source.directory, out)
    return segments


def _list_written(source: Partition, written: Sequence[tuple[Path, int]]) -> list[Segment]:
    """Return the files ``written`` (paths and base offsets) as live segments of a partition, in the
    same order; all but the last are rolled. Raise OSError if a file is gone.
    """
    last = len(written) - 1
    return [
        Segment(
            path, source.topic, source.partition, base, path.stat().st_size, "live", rolled=i < last
        )
        for i, (path, base) in enumerate(written)
    ]


def note_epochs(epochs: list[tuple[int, int]], headers: Headers, which: Any) -> None:
    """Append to ``epochs`` each leader epoch of the batches in the mask ``which`` that is higher
    than the last one, with its first offset. Negative epochs are ignored.
    """
    rows = np.flatnonzero(which & (headers.leader_epoch >= 0))
    for epoch in np.unique(headers.leader_epoch[rows]).tolist():
        if not epochs or epoch > epochs[-1][0]:
            first = headers.first[rows[headers.leader_epoch[rows] == epoch][0]]
            epochs.append((epoch, int(first)))


def open_transactions(segments: Sequence[Segment]) -> list[ReportRow]:
    """Return a report row ``open``, with the first offset, for each transaction that has not ended,
    by producer id; ``[]`` if there are none. Damage is skipped, and no checksum is verified.
    """
    found = read_transactions(segments, damage_raises=False) if segments else None
    if found is None:
        return []
    return [
        ReportRow(
            _file_of(first, segments),
            "open",
            first_offset=first,
            reason=f"the transaction of producer {producer} has not ended: read_committed consumers get nothing from offset {first} on. Once a"
            f" broker has loaded the log, kafka-transactions.sh abort --start-offset {first} ends it",
        )
        for producer, first in found.open_first_offsets
    ]


def _file_of(offset: int, segments: Sequence[Segment]) -> str:
    """Return the name of the segment file that holds an offset, or of the first segment."""
    before = [segment.path.name for segment in segments if segment.base_offset <= offset]
    return before[-1] if before else segments[0].path.name


def _copy_first_snapshot(source: Partition, first: Segment, out: Path) -> None:
    """Copy the producer snapshot at the base offset of the first segment, if it can be read: batches before it may be deleted."""
    name = f"{first.base_offset:020d}.snapshot"
    if first.base_offset and read_producer_snapshot(source.directory / name) is not None:
        shutil.copyfile(source.directory / name, out / name)


@dataclass(frozen=True, slots=True)
class _Masks:
    """Masks of the batches of a segment.

    Attributes:
        there: Batches that belong to the log.
        taken: Those of them that are selected.
        rewritten: Those that lose their producer.
        emptied: Those whose offsets are kept, but not their records.
    """

    there: Any
    taken: Any
    rewritten: Any
    emptied: Any


class _Job:
    """The state of writing one partition, segment by segment."""

    def __init__(self, partition: Partition, wanted: RewriteSelection, hidden: Aborted) -> None:
        self.report = RewriteReport()
        self.epochs: list[tuple[int, int]] = []
        self.last = -1
        """The last offset that is written."""
        self.read = 0
        """Bytes of the segments that :meth:`write_by_file` is done with."""
        self._wanted = wanted
        self._partition = partition
        self._version = WRITTEN_BATCH_VERSIONS[-1]
        """The version of the last record batch that is written, of those that can be built from records."""
        self._hidden = hidden
        self._end = 0  # the offset after the last one that was there, and belongs to the log

    def write_by_file(self, log: LogWriter, advance: Advance) -> bool:
        """Write the selected batches of all segments in the order of files, add what is kept, left
        out or lost to the report, and return True. Return False, with a part of it written, if
        selected intact batches are in the wrong place. ``advance`` is called with the bytes of each
        segment. Damage is reported, not raised. Raise OSError if writing fails; CodecError if what
        was written does not read as its source.
        """
        segments = self._partition.segments
        selected = set(within_offsets(segments, self._wanted.offsets))
        for segment, next_base in pair_with_next_base_offset(segments):
            if segment in selected and not self._write_segment(log, segment, next_base):
                return False
            self.read += segment.size
            advance(segment.size)
        self._end_log(log)
        return True

    def _write_segment(self, log: LogWriter, segment: Segment, next_base: int | None) -> bool:
        """Write the selected batches of a segment, add what is kept, left out or lost to the
        report, and return True. Return False, and write nothing, if selected intact batches are in
        the wrong place. Damage is reported, not raised. Raise OSError if writing fails; CodecError
        if what was written does not read as its source.
        """
        wanted = self._wanted
        found = read_contents(segment, next_base)
        found = replace(found, lost=tuple(run.up_to(next_base) for run in found.lost))
        there = choose_batches(found, next_base, self.last, wanted.keep_damaged)
        inside = wanted.mark_selected(found)
        if has_misplaced(self._partition, found, there | ~inside):
            return False
        masks = self._report_segment(found, there, inside, np.zeros(len(there), np.bool_))
        self._begin_empty(log, found)
        self._write(log, found, masks, begins=True)
        return True

    def write_by_offset(self, log: LogWriter) -> None:
        """Write the selected batches of all segments by offset, and add what is kept, left out or
        lost to the report. If the whole log is selected, a batch without records then fills it up
        to its old end. Damage is reported, not raised. Raise OSError if writing fails; CodecError
        if what was written does not read as its source.
        """
        contents = ContentsCache(self._partition)
        arranged = Arrangement(self._partition, contents, self._wanted.keep_damaged)
        masks = [self._report_arranged(contents.read(k), arranged, k) for k in range(len(contents))]
        for run in arranged.runs():
            found, of = contents.read(run.segment), masks[run.segment]
            here = np.zeros(len(found.headers), np.bool_)
            here[run.batches] = True
            part = _Masks(of.there & here, of.taken & here, of.rewritten & here, of.emptied & here)
            self._write(log, found, part, begins=run.begins or not log.segments)
        for k in range(len(contents)):
            self._begin_empty(log, contents.read(k))
        self._end_log(log)

    def _report_arranged(self, found: SegmentContents, arranged: Arrangement, k: int) -> _Masks:
        """Report the segment with the index ``k``, and return the masks of its batches."""
        count = len(found.headers)
        there, moved = arranged.mark_taken(k, count), arranged.mark_moved(k, count)
        return self._report_segment(found, there, self._wanted.mark_selected(found), moved)

    def _report_segment(
        self, found: SegmentContents, there: Any, inside: Any, moved: Any
    ) -> _Masks:
        """Add what is kept, left out or lost of a segment to the report, and return the masks of
        its batches. Batches ``there`` can be written, and are if they are also ``inside`` the
        selection; ``moved`` marks those that go to another place. With ``flatten``, batches without
        committed data are emptied, and others lose their producer.
        """
        name = utf8(found.segment.path.name)
        taken = there & inside
        rewritten = emptied = np.zeros(len(taken), np.bool_)
        if self._wanted.flatten:
            emptied = taken & self._mark_uncommitted(name, found, taken)
            rewritten = taken & ~emptied & has_producer(found.headers)
        self.report.add_taken(name, found, taken & ~emptied, rewritten, moved)
        self._report_lost(name, found, inside)
        is_main = found.segment.state == self._partition.state
        self.report.note_untaken(name, found, inside & ~there, is_main=is_main)
        return _Masks(there, taken, rewritten, emptied)

    def _begin_empty(self, log: LogWriter, found: SegmentContents) -> None:
        """Let the log end at least at the base offset of a segment without batches; do nothing for
        other segments, and without a base offset in its name. Begin a segment of that name if the
        whole log is selected, the segment has no lost ranges, and all that is written lies before.
        Raise OSError if the file cannot be written.
        """
        base = get_named_base_offset(found.segment)
        if base is None or len(found.headers):
            return
        self._end = max(self._end, base)
        if self._wanted.is_all and not found.lost and base > max(self.last, log.base_offset):
            log.begin(base)

    def _write(self, log: LogWriter, found: SegmentContents, part: _Masks, *, begins: bool) -> None:
        """Write the taken batches of a part of a segment, in a segment of their own if it
        ``begins`` one, and report those that are encoded anew. If none are taken, write nothing,
        and only note the end of the log. Raise OSError if writing fails; CodecError if what was
        written does not read as its source.
        """
        headers, base = found.headers, get_named_base_offset(found.segment)
        if part.taken.any():
            first = int(headers.first[part.taken][0])
            is_whole = self._wanted.is_all or part.taken.argmax() == part.there.argmax()
            is_name = base is not None and max(self.last, log.base_offset) < base <= first
            is_name = is_name and headers.last[part.taken][0] - base <= MAX_RELATIVE
            anew = write_batches(
                log,
                found,
                part.taken,
                part.rewritten,
                part.emptied,
                base if is_whole and is_name else None,
                begins=begins,
                keep_damaged=self._wanted.keep_damaged,
                constants=NO_PRODUCER if self._wanted.flatten else {},
            )
            for one in anew:
                self.report.add_rewritten(utf8(found.segment.path.name), found, one)
            self.report.note_batches(found, part.taken)
        self._note(headers, part.there, part.taken, base)

    def _end_log(self, log: LogWriter) -> None:
        """Write a batch without records up to the old end offset (excluded) if the last batches were
        not written. New records then get no offsets that consumers have seen. If there is no
        segment, begin an empty one named by that offset instead. Do nothing if only a part of the
        log is selected. Raise OSError if writing fails; WrittenError if the batch cannot state its
        offsets.
        """
        if not self._wanted.is_all:
            return
        if not log.segments:
            log.begin(self._end)
        first, last = self.last + 1, self._end - 1
        if first <= last and log.base_offset < first:
            if last - log.base_offset > MAX_RELATIVE:
                log.begin(max(first, last - MAX_RELATIVE))
                first = log.base_offset
            epoch = self.epochs[-1][0] if self.epochs else -1
            log.write(build_empty_batch(self._version, first, last, epoch))
            self.last = last

    def _mark_uncommitted(self, name: str, found: SegmentContents, taken: Any) -> Any:
        """Return a mask of the batches without committed data: control batches, and data of
        transactions that were aborted or have not ended. Report those in ``taken`` as left out.
        """
        control = found.headers.is_control
        hidden = mark_hidden(found.headers, self._hidden)
        self.report.add_left_out(name, found, taken & control, "transaction markers and the like")
        why = "transactions that were aborted, or have not ended"
        self.report.add_left_out(name, found, taken & hidden, why)
        return control | hidden

    def _report_lost(self, name: str, found: SegmentContents, inside: Any) -> None:
        """Report the lost ranges and the incomplete tail of a segment. Skip those that hold no
        selected offsets; a range that begins at a damaged batch counts as that batch does in
        ``inside``.
        """
        troubled = {int(found.headers.position[i]): i for i in found.troubles}
        for lost in found.lost:
            i = troubled.get(lost.start)
            if self._wanted.may_concern(lost) if i is None else inside[i]:
                self.report.add_lost(name, lost)
        rest = found.unfinished
        if rest is not None:
            i = troubled.get(rest.start)
            if self._wanted.may_concern(rest) if i is None else inside[i]:
                self.report.add_unfinished(name, rest)

    def _note(self, headers: Headers, there: Any, taken: Any, base: int | None) -> None:
        """Note the batches ``taken``: the last written offset, the batch version and the leader
        epochs. The end offset of the log is raised by the batches in ``there`` and the segment's
        base offset.
        """
        if taken.any():
            self.last = int(headers.last[taken][-1])
            version = version_of(int(headers.magic[taken][-1]))
            self._version = version if version in WRITTEN_BATCH_VERSIONS else self._version
        self._end = max(self._end, self.last + 1)
        if there.any():
            self._end = max(self._end, int(headers.last[there][-1]) + 1)
        elif base is not None:
            self._end = max(self._end, base)
        note_epochs(self.epochs, headers, taken)
