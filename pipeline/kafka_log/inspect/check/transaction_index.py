"""Check of transaction indexes against the abort markers of their segments."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_codecs import TRANSACTION_INDEX_ENTRY, ControlRecordType
from kafka_log.inspect.check.base import Check, Context
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.segment_scan import ScannedSegment
from kafka_log.logs.broker_files import read_producer_snapshot
from kafka_log.logs.index_files import find_position_by_index
from kafka_log.logs.names import CLEANER
from kafka_log.logs.partitions import Segment
from kafka_log.logs.transactions import get_open_transactions
from kafka_log.segment.header_arrays import Headers
from kafka_log.segment.model import Policy
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.reader import SegmentReader
from kafka_log.segment.regular_files import open_regular

_ENTRY = TRANSACTION_INDEX_ENTRY.min_size
"""Size of an entry in bytes."""


Entry = tuple[int, int, int, int]
"""Position, producer, first and last offset of an entry."""


@dataclass(frozen=True, slots=True)
class Markers:
    """Transaction markers of a segment.

    Attributes:
        aborts: Abort markers by producer id and offset, with the first offset of the transaction (None if unknown).
        ends: Offsets of all markers by producer id, ascending. The first is the last marker in earlier segments.
    """

    aborts: dict[tuple[int, int], int | None]
    ends: dict[int, list[int]]

    def last_before(self, producer: int, offset: int) -> int:
        """Return the offset of the last marker of a producer before another offset, -1 if there is none."""
        ends = self.ends.get(producer, [])
        at = bisect_left(ends, offset)
        return ends[at - 1] if at else -1


class TransactionIndexCheck(Check):
    """Finds entries that match no aborted transaction, and aborted transactions without an entry.

    A segment without .index has no findings: a broker that builds the .index writes the .txnindex anew. The log cleaner removes entries and markers of transactions whose records it removed. In a compacted partition an
    entry is only wrong if its transaction begins in a batch of another producer, or before another marker of its own.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.begun: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        self.start: int | None = None
        """Base offset of the log, if a producer snapshot has its open transactions and no offset is missing since."""
        self.open_at_start: dict[int, int] = {}
        """First offsets of the transactions that are open in that snapshot, by producer id, until their markers."""
        self.next_offset = 0
        self.has_holes = context.broker.offset(CLEANER, context.key) is not None

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        self._load_open_transactions(scanned.segment)
        markers = self._read_markers(scanned)
        path = scanned.segment.path.with_suffix(".txnindex")
        if not scanned.segment.has_canonical_name or not path.with_suffix(".index").exists():
            return
        named: set[int] = set()
        is_whole = True
        rest: list[Finding] = []
        if path.is_file():
            entries: list[Entry] = []
            for item in self._read_entries(path):
                if isinstance(item, Finding) and item.code == "txnindex_length":
                    rest.append(item)
                elif isinstance(item, Finding):
                    is_whole = False
                    yield item
                else:
                    entries.append(item)
            named = {last for _, _, _, last in entries}
            yield from self._compare_entries(scanned, path, entries, markers)
        missing = {} if not is_whole or self.has_holes else markers.aborts
        for (producer, offset), first in missing.items():
            if offset not in named and first is not None:
                rest.clear()  # the incomplete entry is the missing one
                yield self.context.finding(
                    "txnindex_missing_entry",
                    path,
                    f"The transaction of producer {producer} that the marker at offset {offset} aborts has no entry in the index. "
                    "Read_committed consumers read its records, although they are aborted.",
                    first_offset=first,
                    last_offset=offset,
                    producer_id=producer,
                )
        yield from rest

    def skip_segment(self, segment: Segment) -> None:
        self._forget()

    def _load_open_transactions(self, segment: Segment) -> None:
        """Load the transactions that are open at the start of the log from the producer snapshot of
        the first segment. Do nothing for other segments, for a segment whose name is not its base
        offset, and if the snapshot is missing or invalid.
        """
        if (
            segment.path != self.context.partition.segments[0].path
            or not segment.has_canonical_name
        ):
            return
        entries = read_producer_snapshot(segment.path.with_suffix(".snapshot"))
        if entries is not None and segment.base_offset <= MAX_OFFSET:
            self.start = self.next_offset = segment.base_offset
            for producer, one in get_open_transactions(entries, segment.base_offset).items():
                if one.first_offset is not None:
                    self.open_at_start[producer] = one.first_offset

    def _read_entries(self, path: Path) -> Iterator[Entry | Finding]:
        """Yield the entries of the index, with findings among them. These are ``txnindex_order``
        before an entry whose last offset does not ascend, ``txnindex_length`` about an incomplete
        entry at the end, and ``txnindex_entry`` about one that cannot be parsed, which ends the
        reading. Raise OSError if the file cannot be read.
        """
        position, before = 0, -1
        with open_regular(path, -1) as file:
            while len(data := file.read(_ENTRY)) == _ENTRY:
                try:
                    entry = TRANSACTION_INDEX_ENTRY.parse(
                        data, file=os.fspath(path), position=position
                    )
                except CodecError as error:
                    yield self._entry_finding(
                        path,
                        "txnindex_entry",
                        f"The entry cannot be read: {error.where.path}: {error.reason}. Read_committed consumers may read records of its aborted transaction.",
                        position,
                    )
                    return
                if entry.last_offset <= before:
                    yield self._entry_finding(
                        path,
                        "txnindex_order",
                        f"The entry for the marker at offset {entry.last_offset} follows the entry for the marker at offset {before}. Entries must ascend.",
                        position,
                    )
                before = entry.last_offset
                yield position, entry.producer_id, entry.first_offset, entry.last_offset
                position += _ENTRY
        if data:
            yield self._entry_finding(
                path,
                "txnindex_length",
                f"The file ends with {count_noun(len(data), 'byte')} of an incomplete entry: entries have {_ENTRY} bytes. Brokers ignore these bytes.",
                position,
            )

    def _compare_entries(
        self, scanned: ScannedSegment, path: Path, entries: list[Entry], markers: Markers
    ) -> Iterator[Finding]:
        """Yield a ``txnindex_entry`` error for each entry that does not fit the batches. It does
        not fit if its last offset is not in the segment, its offsets are negative or descend, or
        :meth:`_describe_mismatch` describes it. Entries for batches that other findings report as
        missing or misplaced are skipped, and entries after what was read if a broker may append to
        the segment.
        """
        base = scanned.segment.base_offset
        elsewhere = {*scanned.headers.last[scanned.outside].tolist()}
        may_grow = self.context.may_grow(scanned)
        end = scanned.headers.last.max(initial=base - 1) if may_grow else MAX_OFFSET
        for position, producer, first, last in entries:
            if last in elsewhere or self._is_missing(first, last):
                continue  # its batches are, and have a finding
            if last < base or (scanned.next_base is not None and last >= scanned.next_base):
                what: str | None = "is not in this segment"
            elif not 0 <= first <= last:
                what = f"begins at offset {first}, which is not before it"
            elif last > end:
                continue
            else:
                what = self._describe_mismatch(scanned, (producer, first, last), markers)
            if what is not None:
                yield self._entry_finding(
                    path,
                    "txnindex_entry",
                    f"The entry does not fit the batches: the marker at offset {last} {what}. Read_committed consumers may read aborted records, or hide committed ones.",
                    position,
                    offsets=(first, last),
                    producer=producer,
                )

    def _is_missing(self, first: int, last: int) -> bool:
        """Return whether a finding reports any offset from ``first`` to ``last`` (included) as missing."""
        return any(r.start <= last and first < r.stop for r in self.context.missing)

    def _describe_mismatch(
        self, scanned: ScannedSegment, entry: tuple[int, int, int], markers: Markers
    ) -> str | None:
        """Return why an entry (producer, first and last offset) matches no aborted transaction of
        ``markers``, those of the segment, as the end of a sentence. Return None if it matches, or
        if damage, misplaced batches or compaction leave that open.
        """
        producer, first, last = entry
        begun = markers.aborts.get((producer, last))
        if begun is not None and begun < first and not self._is_missing(begun, first):
            # Its first batches may be gone. The present ones must not be before, unless a marker between is missing.
            return f"aborts a transaction that begins at offset {begun}, not {first}"
        if first not in (begun, last):
            # A transaction that begins too early hides committed records.
            before = markers.last_before(producer, last)
            if before >= first:
                return f"aborts a transaction that begins after offset {before}, where its producer ended another one, not at {first}"
            other = self._describe_other_batch(scanned, producer, first)
            if other is not None:
                return f"aborts no transaction that begins at offset {first}, where {other} is"
        if self.has_holes or scanned.lost or not scanned.placed.all():
            return None
        if (producer, last) not in markers.aborts:
            return f"does not abort a transaction of producer {producer}"
        if begun is not None and self.start is not None and first < min(begun, self.start):
            return f"aborts a transaction that begins at offset {begun}, not {first}"
        return None

    def _describe_other_batch(
        self, scanned: ScannedSegment, producer: int, offset: int
    ) -> str | None:
        """Return a noun phrase for the batch that contains an offset: a marker of ``producer``, a
        batch of another producer (or of this one outside of transactions), or one without a
        producer. Return None if no readable batch contains it, or if it is a transactional data
        batch of ``producer``.
        """
        headers = scanned.headers
        if offset < scanned.segment.base_offset:
            found = self._batch_in_earlier_segment(offset)
        else:
            rows = np.flatnonzero(
                scanned.placed & (headers.first <= offset) & (headers.last >= offset)
            )
            columns = (headers.producer_id, headers.is_control, headers.is_transactional)
            found = tuple(column[rows[0]] for column in columns) if len(rows) else None
        if found is None:
            return None
        owner, is_control, is_transactional = found
        if owner == producer and is_transactional:
            return "a marker" if is_control else None
        return f"a batch of producer {owner}" if owner >= 0 else "a batch without a producer"

    def _batch_in_earlier_segment(self, offset: int) -> tuple[int, bool, bool] | None:
        """Return producer id, is_control and is_transactional of the batch that contains
        ``offset``, in the last segment whose base offset is not above it. Return None if no segment
        or readable batch has the offset.
        """
        segments = [s for s in self.context.partition.segments if s.base_offset <= offset]
        if not segments:
            return None
        segment = segments[-1]
        reader = SegmentReader(
            segment.path,
            policy=Policy.SALVAGE,
            records=False,
            salvage_records=False,
            start=find_position_by_index(segment, offset, None, "construct"),
            size=segment.size,
        )
        for batch in reader:
            if batch.last_offset >= offset:
                if batch.base_offset is None or batch.base_offset > offset:
                    return None
                return batch.producer_id, batch.is_control, batch.is_transactional
        return None

    def _entry_finding(
        self,
        path: Path,
        code: str,
        meaning: str,
        byte: int,
        offsets: tuple[int | None, int | None] = (None, None),
        producer: int | None = None,
    ) -> Finding:
        """Return the finding ``code`` about the index entry at the byte ``byte``, with the first
        and last offset of its transaction and its producer id (None if unknown).
        """
        return self.context.finding(
            code,
            path,
            meaning,
            byte=byte,
            first_offset=offsets[0],
            last_offset=offsets[1],
            producer_id=producer,
        )

    def _read_markers(self, scanned: ScannedSegment) -> Markers:
        """Return the commit and abort markers of a segment, with the last marker of each producer
        in earlier segments. Skip markers that cannot be decoded. Update the open transactions in
        ``begun``, and drop them where lost or misplaced batches may have ended them.
        """
        headers = scanned.headers
        span = headers.last - headers.first + 1
        data = (headers.count >= 0) & ~headers.is_control
        self.has_holes |= bool((data & (headers.count < span)).any())
        self.has_holes |= bool((headers.is_control & (headers.count == 0)).any())
        if self.has_holes or not self._is_consecutive(headers):
            self._forget_start()
        is_in_order = bool(scanned.placed.all())
        if not is_in_order:
            self._forget()
        starts = sorted(run.start for run in scanned.lost)
        found = Markers({}, {producer: [offset] for producer, offset in self.ended.items()})
        rows = (headers.is_transactional & scanned.placed).nonzero()[0].tolist()
        for i in rows:
            position, producer = int(headers.position[i]), int(headers.producer_id[i])
            while starts and starts[0] < position:
                self._forget()  # the lost range may have had markers
                starts.pop(0)
            if not headers.is_control[i]:
                if is_in_order:  # otherwise its marker may be misplaced
                    self.begun.setdefault(producer, int(headers.first[i]))
                continue
            kind = scanned.control.markers.get(i)
            first, last = self.begun.pop(producer, None), int(headers.last[i])
            first = self.open_at_start.pop(producer, first)
            if kind is None:
                continue  # it may be the end of the transaction
            found.ends.setdefault(producer, []).append(last)
            self.ended[producer] = last
            if kind is ControlRecordType.ABORT:
                found.aborts[producer, last] = first
        if starts:
            self._forget()
        return found

    def _is_consecutive(self, headers: Headers) -> bool:
        """Return whether no offset is missing from the end of the segment before to the end of this one."""
        expected = np.append(self.next_offset, headers.last + 1)
        self.next_offset = int(expected[-1])
        return bool((headers.first == expected[:-1]).all())

    def _forget_start(self) -> None:
        """Drop the transactions of the producer snapshot: their markers may be missing."""
        self.open_at_start.clear()
        self.start = None

    def _forget(self) -> None:
        """Drop all open transactions: their markers may be missing."""
        self.begun.clear()
        self._forget_start()
