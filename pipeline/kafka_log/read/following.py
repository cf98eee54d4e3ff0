"""Records that are appended to partitions while they are read, each returned once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_codecs.columns.records import RECORDS
from kafka_log.logs.broker_files import read_topic_id
from kafka_log.logs.incomplete_tails import find_incomplete_tail, separate_incomplete_tail
from kafka_log.logs.index_files import find_position_by_index, find_start_position
from kafka_log.logs.listing import list_segment_files
from kafka_log.logs.partitions import Partition, Segment, pair_with_next_base_offset
from kafka_log.logs.replicas import read_end_offset
from kafka_log.read.isolation import PartitionFilters
from kafka_log.read.output import Output
from kafka_log.read.plan import ReadPlan, Split
from kafka_log.read.reader import PlanReader, SplitEnd
from kafka_log.read.scanning import Watch
from kafka_log.read.selection import Selection
from kafka_log.segment.kernels import KERNEL_MIN_BYTES, Engine, use_kernels
from kafka_log.segment.model import Batch, End, Policy, Tail
from kafka_log.segment.offsets_of_files import offsets_of
from kafka_log.segment.positioned_reads import UnreadableError, unreadable
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.reader import damage
from kafka_log.segment.regular_files import explain_missing
from kafka_log.segment.scanner import Flagged, header_scanner

PATIENCE_S = 1.0
"""Seconds for which a damaged batch of the active segment may be one that is still being written."""

_QUIET_READS = 2
"""Reads of an unchanged file after which it is not read again until its size or time changes. The first one
may have been within the resolution of modification times."""

_HEADERS = ("position", "size", "last_offset", "crc")


class _FileChanged(Exception):
    """A listed file is gone or was replaced. The next listing tells where its records are."""


class _Header(NamedTuple):
    """Values of a batch header, to notice that a file was rewritten."""

    position: int
    size: int
    last_offset: int
    crc: int

    @property
    def end(self) -> int:
        """Position after the batch."""
        return self.position + self.size


@dataclass
class _Followed:
    """Progress in one segment file.

    ``position`` is the first byte that was not read yet, ``first`` and ``last`` are the first batch of the file and the last one that was read. ``held`` is the position of a batch that may still be
    written, since the time ``held_since`` (monotonic), and ``is_torn`` if it is known to be incomplete. ``is_done`` is True after the last byte of a rolled segment;
    ``is_broken`` after damage that ends the reading of an active segment.
    """

    identity: tuple[int, int]
    position: int
    first: _Header | None = None
    last: _Header | None = None
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
        self._topic_id: bytes | None = None
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
        with suppress(FileNotFoundError, _FileChanged):
            self._notice_replacement(segments)
            for segment, following in pair_with_next_base_offset(segments):
                yield from self._read_segment(segment, following)
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
        log cleaner has merged segments with unread offsets into it. If it became shorter, or was written again, report that
        and go on at its end or at the first unread offset. Report once a path that cannot be
        examined. ``following`` is the base offset of the next segment (None: none). Raise
        FileNotFoundError or _FileChanged if the file is gone or was replaced.
        """
        known = self._files.get(segment.path)
        is_done = known is not None and known.is_done and segment.rolled
        if is_done and following is not None and following <= (self._next_offset or 0):
            return
        try:
            status = segment.path.stat()
        except OSError as error:
            self._report_unreadable(segment, error, following)
            return
        identity = (status.st_dev, status.st_ino)
        if known is None or known.identity != identity:
            known = _Followed(identity, self._find_start(segment))
            self._files[segment.path] = known
        elif is_done:
            return
        if known.is_done or status.st_size < known.position:
            self._report_truncated(segment, known)
        stamp = (status.st_size, status.st_mtime_ns)
        known.unchanged_reads = known.unchanged_reads + 1 if stamp == known.stamp else 0
        known.stamp = stamp
        if not segment.rolled and (
            known.is_broken
            or status.st_size == known.position
            or (known.unchanged_reads > _QUIET_READS and (known.held is None or known.is_torn))
        ):
            return
        if self._was_rewritten(segment, known):
            self._check_identity(segment, known)
            self._find_again(segment, known)
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
        _FileChanged if the log cleaner is about to put a file with them there, FileNotFoundError if
        the directory is gone.
        """
        if self._next_offset is not None:
            if segment.base_offset >= self._next_offset:
                if segment.base_offset > self._next_offset:
                    self._check_replacement(segment)
                    self._print_line(
                        f"{self._name}: offsets {self._next_offset} to {segment.base_offset - 1} were deleted before they were read"
                    )
                return 0
            self._skip_offsets_before(self._next_offset)
            return find_start_position(segment, self._next_offset, None, self._engine)
        if segment.path in self._unselected:
            return segment.size
        low, begin = self._rows.offsets[0], self._selection.timestamps[0]
        if self._selection.policy is Policy.KAFKA and (low is not None or begin is not None):
            return find_start_position(segment, low, begin, self._engine)
        return 0

    def _check_replacement(self, segment: Segment) -> None:
        """Raise _FileChanged if the directory of a segment has a ``.swap`` file with a lower base
        offset: the log cleaner is about to put it before the segment. Raise FileNotFoundError if
        the directory is gone.
        """
        for file in list_segment_files(segment.path.parent):
            if file.state == "swap" and file.base_offset < segment.base_offset:
                raise _FileChanged

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
        none. Iterating raises _FileChanged before the first record if the file was replaced, or is
        gone and could not be opened.
        """
        begin = file.position
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
        with suppress(FileNotFoundError):
            self._note_last_batch(segment, file, begin)

    def _check_identity(
        self, segment: Segment, file: _Followed, *, was_opened: bool = False
    ) -> None:
        """Raise _FileChanged if another file lies at the path of a segment now, or if nothing does
        and bytes that were not read yet cannot be read any more. ``was_opened`` tells that they
        were, also under the name that a broker gives to a file that it deletes.
        """
        try:
            status = segment.path.stat()
        except FileNotFoundError:
            if was_opened or segment.size <= file.position:
                return
            raise _FileChanged from None
        if (status.st_dev, status.st_ino) != file.identity:
            raise _FileChanged

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

    def _note_last_batch(self, segment: Segment, file: _Followed, begin: int) -> None:
        """Note the last batch before ``file.position``, of those from byte ``begin`` on, and the
        offset after it. Do nothing if there is none, nothing was read, or the file was replaced
        meanwhile. Raise FileNotFoundError if the file is gone.
        """
        if file.position <= begin:
            return
        if file.last is None:
            indexed = find_position_by_index(segment, MAX_OFFSET, None, self._engine)
            begin = max(begin, indexed) if indexed < file.position else begin
        found = _find_last_header(segment.path, begin, file.position)[0]
        first = file.first or _find_last_header(segment.path, 0, 1)[0]
        status = segment.path.stat()
        if found is None or (status.st_dev, status.st_ino) != file.identity:
            return
        file.first, file.last = first, found
        end = _end_of_offsets(pa.array([found.last_offset]), segment, None)
        self._next_offset = max(self._next_offset or 0, end)

    # ------------------------------------------------------------ logs that were changed

    def _was_rewritten(self, segment: Segment, file: _Followed) -> bool:
        """Return whether the last batch that was read is no longer at its position in the file, also
        because its header is damaged now; False if none was read, or the system cannot read it any
        more. Raise FileNotFoundError if the file is gone.
        """
        last = file.last
        if last is None:
            return False
        found, damage = _find_last_header(segment.path, last.position, last.position + 1)
        return found != last and not isinstance(damage, UnreadableError)

    def _report_truncated(self, segment: Segment, file: _Followed) -> None:
        """Report that the broker truncated a file that was read further, and set ``file`` to go on
        at its end. What lies before may have been written again since the truncation. Raise
        FileNotFoundError if the file is gone.
        """
        found = _find_last_header(segment.path, 0, None)[0]
        offset = segment.base_offset if found is None else found.last_offset + 1
        file.position = 0 if found is None else found.end
        file.last, file.held, file.is_done, file.is_broken = found, None, False, False
        file.first = _find_last_header(segment.path, 0, 1)[0]
        self._report_shorter(offset)

    def _find_again(self, segment: Segment, file: _Followed) -> None:
        """Report that a file was truncated and written again since it was read, and set ``file`` to
        go on at the first unread offset. Its new records below that offset are left out.
        """
        assert self._next_offset is not None
        self._print_line(
            f"{self._name}: the log was truncated and written again below offset {self._next_offset}: its new records before that"
            " offset are not printed"
        )
        self._skip_offsets_before(self._next_offset)
        file.position = find_start_position(segment, self._next_offset, None, self._engine)
        file.first, file.last, file.held, file.is_broken = None, None, None, False

    def _notice_replacement(self, segments: Sequence[Segment]) -> None:
        """If the partition holds the log of another topic now, because it was deleted and created again, report it and begin
        with its first record. Raise FileNotFoundError if a file is gone.
        """
        topic_id, before = read_topic_id(self.partition.directory), self._topic_id
        if self._next_offset is None or not segments:
            is_other = False
        elif topic_id is None or before is None:
            is_other = self._looks_replaced(segments, self._next_offset)
        else:
            is_other = topic_id != before
        self._topic_id = topic_id or before
        if is_other:
            self._print_line(
                f"{self._name}: the log was replaced by another one: it is printed from its first record on"
            )
            self._files, self._next_offset = {}, None
            self._rows, self._lowest = replace(self._rows, offsets=(None, None)), None
            self._unselected = set()

    def _looks_replaced(self, segments: Sequence[Segment], next_offset: int) -> bool:
        """Return whether segments without a topic id look like another log: it ends before the next unread offset, and none of
        its files begins with the batch that was read there. If one does, and the active file is unknown, report that the log was
        truncated. Raise FileNotFoundError if a file is gone.
        """
        active = segments[-1]
        known = self._files.get(active.path)
        if active.base_offset >= next_offset or (known is not None and known.first is None):
            return False
        first = _find_last_header(active.path, 0, 1)[0]
        if known is not None and first in (None, known.first):
            return False
        end = _read_end(segments)
        if end >= next_offset:
            return False
        files = ((s.path, self._files[s.path].first) for s in segments if s.path in self._files)
        if not any(first == _find_last_header(path, 0, 1)[0] for path, first in files if first):
            return True
        self._report_shorter(end)
        return False

    def _report_shorter(self, end: int) -> None:
        """Report that the log ends before the next unread offset, and go on at its end. Do nothing if it does not."""
        if self._next_offset is not None and end < self._next_offset:
            self._print_line(
                f"{self._name}: the log was truncated from offset {self._next_offset} to {end} or below: records from {end} on replace"
                " those that were printed, and records before it that were written again are not printed"
            )
            self._next_offset = end
            self._skip_offsets_before(end)


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


def _find_last_header(
    path: Path, start: int, stop: int | None
) -> tuple[_Header | None, CodecError | None]:
    """Return the last batch that begins between two positions of a file, by the headers, and the damage that ended the
    reading; None if there is no batch before it, or no damage. ``stop`` None: up to the end. Raise FileNotFoundError if the
    file is gone.
    """
    found = None
    headers = header_scanner(
        path, _HEADERS, on_damage="keep", start=start, stop=stop, tail=Tail.ACTIVE
    )
    with suppress(CodecError):
        for batch in headers:
            if batch.num_rows:
                found = _Header(*(batch.column(name)[-1].as_py() for name in _HEADERS))
    return found, None if headers.end is None else headers.end.error
