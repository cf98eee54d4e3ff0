"""One replica of a partition that is merged: its whole batches by offset, its damage, and its leader epochs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kafka_log.logs.broker_files import read_leader_epochs
from kafka_log.logs.names import LEADER_EPOCHS
from kafka_log.logs.partitions import Partition
from kafka_log.segment.header_arrays import Headers, concatenate_headers, headers_from_rows
from kafka_log.segment.placement import find_ascending
from kafka_log.write.rewrite.arrangement import Arrangement, ContentsCache
from kafka_log.write.rewrite.report import MISPLACED
from kafka_log.write.segment_contents import SegmentContents, get_named_base_offset


@dataclass(frozen=True, slots=True)
class DamagedRange:
    """Bytes of a replica without a whole batch, and the offsets that they may have held.

    Attributes:
        path: The segment, or a path with the name of a segment that is no file.
        start: First byte.
        end: Byte after the last one.
        first: First offset that may have been there.
        last: Last offset that may have been there. None: unknown, the log ends with the damage.
        reason: What is wrong.
    """

    path: Path
    start: int
    end: int
    first: int
    last: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class LeaderEpoch:
    """A leader epoch of a log.

    Attributes:
        epoch: Number of the epoch.
        start: Offset at which it begins.
        min_start: Lowest offset at which it may begin: damage may hold its first batches.
    """

    epoch: int
    start: int
    min_start: int


@dataclass(frozen=True)
class Replica:
    """A replica of a partition as far as it is whole.

    Attributes:
        number: Index of the replica in the order in which the replicas were given.
        partition: The partition directory.
        contents: Contents of its segments, without headers.
        headers: Headers of the whole batches, by offset; they overlap nowhere.
        rows: Number of records of each batch.
        segment: Index of the segment of each batch.
        damage: Bytes without a whole batch, in file order.
    """

    number: int
    partition: Partition
    contents: tuple[SegmentContents, ...]
    headers: Headers
    rows: Any
    segment: Any
    damage: tuple[DamagedRange, ...]

    @cached_property
    def breaks_epoch_order(self) -> Any:
        """Mask of the batches whose leader epoch contradicts the batches around them. As few
        batches as possible are marked. Negative epochs are unknown ones and contradict nothing.
        """
        epoch = self.headers.leader_epoch.astype(np.int64)
        known = np.flatnonzero(epoch >= 0)
        place = epoch[known] * (len(known) + 1) + np.arange(len(known))
        found = np.zeros(len(epoch), np.bool_)
        found[known] = ~find_ascending(place, place, np.zeros(len(known), np.bool_))
        return found

    @cached_property
    def stated_epochs(self) -> list[tuple[int, int]]:
        """Leader epochs in ``leader-epoch-checkpoint``, each with its start offset; ``[]`` if the file
        is missing or invalid.
        """
        return read_leader_epochs(self.partition.directory / LEADER_EPOCHS) or []

    @cached_property
    def contradicts_checkpoint(self) -> Any:
        """Mask of the batches whose leader epoch is not the one that ``leader-epoch-checkpoint`` states
        for their offset. Without such a file, and for negative epochs, it is False.
        """
        epoch = self.headers.leader_epoch
        if not self.stated_epochs:
            return np.zeros(len(epoch), np.bool_)
        numbers, starts = (np.array(column) for column in zip(*self.stated_epochs, strict=True))
        at = np.searchsorted(starts, self.headers.first, side="right")
        return (epoch >= 0) & (np.append(-1, numbers)[at] != epoch)

    def list_epochs(self, is_wrong: Any) -> list[LeaderEpoch]:
        """Return the leader epochs of the log, ascending: those of ``leader-epoch-checkpoint`` if no
        batch contradicts it, else those of the batches. Batches in the mask ``is_wrong`` do not count,
        nor does an epoch at the end in which nothing was written, unless the log ends with damage.
        """
        if self.stated_epochs and not (self.contradicts_checkpoint & ~is_wrong).any():
            is_open = any(found.last is None for found in self.damage)
            there = ((e, start) for e, start in self.stated_epochs if is_open or start < self.end)
            return [LeaderEpoch(e, start, start) for e, start in there]
        known = (self.headers.leader_epoch >= 0) & ~is_wrong
        first, epoch = self.headers.first[known], self.headers.leader_epoch[known]
        changes = np.flatnonzero(np.diff(epoch, prepend=-1))
        return [self._epoch_at(int(epoch[i]), int(first[i])) for i in changes]

    def _epoch_at(self, epoch: int, start: int) -> LeaderEpoch:
        """Return an epoch whose first whole batch begins at ``start``; damage just before it may
        hold earlier batches of the epoch.
        """
        before = [d.first for d in self.damage if d.first < start and d.last in (None, start - 1)]
        return LeaderEpoch(epoch, start, min([start, *before]))

    @property
    def start(self) -> int | None:
        """First offset of the log: the base offset in the name of the first segment, else the first
        whole offset. None if neither is known.
        """
        segments = self.partition.segments
        if segments and segments[0].has_offset_in_name:
            return segments[0].base_offset
        return int(self.headers.first[0]) if len(self.headers) else None

    @property
    def end(self) -> int:
        """Offset after the last whole batch, at least the highest base offset in a segment's name; 0
        if neither is known.
        """
        last = int(self.headers.last[-1]) + 1 if len(self.headers) else 0
        return max([last, *self.base_offsets])

    @property
    def base_offsets(self) -> list[int]:
        """Base offsets in the names of the segments."""
        return [s.base_offset for s in self.partition.segments if s.has_canonical_name]

    def bytes_from(self, offset: int) -> int:
        """Return the bytes of the log from where ``offset`` begins to the end of the last whole batch,
        with damaged bytes between them. Return 0 if the log has no whole batch at or after
        ``offset``, or begins after it.
        """
        before = int(np.searchsorted(self.headers.last, offset))
        if before == len(self.headers):
            return 0
        if self.headers.first[before] == offset:
            return self.end_of(-1) - self.end_of(before) + int(self.headers.size[before])
        if before:
            return self.end_of(-1) - self.end_of(before - 1)
        return self.end_of(-1) if self.start == offset else 0

    def end_of(self, i: int) -> int:
        """Return the end of a batch in bytes from the start of the log."""
        k = int(self.segment[i])
        sizes = sum(segment.size for segment in self.partition.segments[:k])
        return sizes + int(self.headers.position[i] + self.headers.size[i])

    def is_whole(self, first: Any, last: Any) -> Any:
        """Return a mask of the offset ranges (arrays, both ends included) that lie inside the log
        and touch no damage.
        """
        inside = (first >= (self.start or 0)) & (last < self.end)
        for found in self.damage:
            high = np.iinfo(np.int64).max if found.last is None else found.last
            inside &= (last < found.first) | (first > high)
        return inside


def read_replica(number: int, partition: Partition) -> Replica:
    """Return a replica of a partition, judged as :func:`kafka_log.write.rewrite.commands.salvage`
    judges it: a batch is whole if its checksum is valid, all its records can be decoded, and its
    offsets fit its place. Damage and unreadable files are part of the result, and not raised. A
    partition without segments, as one whose directory could not be listed, gives an empty replica.
    ``number`` is its index among the replicas.
    """
    cache = ContentsCache(partition)
    arranged = Arrangement(partition, cache, keep_damaged=False) if len(cache) else None
    contents: list[SegmentContents] = []
    parts, rows, segments = (
        [headers_from_rows([])],
        [np.empty(0, np.int64)],
        [np.empty(0, np.int64)],
    )
    damage: list[DamagedRange] = []
    for k in range(len(cache)):
        assert arranged is not None
        found = cache.read(k)
        whole = arranged.mark_taken(k, len(found.headers)) & found.is_good
        parts.append(found.headers.take(whole))
        rows.append(found.rows[whole])
        segments.append(np.full(int(whole.sum()), k))
        damage += _find_damage(found, whole, cache.next_base(k))
        contents.append(replace(found, headers=headers_from_rows([]), rows=rows[0], troubles={}))
    headers = concatenate_headers(parts)
    order = np.argsort(headers.first, kind="stable")
    of_rows, of_segment = (np.concatenate(one)[order] for one in (rows, segments))
    return Replica(
        number, partition, tuple(contents), headers.take(order), of_rows, of_segment, tuple(damage)
    )


def _find_damage(
    found: SegmentContents, whole: Any, next_base: int | None
) -> Iterator[DamagedRange]:
    """Yield the ranges of bytes of a segment without a batch of the mask ``whole``, except an
    incomplete tail, with the offsets between the whole batches around them. Ranges between batches
    whose offsets leave no gap hold no records and are left out.
    """
    headers = found.headers
    start, stop = headers.position[whole], (headers.position + headers.size)[whole]
    first, last = headers.first[whole], headers.last[whole]
    base = get_named_base_offset(found.segment)
    for begin, end, reason in _join_ranges(found, whole):
        before, after = np.flatnonzero(stop <= begin), np.flatnonzero(start >= end)
        low = int(last[before[-1]]) + 1 if len(before) else 0 if base is None else base
        high = next_base
        if len(after):
            high = int(first[after[0]])
        if high is None or low < high:
            limit = None if high is None else high - 1
            yield DamagedRange(found.segment.path, begin, end, low, limit, reason)


def _join_ranges(found: SegmentContents, whole: Any) -> Sequence[tuple[int, int, str]]:
    """Return the ranges of bytes of a segment that hold no whole batch, as start, end and reason, in
    file order. Ranges that overlap or adjoin are joined, with the reason of the first.
    """
    headers = found.headers
    ranges = [(one.start, one.end, one.reason) for one in found.lost]
    for i in np.flatnonzero(~whole).tolist():
        if not found.is_unfinished(i):
            trouble = found.troubles.get(i)
            begin = int(headers.position[i])
            reason = MISPLACED if trouble is None else trouble.reason
            ranges.append((begin, begin + int(headers.size[i]), reason))
    joined: list[tuple[int, int, str]] = []
    for begin, end, reason in sorted(ranges):
        if joined and begin <= joined[-1][1]:
            before = joined.pop()
            joined.append((before[0], max(before[1], end), before[2]))
        else:
            joined.append((begin, end, reason))
    return joined
