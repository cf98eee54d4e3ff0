"""One pass of the reference codecs over a file of batches under a policy, including salvage after damage."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from codecgen.runtime.errors import CodecError, ParseError, TrailingError, Where
from codecgen.runtime.located_bytes import Limits
from codecgen.runtime.nouns import count_noun
from kafka_log.segment import tails
from kafka_log.segment.entry_search import EntrySearch, KnownOffsets
from kafka_log.segment.model import (
    Batch,
    End,
    Lost,
    Policy,
    Tail,
    is_own_checksum,
    may_lack_records,
)
from kafka_log.segment.offsets_of_files import is_copy, offsets_of
from kafka_log.segment.positioned_reads import (
    UnreadableError,
    read_at,
    read_exactly,
    read_what_there_is,
)

if TYPE_CHECKING:
    from kafka_log.segment.framing import Frame

UNKNOWN = 0xFF
"""Fill byte for unreadable bytes if zeros have a meaning."""


WINDOW = 1 << 20
"""Number of bytes that are read at once."""

MAX_BUFFERED = 16 << 20
"""Maximum bytes of one batch that are buffered."""


class ReadAhead:
    """Buffered reads of a file of ``size`` bytes: one window of it is in memory."""

    def __init__(self, file: FileIO, size: int) -> None:
        """Start with an empty window."""
        self.file = file
        self.size = size
        self.buffer = self.window = memoryview(b"")
        self.start = 0
        """Position in the file of the first byte of the window."""

    def read(self, position: int, n: int) -> memoryview | None:
        """Return at least ``n`` bytes of the file from ``position`` on, as a view that the next
        call may overwrite. Return None if the file has fewer, they cannot be read, or ``n`` is
        above 16 MiB and not in memory.
        """
        if 0 <= position - self.start <= len(self.window) - n:
            return self.window[position - self.start :]
        left = self.size - position
        if n > min(left, MAX_BUFFERED):
            return None
        if len(self.buffer) < n:
            self.buffer = memoryview(bytearray(min(max(n, WINDOW), self.size)))
        self.window, self.start = self.buffer[:0], position
        try:
            got = read_at(self.file, self.buffer[:left], position)
        except UnreadableError:
            return None  # the caller reads again, and reports it
        self.window = self.buffer[:got]
        return self.window if n <= got else None


@dataclass(frozen=True)
class PassOptions:
    """Which bytes of a file a pass reads, and how. :class:`~kafka_log.segment.reader.SegmentReader` describes each option."""

    path: Path
    policy: Policy
    limits: Limits
    start: int
    stop: int | None
    records: bool
    check_rules: bool
    tail: Tail
    salvage_records: bool
    size: int | None
    reaches: int | None
    next_base: int | None


class BatchParser(Protocol):
    """Function that parses an entry of the file of a pass."""

    def __call__(self, run: SegmentPass, position: int, size: int, *, records: bool) -> Batch:
        """Return the entry of ``size`` bytes at byte ``position``. Raise CodecError if it cannot be parsed."""


class SegmentPass:
    """One pass of the reference codecs over an open file, under the policy of ``options``;
    ``position`` is the byte that it has come to. ``end`` says how the file ended; it is None before
    that.
    """

    def __init__(
        self,
        options: PassOptions,
        file: FileIO,
        size: int,
        parse_batch: BatchParser,
        *,
        reads_plain: bool,
    ) -> None:
        """Prepare a pass over ``size`` bytes of ``file``. With ``reads_plain`` headers are read in runs as long as nothing is damaged."""
        self.options = options
        self.parse_batch = parse_batch
        self.reads_plain = reads_plain
        self.end: End | None = None
        self.file = file
        self.size = size
        self.name = os.fspath(options.path)
        self.position = options.start
        self.count = self.record_count = 0
        self.valid = options.start
        self.all_valid = True
        self.lost: list[Lost] = []
        self.note: str | None = None
        self.skipped: int | None = None
        """End position of the last range that was skipped."""
        self.window = ReadAhead(file, size)
        allowed = (
            offsets_of(options.path, options.next_base)
            if options.policy is Policy.SALVAGE
            else None
        )
        self.offsets = KnownOffsets(self.make_filling_read(0), self.name, allowed)
        self.search = EntrySearch(self.make_filling_read(0), size, self.name, self.offsets)
        self.around: tuple[int | None, int | None] = (None, None)
        """Offsets around the last batch with a wrong checksum: the last one before it, and the first one of the next valid entry. None: unknown."""

    def read(self, position: int, n: int) -> bytes:
        """Return ``n`` bytes of the file from the given position. Raise UnreadableError if they
        cannot be read, or the file ends before them.
        """
        return read_exactly(self.file, position, n)

    def make_filling_read(self, fill: int) -> Callable[[int, int], bytes]:
        """Return a function of a position and a number of bytes, which returns these bytes, fewer
        at the end of the file, with ``fill`` in place of unreadable ones.
        """
        file, size = self.file, self.size  # self would keep the function's own reader alive
        return lambda position, n: read_what_there_is(file, position, min(n, size - position), fill)

    def batches(self) -> Iterator[Batch]:
        """Yield all batches in file order, then set ``end``, also after an error. Raise CodecError
        for the first problem under ``strict``. Under ``kafka`` yield a batch with a wrong checksum
        too, with ``is_valid`` False; bytes that cannot be read or are no batch end the pass, with
        the error in ``end.error``. Under ``salvage`` yield the readable records of damaged batches,
        go on behind damage, and list what is lost in ``end.lost``.
        """
        try:
            try:
                stop = yield from self._read_batches()
            except TrailingError as error:
                self.check_whole()  # it says more than that the last batch is torn
                raise error
            self.check_whole()
        except CodecError as error:
            self.finish("error", error)
            if self.options.policy is Policy.STRICT:
                raise
        else:
            self.finish(stop, None)

    def _read_batches(self) -> Generator[Batch, None, str]:
        """Yield batches up to the end of the range, and return how the file ended: ``eof``,
        ``partial`` (bytes are left over) or ``zeros``. Under ``salvage`` skip damage and note what
        is lost. Raise CodecError under ``strict`` for any problem, and under ``kafka`` for bytes
        that cannot be read or are no entry, except at the normal end of an active segment; other
        damage is in the batch. At an incomplete last entry raise TrailingError under ``strict``, in
        a rolled segment, and if a valid entry follows it in an active one; otherwise ``kafka`` ends
        there.
        """
        options = self.options
        salvage = options.policy is Policy.SALVAGE
        stop = self.size if options.stop is None else min(options.stop, self.size)
        may_be_active = options.tail is Tail.ACTIVE and options.policy is not Policy.STRICT
        while self.position < stop:
            for batch in self.plain_batches():
                self.count_in(batch)
                after = self.position
                yield batch
                if self.position != after or after >= stop:  # others may have read on
                    break
            if self.position >= stop:
                break
            size: int | None = 0
            try:
                size = self.next_entry_size()
                if size is None:
                    if options.policy is Policy.KAFKA and options.tail is not Tail.ROLLED:
                        return self.end_incomplete()
                    raise self.incomplete_error()
                batch = self.parse_batch(self, self.position, size, records=options.records)
            except CodecError as error:
                known = not isinstance(error, UnreadableError)
                if may_be_active and known and (ending := self.find_normal_end(size)) is not None:
                    return ending
                if not salvage:
                    raise
                salvaged = self.salvage(error, None)
                if salvaged is None:
                    continue
                batch = salvaged
            else:
                if salvage:
                    self.resolve_offsets(batch)
                    wrong = next(filter(is_own_checksum, batch.findings), None)
                    if wrong is not None:
                        salvaged = self.salvage(wrong, batch)
                        if salvaged is None:
                            continue
                        batch = salvaged
                    elif may_lack_records(batch):
                        self.note_lost_records(batch, batch.next_offset)
            if (
                may_be_active
                and not batch.is_valid
                and (ending := self.find_normal_end(size)) is not None
            ):
                return ending
            self.count_in(batch)
            yield batch
        return "eof" if self.position >= self.size else "partial"

    def check_whole(self) -> None:
        """Raise UnreadableError if the file has become shorter since it was listed. Under
        ``salvage`` add the missing bytes to the lost ranges, and move behind them, instead. Do
        nothing if no size was listed, the last batch still reaches the next segment, or the segment
        is not rolled and ``reaches`` is None.
        """
        missing = self.missing_bytes()
        if not missing:
            return
        error = self.missing_error(missing)
        self.size = missing.stop
        if self.options.policy is not Policy.SALVAGE:
            raise error
        self.lost.append(Lost(missing.start, missing.stop, str(error), self.offsets.last()))
        self.position = missing.stop

    def missing_bytes(self) -> range:
        """Return the range of byte positions that were to be read and that the file no longer has.
        It is empty if no size was listed, the file is long enough, or its last batch still reaches
        the next segment. It is empty too if ``reaches`` is None and the segment is not rolled.
        """
        size, options = self.size, self.options
        if options.size is None or (options.reaches is None and options.tail is not Tail.ROLLED):
            return range(size, size)
        stop = options.size if options.stop is None else min(options.stop, options.size)
        if size >= stop:
            return range(size, size)
        reaches = _next_base(options.path) if options.reaches is None else options.reaches
        is_whole = reaches is not None and _comes_as_far_as(reaches, options.path)
        return range(size, size if is_whole else stop)

    def plain_batches(self) -> Iterator[Batch]:
        """Yield the next batches without their records, with verified checksums, up to the first
        that is damaged, incomplete, or a legacy message. Yield nothing unless ``reads_plain``:
        neither records nor rules nor strict checks are asked for. The caller must move the pass
        behind each batch.
        """
        if self.reads_plain:
            from kafka_log.segment.reference import plain_batches

            wanted = 1
            while wanted and (held := self.window.read(self.position, wanted)) is not None:
                wanted = yield from plain_batches(held, self.position)

    def next_entry_size(self) -> int | None:
        """Return the size in bytes of the entry at this position. Return None if the file ends
        before the entry does, or has no byte after its first HEADER_START bytes. Raise CodecError
        if no entry can begin there; UnreadableError, which is one too, if its first bytes cannot be
        read.
        """
        from kafka_log.segment import framing

        left = self.size - self.position
        # Apache Kafka's file reader needs one byte more than the header of an entry.
        if left <= framing.HEADER_START:
            return None
        frame = framing.frame_of(
            self.read(self.position, framing.HEADER_START), self.position, self.name
        )
        return frame.size if frame.size <= left else None

    def find_normal_end(self, size: int | None) -> str | None:
        """Return ``zeros`` if only zeros are left, or ``partial`` if the invalid entry at this
        position was not written to its end; set ``note`` to the reason. Return None if neither is
        so. ``salvage``, and an entry cut off by the end of the file (``size`` None), get no
        ``partial``. Callers ask for active files only.
        """
        left = self.size - self.position
        read = self.make_filling_read(UNKNOWN)
        if tails.all_zeros(read, self.position, self.size):
            self.note = tails.zeros_note(left)
            return "zeros"
        if self.options.policy is Policy.SALVAGE or size is None:
            return None  # half a batch is lost
        if not tails.is_unwritten(read, self.position, self.size):
            return None
        self.note = tails.torn_note(left)
        return "partial"

    def end_incomplete(self) -> str:
        """Return how a file ends with an incomplete entry: ``partial``, or ``zeros`` if only zeros
        are left of an active file. Raise TrailingError if a valid entry of an active file begins
        after it. Set ``note`` for active files.
        """
        if self.options.tail is Tail.ACTIVE:
            ending = self.find_normal_end(None)
            if ending is not None:
                return ending
            following = self.next_entry()
            if following is not None:
                raise self.incomplete_error(f", but one begins at byte {following[0]}")
            self.note = tails.torn_note(self.size - self.position)
        return "partial"

    def parse(self, data: bytes) -> Batch:
        """Return the entry at this position, parsed by the reference codecs from ``data`` in place
        of the file's bytes, with problems in the batch. Raise CodecError if its header cannot be
        parsed, and for any problem under ``strict``.
        """
        from kafka_log.segment.reference import construct_engine

        options = self.options
        return construct_engine(
            data,
            self.position,
            self.name,
            options.policy,
            options.limits,
            options.records,
            options.check_rules,
        )

    def resolve_offsets(self, batch: Batch) -> None:
        """Shift the offsets of the messages of a damaged wrapper, which count from its lost end, so
        that the first one follows the last offset before the wrapper. Do nothing if they are known.
        Remove all records if no offset before is known, or they would pass the wrapper's last one.
        """
        if any(problem.at == "offsets" for problem in batch.problems):
            from kafka_log.segment import salvage

            salvage.resolve_offsets(batch, self.offsets.last())

    def salvage(self, error: CodecError, batch: Batch | None) -> Batch | None:
        """Return a batch with the readable records of the invalid entry at this position, and note
        the records that are lost; the caller moves behind the batch. If none is readable, or
        ``salvage_records`` is off, add the entry to the lost ranges with the reason ``error``, move behind
        it, and return None. ``batch`` is the parsed entry, None if it did not parse.

        The stated size of the entry holds unless a valid entry begins before its end.
        """
        from kafka_log.segment import salvage

        if not self.options.salvage_records:
            place, offset = self.next_entry() or (self.size, None)
            self.skip(str(error), place, offset)
            return None
        frame = salvage.read_frame(self.make_filling_read(0), self.position, self.name)
        stated_end = self.size + 1 if frame is None else self.position + frame.size
        place, offset = self.next_entry() or (self.size, None)
        if batch is not None and place < stated_end and not batch.has_base_offset:
            place, offset = self.next_entry_outside(batch, place, offset, stated_end, frame, error)
        fits = (
            stated_end == place
            or stated_end == self.size
            or (place < stated_end and self.search.is_at(stated_end))
        )
        if batch is not None and stated_end > place:
            cut = salvage.parse_incomplete(self.read_readable(place), frame, error, self.parse)
            whole = cut is not None and (cut.is_valid or salvage.has_all_records(cut))
            if whole or not (fits or salvage.is_filled_by_records(batch)):
                if cut is not None:
                    salvage.copy_offsets(cut, batch)
                batch, stated_end = cut, place
        elif batch is None and not fits:
            if (
                frame is not None
                and place < self.size
                and self.is_message_of_wrapper(place, frame, error)
            ):
                place, offset = self.size, None
            stated_end = min(stated_end, place) if frame is not None else place
        end = stated_end
        following = offset if end == place else None
        # An entry inside of the batch is one of its messages.
        self.around = self.offsets.last(), offset if place >= end else None
        unwritten = self.options.tail is Tail.ACTIVE and following is None
        if unwritten and tails.is_unwritten(
            self.make_filling_read(UNKNOWN), self.position, self.size
        ):
            # Zeros that nobody wrote are not of it, but for the one that a record without headers ends in.
            end = tails.written_end(self.make_filling_read(UNKNOWN), self.position, end)
            batch = None
        if batch is None:
            batch = salvage.parse_incomplete(
                self.read_readable(min(end + 1, stated_end)), frame, error, self.parse
            )
            after = self.offsets.last()
            if batch is not None:
                self.resolve_offsets(batch)
                if after is not None and any(r.offset <= after for r in batch.records[:1]):
                    batch = None  # not trusted either where entries are searched
        else:
            self.resolve_offsets(batch)
        if batch is None or not (batch.records if self.options.records else batch.record_count):
            self.skip(str(error), end, following)
            return None
        batch.size = end - self.position
        if not salvage.has_all_records(batch):
            self.note_lost_records(batch, following)
        return batch

    def next_entry_outside(
        self,
        batch: Batch,
        place: int,
        offset: int | None,
        stated_end: int,
        frame: Frame | None,
        error: CodecError,
    ) -> tuple[int, int | None]:
        """Return (byte position, offset) of the first valid entry at or after ``place`` that is no
        message inside the damaged wrapper ``batch``; the end of the file and None if there is none.
        The offset is ``offset`` at ``place``; elsewhere that of a later entry, or None, if the
        entry's own is implausible. After a bounded amount of work, entries before ``stated_end``,
        where the wrapper's header says that it ends, count as messages.

        A compressor may store messages uncompressed, so that they look like valid entries. ``place`` is the first valid
        entry after the beginning of ``batch``, whose header states that it ends at ``stated_end``.
        """
        from kafka_log.segment import salvage
        from kafka_log.segment.resynchronization import WORK_PER_BYTE

        budget = WORK_PER_BYTE * (stated_end - self.position)
        while place < stated_end:
            short = salvage.parse_incomplete(self.read_readable(place), frame, error, self.parse)
            if len(batch.records) <= (0 if short is None else len(short.records)):
                break
            budget -= place - self.position
            start = place + 1 if budget > 0 else stated_end
            place, offset = self.search.next_from(start) or (self.size, None)
        return place, offset

    def is_message_of_wrapper(self, place: int, frame: Frame, error: CodecError) -> bool:
        """Return whether the valid entry at ``place`` is only a message inside the damaged wrapper
        at this position: the wrapper has more readable messages if it is read up to the end of the
        file than up to ``place``.

        A compressor may store a message as it is.
        """
        from kafka_log.segment import salvage

        short, long = (
            salvage.parse_incomplete(self.read_readable(end), frame, error, self.parse)
            for end in (place, self.size)
        )
        return long is not None and salvage.has_more_messages(long, short)

    def read_readable(self, end: int) -> bytes:
        """Return the bytes of the file from this position to ``end`` (excluded), or only those
        before the first unreadable byte.
        """
        count = end - self.position
        try:
            return self.read(self.position, count)
        except UnreadableError:
            zeros, others = (
                self.make_filling_read(fill)(self.position, count) for fill in (0, UNKNOWN)
            )
            same = (i for i, (a, b) in enumerate(zip(zeros, others, strict=False)) if a != b)
            return zeros[: next(same, len(zeros))]

    def count_in(self, batch: Batch) -> None:
        """Move to the end of a batch, and add it and its records to the counts. Advance ``valid``
        (the end of the valid bytes) if all batches so far are valid. Note its last offset, except
        for an invalid batch under ``salvage``.
        """
        self.position += batch.size
        self.count += 1
        self.record_count += len(batch.records)
        self.all_valid = self.all_valid and batch.is_valid
        if self.all_valid:
            self.valid = self.position
        if batch.is_valid or self.options.policy is not Policy.SALVAGE:
            self.offsets.note(batch.position, batch.last_offset)

    def count_in_read(self, entries: int, records: int, last: int, end: int) -> None:
        """Move to byte ``end``, and add the valid entries up to there, which a decoder has read, to
        the counts. ``last`` is the position of the last one. Advance ``valid`` (the end of the valid
        bytes) if all batches so far are valid.
        """
        self.offsets.note_run(self.position, last)
        self.position = end
        self.count += entries
        self.record_count += records
        if self.all_valid:
            self.valid = end

    def note_lost_records(self, batch: Batch, following: int | None) -> None:
        """Add a batch that could be read only in part to the lost ranges, with the offsets that may
        be missing: after its last record, or after the batches before it if it has no record with
        plausible offsets; before ``following``, the first offset after the batch (None: unknown).
        """
        after = self.offsets.last()
        if batch.records and self.offsets.is_between(after, batch.records, following):
            after = batch.records[-1].offset
        torn = bool(batch.problems) and batch.problems[0].at == "size"
        why = (
            batch.problems[0 if torn else -1].error
            if batch.problems
            else "the other records are missing"
        )
        reason = f"{count_noun(len(batch.records), 'record')} could be read: {why}"
        end = batch.position + batch.size
        lost = Lost(batch.position, end, reason, after, following)
        if not batch.is_valid:
            lost = replace(lost, around=self.around, read=len(batch.records))
        self.lost.append(lost)

    def skip(self, reason: str, end: int, following: int | None) -> None:
        """Move to byte ``end``, and add the bytes before it to the lost ranges with ``reason``. If
        ``end`` is that of an active file, stop where only zeros are left, at least 8: they are no
        loss. A range that follows the one skipped before is joined with it and has its reason.
        ``following`` is the first offset after the bytes (None: unknown).
        """
        start = self.position
        if end == self.size and self.options.tail is Tail.ACTIVE:
            end = tails.written_end(self.make_filling_read(UNKNOWN), start, self.size)
        before = self.lost.pop() if self.lost and self.skipped == start else None
        if before is not None:  # one run of bytes
            start, reason = before.start, before.reason
        self.lost.append(Lost(start, end, reason, self.offsets.last(), following))
        self.position = self.skipped = end

    def next_entry(self) -> tuple[int, int | None] | None:
        """Return (byte position, first offset) of the next valid entry after this position, None if
        there is none. The offset is None if neither the entry nor the 8 after it have an allowed
        offset.
        """
        return self.search.next_from(self.position + 1)

    def missing_error(self, missing: range) -> UnreadableError:
        """Return, not raise, the UnreadableError that the file no longer has the bytes ``missing``."""
        listed, now = self.options.size, missing.start
        was = missing.stop if listed is None else listed
        event = "copied" if is_copy(self.options.path) else "found"
        said = f"it had {count_noun(was, 'byte')} when it was {event}, and has {now} now"
        return UnreadableError(said, Where(position=now, file=self.name))

    def incomplete_error(self, more: str = "") -> ParseError:
        """Return, not raise, the TrailingError that the file ends before the entry at this position does. ``more`` is appended to the message."""
        left = self.size - self.position
        where = Where(position=self.position, file=self.name)
        return TrailingError(
            f"{count_noun(left, 'byte at the end is', 'bytes at the end are')} not a complete batch{more}",
            where,
        )

    def finish(self, stop: str, error: CodecError | None) -> None:
        """Set ``end``: how the file ended (``stop``, ``error``), the counts, the ends of the valid
        and of the read bytes, and the lost ranges.
        """
        self.end = End(
            batches=self.count,
            records=self.record_count,
            valid_bytes=self.valid,
            iterated_bytes=self.position,
            trailing_bytes=self.size - self.position,
            stop=stop,
            error=None if error is None else error.without_frames(),
            lost=tuple(self.lost),
            note=self.note,
        )


def _next_base(path: Path) -> int | None:
    """Return the smallest base offset above its own among the names of the ``.log`` files in the
    segment's directory. Return None if there is none, the directory cannot be listed, or ``path``
    has no segment name.
    """
    own = offsets_of(path)
    try:
        bases = [
            o.start
            for other in path.parent.iterdir()
            if other.suffix == ".log" and (o := offsets_of(other))
        ]
    except OSError:
        return None
    return None if own is None else min((base for base in bases if base > own.start), default=None)


def _comes_as_far_as(offset: int, path: Path) -> bool:
    """Return whether the last batch of a file, found by headers up to its end or the first damage,
    has the last offset ``offset`` - 1 or more. Return False for a file without batches, and for one
    that cannot be read.
    """
    from kafka_log.segment.batch_headers import entries
    from kafka_log.segment.framing import HeaderColumns

    last = None
    with suppress(CodecError):  # zeros that nobody wrote yet
        for entry in entries(path):
            last = entry
    if last is None:
        return False
    return bool(HeaderColumns(("last_offset",), os.fspath(path)).read(last)[0] >= offset - 1)
