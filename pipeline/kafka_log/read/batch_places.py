"""Positions of batches in segments, found by index and headers, and facts about a log's history: leader epochs and open transactions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from codecgen.runtime.errors import CodecError
from kafka_log.logs.broker_files import read_producer_snapshot
from kafka_log.logs.index_files import find_position_by_index
from kafka_log.logs.partitions import Segment
from kafka_log.read.changing_files import read_steadily
from kafka_log.read.selection import Selection
from kafka_log.segment.batch_headers import entries
from kafka_log.segment.framing import HeaderColumns
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.reader import SegmentReader, batch_damage, last_offset_at
from kafka_log.segment.row_values import bounds_of
from kafka_log.segment.versions import absent_value

SMALL = 1 << 18
"""Maximum size of a segment whose headers are read without its index."""

NO_EPOCH = absent_value("leader_epoch")

_COLUMNS = ("base_offset", "last_offset", "offset_bound", "leader_epoch")


class BatchPosition(NamedTuple):
    """A complete batch: its range of bytes, its offsets and its leader epoch (-1: none).

    ``first`` is None if the header does not state the first offset.
    """

    position: int
    end: int
    first: int | None
    last: int
    leader_epoch: int


def iter_batches(segment: Segment, start: int, selection: Selection) -> Iterator[BatchPosition]:
    """Yield position, offsets and leader epoch of each complete batch of a segment from byte
    ``start`` on, where a batch begins. ``first`` is None for compressed legacy messages. If damage
    is an error for ``selection``, or its policy is ``strict``, iterating raises CodecError at
    damage and for an unreadable file. Otherwise damaged batches are left out, and those that end at
    the largest possible offset. Checksums are verified only if damage is no error. An incomplete
    last batch is left out; in a rolled segment it is damage. FileNotFoundError is raised if the
    file is gone when a compressed legacy message is read.

    Damaged batches are left out because any number in them may be wrong.
    """
    if selection.raises:
        columns = HeaderColumns(_COLUMNS, os.fspath(segment.path))
        for entry in entries(segment.path, segment.tail, start):
            first, last, bound, epoch = columns.read(entry)
            if bound is None:
                last = last_offset_at(segment.path, entry.position, last)
            yield BatchPosition(
                entry.position, entry.position + entry.frame.size, first, last, epoch
            )
        return
    reader = SegmentReader(
        segment.path,
        policy=selection.policy,
        start=start,
        tail=segment.tail,
        records=False,
        salvage_records=False,
        size=segment.size,
    )
    for batch in reader:
        if not batch_damage(batch) and batch.last_offset < MAX_OFFSET:
            first = batch.base_offset if batch.has_base_offset else None
            end = batch.position + batch.size
            last = batch.last_offset
            if bounds_of(batch)[0] is None:
                last = last_offset_at(segment.path, batch.position, last)
            yield BatchPosition(batch.position, end, first, last, batch.leader_epoch)


def start_before(segment: Segment, offset: int) -> int:
    """Return the byte position of a batch before which no offset from ``offset`` on lies, by the
    offset index. Return 0 if the segment has at most 256 KiB, ``offset`` is not above its base
    offset, or the index is missing or does not lead to a batch.

    A batch with a smaller offset lies at the position, if the segment has one.
    """
    if segment.size <= SMALL or offset <= segment.base_offset:
        return 0
    return find_position_by_index(segment, offset - 1, None)


def split_positions(segment: Segment, offset: int, selection: Selection) -> tuple[int, int]:
    """Return two byte positions: where to begin reading from ``offset`` on, and where to end
    reading what lies before ``offset``. They are equal unless the offset may lie inside a batch;
    both are the end of the last batch if all batches lie before it. If damage before the offset is
    an error, return the end of the last good batch, or else where the search began, and the
    segment's size; so for an unreadable file. No CodecError is raised.

    Bytes between two batches belong to the later one. A batch whose first offset is not below ``offset``, unlike the next one, lies before it:
    no checksum covers offsets. The positions stay the same when more is written. Damage before the offset is left to the reader of those bytes.
    """
    found = [start_before(segment, offset)]
    try:
        return read_steadily(
            segment.path, lambda: _split_positions(segment, offset, selection, found)
        )
    except CodecError:
        return found[-1], segment.size


def _split_positions(
    segment: Segment, offset: int, selection: Selection, seen: list[int]
) -> tuple[int, int]:
    """Return two byte positions: where to begin reading from ``offset`` on, and where to end
    reading what lies before it; they differ only if it lies inside a batch. ``seen[0]`` is where
    the search starts; ``seen[1]`` becomes the end of the last batch before the offset. Raise
    CodecError for damage on the way unless the selection accepts it.
    """
    at = seen[0]
    both: tuple[int, int] | None = None
    batches = iter_batches(segment, at, selection)
    for batch in batches:
        if both is not None:
            # A batch that reaches into those after it has a header that contradicts itself.
            if batch.first is None or batch.first >= offset:
                return both
            both = both[0], batch.end
        elif batch.last < offset:
            at = batch.end
            seen[1:] = [at]
        elif batch.first is not None:
            if batch.first < offset:
                both = batch.position, batch.end
                continue
            following = _next_if_sound(batches)
            if following is None or following.last >= offset:
                return at, at
            # No checksum covers the offset of a batch. The batch after it is one that lies before.
            at = following.end
            seen[1:] = [at]
        else:
            # A compressed message of the older formats: its header does not state the first offset.
            both = batch.position, batch.end
    return both or (at, at)


def _next_if_sound(batches: Iterator[BatchPosition]) -> BatchPosition | None:
    """Return the next batch, None if there is none or damage comes first."""
    try:
        return next(batches, None)
    except CodecError:
        return None


def last_before(
    segments: Sequence[Segment], offset: int, selection: Selection
) -> BatchPosition | None:
    """Return the last batch, of the last segment that has one, that begins before ``offset``; None
    if there is none. A batch whose header does not state its first offset counts by its last one.
    Raise CodecError for damage before it, and for an unreadable file, unless the selection accepts
    damage.
    """
    for segment in reversed(segments):
        if segment.has_offset_in_name and segment.base_offset >= offset:
            continue
        found = None
        for batch in iter_batches(segment, start_before(segment, offset), selection):
            if (batch.last if batch.first is None else batch.first) >= offset:
                break
            found = batch
        if found is not None:
            return found
    return None


def first_of_later_epoch(
    segments: Sequence[Segment], leader_epoch: int, selection: Selection
) -> int | None:
    """Return the first offset of the first batch whose leader epoch is higher than ``leader_epoch``
    (its last one if the header does not state the first); None if there is no such batch. Segments
    before the last one that begins with ``leader_epoch`` or a lower one are not searched. Raise
    CodecError for damage, and for an unreadable file, unless the selection accepts damage.
    """
    start = 0
    for i, segment in enumerate(segments):
        first = next(iter_batches(segment, 0, selection), None)
        if first is not None and first.leader_epoch <= leader_epoch:
            start = i
    for segment in segments[start:]:
        for batch in iter_batches(segment, 0, selection):
            if batch.leader_epoch > leader_epoch:
                return batch.last if batch.first is None else batch.first
    return None


def needed_segments(
    segments: Sequence[Segment], start: int, end: int, *, transactions: bool
) -> tuple[Segment, ...]:
    """Return the consecutive segments that a reader of the offsets ``start`` (included) to ``end``
    (excluded) needs; at least one if there is any. They begin with the last one that begins before
    ``start``, else with the first of all. They end before the first later one that begins at or
    after ``end``. With ``transactions`` also those before and after in which transactions of these
    offsets may begin or end.

    With ``transactions`` the segments begin where a producer snapshot states the open
    transactions, and end where a snapshot shows that none of the transactions before ``end`` is open.
    """
    low = 0
    for i, segment in enumerate(segments):
        if segment.has_offset_in_name and _begins(segment) < start:
            low = i
    high = len(segments)
    for i in range(len(segments) - 1, low, -1):
        if segments[i].has_offset_in_name and _begins(segments[i]) >= end:
            high = i
    if transactions:
        while low and _open_since(segments[low]) is None:
            low -= 1
        while high < len(segments) and not _has_no_open_transaction(segments[high], end):
            high += 1
    return tuple(segments[low:high])


def _begins(segment: Segment) -> int:
    """Return the first offset to read of a segment. A remote copy may hold earlier ones, which are read from another copy."""
    first = segment.offsets[0]
    return segment.base_offset if first is None else first


def _has_no_open_transaction(segment: Segment, end: int) -> bool:
    """Return whether no transaction with an offset before ``end`` is open at the start of a segment."""
    since = _open_since(segment)
    return since is not None and all(first >= end for first in since)


def _open_since(segment: Segment) -> list[int] | None:
    """Return the first offsets of the transactions that are open at the start of a segment, from
    the producer snapshot there; ``[]`` if none is open or the base offset is 0. Return None if the
    snapshot is missing or invalid, or the file name has no canonical form.
    """
    if not segment.has_canonical_name:
        return None
    if segment.base_offset == 0:
        return []
    found = read_producer_snapshot(segment.path.with_suffix(".snapshot"))
    if found is None:
        return None
    return [e.current_txn_first_offset for e in found if e.current_txn_first_offset >= 0]


def after_snapshot(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Return the segments from the newest one on that has a valid producer snapshot at its start,
    or begins at offset 0. Return all segments if none does, ``()`` if there are none.
    """
    low = max(len(segments) - 1, 0)
    while low and _open_since(segments[low]) is None:
        low -= 1
    return tuple(segments[low:])
