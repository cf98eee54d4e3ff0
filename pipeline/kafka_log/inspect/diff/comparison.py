"""Comparison of two logs by offset: equal batches by header and checksum, others record by record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_log.inspect.diff.missing_records import MissingRecords
from kafka_log.inspect.diff.record_comparison import RecordComparison, align_records, read_records
from kafka_log.inspect.diff.side import Advance, Side
from kafka_log.logs.partitions import Partition
from kafka_log.segment.row_masks import numbers

SAME = ("last", "size", "crc", "epoch", "magic")
"""Header fields by which valid batches with the same first offset are equal byte for byte."""

SHORT = 64 << 10
"""Maximum size of a run of equal batches that is decoded with its unequal neighbors: restarting would be slower."""

_LOWEST = -(1 << 63)


@dataclass(slots=True)
class Counts:
    """Numbers of records that the other side has and this side lacks, by reason.

    Attributes:
        trimmed: Before the log begins.
        behind: After the log ends.
        damaged: In damaged bytes.
        cleaned: Removed by compaction.
        missing: Missing for no such reason.
        parted: After the first offset at which both sides have different records.
        first_missing: First offset of the missing records; None if there are none.
    """

    trimmed: int = 0
    behind: int = 0
    damaged: int = 0
    cleaned: int = 0
    missing: int = 0
    parted: int = 0
    first_missing: int | None = None


@dataclass(slots=True)
class Comparison:
    """Result of comparing two logs. ``a`` and ``b`` count the records that these sides lack."""

    side_a: Side
    side_b: Side
    a: Counts = field(default_factory=Counts)
    b: Counts = field(default_factory=Counts)
    same: int = 0
    differ: int = 0
    first: int | None = None
    last: int | None = None
    columns: tuple[str, ...] = ()
    other_batches: bool = False
    """Whether some equal records are in different batches, or compressed differently."""
    joins: bool = False
    """Whether equal records follow after the last different ones."""
    only_epochs: bool = True
    """Whether no record differs in more than its leader epoch, and no side has records that the other lacks there."""


def compare_partitions(
    partition_a: Partition, partition_b: Partition, advance: Advance
) -> Comparison:
    """Compare the records of two partitions, A and B, by offset and return the result. Damage and
    unreadable files are skipped, and listed in the sides of the result. Topic and number need not
    be the same. Raise UnreadableError (an OSError) if retention deletes a segment while
    transactions are read.

    Memory: the batch headers of a chunk of each log, and a chunk of records where they differ.

    Args:
        partition_a: First replica.
        partition_b: Second replica.
        advance: Called with the number of bytes that are done.
    """
    return _Comparer(Side(partition_a, advance), Side(partition_b, advance)).compare()


class _Comparer:
    """Comparison of two sides in progress. Both are read in step, by offset."""

    def __init__(self, a: Side, b: Side) -> None:
        self.a, self.b = a, b
        self.found = Comparison(a, b)
        self.not_in = {"a": MissingRecords(b, a), "b": MissingRecords(a, b)}

    def compare(self) -> Comparison:
        """Compare both logs from start to end, and return the result. Damaged batches and
        unreadable files are skipped and listed in the sides. Raise UnreadableError if retention
        deletes a segment while transactions are read.
        """
        low = _LOWEST
        while True:
            open_sides = [side for side in (self.a, self.b) if not side.done]
            if open_sides:
                # Load the lagging side, so that the headers of the other side do not pile up.
                min(open_sides, key=lambda side: _or_lowest(side.next_offset)).load()
            ends = [_or_lowest(side.next_offset) for side in (self.a, self.b) if not side.done]
            high = min(ends, default=None)
            if high is not None and high <= low:
                continue
            for piece in self._find_unequal_batches(low, high):
                self._compare(*piece)
            if high is None:
                self._count_missing()
                return self.found
            low = high
            self.a.drop(low)
            self.b.drop(low)

    def _count_missing(self) -> None:
        """Judge the records that each side lacks inside its log, after both logs were read, and add
        them to its counts as cleaned (removed by compaction) or missing. Raise UnreadableError if
        retention deletes a segment meanwhile.
        """
        for name, counts in (("a", self.found.a), ("b", self.found.b)):
            resolved = self.not_in[name].resolve()
            counts.cleaned += resolved.cleaned
            counts.missing += resolved.missing
            counts.first_missing = resolved.first

    def _find_unequal_batches(
        self, low: int, high: int | None
    ) -> Iterator[tuple[Any, Any, int, int | None, Any]]:
        """Yield the unequal batches with offsets from ``low`` to ``high`` (excluded; None: open),
        one item for each range of offsets between runs of equal ones. An item has batches of A and
        of B, first and end offset, and positions of equal batches among those of A. The records of
        the runs are counted as equal. A run of at most SHORT bytes (64 KiB) is yielded too, unless
        it begins or ends both sides. Nothing is yielded if all batches are equal.
        """
        a, b = self.a.headers, self.b.headers
        if high is not None:
            a, b = a[a["first"] < high], b[b["first"] < high]
        at_a, at_b = _find_equal(a, b, low, high)
        is_equal = np.zeros(len(a), bool)
        is_equal[at_a] = True
        runs = _drop_short_runs(_find_runs(at_a, at_b), a, b)
        end_a = end_b = 0
        begin = low
        for from_a, to_a, from_b, to_b in [*runs, (len(a), len(a), len(b), len(b))]:
            follows = to_a > from_a
            stop = int(a["first"][from_a]) if follows else high
            if from_a > end_a or from_b > end_b:
                piece = a[end_a:from_a]
                equal = piece["position"][is_equal[end_a:from_a]]
                yield piece, b[end_b:from_b], begin, stop, equal
            if follows:
                self._count_equal(int(a["count"][from_a:to_a].sum()))
                begin = int(a["last"][to_a - 1]) + 1
            end_a, end_b = to_a, to_b

    def _count_equal(self, count: int) -> None:
        """Count records that are equal on both sides."""
        self.found.same += count
        if count and self.found.first is not None:
            self.found.joins = True

    def _compare(self, a: Any, b: Any, low: int, high: int | None, equal: Any) -> None:
        """Compare the records of unequal batches with offsets from ``low`` (included) to ``high``
        (excluded; None: no end), and add equal, different and lacking records to the counts.
        Batches that cannot be decoded are skipped and added to the damage of their side. ``equal``
        are the positions in A of batches that B has byte for byte. Raise UnreadableError if
        retention deletes a segment while transactions are read.
        """
        a = self._drop_outside(a, low, self.b, self.found.b) if not len(b) else a
        b = self._drop_outside(b, low, self.a, self.found.a) if not len(a) else b
        rows_a = read_records(self.a, a, low, high)
        rows_b = read_records(self.b, b, low, high)
        found = self.found
        for of_a, of_b in align_records(rows_a, rows_b):
            one = RecordComparison(of_a, of_b)
            if len(one.differ):
                if found.first is None:
                    found.first, found.columns = int(one.differ[0]), one.columns
                found.last = int(one.differ[-1])
                found.differ += len(one.differ)
                found.only_epochs &= one.only_epochs
                found.joins = False
            self._count_lacking(one.only_a, self.b, found.b, "b")
            self._count_lacking(one.only_b, self.a, found.a, "a")
            if one.same:
                found.other_batches |= bool((~np.isin(one.positions, equal)).any())
                found.same += one.same
                found.joins |= found.last is not None and one.last_same > found.last

    def _drop_outside(self, batches: Any, low: int, other: Side, counts: Counts) -> Any:
        """Return the batches that may lie inside the other log, and count the records of the
        dropped ones. A batch before the start of that log counts as trimmed, one after its end
        (once it was read to the end) as behind. Return all of them if different records were found
        before or the other log is damaged. A batch that begins before ``low`` is kept.
        """
        if not len(batches) or self.found.first is not None or other.damage:
            return batches
        whole = batches["first"] >= low
        before = whole & (batches["last"] < _or_lowest(other.start))
        after = whole & other.done & (batches["first"] >= _or_lowest(other.end))
        counts.trimmed += int(batches["count"][before & ~after].sum())
        counts.behind += int(batches["count"][after].sum())
        return batches[~(before | after)]

    def _count_lacking(self, rows: Any, other: Side, counts: Counts, name: str) -> None:
        """Add the records ``rows``, which the side ``other`` lacks, to its ``counts`` by the first
        reason that applies. The reasons are parted (after the first different record), damaged,
        trimmed (before the start of ``other``) and behind (after its end, once it was read to the
        end). The rest is kept to judge as cleaned or missing at the end. ``name`` is the letter of
        ``other``, ``"a"`` or ``"b"``.
        """
        if not rows.num_rows:
            return
        offsets = numbers(rows, "offset")
        parted = np.zeros(len(offsets), bool)
        if self.found.first is not None:
            parted = offsets > self.found.first
        lost = other.lost(offsets) & ~parted
        rest = ~(parted | lost)
        trimmed = rest & (offsets < _or_lowest(other.start))
        behind = rest & ~trimmed & other.done & (offsets >= _or_lowest(other.end))
        counts.parted += int(parted.sum())
        self.found.only_epochs &= not parted.any()
        counts.damaged += int(lost.sum())
        counts.trimmed += int(trimmed.sum())
        counts.behind += int(behind.sum())
        rest &= ~(trimmed | behind)
        if rest.any():
            self.not_in[name].add(rows.filter(pa.array(rest)))


def _or_lowest(offset: int | None) -> int:
    """Return the offset; the smallest possible one for None."""
    return _LOWEST if offset is None else offset


def _find_equal(a: Any, b: Any, low: int, high: int | None) -> tuple[Any, Any]:
    """Return the indexes in A and in B of the batches that are equal: both have the same first and
    last offset, size, checksum, leader epoch and magic byte, with all offsets from ``low``
    (included) to ``high`` (excluded; None: no end). The arrays are as long as each other, in offset
    order.
    """
    _, at_a, at_b = np.intersect1d(a["first"], b["first"], assume_unique=True, return_indices=True)
    same = a["first"][at_a] >= low
    if high is not None:
        same &= a["last"][at_a] < high
    for name in SAME:
        same &= a[name][at_a] == b[name][at_b]
    return at_a[same], at_b[same]


Run = tuple[int, int, int, int]
"""Equal batches that follow each other on both sides: from and to in A, from and to in B."""


def _find_runs(at_a: Any, at_b: Any) -> Iterator[Run]:
    """Yield runs of equal batches that are consecutive on both sides: first and end index
    (excluded) in A, then in B. ``at_a`` and ``at_b`` are the ascending indexes of equal batches; if
    they are empty, yield nothing.
    """
    if not len(at_a):
        return
    cuts = np.flatnonzero((np.diff(at_a) != 1) | (np.diff(at_b) != 1)) + 1
    for low, high in zip([0, *cuts.tolist()], [*cuts.tolist(), len(at_a)], strict=True):
        yield int(at_a[low]), int(at_a[high - 1]) + 1, int(at_b[low]), int(at_b[high - 1]) + 1


def _drop_short_runs(runs: Iterable[Run], a: Any, b: Any) -> list[Run]:
    """Return the runs of equal batches that have more than SHORT bytes (64 KiB) in A, and those at
    the start of both sides or at the end of both, in their order. The batches of the other runs are
    decoded with their neighbors. ``a`` and ``b`` are the batch headers of the sides.
    """
    return [
        run
        for run in runs
        if (run[0] == 0 and run[2] == 0)
        or (run[1] == len(a) and run[3] == len(b))
        or int(a["size"][run[0] : run[1]].sum()) > SHORT
    ]
