"""One pass over a file of batches: what comes next, and what becomes of damage."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from io import FileIO
from typing import TYPE_CHECKING

from codecgen.runtime.errors import CodecError, ParseError, TrailingError, Where
from kafka_log.segment import tails
from kafka_log.segment.model import Batch, End, Lost, Policy, Tail, is_own_checksum
from kafka_log.segment.positioned_reads import UnreadableError, read_exactly, read_what_there_is

if TYPE_CHECKING:
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
        self.last_offset: int | None = None
        self.last_batch: int | None = None
        """Where the last batch lies when others have read it: its last offset is not known yet."""
        self.note: str | None = None

    def read(self, position: int, n: int) -> bytes:
        """``n`` bytes of the file. Raises UnreadableError."""
        return read_exactly(self.file, position, n)

    def readable(self, fill: int) -> Callable[[int, int], bytes]:
        """What reads bytes before the end of the file, and gives bytes ``fill`` for those that cannot be read."""
        return lambda position, n: read_what_there_is(
            self.file, position, min(n, self.size - position), fill
        )

    def batches(self) -> Iterator[Batch]:
        """All batches; then the reader's ``end`` is set, also when an error is raised."""
        try:
            stop = yield from self.run()
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
            size: int | None = 0
            try:
                size = self.next_size()
                if size is None:
                    if reader.policy is Policy.KAFKA and reader.tail is not Tail.ROLLED:
                        return self.partial()
                    raise self.cut_off()
                batch = reader.batch_at(self, self.position, size, records=reader.records)
                if salvage:
                    self.believe(batch)
            except CodecError as error:
                known = not isinstance(error, UnreadableError)
                if may_be_active and known and (ending := self.ending(size)) is not None:
                    return ending
                if not salvage:
                    raise
                self.skip(str(error))
                continue
            if may_be_active and not batch.is_valid and (ending := self.ending(size)) is not None:
                return ending
            self.count_in(batch)
            yield batch
        return "eof" if self.position >= self.size else "partial"

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

    def believe(self, batch: Batch) -> None:
        """Refuse a batch whose own checksum is wrong; note what is missing of one that is cut short."""
        for finding in batch.findings:
            if is_own_checksum(finding):
                raise finding
        if batch.problems:
            self.note_lost_records(batch)

    def count_in(self, batch: Batch) -> None:
        self.position += batch.size
        self.count += 1
        self.record_count += len(batch.records)
        self.all_valid = self.all_valid and batch.is_valid
        if self.all_valid:
            self.valid = self.position
        self.last_offset, self.last_batch = batch.last_offset, None

    def offset_before(self) -> int | None:
        """The last offset before this place."""
        if self.last_batch is not None:
            position, self.last_batch = self.last_batch, None
            size = self.position - position
            try:
                batch = self.reader.batch_at(self, position, size, records=False)
            except UnreadableError:  # it could be read before
                return self.last_offset
            self.last_offset = batch.last_offset
        return self.last_offset

    def note_lost_records(self, batch: Batch) -> None:
        after = batch.records[-1].offset if batch.records else None
        reason = f"{len(batch.records)} records could be read: {batch.problems[-1].error}"
        end = batch.position + batch.size
        self.lost.append(Lost(batch.position, end, reason, after, batch.next_offset))

    def skip(self, reason: str) -> None:
        """Go on at the next batch that is whole; what is in between is lost, but for zeros at the end of an active file."""
        start = self.position
        found = self.next_entry()
        end = self.size
        if found is None and self.reader.tail is Tail.ACTIVE:
            end = tails.data_end(self.readable(UNKNOWN), start, self.size)
        position, offset = (end, None) if found is None else found
        self.lost.append(Lost(start, position, reason, self.offset_before(), offset))
        self.position = position

    def next_entry(self) -> tuple[int, int] | None:
        """Where the next whole batch begins after this place, and its first offset."""
        from kafka_log.segment.resynchronisation import next_entry

        read = self.readable(0)
        return next_entry(read, self.position + 1, self.size, self.name, self.offset_before())

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
            error=error,
            lost=tuple(self.lost),
            note=self.note,
        )
