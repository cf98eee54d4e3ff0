"""How far logs go that brokers are writing: asked again and again, of many partitions."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import NamedTuple

from codecgen.runtime.errors import CodecError, ValueRefused, Where
from kafka_log.disk.directory import MAX_OFFSET, Segment
from kafka_log.disk.index_files import first_position
from kafka_log.segment import tails
from kafka_log.segment.kernels import Engine
from kafka_log.segment.model import Tail
from kafka_log.segment.positioned_reads import UnreadableError, open_segment, read_what_there_is
from kafka_log.segment.reader import SegmentReader
from kafka_log.tables.batch_places import (
    NO_EPOCH,
    SMALL,
    Placed,
    after_snapshot,
    first_of_later_epoch,
    last_before,
    placed,
)
from kafka_log.tables.committed import Log
from kafka_log.tables.selection import Selection

FINGERPRINT = 61
"""Bytes of a batch by which it is known again: those of a header, with its checksum."""

Key = tuple[str, int]
"""Topic and partition."""


class Position(NamedTuple):
    """An offset that is read next, and the leader epoch of the last batch before it; -1 where that is not known."""

    offset: int
    leader_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found of a partition, as long as its last file is what it was."""

    path: str
    size: int
    mtime_ns: int
    last: Placed | None
    fingerprint: bytes
    end: Position
    stable: int | None = None


class Ends:
    """The ends of logs, poll by poll: what did not change since is not read again.

    ``wanted`` says what damage is and what becomes of it, and whether transactions hold back what is undecided.
    """

    def __init__(self, wanted: Selection, engine: Engine = "auto") -> None:
        self._wanted = wanted
        self._engine = engine
        self._known: dict[Key, _Known] = {}

    def of(self, key: Key, log: Log) -> Position | None:
        """Where reading of a log ends now: after its last whole batch; with ``read_committed`` where its oldest open transaction begins.

        None when the file is gone by now. What a broker leaves at the end of the segment that it writes to waits. Raises CodecError for
        damage after the last entry of the index, where that is an error.
        """
        last = log.segments[-1]
        try:
            known = self._refreshed(key, log, last)
        except FileNotFoundError:
            return None
        except UnreadableError as error:
            if not os.path.lexists(last.path):
                return None
            raise error
        if self._wanted.isolation != "read_committed":
            return known.end
        if known.stable is None:
            known = replace(known, stable=self._stable(log, known.end.offset))
            self._known[key] = known
        stable = known.stable
        assert stable is not None
        if stable >= known.end.offset:
            return known.end
        return self.at(log, stable)

    def at(self, log: Log, offset: int) -> Position:
        """An offset with its leader epoch."""
        try:
            found = last_before(log.segments, offset, self._wanted)
        except CodecError:
            found = None
        return Position(offset, NO_EPOCH if found is None else found.leader_epoch)

    def diverged(self, log: Log, position: Position, end: Position) -> int | None:
        """Where a log that was read up to a position, and ends at ``end``, became another one before it: a leader without all of its
        records truncated it. None when it did not, as far as batches say."""
        now = self.at(log, position.offset).leader_epoch
        known = position.leader_epoch
        if end.offset >= position.offset and not NO_EPOCH < known < now:
            return None
        later = None
        if known > NO_EPOCH:
            try:
                later = first_of_later_epoch(log.segments, known, self._wanted)
            except CodecError:
                later = None
        return min(end.offset, position.offset, position.offset if later is None else later)

    # ------------------------------------------------------------ one partition

    def _refreshed(self, key: Key, log: Log, last: Segment) -> _Known:
        said = os.stat(last.path)  # noqa: PTH116
        known = self._known.get(key)
        name = os.fspath(last.path)
        if known is not None and (known.path, known.size, known.mtime_ns) == (
            name,
            said.st_size,
            said.st_mtime_ns,
        ):
            return known
        found = self._last_batch(replace(last, size=said.st_size), known)
        before = found
        for segment in reversed(log.segments[:-1]) if found is None else ():
            before = self._last_batch(segment, None)
            if before is not None:
                break
        offset = last.base_offset if last.is_named else 0
        epoch = NO_EPOCH
        if before is not None:
            if before.last >= MAX_OFFSET:
                where = Where(path="last_offset", file=name, position=before.position)
                raise ValueRefused(f"{before.last} has none after it", where)
            offset, epoch = max(offset, before.last + 1), before.leader_epoch
        made = _Known(
            name,
            said.st_size,
            said.st_mtime_ns,
            found,
            b"" if found is None else _fingerprint(last, found),
            Position(offset, epoch),
        )
        self._known[key] = made
        return made

    def _last_batch(self, segment: Segment, known: _Known | None) -> Placed | None:
        """The last whole batch of a segment: from the one that was the last before on, else from where the index ends."""
        start = 0
        if (
            known is not None
            and known.last is not None
            and known.path == os.fspath(segment.path)
            and known.last.end <= segment.size
            and _fingerprint(segment, known.last) == known.fingerprint
        ):
            start = known.last.position
        elif segment.size > SMALL:
            start = first_position(segment, MAX_OFFSET, None)
        found = self._walk(segment, start)
        return self._walk(segment, 0) if found is None and start else found

    def _walk(self, segment: Segment, start: int) -> Placed | None:
        before: Placed | None = None
        found: Placed | None = None
        for batch in placed(segment, start, self._wanted):
            before, found = found, batch
        if found is not None and not _is_whole(segment, found):
            return before
        return found

    def _stable(self, log: Log, end: int) -> int:
        from kafka_log.disk.transactions import transactions  # the codecs: not for other isolations

        found = transactions(
            after_snapshot(log.segments),
            self._wanted.policy,
            damage_raises=self._wanted.raises,
            engine=self._engine,
        )
        return end if found.last_stable_offset is None else min(found.last_stable_offset, end)


def _fingerprint(segment: Segment, batch: Placed) -> bytes:
    with open_segment(segment.path) as file:
        length = min(FINGERPRINT, batch.end - batch.position)
        return read_what_there_is(file, batch.position, length, 0)


def _is_whole(segment: Segment, batch: Placed) -> bool:
    """Whether the last batch of a file was written to its end: a file that was made longer in advance has zeros where it will be."""
    if segment.tail is not Tail.ACTIVE:
        return True
    with open_segment(segment.path) as file:
        size = os.fstat(file.fileno()).st_size

        def read(position: int, n: int) -> bytes:
            return read_what_there_is(file, position, min(n, size - position), 0xFF)

        if not tails.is_unwritten(read, batch.position, size):
            return True
    reader = SegmentReader(
        segment.path, start=batch.position, tail=segment.tail, records=False, rescue=False
    )
    return next(iter(reader), None) is not None
