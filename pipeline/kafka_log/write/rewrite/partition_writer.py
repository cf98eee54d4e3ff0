"""Writing of one partition: its selected batches, and the files that a broker keeps beside segments."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kafka_log.logs.broker_files import read_producer_snapshot
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
    RewrittenBatch,
    build_empty_batch,
    write_batches,
)
from kafka_log.write.rewrite.report import ReportRow, RewriteReport
from kafka_log.write.rewrite.segment_contents import (
    SegmentContents,
    choose_batches,
    get_named_base_offset,
    read_contents,
)
from kafka_log.write.rewrite.selection import (
    RewriteSelection,
    find_uncommitted,
    has_producer,
    mark_hidden,
)

Advance = Callable[[int], None]


def write_partition(
    partition: Partition, out: Path, wanted: RewriteSelection, advance: Advance = lambda _: None
) -> list[ReportRow]:
    """Write the selected batches of a partition, and the files that a broker keeps beside segments,
    into an empty directory. Return report rows of what was kept, left out and lost, and of open
    transactions; damage is reported, not raised. Raise OSError if writing fails; CodecError if what
    was written does not read as its source.

    Memory holds the batch headers of one segment, and the offsets and positions of all batches.
    """
    job = _Job(wanted, find_uncommitted(partition.segments) if wanted.flatten else Aborted())
    with LogWriter(out) as log:
        for segment, next_base in pair_with_next_base_offset(partition.segments):
            job.segment(log, segment, next_base)
            advance(segment.size)
        job.end(log)
    whose = not wanted.flatten
    segments = finish(partition, out, log.segments, job.epochs, job.last + 1, producers=whose)
    return [*job.report.rows(), *open_transactions(segments)]


def finish(
    source: Partition,
    out: Path,
    written: Sequence[tuple[Path, int]],
    epochs: Sequence[tuple[int, int]],
    end: int,
    *,
    producers: bool = True,
) -> list[Segment]:
    """Write the files that a broker keeps beside the segments ``written`` (paths and base offsets):
    indexes, producer snapshots, leader epochs, topic id. Return the segments. Without ``producers``
    no producer snapshot is copied. Raise OSError if a file cannot be written, or a segment read
    again; CodecError if an index is wrong.
    """
    last = len(written) - 1
    segments = [
        Segment(
            path, source.topic, source.partition, base, path.stat().st_size, "live", rolled=i < last
        )
        for i, (path, base) in enumerate(written)
    ]
    if segments:
        if producers:
            _copy_first_snapshot(source, segments[0], out)
        if write_indexes(segments, out):
            raise OSError(f"{out}: the file that was written cannot be read back")
        write_leader_epochs(source.directory, out, epochs, segments[0].base_offset, end)
    copy_partition_metadata(source.directory, out)
    return segments


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
    """Return a report row ``open``, with the first offset, for each transaction that has not ended:
    read_committed consumers stop at the first of them. Return ``[]`` without segments. Raise
    CodecError if a batch is damaged or a file cannot be read.
    """
    found = read_transactions(segments) if segments else None
    if found is None:
        return []
    return [
        ReportRow(
            _file_of(first, segments),
            "open",
            first_offset=first,
            reason=f"the transaction of producer {producer} has not ended: read_committed gives nothing from here on",
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


class _Job:
    """The state of writing one partition, segment by segment."""

    def __init__(self, wanted: RewriteSelection, hidden: Aborted) -> None:
        self.report = RewriteReport()
        self.epochs: list[tuple[int, int]] = []
        self.last = -1
        """The last offset that is written."""
        self._version = WRITTEN_BATCH_VERSIONS[-1]
        """The version of the last record batch that is written, of those that can be built from records."""
        self._wanted = wanted
        self._hidden = hidden
        self._end = 0  # the offset after the last one that was there, and belongs to the log
        self._empty: int | None = (
            None  # the base offset of the last segment, if nothing of it is written
        )

    def segment(self, log: LogWriter, segment: Segment, next_base: int | None) -> None:
        """Write the selected batches of a segment, and add what is kept, left out or lost to the
        report. Do nothing if its base offsets show that nothing is selected. Damage is reported,
        not raised. Raise OSError if writing fails; CodecError if what was written does not read as
        its source.
        """
        wanted, base = self._wanted, get_named_base_offset(segment)
        if not wanted.may_select(base, next_base):
            return
        name = utf8(segment.path.name)
        found = read_contents(segment, next_base)
        found = replace(found, lost=tuple(run.up_to(next_base) for run in found.lost))
        headers = found.headers
        there = choose_batches(found, next_base, self.last, wanted.keep_damaged)
        inside = wanted.mark_selected(found)
        taken = there & inside
        rewritten = np.zeros(len(headers), np.bool_)
        emptied = rewritten
        if wanted.flatten:
            emptied = taken & self._mark_uncommitted(name, found, taken)
            rewritten = taken & ~emptied & has_producer(headers)
        begins = not taken.any() or wanted.is_all or taken.argmax() == there.argmax()
        anew: list[RewrittenBatch] = []
        is_new = base is not None and base > max(self.last, log.base_offset)
        if base is not None and is_new and wanted.is_all and not len(headers) and not found.lost:
            log.begin(base)
        if taken.any():
            anew = write_batches(
                log,
                found,
                taken,
                rewritten,
                emptied,
                base if begins and is_new else None,
                keep_damaged=wanted.keep_damaged,
                constants=NO_PRODUCER if wanted.flatten else {},
            )
        self.report.add_taken(name, found, taken & ~emptied, rewritten)
        for one in anew:
            self.report.add_rewritten(name, found, one)
        self._say_lost(name, found, inside)
        self.report.note_untaken(name, found, inside & ~there)
        self._note(headers, there, taken, base)

    def end(self, log: LogWriter) -> None:
        """Write a batch without records up to the old end offset if the last batches were not
        written, so that new records get no offsets that consumers have seen. Begin a segment if
        there is none. Do nothing if only a part of the log is selected. Raise OSError if writing
        fails; WrittenError if the batch cannot state its offsets.
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

    def _say_lost(self, name: str, found: SegmentContents, inside: Any) -> None:
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
        """Update the last written offset, the batch version and the leader epochs by the batches
        ``taken``, and the end offset of the log by those in ``there`` and the segment's base
        offset.
        """
        if taken.any():
            self.last = int(headers.last[taken][-1])
            version = version_of(int(headers.magic[taken][-1]))
            self._version = version if version in WRITTEN_BATCH_VERSIONS else self._version
        self._end = max(self._end, base or 0, self.last + 1)
        if there.any():
            self._end = max(self._end, int(headers.last[there][-1]) + 1)
        note_epochs(self.epochs, headers, taken)
