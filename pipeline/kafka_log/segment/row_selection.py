"""Which records of a file are wanted: by offset, time, key, headers and producer, and by what a consumer gets.

What is said here once is asked of records one by one, here, and of whole Arrow columns in :mod:`kafka_log.segment.row_masks`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kafka_log.segment.model import Batch, Record
from kafka_log.segment.ranges import EVERYTHING, Range, within

Header = str | tuple[str, bytes | None]
"""A header that is wanted: the name, with any value, or the name and the value (None: null)."""

SKIPPABLE_MAGIC = 2
"""The format whose headers say enough. Messages before it say less, and are small."""


class Aborted:
    """Transactions whose records are left out: producer id, first offset, last offset. Those of one producer lie apart."""

    def __init__(self, found: Iterable[tuple[int, int, int]] = ()) -> None:
        by_producer: dict[int, list[tuple[int, int]]] = {}
        for producer, first, last in sorted(found):
            by_producer.setdefault(producer, []).append((first, last))
        self.by_producer: Mapping[int, Sequence[tuple[int, int]]] = by_producer

    def __bool__(self) -> bool:
        return bool(self.by_producer)

    def has(self, producer: int, offset: int) -> bool:
        """Whether what a producer wrote in a transaction at an offset was aborted."""
        ranges = self.by_producer.get(producer)
        if ranges is None:
            return False
        at = bisect_right(ranges, offset, key=lambda found: found[0]) - 1
        return at >= 0 and offset <= ranges[at][1]


@dataclass(frozen=True)
class RowSelection:
    """What is wanted of the records of one file. Where ``control_records`` is False, those that brokers write for
    themselves are left out, as are the records of ``aborted`` transactions. ``keys`` and ``producers`` are any of those, None: all;
    ``headers`` must all be there."""

    offsets: Range = EVERYTHING
    timestamps: Range = EVERYTHING
    control_records: bool = True
    aborted: Aborted = field(default_factory=Aborted)
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[Header] = ()
    producers: Sequence[int] | None = None

    def columns(self) -> tuple[str, ...]:
        """The columns of the view records that decide."""
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
        """Whether there is something by which headers say that no record of a batch is wanted."""
        by_range = self.offsets != EVERYTHING or self.timestamps != EVERYTHING
        return by_range or self.producers is not None or bool(self.aborted)

    def may_have(self, header: Batch) -> bool:
        """Whether a batch may hold a record that is wanted, or one after the range of offsets, by its header alone."""
        if header.magic != SKIPPABLE_MAGIC or header.base_offset is None:
            return True
        low, begin = self.offsets[0], self.timestamps[0]
        return not (
            (low is not None and header.last_offset < low)
            or (begin is not None and header.max_timestamp < begin)
            or (self.producers is not None and header.producer_id not in self.producers)
            or (
                bool(self.aborted)
                and self._is_aborted(header, header.base_offset)
                and self._is_aborted(header, header.last_offset)
            )
        )

    def wants(self, batch: Batch, record: Record) -> bool:
        """Whether a record of a batch is wanted."""
        return (
            within(record.offset, self.offsets)
            and within(record.timestamp, self.timestamps)
            and (self.control_records or not batch.is_control)
            and (self.producers is None or batch.producer_id in self.producers)
            and (self.keys is None or record.key in self.keys)
            and all(_has(record, wanted) for wanted in self.headers)
            and not (self.aborted and self._is_aborted(batch, record.offset))
        )

    def of_batch(self, batch: Batch) -> Batch | None:
        """A batch with those of its records that are wanted; None when it has records, and none of them is. Of one without
        records the header alone decides."""
        records = [record for record in batch.records if self.wants(batch, record)]
        if len(records) == len(batch.records):
            if records or self.has_header(batch):
                return batch
            return None
        return replace(batch, records=records) if records else None

    def has_header(self, header: Batch) -> bool:
        """Whether a batch is wanted of which nothing is known but its header: one that lies in the ranges, as far as it says."""
        if self.keys is not None or self.headers:
            return False
        if not self.control_records and header.is_control:
            return False
        first = header.last_offset if header.base_offset is None else header.base_offset
        (low, high), (begin, end) = self.offsets, self.timestamps
        earliest = header.max_timestamp if header.base_timestamp is None else header.base_timestamp
        return (
            (low is None or header.last_offset >= low)
            and (high is None or first < high)
            and (begin is None or header.max_timestamp >= begin)
            and (end is None or earliest < end)
            and (self.producers is None or header.producer_id in self.producers)
            and not (self.aborted and self._is_aborted(header, header.last_offset))
        )

    def _is_aborted(self, batch: Batch, offset: int) -> bool:
        is_data = batch.is_transactional and not batch.is_control
        return is_data and self.aborted.has(batch.producer_id, offset)


def _has(record: Record, wanted: Header) -> bool:
    if isinstance(wanted, str):
        return any(name == wanted for name, _ in record.headers)
    return wanted in record.headers
