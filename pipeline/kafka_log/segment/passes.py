"""One pass over a file of batches: what comes next, and what becomes of damage."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from io import FileIO
from typing import TYPE_CHECKING

from codecgen.runtime.errors import CodecError, ParseError, TrailingError, Where
from kafka_log.segment import tails
from kafka_log.segment.entry_search import EntrySearch
from kafka_log.segment.model import Batch, End, Lost, Policy, Tail, is_own_checksum
from kafka_log.segment.offsets_before import OffsetsBefore
from kafka_log.segment.offsets_of_files import offsets_of
from kafka_log.segment.positioned_reads import UnreadableError, read_exactly, read_what_there_is
from kafka_log.segment.read_ahead import ReadAhead

if TYPE_CHECKING:
    from kafka_log.segment.framing import Frame
    from kafka_log.segment.reader import SegmentReader

UNKNOWN = 0xFF
"""Stands for bytes that cannot be read, where zeros mean something."""


class Run:
    """One pass over a file."""

    def __init__(self, reader: SegmentReader, file: FileIO, size: int) -> None:
        self.reader = reader
        self.file = file
        self.size = size
        self.name = os.fspath(reader.path)
        self.position = reader.start
        self.count = self.record_count = 0
        self.valid = reader.start
        self.all_valid = True
        self.lost: list[Lost] = []
        self.note: str | None = None
        self.skipped: int | None = None
        """The end of the last bytes that were skipped."""
        self.ahead = ReadAhead(file, size)
        allowed = (
            offsets_of(reader.path, reader.next_base) if reader.policy is Policy.SALVAGE else None
        )
        self.offsets = OffsetsBefore(self.readable(0), self.name, allowed)
        self.search = EntrySearch(self.readable(0), size, self.name, self.offsets)
        self.around: tuple[int | None, int | None] = (None, None)
        """Of the last batch with a wrong checksum: the last offset before it, and the first of the next good entry; None: unknown."""

    def read(self, position: int, n: int) -> bytes:
        """``n`` bytes of the file. Raises UnreadableError."""
        return read_exactly(self.file, position, n)

    def readable(self, fill: int) -> Callable[[int, int], bytes]:
        """What reads bytes before the end of the file, and gives bytes ``fill`` for those that cannot be read."""
        file, size = self.file, self.size  # not what holds the reader of these bytes
        return lambda position, n: read_what_there_is(file, position, min(n, size - position), fill)

    def batches(self) -> Iterator[Batch]:
        """All batches; then the reader's ``end`` is set, also when an error is raised."""
        try:
            try:
                stop = yield from self.run()
            except TrailingError as error:
                self.check_whole()  # it says more than that the last batch is torn
                raise error
            self.check_whole()
        except CodecError as error:
            self.finish("error", error)
            if self.reader.policy is Policy.STRICT:
                raise
        else:
            self.finish(stop, None)

    def run(self) -> Generator[Batch, None, str]:
        reader = self.reader
        salvage = reader.policy is Policy.SALVAGE
        stop = self.size if reader.stop is None else min(reader.stop, self.size)
        may_be_active = reader.tail is Tail.ACTIVE and reader.policy is not Policy.STRICT
        while self.position < stop:
            for plain in self.plain():
                self.count_in(plain)
                after = self.position
                yield plain
                if self.position != after or after >= stop:  # others may have read on
                    break
            if self.position >= stop:
                break
            size: int | None = 0
            try:
                size = self.next_size()
                if size is None:
                    if reader.policy is Policy.KAFKA and reader.tail is not Tail.ROLLED:
                        return self.partial()
                    raise self.cut_off()
                batch = reader.batch_at(self, self.position, size, records=reader.records)
            except CodecError as error:
                known = not isinstance(error, UnreadableError)
                if may_be_active and known and (ending := self.ending(size)) is not None:
                    return ending
                if not salvage:
                    raise
                rescued = self.rescue(error, None)
                if rescued is None:
                    continue
                batch = rescued
            else:
                if salvage:
                    self.settle_offsets(batch)
                    wrong = next(filter(is_own_checksum, batch.findings), None)
                    if wrong is not None:
                        rescued = self.rescue(wrong, batch)
                        if rescued is None:
                            continue
                        batch = rescued
                    elif batch.problems:
                        self.note_lost_records(batch, batch.next_offset)
            if may_be_active and not batch.is_valid and (ending := self.ending(size)) is not None:
                return ending
            self.count_in(batch)
            yield batch
        return "eof" if self.position >= self.size else "partial"

    def check_whole(self) -> None:
        """Miss the bytes that the file had before. Raises UnreadableError, where damage is an error."""
        missing = self.reader.missing(self.size)
        if not missing:
            return
        error = self.shorter(missing)
        self.size = missing.stop
        if self.reader.policy is not Policy.SALVAGE:
            raise error
        self.lost.append(Lost(missing.start, missing.stop, str(error), self.offsets.last()))
        self.position = missing.stop

    def plain(self) -> Iterator[Batch]:
        """The next batches, as far as nothing is wrong with them and their records are not asked for: of many at a time."""
        if self.reader.reads_plain:
            from kafka_log.segment.reference import plain_batches

            wanted = 1
            while wanted and (held := self.ahead.at(self.position, wanted)) is not None:
                wanted = yield from plain_batches(held, self.position)

    def next_size(self) -> int | None:
        """Length of the next entry, None when the file ends before the entry does."""
        from kafka_log.segment import framing

        left = self.size - self.position
        # Apache Kafka's file reader wants one byte more than the head of an entry.
        if left <= framing.HEADER_START:
            return None
        frame = framing.frame_of(
            self.read(self.position, framing.HEADER_START), self.position, self.name
        )
        return frame.size if frame.size <= left else None

    def ending(self, size: int | None) -> str | None:
        """How an active file ends at an entry that is not good, None when that is no normal end. ``size`` is that of the entry,
        None when the file ends before it does."""
        left = self.size - self.position
        read = self.readable(UNKNOWN)
        if tails.all_zeros(read, self.position, self.size):
            self.note = tails.zeros_note(left)
            return "zeros"
        if self.reader.policy is Policy.SALVAGE or size is None:
            return None  # half a batch is lost
        if not tails.is_unwritten(read, self.position, self.size):
            return None
        self.note = tails.torn_note(left)
        return "partial"

    def partial(self) -> str:
        """How a file ends with half an entry. An active one must not go on after it: that would be damage."""
        if self.reader.tail is Tail.ACTIVE:
            ending = self.ending(None)
            if ending is not None:
                return ending
            following = self.next_entry()
            if following is not None:
                raise self.cut_off(f", but one begins at byte {following[0]}")
            self.note = tails.torn_note(self.size - self.position)
        return "partial"

    def parse(self, data: bytes) -> Batch:
        """The entry at this place, of its bytes. Raises CodecError."""
        reader = self.reader
        return reader.engine(
            data,
            self.position,
            self.name,
            reader.policy,
            reader.limits,
            reader.records,
            reader.check_rules,
        )

    def settle_offsets(self, batch: Batch) -> None:
        """Give the records of a damaged wrapper their offsets, as far as what was read before it tells them."""
        if any(problem.at == "offsets" for problem in batch.problems):
            from kafka_log.segment import rescue

            rescue.settle_offsets(batch, self.offsets.last())

    def rescue(self, error: CodecError, batch: Batch | None) -> Batch | None:
        """What can be read of an entry that is not good. ``batch`` is what it holds if all of its bytes are there. None when
        that is nothing: then it is skipped, and listed as lost."""
        from kafka_log.segment import rescue

        if not self.reader.rescue:
            place, offset = self.next_entry() or (self.size, None)
            self.skip(str(error), place, offset)
            return None
        frame = rescue.claimed(self.readable(0), self.position, self.name)
        says = self.size + 1 if frame is None else self.position + frame.size
        place, offset = self.next_entry() or (self.size, None)
        if batch is not None and place < says and not batch.says_base_offset:
            place, offset = self.next_entry_outside(batch, place, offset, says, frame, error)
        fits = says == place or says == self.size or (place < says and self.search.is_at(says))
        if batch is not None and says > place:
            cut = rescue.torn(self.beginning(place), frame, error, self.parse)
            whole = cut is not None and (cut.is_valid or rescue.has_all(cut))
            if whole or not (fits or rescue.fills(batch)):
                if cut is not None:
                    rescue.take_offsets(cut, batch)
                batch, says = cut, place
        elif batch is None and not fits:
            if frame is not None and place < self.size and self.goes_past(place, frame, error):
                place, offset = self.size, None
            says = min(says, place) if frame is not None else place
        end = says
        following = offset if end == place else None
        # An entry inside of the batch is one of its messages.
        self.around = self.offsets.last(), offset if place >= end else None
        unwritten = self.reader.tail is Tail.ACTIVE and following is None
        if unwritten and tails.is_unwritten(self.readable(UNKNOWN), self.position, self.size):
            # Zeros that nobody wrote are not of it, but for the one that a record without headers ends in.
            end = tails.data_end(self.readable(UNKNOWN), self.position, end)
            batch = None
        if batch is None:
            batch = rescue.torn(self.beginning(min(end + 1, says)), frame, error, self.parse)
            after = self.offsets.last()
            if batch is not None:
                self.settle_offsets(batch)
                if after is not None and any(r.offset <= after for r in batch.records[:1]):
                    batch = None  # not trusted either where entries are searched
        else:
            self.settle_offsets(batch)
        if batch is None or not (batch.records if self.reader.records else batch.record_count):
            self.skip(str(error), end, following)
            return None
        batch.size = end - self.position
        if not rescue.has_all(batch):
            self.note_lost_records(batch, following)
        return batch

    def next_entry_outside(
        self,
        batch: Batch,
        place: int,
        offset: int | None,
        says: int,
        frame: Frame | None,
        error: CodecError,
    ) -> tuple[int, int | None]:
        """Return the position and first offset of the first good entry that is no message of a wrapper.

        A compressor may store messages as they are, so that they look like good entries. ``place`` is the first good
        entry after the beginning of ``batch``, which claims to end at ``says``. The work is bounded: after that the
        wrapper is taken to hold all of them.
        """
        from kafka_log.segment import rescue
        from kafka_log.segment.resynchronisation import WORK_PER_BYTE

        budget = WORK_PER_BYTE * (says - self.position)
        while place < says:
            short = rescue.torn(self.beginning(place), frame, error, self.parse)
            if len(batch.records) <= (0 if short is None else len(short.records)):
                break
            budget -= place - self.position
            start = place + 1 if budget > 0 else says
            place, offset = self.search.next_from(start) or (self.size, None)
        return place, offset

    def goes_past(self, place: int, frame: Frame, error: CodecError) -> bool:
        """Whether what looks like a good entry is a message of the torn wrapper at this place: one that the compressor
        left as it was."""
        from kafka_log.segment import rescue

        short, long = (
            rescue.torn(self.beginning(end), frame, error, self.parse) for end in (place, self.size)
        )
        return long is not None and rescue.has_more(long, short)

    def beginning(self, end: int) -> bytes:
        """The bytes from this place up to ``end``, or up to the first that cannot be read."""
        count = end - self.position
        try:
            return self.read(self.position, count)
        except UnreadableError:
            zeros, others = (self.readable(fill)(self.position, count) for fill in (0, UNKNOWN))
            same = (i for i, (a, b) in enumerate(zip(zeros, others, strict=False)) if a != b)
            return zeros[: next(same, len(zeros))]

    def count_in(self, batch: Batch) -> None:
        self.position += batch.size
        self.count += 1
        self.record_count += len(batch.records)
        self.all_valid = self.all_valid and batch.is_valid
        if self.all_valid:
            self.valid = self.position
        if batch.is_valid or self.reader.policy is not Policy.SALVAGE:
            self.offsets.note(batch.position, batch.last_offset)

    def count_in_read(self, entries: int, records: int, last: int, end: int) -> None:
        """Note what others have read from here on to ``end``, as if it was read here. The last of the entries lies at ``last``."""
        self.offsets.note_run(self.position, last)
        self.position = end
        self.count += entries
        self.record_count += records
        if self.all_valid:
            self.valid = end

    def note_lost_records(self, batch: Batch, following: int | None) -> None:
        """Note that some records of a batch are lost. ``following`` is the first offset after it."""
        after = self.offsets.last()
        if batch.records and self.offsets.is_between(after, batch.records, following):
            after = batch.records[-1].offset
        torn = bool(batch.problems) and batch.problems[0].at == "size"
        why = (
            batch.problems[0 if torn else -1].error
            if batch.problems
            else "the others are not there"
        )
        reason = f"{len(batch.records)} records could be read: {why}"
        end = batch.position + batch.size
        lost = Lost(batch.position, end, reason, after, following)
        if not batch.is_valid:
            lost = replace(lost, around=self.around, read=len(batch.records))
        self.lost.append(lost)

    def skip(self, reason: str, end: int, following: int | None) -> None:
        """Go on at ``end``; what lies before it is lost, but for zeros at the end of an active file. ``following`` is the first offset
        after it."""
        start = self.position
        if end == self.size and self.reader.tail is Tail.ACTIVE:
            end = tails.data_end(self.readable(UNKNOWN), start, self.size)
        before = self.lost.pop() if self.lost and self.skipped == start else None
        if before is not None:  # one run of bytes
            start, reason = before.start, before.reason
        self.lost.append(Lost(start, end, reason, self.offsets.last(), following))
        self.position = self.skipped = end

    def next_entry(self) -> tuple[int, int | None] | None:
        """Where the next whole batch begins after this place, and its first offset, or the first one after it that may be."""
        return self.search.next_from(self.position + 1)

    def shorter(self, missing: range) -> UnreadableError:
        """That the file no longer has bytes that it had."""
        was, now = self.reader.size, missing.start
        said = f"it had {was} bytes when it was found, and has {now} now"
        return UnreadableError(said, Where(position=now, file=self.name))

    def cut_off(self, more: str = "") -> ParseError:
        left = self.size - self.position
        where = Where(position=self.position, file=self.name)
        return TrailingError(f"{left} bytes at the end are no whole batch{more}", where)

    def finish(self, stop: str, error: CodecError | None) -> None:
        self.reader.end = End(
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
