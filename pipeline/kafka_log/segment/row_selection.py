"""Selection of the records of a file: by offset, time, key, record headers, producer and isolation.

:mod:`kafka_log.segment.row_masks` applies it to whole columns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_log.segment.model import Batch
from kafka_log.segment.ranges import EVERYTHING, Range

Header = str | tuple[str, bytes | None]
"""Condition on a record header: its name (with any value), or its name and value (None: null)."""


class Aborted:
    """Aborted transactions: producer id, first offset, last offset. Those of one producer do not overlap."""

    def __init__(
        self,
        found: Iterable[tuple[int, int, int]] = (),
        *,
        is_verified: bool = True,
        unindexed: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Group the transactions by producer, sorted by their first offset. If ``is_verified`` is
        False, they come from files beside the log, and whoever reads rows compares them with the
        batches. ``unindexed`` has ascending half-open ranges of offsets where a missing transaction
        index says that no marker aborts a transaction with records.
        """
        by_producer: dict[int, list[tuple[int, int]]] = {}
        for producer, first, last in sorted(found):
            by_producer.setdefault(producer, []).append((first, last))
        self.by_producer: Mapping[int, Sequence[tuple[int, int]]] = by_producer
        self.unindexed = tuple(unindexed)
        self.is_verified = is_verified or not (by_producer or self.unindexed)

    def __bool__(self) -> bool:
        """Return whether there are aborted transactions."""
        return bool(self.by_producer)

    def limit_to_offsets(self, first: int, end: int) -> Aborted:
        """Return a new Aborted with the transactions, unshortened, that overlap the offsets
        ``first`` to ``end`` (excluded), and with the unindexed ranges that end after ``first``.
        """
        found = (
            (producer, begin, last)
            for producer, ranges in self.by_producer.items()
            for begin, last in ranges
            if begin < end and last >= first
        )
        unindexed = [one for one in self.unindexed if one[1] > first]
        return Aborted(found, is_verified=self.is_verified, unindexed=unindexed)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Aborted)
            and self.by_producer == other.by_producer
            and self.unindexed == other.unindexed
        )

    __hash__ = None  # type: ignore[assignment]

    def has(self, producer: int, offset: int) -> bool:
        """Return whether ``offset`` lies in an aborted transaction of ``producer``, first and last
        offset included. Return False for a producer without any. Whether the record is
        transactional is for the caller to check.
        """
        ranges = self.by_producer.get(producer)
        if ranges is None:
            return False
        at = bisect_right(ranges, offset, key=lambda found: found[0]) - 1
        return at >= 0 and offset <= ranges[at][1]


@dataclass(frozen=True)
class RowSelection:
    """Which records of one file are selected.

    Args:
        offsets: Offset range.
        timestamps: Time range in milliseconds.
        control_records: False leaves control records out.
        aborted: Transactions whose records are left out.
        keys: Select records with one of these keys; None selects all.
        headers: Select records with all of these record headers.
        producers: Select records of one of these producer ids; None selects all.
        verifies_order: Whether readers of rows have to compare the offsets of batches, because index files say which transactions were aborted.
    """

    offsets: Range = EVERYTHING
    timestamps: Range = EVERYTHING
    control_records: bool = True
    aborted: Aborted = field(default_factory=Aborted)
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[Header] = ()
    producers: Sequence[int] | None = None
    verifies_order: bool = field(default=False, compare=False)

    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns of the view ``records`` that are needed to filter rows by
        this selection, without duplicates; ``()`` if it selects all.
        """
        wanted = ["offset"] if self.offsets != EVERYTHING else []
        wanted += ["timestamp"] if self.timestamps != EVERYTHING else []
        wanted += [] if self.control_records else ["is_control"]
        wanted += [] if self.producers is None else ["producer_id"]
        wanted += [] if self.keys is None else ["key"]
        wanted += ["headers"] if self.headers else []
        if self.aborted:
            wanted += ["offset", "producer_id", "is_transactional", "is_control"]
        return tuple(dict.fromkeys(wanted))

    @property
    def skips(self) -> bool:
        """Whether the header of a batch can show that no record in it is selected."""
        by_range = self.offsets != EVERYTHING or self.timestamps != EVERYTHING
        return by_range or self.producers is not None or bool(self.aborted)

    @property
    def is_by_content(self) -> bool:
        """Whether it selects records by key, record header or producer: mostly few of a file."""
        return self.keys is not None or bool(self.headers) or self.producers is not None

    def may_have(self, header: Batch) -> bool:
        """Return whether a batch may hold a selected record, by its header alone: its producer,
        offsets, aborted transactions, and whether its max timestamp is before the time range.
        Return True if the header does not state a base offset; bounds that it contradicts rule
        nothing out.
        """
        from kafka_log.segment.row_values import bounds_of  # not for other scans

        if header.base_offset is None:
            return True  # a compressed message, of which the header says little
        if self.producers is not None and header.producer_id not in self.producers:
            return False
        last, latest = bounds_of(header)
        (low, high), begin = self.offsets, self.timestamps[0]
        if begin is not None and latest is not None and latest < begin:
            return False
        if last is None:
            return True
        return not (
            (low is not None and last < low)
            or (high is not None and header.base_offset >= high)
            or (
                bool(self.aborted)
                and self._is_aborted(header, header.base_offset)
                and self._is_aborted(header, last)
            )
        )

    def is_after(self, header: Batch) -> bool:
        """Return whether the header of a batch says that all its offsets lie at or after the end of
        the offset range. Return False if it does not state a base offset, or contradicts itself
        about the last one.
        """
        from kafka_log.segment.row_values import bounds_of  # not for other scans

        high, base = self.offsets[1], header.base_offset
        if high is None or base is None or base < high:
            return False
        return bounds_of(header)[0] is not None

    def _is_aborted(self, batch: Batch, offset: int) -> bool:
        """Return whether data of a batch at ``offset`` belongs to an aborted transaction."""
        is_data = batch.is_transactional and not batch.is_control
        return is_data and self.aborted.has(batch.producer_id, offset)
