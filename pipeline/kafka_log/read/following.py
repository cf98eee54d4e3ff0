"""Records that are appended to partitions while they are read, each returned once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.located_bytes import Limits
from kafka_codecs.columns.records import RECORDS
from kafka_log.logs.incomplete_tails import find_incomplete_tail, separate_incomplete_tail
from kafka_log.logs.index_files import find_position_by_index, find_start_position
from kafka_log.logs.partitions import Partition, Segment, pair_with_next_base_offset
from kafka_log.logs.replicas import read_end_offset
from kafka_log.read.followed_log import (
    BatchHeader,
    FileChanged,
    FollowedLog,
    LogChange,
    check_swaps,
    find_last_header,
)
from kafka_log.read.isolation import PartitionFilters
from kafka_log.read.output import Output
from kafka_log.read.plan import ReadPlan, Split
from kafka_log.read.reader import PlanReader, SplitEnd
from kafka_log.read.scanning import Watch
from kafka_log.read.selection import Selection
from kafka_log.segment.kernels import KERNEL_MIN_BYTES, Engine, use_kernels
from kafka_log.segment.model import Batch, End, Policy
from kafka_log.segment.offsets_of_files import offsets_of
from kafka_log.segment.positioned_reads import UnreadableError, unreadable
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.reader import damage
from kafka_log.segment.regular_files import explain_missing
from kafka_log.segment.scanner import Flagged

PATIENCE_S = 1.0
"""Seconds for which a damaged batch of the active segment may be one that is still being written."""

_QUIET_READS = 2
"""Reads of an unchanged file after which it is not read again until its size or time changes. The first one
may have been within the resolution of modification times."""


@dataclass
class _Followed:
    """Progress in one segment file.

    ``position`` is the first byte that was not read yet, and ``last`` a batch before it, None if none is known. ``held`` is the position of a batch that may still be
    written, since the time ``held_since`` (monotonic), and ``is_torn`` if it is known to be incomplete. ``is_done`` is True after the last byte of a rolled segment;
    ``is_broken`` after damage that ends the reading of an active segment.
    """

    identity: tuple[int, int]
    position: int
    last: BatchHeader | None = None
    held: int | None = None
    held_since: float = 0.0
    is_torn: bool = False
    stamp: tuple[int, int] | None = None
    unchanged_reads: int = 0
    is_done: bool = False
    is_broken: bool = False


class PartitionFollower:
    """Reader of the selected records of one partition that were appended since its last call.

    A batch at the end of the active segment that is incomplete is read when it is complete. One that is damaged is reported if
    it stays so for :data:`PATIENCE_S` and is not incomplete. Bytes that were read are not read again, except the headers of files
    that were replaced or truncated.

    Args:
        partition: The partition when it was found first.
        columns: Columns of :func:`kafka_log.scan`.
        selection: Selected records, whose offset range has no end, without ``read_committed``. Offsets that count from the end of
            the log refer to that time.
        watch: Receives damage, as in :func:`kafka_log.scan`.
        print_line: Called with a line about a log that was truncated, rewritten, replaced, or has lost records before they were read.
        limits: Limits of memory and nesting.
        engine: Codecs that read.
        offsets_are_start: True: the first selected offset only says where reading begins; after a truncation below it, new records
            below it are returned too. False: records below it are never returned, unless another log replaces this one.
    """

    def __init__(
        self,
        partition: Partition,
        columns: Sequence[str],
        selection: Selection,
        watch: Watch,
        print_line: Callable[[str], None],
        *,
        limits: Limits | None = None,
        engine: Engine = "auto",
        offsets_are_start: bool = False,
    ) -> None:
        """Resolve the selection for the partition. No record is read yet."""
        self.partition = partition
        self._columns = columns
        self._selection = selection
        self._watch = watch
        self._print_line = print_line
        self._limits = limits
        self._engine = engine
        self._files: dict[Path, _Followed] = {}
        self._unreadable: set[Path] = set()
        self._next_offset: int | None = None
        self._log = FollowedLog()
        filters = PartitionFilters(selection, engine, lists_again=True)
        self._rows = filters.filter_for(partition)
        self._lowest = None if offsets_are_start else self._rows.offsets[0]
        self._unselected = {s.path for s in partition.segments} - {
            s.path for s in filters.segments(partition)
        }

    def read_new(self, partition: Partition) -> Iterator[pa.RecordBatch]:
        """Yield the selected records that were not returned yet, by a new listing of the partition;
        only live segments count. End at the first file that is gone or was replaced since the
        listing: the call with the next listing goes on there. Damage and unreadable files go to
        ``watch``; a truncated, rewritten or replaced log, and records that were deleted unread, are
        reported by ``print_line``. No CodecError is raised.
        """
        self.partition = partition
        segments = [segment for segment in partition.segments if segment.state == "live"]
        there = {segment.path for segment in segments}
        self._files = {path: file for path, file in self._files.items() if path in there}
        end = None if self._next_offset is not None else _read_end(segments)
        with suppress(FileNotFoundError, FileChanged):
            self._notice_change(segments)
            for segment, following in pair_with_next_base_offset(segments):
                yield from self._read_segment(segment, following)
            if not self._log.is_noted:
                self._log.note_end(segments, self._next_offset or end or 0)
            if self._next_offset is None:
                self._next_offset = end  # of records that are not selected

    @property
    def _name(self) -> str:
        """Name of the partition for messages."""
        return f"{self.partition.topic}-{self.partition.partition}"

    # ------------------------------------------------------------ files

    def _read_segment(self, segment: Segment, following: int | None) -> Iterator[pa.RecordBatch]:
        """Yield the new records of a segment, and note how far it was read. Yield nothing if it was
        read to its end, or has not changed. A segment that was read to its end is read again if the
        log cleaner has merged segments with unread offsets into it, or it is the active one again.
        Report once a path that cannot be examined. ``following`` is the base offset of the next
        segment (None: none). Raise FileNotFoundError or FileChanged if the file is gone or was
        replaced.
        """
        known = self._files.get(segment.path)
        is_done = known is not None and known.is_done and segment.rolled
        if (
            (known is None or is_done)
            and segment.rolled
            and following is not None
            and following <= (self._next_offset or 0)
        ):
            return
        try:
            status = segment.path.stat()
        except OSError as error:
            self._report_unreadable(segment, error, following)
            return
        if segment.rolled and segment.problem is None and status.st_size != segment.size:
            raise FileChanged
        identity = (status.st_dev, status.st_ino)
        stamp = (status.st_size, status.st_mtime_ns)
        if (
            known is None
            or known.identity != identity
            or known.is_done != is_done
            or status.st_size < known.position
            # A new file may get the number of a deleted one.
            or (stamp != known.stamp and (is_done or _was_rewritten(segment, known)))
        ):
            known = _Followed(identity, self._find_start(segment))
            if not segment.rolled and 0 < known.position == status.st_size:
                known.last = self._find_last(segment, 0, known.position)
            self._files[segment.path] = known
        elif is_done:
            return
        known.unchanged_reads = known.unchanged_reads + 1 if stamp == known.stamp else 0
        known.stamp = stamp
        if not segment.rolled and (
            known.is_broken
            or status.st_size == known.position
            or (known.unchanged_reads > _QUIET_READS and (known.held is None or known.is_torn))
        ):
            return
        yield from self._read_bytes(replace(segment, size=status.st_size), known, following)
        if known.is_done:
            self._skip_to(following)

    def _report_unreadable(self, segment: Segment, error: OSError, following: int | None) -> None:
        """Report once that the path of a segment cannot be examined, such as a dangling link, and
        go on at ``following``, the base offset of the next segment. Raise FileNotFoundError if
        nothing lies there.
        """
        if isinstance(error, FileNotFoundError):
            error = explain_missing(error, segment.path)
        if isinstance(error, FileNotFoundError):
            raise error
        if segment.path not in self._unreadable:
            self._unreadable.add(segment.path)
            self._watch.unreadable(unreadable(error, None, segment.path))
        self._skip_to(following)

    def _skip_to(self, offset: int | None) -> None:
        """Note that the offsets below ``offset`` (None: unknown) were read or reported."""
        if offset is not None and self._next_offset is not None:
            self._next_offset = max(self._next_offset, offset)

    def _find_start(self, segment: Segment) -> int:
        """Return the byte position at which reading begins in a file that was not read yet. If the
        next unread offset is known, it is a position at or before that, and offsets before it are
        not selected any more. Else it is the file's end if no record of it is selected; under the
        policy ``kafka`` the position of the selection's first offset or timestamp by the batch
        headers; otherwise 0. Report offsets that were deleted unread. Before that, raise
        FileChanged if the log cleaner is about to put a file with them there, FileNotFoundError if
        the directory is gone.
        """
        if self._next_offset is not None:
            if segment.base_offset >= self._next_offset:
                if segment.base_offset > self._next_offset:
                    check_swaps(segment.path.parent, segment.base_offset)
                    self._print_line(
                        f"{self._name}: offsets {self._next_offset} to {segment.base_offset - 1} were deleted before they were read"
                    )
                    self._next_offset = segment.base_offset
                return 0
            self._skip_offsets_before(self._next_offset)
            return find_start_position(segment, self._next_offset, None, self._engine)
        if segment.path in self._unselected:
            return segment.size
        low, begin = self._rows.offsets[0], self._selection.timestamps[0]
        if self._selection.policy is Policy.KAFKA and (low is not None or begin is not None):
            return find_start_position(segment, low, begin, self._engine)
        return 0

    def _skip_offsets_before(self, offset: int) -> None:
        """Select no offset below ``offset`` from now on, and all from there on that the caller selected."""
        first = offset if self._lowest is None else max(self._lowest, offset)
        self._rows = replace(self._rows, offsets=(first, None))

    # ------------------------------------------------------------ rows

    def _read_bytes(
        self, segment: Segment, file: _Followed, following: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records from ``file.position`` on, report damaged batches, and advance
        ``file.position``: to the end of the file, or to a batch that may still be written, which is
        read again later. ``following`` is the base offset of the next segment, None if there is
        none. Iterating raises FileChanged before the first record if the file was replaced, or is
        gone and could not be opened.
        """
        begin = file.position
        last = self._find_last(segment, begin, segment.size)
        held: int | None = None
        end: End | None = None
        next_offset: int | None = None
        reader, split = self._make_reader(segment, begin, following)
        with closing(reader.read(split)) as events:
            for event in events:
                if next_offset is None:
                    # The file is open now. What the path leads to later does not matter.
                    self._check_identity(segment, file, was_opened=reader.bytes_read > 0)
                    next_offset = 0
                if isinstance(event, pa.RecordBatch):
                    next_offset = max(
                        next_offset, _end_of_offsets(event.column("offset"), segment, following)
                    )
                    yield event.select(self._columns)
                elif isinstance(event, Flagged):
                    if self._is_held(segment, file, event.batch):
                        held = event.batch.position
                        break
                    self._watch.batch(event.batch)
                elif isinstance(event, SplitEnd):
                    end = event.end
        if held is None:
            held = self._resolve_end(segment, file, end)
        if held is None:
            file.held = None
        else:
            file.position = held
        if next_offset:
            self._next_offset = max(self._next_offset or 0, next_offset)
        if file.position > begin:
            if last is not None and last.end > file.position:
                last = self._find_last(segment, begin, file.position)
            if last is not None:
                file.last = last
                self._note_last_batch(segment, last)

    def _check_identity(
        self, segment: Segment, file: _Followed, *, was_opened: bool = False
    ) -> None:
        """Raise FileChanged if another file lies at the path of a segment now, or if nothing does
        and bytes that were not read yet cannot be read any more. ``was_opened`` tells that they
        were, also under the name that a broker gives to a file that it deletes.
        """
        try:
            status = segment.path.stat()
        except FileNotFoundError:
            if was_opened or segment.size <= file.position:
                return
            raise FileChanged from None
        if (status.st_dev, status.st_ino) != file.identity:
            raise FileChanged

    def _make_reader(
        self, segment: Segment, start: int, following: int | None
    ) -> tuple[PlanReader, Split]:
        """Return a reader of a segment from byte ``start`` on, and the split to read. Its rows have
        the column ``offset``; its other events are flagged batches, lost ranges, and the end last.
        ``following`` (base offset of the next segment) is ignored for a segment that is still
        written. Damage and an unreadable file end the reading without an error.
        """
        partition = replace(self.partition, segments=(segment,))
        engine = self._engine
        if not use_kernels(segment.size - start, engine, KERNEL_MIN_BYTES):
            engine = "construct"
        split = Split(segment, start, None, self._rows, following if segment.rolled else None)
        columns = dict.fromkeys((*self._columns, "offset"))
        plan = ReadPlan(
            (split,),
            Output(RECORDS, [partition], tuple(columns), False),
            self._selection.policy,
            "keep",
            "next_file",
            limits=self._limits,
            engine=engine,
            expects_removal=True,
        )
        return PlanReader(plan), split

    def _resolve_end(self, segment: Segment, file: _Followed, end: End | None) -> int | None:
        """Report how a pass over a segment ended, and set ``file.position``. Return the position of
        a batch at the end of the active segment that may still be written, else None. A rolled
        segment is done, whatever its end; without an ``end`` (None) nothing happens to another one.
        """
        if segment.rolled:
            file.is_done = True
            file.position = segment.size
            self._watch.end(segment, end)
            return None
        if end is None:
            return None
        lost, tail = separate_incomplete_tail(segment, end)
        held = None if tail is None else tail.start
        if tail is None and lost and lost[-1].end >= segment.size:
            last = lost[-1].start
            if self._may_be_written(segment, file, last):
                lost, held = lost[:-1], last
        if lost:
            self._watch.end(
                segment,
                replace(end, lost=lost, trailing_bytes=0, stop="eof", error=None, note=None),
            )
        if held is not None:
            return held
        file.position = end.iterated_bytes
        if end.error is None and not end.trailing_bytes:
            return None
        if self._may_be_written(segment, file, end.iterated_bytes):
            return end.iterated_bytes
        self._watch.end(segment, end)
        file.is_broken = True
        return None

    def _is_held(self, segment: Segment, file: _Followed, batch: Batch) -> bool:
        """Return whether a flagged batch is damaged, but may still be written."""
        if segment.rolled or (batch.is_valid and not damage(batch)):
            return False
        return self._may_be_written(segment, file, batch.position)

    def _may_be_written(self, segment: Segment, file: _Followed, position: int) -> bool:
        """Return whether damaged bytes at a position of the active segment may still be written:
        they were first seen less than 1 s ago, or they look like an incomplete batch. The
        caller has found the damage. Note the position and the time when it is new.
        """
        now = time.monotonic()
        if file.held != position:
            file.held, file.held_since, file.is_torn = position, now, False
        if now - file.held_since < PATIENCE_S:
            return True
        file.is_torn = find_incomplete_tail(segment, position) is not None
        return file.is_torn

    def _find_last(self, segment: Segment, begin: int, end: int) -> BatchHeader | None:
        """Return the last batch between two positions of a segment, None if there is none."""
        if end - begin >= KERNEL_MIN_BYTES:
            indexed = find_position_by_index(segment, MAX_OFFSET, None, self._engine)
            begin = max(begin, indexed) if indexed < end else begin
        return find_last_header(segment.path, begin, end)[0]

    def _note_last_batch(self, segment: Segment, last: BatchHeader) -> None:
        """Note the last batch that was read or skipped, and the offset after it."""
        self._log.note(last)
        end = _end_of_offsets(pa.array([last.last_offset]), segment, None)
        self._next_offset = max(self._next_offset or 0, end)

    # ------------------------------------------------------------ logs that were changed

    def _notice_change(self, segments: Sequence[Segment]) -> None:
        """If records that were read are no longer in the log, report what happened and where it
        goes on: at the first record of another log, at the end of one that is shorter, else at the
        first unread offset. Raise FileChanged or FileNotFoundError if a file changed since the
        listing.
        """
        change = self._log.compare(self.partition.directory, segments, self._next_offset)
        if change is None or self._next_offset is None:
            return
        if change in (LogChange.REPLACED, LogChange.MAYBE_REPLACED):
            doubt = ""
            if change is LogChange.MAYBE_REPLACED:
                doubt = ", or was moved and changed (without a topic id, nothing tells which), so that records may come again"
            self._print_line(
                f"{self._name}: the log was replaced by another one{doubt}: it is printed from its first record on"
            )
            self._log.forget()
            self._next_offset = None
            self._rows, self._lowest = replace(self._rows, offsets=(None, None)), None
            self._unselected = set()
        elif change is LogChange.TRUNCATED_UNREAD:
            self._go_on(self._log.next_offset or 0)
        else:
            end = min(_read_end(segments), self._next_offset)
            self._log.note_end(segments, end)
            self._report_truncated(self._next_offset, end, change)
            self._go_on(end)
        self._files = {}

    def _go_on(self, offset: int) -> None:
        """Go on at ``offset``, and leave out what is before it."""
        self._next_offset = offset
        self._skip_offsets_before(offset)

    def _report_truncated(self, next_offset: int, end: int, change: LogChange) -> None:
        """Report that the log was truncated, or may have been, and goes on at ``end``: the first
        unread offset or, if it is shorter, its end.
        """
        if end < next_offset:
            line = (
                f"the log was truncated from offset {next_offset} to {end} or below: records from {end} on replace"
                " those that were printed, and records before it that were written again are not printed"
            )
        elif change is LogChange.TRUNCATED:
            line = f"the log was truncated and written again below offset {end}: its new records before that offset are not printed"
        else:
            line = (
                f"the last batch before offset {end} is gone: the log was compacted, or it was truncated or replaced and written again (nothing tells"
                f" which, because the batch has no leader epoch or the partition no topic id): it is printed from offset {end} on, and new records"
                " before that, if there are any, are not"
            )
        self._print_line(f"{self._name}: {line}")


def _was_rewritten(segment: Segment, file: _Followed) -> bool:
    """Return whether the file of a segment does not have the last batch that was read of it; False
    if its header cannot be read any more.
    """
    last = file.last
    if last is None:
        return False
    found, error = find_last_header(segment.path, last.position, last.end)
    return found != last and not isinstance(error, UnreadableError)


def _read_end(segments: Sequence[Segment]) -> int:
    """Return the end offset of a log as :func:`read_end_offset` does; MAX_OFFSET if the last offset
    is the largest possible one, so that there is none.
    """
    return min(read_end_offset(segments), MAX_OFFSET)


def _end_of_offsets(found: pa.Array, segment: Segment, following: int | None) -> int:
    """Return the offset after the highest one that the name of a segment allows, before the base
    offset ``following`` of the next one (None: none); at most MAX_OFFSET, and 0 if the name allows
    none. Offsets outside are impossible: records with lower offsets come after them.
    """
    allowed = offsets_of(segment.path, following)
    if allowed is not None:
        low, high = allowed.start, min(allowed.stop - 1, MAX_OFFSET)
        found = found.filter(pc.and_(pc.greater_equal(found, low), pc.less_equal(found, high)))
    last = pc.max(found).as_py()
    return 0 if last is None else min(last + 1, MAX_OFFSET)
