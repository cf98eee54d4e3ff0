"""One side of a comparison: its valid batches in offset order, and its damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from kafka_log.logs.incomplete_tails import find_incomplete_tail
from kafka_log.logs.names import STATES
from kafka_log.logs.offset_ranges import lie_within_names
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.blocks import Block
from kafka_log.segment.model import Batch, Policy
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.row_masks import numbers

HEADER = np.dtype(
    [
        ("segment", np.int32),
        ("position", np.int64),
        ("size", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        ("magic", np.int8),
        ("codec", np.int8),
        ("crc", np.int64),
        ("epoch", np.int32),
        ("count", np.int64),
        ("transactional", np.bool_),
        ("control", np.bool_),
        ("producer", np.int64),
    ]
)
"""Header of a batch: ``segment`` is the index of its file, ``first`` and ``last`` are offsets, ``count`` is the number of records."""

_NAMES = {
    "position": "position",
    "size": "size",
    "last": "last_offset",
    "magic": "magic",
    "codec": "codec",
    "crc": "crc",
    "epoch": "leader_epoch",
    "transactional": "is_transactional",
    "control": "is_control",
    "producer": "producer_id",
}
_OUT_OF_ORDER = "its offsets are out of order"

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Damage:
    """Range of bytes without a valid batch.

    The offsets between ``after`` and ``before`` (both excluded, None: open) may be lost with it.
    """

    path: Path
    start: int
    end: int
    after: int | None
    before: int | None
    reason: str = ""


class Side:
    """Valid batches of a partition: those with a valid checksum and ascending offsets. If batches do
    not lie where the names of segments say, the first :meth:`load` reads all headers and orders them
    by offset.

    :meth:`load` appends to ``headers``, and :meth:`drop` removes compared batches. Damage is in
    ``damage`` before the batch after it is in ``headers``.
    """

    def __init__(self, partition: Partition, advance: Advance) -> None:
        self.partition = partition
        self.segments = partition.segments
        self.damage: list[Damage] = []
        self.done = False
        self.headers = np.empty(0, HEADER)
        self.next_offset: int | None = None
        self.epochs: list[tuple[int, int]] = []
        """Leader epochs and the first offset of each, as batches say."""
        self._has_right_names = lie_within_names(self.segments)
        self._parts = self._read(advance)

    @property
    def start(self) -> int | None:
        """Return the first offset of the log: the base offset in the name of the first segment,
        unless batches do not lie where the names say, else the first offset that was read. None if
        there is neither.
        """
        named = (
            self.segments[0].base_offset
            if self._has_right_names and self.segments and self.segments[0].has_offset_in_name
            else None
        )
        return named if named is not None else self._first

    _first: int | None = None

    @property
    def end(self) -> int | None:
        """Return the end offset (excluded) of what was read so far; when all is read, at least the
        base offset in the name of the last segment, unless batches do not lie where the names say.
        None if nothing is known.
        """
        last = self.segments[-1] if self.segments and self._has_right_names else None
        named = (
            last.base_offset if self.done and last is not None and last.has_offset_in_name else None
        )
        known = [offset for offset in (self.next_offset, named) if offset is not None]
        return max(known, default=None)

    def load(self) -> None:
        """Append the headers of the next valid batches of the log to ``headers``; set ``done`` if
        there are no more. A segment that cannot be read, or is gone, is added to ``damage`` and
        does not raise.
        """
        rows = next(self._parts, None)
        if rows is None:
            self.done = True
        else:
            self.headers = np.concatenate([self.headers, rows])

    def drop(self, offset: int) -> None:
        """Forget the batches that end before an offset."""
        self.headers = self.headers[self.headers["last"] >= offset]

    def path(self, header: Any) -> Path:
        """Return the file of a batch."""
        return self.segments[int(header["segment"])].path

    def lost(self, offsets: Any) -> Any:
        """Return a mask of the ``offsets`` that damage noted so far may have held: those between
        the valid offsets around a damaged range (excluded). An unknown offset after a range means
        no limit.
        """
        out = np.zeros(len(offsets), bool)
        for found in self.damage:
            after = -1 if found.after is None else found.after
            inside = offsets > after
            out |= inside if found.before is None else inside & (offsets < found.before)
        return out

    def _read(self, advance: Advance) -> Iterator[Any]:
        """Yield arrays of the headers of valid batches in the order of their offsets, none empty."""
        parts = self._read_segments(advance)
        if self._has_right_names:
            yield from parts
        elif (found := [*parts]) and len(rows := self._order_by_offset(np.concatenate(found))):
            yield rows

    def _order_by_offset(self, rows: Any) -> Any:
        """Return the batches of all segments by offset, copies once. Append batches that overlap
        others to ``damage``. Update the next offset and the leader epochs.
        """
        rows = rows[np.argsort(rows["first"], kind="stable")]
        names = ("first", "last", "size", "crc")
        copies = np.logical_and.reduce([rows[name][1:] == rows[name][:-1] for name in names])
        rows = rows[np.concatenate([[True], ~copies])]
        good = _ascending_mask(rows, None, None)
        kept = np.flatnonzero(good)
        for row in rows[~good]:
            segment, start = self.segments[int(row["segment"])], int(row["position"])
            low, high = int(row["first"]) - 1, int(row["last"]) + 1
            self._note(segment, start, start + int(row["size"]), low, high, _OUT_OF_ORDER)
        return self._take(rows[kept])

    def _read_segments(self, advance: Advance) -> Iterator[Any]:
        """Yield arrays of the headers of valid batches, none empty, segment by segment, and report
        their bytes to ``advance``. Append damaged ranges, misplaced batches and segments that
        cannot be read to ``damage``.
        """
        bounds = [s.base_offset if s.has_offset_in_name else None for s in self.segments[1:]]
        for number, segment in enumerate(self.segments):
            is_bound = self._has_right_names and number < len(bounds)
            bound = bounds[number] if is_bound else None
            known = len(self.damage)
            at = 0
            reader = BlockReader(
                segment.path,
                policy=Policy.SALVAGE,
                records=False,
                salvage_records=False,
                tail=segment.tail,
                size=segment.size,
            )
            with closing(reader.items()) as parts:  # type: ignore[type-var]
                for part in parts:
                    rows = _header_rows(part, number)
                    if not len(rows):
                        continue
                    found = rows
                    if self._has_right_names:
                        found = self._drop_misplaced(segment, rows, at, bound)
                    else:
                        self._note_gaps(segment, rows, at)
                    stop = int(rows["position"][-1] + rows["size"][-1])
                    advance(stop - at)
                    at = stop
                    if len(found):
                        yield found
            advance(max(segment.size - at, 0))
            self._note_end(segment, reader, known, at, bound)

    def _drop_misplaced(self, segment: Segment, rows: Any, at: int, bound: int | None) -> Any:
        """Return the batches whose offsets ascend, continue the log and end before ``bound`` (None:
        no limit). Append the others, and gaps between batches from byte ``at`` on, to ``damage``.
        Update the next offset and the leader epochs.
        """
        ends = np.concatenate([[at], (rows["position"] + rows["size"])[:-1]])
        gaps = np.flatnonzero(rows["position"] > ends).tolist()
        good = _ascending_mask(rows, self.next_offset, bound)
        kept = np.flatnonzero(good)
        for i in [*gaps, *np.flatnonzero(~good).tolist()]:
            before = kept[kept < i]
            after = kept[kept >= i]
            low = int(rows["last"][before[-1]]) if len(before) else self._last
            high = int(rows["first"][after[0]]) if len(after) else bound
            if i in gaps:
                self._note(segment, int(ends[i]), int(rows["position"][i]), low, high, "")
            if not good[i]:
                start = int(rows["position"][i])
                self._note(segment, start, start + int(rows["size"][i]), low, high, _OUT_OF_ORDER)
        return self._take(rows[kept])

    def _note_gaps(self, segment: Segment, rows: Any, at: int) -> None:
        """Append the gaps between batches from byte ``at`` on to ``damage``; nothing is known about
        the offsets in them.
        """
        ends = np.concatenate([[at], (rows["position"] + rows["size"])[:-1]])
        for i in np.flatnonzero(rows["position"] > ends).tolist():
            self._note(segment, int(ends[i]), int(rows["position"][i]), None, None, "")

    def _take(self, found: Any) -> Any:
        """Return ``found``, the next batches of the log, after updating the first and the next
        offset and the leader epochs.
        """
        if len(found):
            if self._first is None:
                self._first = int(found["first"][0])
            self.next_offset = int(found["last"][-1]) + 1
            self._note_epochs(found)
        return found

    @property
    def _last(self) -> int | None:
        """Return the last offset that was read; None before the first."""
        return None if self.next_offset is None else self.next_offset - 1

    def _note(
        self, segment: Segment, start: int, end: int, low: int | None, high: int | None, why: str
    ) -> None:
        """Note a damaged range of a segment."""
        self.damage.append(Damage(segment.path, start, end, low, high, why))

    def _note_epochs(self, rows: Any) -> None:
        """Append each leader epoch in the batches that is higher than all before to ``epochs``,
        with the first offset of the batch where it begins.
        """
        known = self.epochs[-1][0] if self.epochs else -1
        changes = np.flatnonzero(np.diff(rows["epoch"], prepend=np.int32(known)))
        for i in changes.tolist():
            if rows["epoch"][i] > (self.epochs[-1][0] if self.epochs else -1):
                self.epochs.append((int(rows["epoch"][i]), int(rows["first"][i])))

    def _note_end(
        self, segment: Segment, reader: BlockReader, known: int, at: int, bound: int | None
    ) -> None:
        """Append the lost ranges from byte ``at`` to the end of a segment to ``damage``, except an
        incomplete tail that a broker truncates. ``bound`` is the next base offset (None: unknown).
        Add reasons to the damage of the segment (from index ``known`` on) that has none.
        """
        end = reader.end
        reasons = {lost.start: lost.reason for lost in end.lost} if end is not None else {}
        for i in range(known, len(self.damage)):
            found = self.damage[i]
            reason = found.reason or reasons.get(found.start, "no batch is there")
            self.damage[i] = Damage(
                found.path, found.start, found.end, found.after, found.before, reason
            )
        for lost in end.lost if end is not None else ():
            if lost.start >= at and find_incomplete_tail(segment, lost.start) is None:
                self._note(segment, lost.start, lost.end, self._last, bound, lost.reason)


def _header_rows(part: Block | Batch, segment: int) -> Any:
    """Return the headers of a block or a single batch as an array of HEADER, with ``segment`` as
    the index of the file. The array is empty for a batch without a base offset. A last offset that
    is too large becomes MAX_OFFSET.
    """
    if isinstance(part, Batch):
        if part.base_offset is None:
            return np.empty(0, HEADER)
        count = len(part.records) if part.record_count is None else part.record_count
        # An offset that is too large for one; the last one is no better: no record may have it.
        values = (min(getattr(part, name), MAX_OFFSET) for name in _NAMES.values())
        return _array([segment, part.base_offset, count, *values])
    heads = part.batch_headers
    rows = np.zeros(heads.num_rows, HEADER)
    for name, column in _NAMES.items():
        rows[name] = numbers(heads, column)
    rows["segment"] = segment
    rows["first"] = part.base_offsets()
    rows["count"] = part.counts()
    return rows


def _array(values: list[Any]) -> Any:
    """Return an array of HEADER with one batch, whose ``values`` are segment, first, count and the
    fields of ``_NAMES``, in this order.
    """
    row = np.zeros(1, HEADER)
    for name, value in zip(("segment", "first", "count", *_NAMES), values, strict=True):
        row[name] = value
    return row


def _ascending_mask(rows: Any, start: int | None, bound: int | None) -> Any:
    """Return a mask of the batches to keep. Their own offsets do not descend, begin at ``start`` or
    above (None: 0), end before ``bound`` (None: no limit) and below MAX_OFFSET, and do not overlap.
    Of two that overlap, drop the later one if it also overlaps the kept one before both, else the
    earlier one.
    """
    first, last = rows["first"], rows["last"]
    good = (last >= first) & (first >= (start or 0)) & (last < MAX_OFFSET)
    if bound is not None:
        good &= last < bound
    if (first[1:] > last[:-1])[good[1:] & good[:-1]].all() and good.all():
        return good
    # If two batches overlap and the later one follows the batch before both, the offset of the earlier one is too large.
    kept: list[int] = []
    for i in np.flatnonzero(good).tolist():
        if kept and first[i] <= last[kept[-1]]:
            if len(kept) > 1 and first[i] <= last[kept[-2]]:
                good[i] = False
                continue
            good[kept.pop()] = False
        kept.append(i)
    return good


def adjacent_batches(rows: Any) -> Iterator[Any]:
    """Yield slices of ``rows`` whose batches follow each other without a gap in one file; none is
    empty, so that there are none without rows.
    """
    ends = rows["position"] + rows["size"]
    cuts = np.flatnonzero(
        (rows["position"][1:] != ends[:-1]) | (rows["segment"][1:] != rows["segment"][:-1])
    )
    for low, high in pairwise([0, *(cuts + 1).tolist(), len(rows)]):
        if high > low:
            yield rows[low:high]


def join_logs(partitions: Iterable[Partition]) -> list[Partition]:
    """Return one Partition for each topic and number, with the segments of all its copies so that
    no offset comes twice. They are those of the first directory in the first state (live before
    others), lowest first; before them come the segments of other directories and states that begin
    below. Metadata snapshots are left out.

    Live segments count first. Segments of other states, in the order of STATES, only add offsets
    before these, so that no offset comes twice.
    """
    found: dict[tuple[str, int], list[Partition]] = {}
    for partition in partitions:
        found.setdefault((partition.topic, partition.partition), []).append(partition)
    return [_join_log(those) for those in found.values()]


def _join_log(copies: list[Partition]) -> Partition:
    """Return the first of several ``copies`` of a partition, with segments of all of them. The live
    ones of the first directory come last; before them come those of the next directories and states
    that have lower base offsets.
    """
    segments: tuple[Segment, ...] = ()
    for group in _groups(copies):
        start = segments[0].base_offset if segments else None
        before = (
            s for s in group if start is None or (s.has_offset_in_name and s.base_offset < start)
        )
        segments = (*before, *segments)
    return replace(copies[0], segments=segments)


def _groups(copies: list[Partition]) -> Iterator[list[Segment]]:
    """Yield the segments of each state and directory of ``copies`` as a list: states in the order
    of STATES (live first), then directories by path. Metadata snapshots are left out.
    """

    def sort_key(segment: Segment) -> tuple[int, Path]:
        """Return the index of the state, and the directory, of a segment."""
        return STATES.index(segment.state), segment.path.parent

    every = [s for partition in copies for s in partition.segments if s.state != "snapshot"]
    for _, group in groupby(sorted(every, key=sort_key), sort_key):
        yield list(group)
