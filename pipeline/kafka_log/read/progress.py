"""End offsets of logs that brokers are writing, for pollers that ask again and again about many partitions."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import NamedTuple

from codecgen.runtime.errors import CodecError, ValueRefused, Where
from kafka_log.logs.index_files import find_position_by_index
from kafka_log.logs.log_start import Log
from kafka_log.logs.partitions import Segment
from kafka_log.read.batch_places import (
    NO_EPOCH,
    SMALL,
    BatchPosition,
    after_snapshot,
    first_of_later_epoch,
    iter_batches,
    last_before,
)
from kafka_log.read.changing_files import is_gone, read_steadily
from kafka_log.read.selection import Selection
from kafka_log.segment import tails
from kafka_log.segment.kernels import Engine
from kafka_log.segment.model import Tail
from kafka_log.segment.positioned_reads import (
    UnreadableError,
    open_segment,
    read_what_there_is,
    size_of,
)
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.reader import SegmentReader

FINGERPRINT = 4096
"""Number of first bytes of a batch by which it is known again. The header and its checksum are among them."""

KEPT = 8
"""Number of remembered positions for each partition."""

Key = tuple[str, int]
"""Topic and partition."""


class Position(NamedTuple):
    """The next offset to read, and the leader epoch of the last batch before it (-1: unknown)."""

    offset: int
    leader_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class _Known:
    """State of a partition at its last poll. It holds as long as size and modification time of the last file are equal."""

    path: str
    size: int
    mtime_ns: int
    last: BatchPosition | None
    fingerprint: bytes
    end: Position
    kept: tuple[Position, ...] = ()
    """Positions before which the log is known to be unchanged."""
    stable: int | None = None


class LogEnds:
    """End offsets of logs at each poll. Unchanged parts of a log are not read again."""

    def __init__(self, selection: Selection, engine: Engine = "auto") -> None:
        """Prepare polls.

        Args:
            selection: The policy, the handling of damage, and the isolation level, which says whether open transactions hold records back.
            engine: Codecs that read batch headers.
        """
        self._wanted = selection
        self._engine = engine
        self._known: dict[Key, _Known] = {}

    def find_end(self, key: Key, log: Log) -> Position | None:
        """Return the end of a log, after its last whole batch, as a Position; None if its directory
        is gone. The log must have a segment; ``key`` (topic, partition) is for the cache. Raise
        CodecError for damage after the last index entry unless the selection accepts it, and if the
        last offset is the largest possible; FileNotFoundError or UnreadableError if a file is gone
        and its directory exists. Checksums are verified only if the selection accepts damage;
        batches with a wrong one are left out then.

        An incomplete tail of the active segment is not part of it.
        """
        try:
            return read_steadily(log.segments[-1].path, lambda: self._refresh(key, log)).end
        except (FileNotFoundError, UnreadableError) as error:
            if is_gone(error) and not log.segments[-1].path.parent.exists():
                return None
            raise

    def has_tail(self, key: Key) -> bool:
        """Return whether the last file of a log had bytes after its last whole batch when
        :meth:`find_end` was called for ``key``. Raise KeyError if it was not.
        """
        known = self._known[key]
        return known.size > (0 if known.last is None else known.last.end)

    def find_readable_end(self, key: Key, log: Log, end: Position) -> Position:
        """Return the position up to which a log that ends at ``end`` can be read: ``end`` itself,
        or under ``read_committed`` the first offset of its oldest open transaction, if that is
        lower. Raise CodecError for damage unless the selection accepts it; KeyError under
        ``read_committed`` if :meth:`find_end` was not called for ``key`` before.
        """
        if self._wanted.isolation != "read_committed":
            return end
        known = self._known[key]
        if known.stable is None:
            stable = read_steadily(
                log.segments[-1].path,
                lambda: self._last_stable_offset(log, self._known[key].end.offset),
            )
            known = replace(known, stable=stable)
            self._known[key] = known
        assert known.stable is not None
        return end if known.stable >= end.offset else self.position_at(key, log, known.stable)

    def position_at(self, key: Key, log: Log, offset: int) -> Position:
        """Return ``offset`` of a log as a Position, with the leader epoch of the last batch that
        begins before it; NO_EPOCH (-1) if there is none. If damage or an unreadable file is met on
        the way, the epoch is NO_EPOCH too; but if the selection accepts damage, it is that of the
        last sound batch. ``key`` (topic, partition) is for the cache: once :meth:`find_end` was
        called for it, positions found before are returned without a look at the files.
        """
        known = self._known.get(key)
        for position in () if known is None else (*known.kept, known.end):
            if position.offset == offset:
                return position
        try:
            found = read_steadily(
                log.segments[-1].path, lambda: last_before(log.segments, offset, self._wanted)
            )
        except CodecError:
            found = None
        made = Position(offset, NO_EPOCH if found is None else found.leader_epoch)
        self._keep(key, made)
        return made

    def find_divergence(self, key: Key, log: Log, position: Position, end: Position) -> int | None:
        """Return the offset, at most that of ``position``, from which on a log was truncated and
        perhaps written again since ``position`` was read. Return None if the log still reaches
        ``position`` and leader epochs show no change. ``end`` is the log's end now; ``key`` (topic,
        partition) is for the cache. No CodecError is raised: leader epochs that damage hides count
        as unknown.
        """
        now = self.position_at(key, log, position.offset).leader_epoch
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

    def _keep(self, key: Key, position: Position) -> None:
        """Remember a position of a partition for :meth:`position_at`. Of more than KEPT positions the oldest is dropped."""
        known = self._known.get(key)
        if known is not None:
            self._known[key] = replace(known, kept=(*known.kept[1 - KEPT :], position))

    # ------------------------------------------------------------ one partition

    def _refresh(self, key: Key, log: Log) -> _Known:
        """Return the state of a partition's log: the cached one if size and time of its last file
        are unchanged, else read again. Raise CodecError for damage unless the selection accepts it;
        ValueRefused if the last offset is the largest possible one; OSError if a file is gone.
        """
        last = log.segments[-1]
        said = last.path.stat()
        known = self._known.get(key)
        name = os.fspath(last.path)
        if known is not None and (known.path, known.size, known.mtime_ns) == (
            name,
            said.st_size,
            said.st_mtime_ns,
        ):
            return known
        goes_on = known is not None and _is_there_still(log, known)
        start = None
        if known is not None and known.last is not None and goes_on and known.path == name:
            start = known.last.position
        found = self._last_batch(replace(last, size=said.st_size), start)
        before = found
        for segment in reversed(log.segments[:-1]) if found is None else ():
            before = self._last_batch(segment, None)
            if before is not None:
                break
        offset = last.base_offset if last.has_canonical_name else 0
        epoch = NO_EPOCH
        if before is not None:
            if before.last >= MAX_OFFSET:
                where = Where(path="last_offset", file=name, position=before.position)
                raise ValueRefused(
                    f"the last offset is {before.last}, the largest that Kafka has, so that the log has no end offset:"
                    " kafka-log check tells whether the batch is damaged",
                    where,
                )
            offset, epoch = max(offset, before.last + 1), before.leader_epoch
        made = _Known(
            name,
            said.st_size,
            said.st_mtime_ns,
            found,
            b"" if found is None else _fingerprint(last, found),
            Position(offset, epoch),
            (*known.kept[1 - KEPT :], known.end) if known is not None and goes_on else (),
        )
        self._known[key] = made
        return made

    def _last_batch(self, segment: Segment, start: int | None) -> BatchPosition | None:
        """Return the last whole batch of a segment, searched from byte ``start`` on (None: from the
        last index entry), and from the start of the file if none is there. Return None if the
        segment has none. Raise CodecError for damage unless the selection accepts it.
        """
        if start is None:
            start = find_position_by_index(segment, MAX_OFFSET, None) if segment.size > SMALL else 0
        found = self._scan_batches(segment, start)
        return self._scan_batches(segment, 0) if found is None and start else found

    def _scan_batches(self, segment: Segment, start: int) -> BatchPosition | None:
        """Return the last batch of a segment from byte ``start`` on that is written to its end: the
        one before the last if the last one is not. Return None if there is none. Raise CodecError
        for damage unless the selection accepts it.
        """
        before: BatchPosition | None = None
        found: BatchPosition | None = None
        for batch in iter_batches(segment, start, self._wanted):
            before, found = found, batch
        if found is not None and not _is_whole(segment, found):
            return before
        return found

    def _last_stable_offset(self, log: Log, end: int) -> int:
        """Return the last stable offset of a log: the first offset of the oldest open transaction,
        but at most ``end``; ``end`` if no transaction is open. Raise CodecError for damage unless
        the selection accepts it.
        """
        from kafka_log.logs.transactions import (
            read_transactions,  # the codecs: not for other isolations
        )

        found = read_transactions(
            after_snapshot(log.segments),
            self._wanted.policy,
            damage_raises=self._wanted.raises,
            engine=self._engine,
        )
        return end if found.last_stable_offset is None else min(found.last_stable_offset, end)


def _is_there_still(log: Log, known: _Known) -> bool:
    """Return whether the file of a known state is still in the log, with its last batch unchanged:
    then everything before it is unchanged. Return False if the state has no batch. Raise OSError if
    the file is gone.
    """
    last = known.last
    for segment in reversed(log.segments):
        if os.fspath(segment.path) == known.path:
            return (
                last is not None
                and last.end <= segment.path.stat().st_size
                and _fingerprint(segment, last) == known.fingerprint
            )
    return False


def _fingerprint(segment: Segment, batch: BatchPosition) -> bytes:
    """Return a hash of the first FINGERPRINT bytes of a batch, or of the whole batch if it is
    shorter; bytes after the end of the file are zeros. Raise UnreadableError if the file cannot be
    opened.
    """
    with open_segment(segment.path) as file:
        length = min(FINGERPRINT, batch.end - batch.position)
        return blake2b(read_what_there_is(file, batch.position, length, 0), digest_size=16).digest()


def _is_whole(segment: Segment, batch: BatchPosition) -> bool:
    """Return whether the last batch of a segment was written to its end. Return False if it ends in
    the zeros of a preallocated file and cannot be read; True for any segment but the active one.
    Raise UnreadableError if the file cannot be read.
    """
    if segment.tail is not Tail.ACTIVE:
        return True
    with open_segment(segment.path) as file:
        size = size_of(file)

        def read(position: int, n: int) -> bytes:
            return read_what_there_is(file, position, min(n, size - position), 0xFF)

        if not tails.is_unwritten(read, batch.position, size):
            return True
    reader = SegmentReader(
        segment.path, start=batch.position, tail=segment.tail, records=False, salvage_records=False
    )
    return next(iter(reader), None) is not None
