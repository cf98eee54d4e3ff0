"""Transaction indexes, beside the abort markers of the segments."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_codecs import TRANSACTION_INDEX_ENTRY, ControlRecordType
from kafka_log.inspect.check.base import Check, Context, are
from kafka_log.inspect.check.finding import Finding, Severity
from kafka_log.inspect.check.indexes import REBUILD
from kafka_log.inspect.check.segment_scan import Walked
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
"""Bytes of an entry: all its fields have fixed sizes."""


Entry = tuple[int, int, int, int]
"""Position, producer, first and last offset of an entry."""


@dataclass(frozen=True, slots=True)
class Markers:
    """The markers of a segment. ``aborts`` has those that abort a transaction, by producer and offset: where it begins, None if that is not
    known. ``ends`` has the offsets of all markers of a producer, in their order, after that of the last one in an earlier segment."""

    aborts: dict[tuple[int, int], int | None]
    ends: dict[int, list[int]]

    def last_before(self, producer: int, offset: int) -> int:
        """Return the offset of the last marker of a producer before another offset, -1 if there is none."""
        ends = self.ends.get(producer, [])
        at = bisect_left(ends, offset)
        return ends[at - 1] if at else -1


class TransactionIndexCheck(Check):
    """Entries that name no abort marker, or another beginning than the transaction has, and abort markers of transactions with records
    that no entry names.

    The cleaner takes the entries of transactions whose records it took, and markers too, so in a compacted partition only what is left
    tells: a transaction begins neither in a batch of another producer, nor before another marker of its own.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.begun: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        self.start: int | None = None
        """Where the log begins, if the producer snapshot there knows the open transactions, and no offset is missing since."""
        self.open_at_start: dict[int, int] = {}
        """What the snapshot says: the first offsets of transactions, by their producers, until their markers come."""
        self.next_offset = 0
        self.has_holes = context.broker.offset(CLEANER, context.key) is not None

    def segment(self, walked: Walked) -> Iterable[Finding]:
        self._begin(walked.segment)
        markers = self._markers(walked)
        if not walked.segment.has_canonical_name:
            return
        path = walked.segment.path.with_suffix(".txnindex")
        named: set[int] = set()
        is_whole = True
        rest: list[Finding] = []
        if path.is_file():
            entries: list[Entry] = []
            for item in self._entries(path):
                if isinstance(item, Finding) and item.code == "txnindex_length":
                    rest.append(item)
                elif isinstance(item, Finding):
                    is_whole = False
                    yield item
                else:
                    entries.append(item)
            named = {last for _, _, _, last in entries}
            yield from self._compare(walked, path, entries, markers)
        missing = {} if not is_whole or self.has_holes else markers.aborts
        for (producer, offset), first in missing.items():
            if offset not in named and first is not None:
                rest.clear()  # brokers pass over the rest of an entry: it is the one that is missing
                yield self.context.finding(
                    "error",
                    "txnindex_missing_entry",
                    path,
                    f"The transaction of producer {producer} that the marker at offset {offset} aborts is not in the index: "
                    "consumers that read committed records get its records.",
                    REBUILD,
                    first_offset=first,
                    last_offset=offset,
                    producer_id=producer,
                )
        yield from rest

    def unread(self, segment: Segment) -> None:
        self._forget()

    def _begin(self, segment: Segment) -> None:
        """Take the transactions that are open where the log begins from the producer snapshot there."""
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

    def _entries(self, path: Path) -> Iterator[Entry | Finding]:
        """Position, producer, first and last offset of each entry; then what cannot be read."""
        position, before = 0, -1
        with open_regular(path, -1) as file:
            while len(data := file.read(_ENTRY)) == _ENTRY:
                try:
                    entry = TRANSACTION_INDEX_ENTRY.parse(
                        data, file=os.fspath(path), position=position
                    )
                except CodecError as error:
                    yield self._wrong(
                        path,
                        "txnindex_entry",
                        f"An entry cannot be read: {error.reason}.",
                        position,
                    )
                    return
                if entry.last_offset <= before:
                    yield self._wrong(
                        path,
                        "txnindex_order",
                        f"The entry for the marker at offset {entry.last_offset} follows one for offset {before}.",
                        position,
                    )
                before = entry.last_offset
                yield position, entry.producer_id, entry.first_offset, entry.last_offset
                position += _ENTRY
        if data:
            yield self._wrong(
                path,
                "txnindex_length",
                f"The file ends with {are(len(data), 'byte')} of an entry: all entries have {_ENTRY} bytes.",
                position,
                severity="warning",
            )

    def _compare(
        self, walked: Walked, path: Path, entries: list[Entry], markers: Markers
    ) -> Iterator[Finding]:
        base = walked.segment.base_offset
        elsewhere = {*walked.headers.last[walked.outside].tolist()}
        may_grow = self.context.may_grow(walked)
        end = walked.headers.last.max(initial=base - 1) if may_grow else MAX_OFFSET
        for position, producer, first, last in entries:
            if last in elsewhere or self._is_missing(first, last):
                continue  # its batches are, and have a finding
            if last < base or (walked.next_base is not None and last >= walked.next_base):
                what: str | None = "is not in this segment"
            elif not 0 <= first <= last:
                what = f"begins at offset {first}, which is not before it"
            elif last > end:
                continue
            else:
                what = self._does_not_fit(walked, (producer, first, last), markers)
            if what is not None:
                yield self._wrong(
                    path,
                    "txnindex_entry",
                    f"An entry does not fit the batches: the marker at offset {last} {what}.",
                    position,
                    offsets=(first, last),
                    producer=producer,
                )

    def _is_missing(self, first: int, last: int) -> bool:
        """Return whether some of these offsets are told to be missing."""
        return any(r.start <= last and first < r.stop for r in self.context.missing)

    def _does_not_fit(
        self, walked: Walked, entry: tuple[int, int, int], markers: Markers
    ) -> str | None:
        """Say why the marker of an entry (producer, first and last offset) ends another transaction, or none; None if it fits."""
        producer, first, last = entry
        begun = markers.aborts.get((producer, last))
        if begun is not None and begun < first and not self._is_missing(begun, first):
            # Its first batches may be gone; those that are there must not lie before, unless a marker between may be missing.
            return f"aborts a transaction that begins at offset {begun}, not {first}"
        if first not in (begun, last):
            # A transaction that begins too early hides committed records.
            before = markers.last_before(producer, last)
            if before >= first:
                return f"aborts a transaction that begins after offset {before}, where its producer ended another one, not at {first}"
            other = self._other_than(walked, producer, first)
            if other is not None:
                return f"aborts no transaction that begins at offset {first}, where {other} lies"
        if self.has_holes or walked.lost or not walked.placed.all():
            return None
        if (producer, last) not in markers.aborts:
            return f"does not abort a transaction of producer {producer}"
        if begun is not None and self.start is not None and first < min(begun, self.start):
            return f"aborts a transaction that begins at offset {begun}, not {first}"
        return None

    def _other_than(self, walked: Walked, producer: int, offset: int) -> str | None:
        """Name the batch with an offset, unless it is one of a transaction of the producer, or is not there."""
        headers = walked.headers
        if offset < walked.segment.base_offset:
            found = self._batch_in_earlier_segment(offset)
        else:
            rows = np.flatnonzero(
                walked.placed & (headers.first <= offset) & (headers.last >= offset)
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
        """Return producer, and whether it is a control batch and transactional, of the batch with an offset; None if none is there."""
        segments = [s for s in self.context.partition.segments if s.base_offset <= offset]
        if not segments:
            return None
        segment = segments[-1]
        reader = SegmentReader(
            segment.path,
            policy=Policy.SALVAGE,
            records=False,
            rescue=False,
            start=find_position_by_index(segment, offset, None, "construct"),
            size=segment.size,
        )
        for batch in reader:
            if batch.last_offset >= offset:
                if batch.base_offset is None or batch.base_offset > offset:
                    return None
                return batch.producer_id, batch.is_control, batch.is_transactional
        return None

    def _wrong(
        self,
        path: Path,
        code: str,
        meaning: str,
        byte: int,
        severity: Severity = "error",
        offsets: tuple[int | None, int | None] = (None, None),
        producer: int | None = None,
    ) -> Finding:
        return self.context.finding(
            severity,
            code,
            path,
            meaning,
            REBUILD,
            byte=byte,
            first_offset=offsets[0],
            last_offset=offsets[1],
            producer_id=producer,
        )

    def _markers(self, walked: Walked) -> Markers:
        """Return what reads the transaction markers of a segment. `begun` knows the transactions that are open."""
        headers = walked.headers
        span = headers.last - headers.first + 1
        data = (headers.count >= 0) & ~headers.is_control
        self.has_holes |= bool((data & (headers.count < span)).any())
        self.has_holes |= bool((headers.is_control & (headers.count == 0)).any())
        if self.has_holes or not self._goes_on(headers):
            self._forget_start()
        is_in_order = bool(walked.placed.all())
        if not is_in_order:
            self._forget()
        starts = sorted(run.start for run in walked.lost)
        found = Markers({}, {producer: [offset] for producer, offset in self.ended.items()})
        rows = (headers.is_transactional & walked.placed).nonzero()[0].tolist()
        with open_regular(walked.segment.path) as file:
            for i in rows:
                position, producer = int(headers.position[i]), int(headers.producer_id[i])
                while starts and starts[0] < position:
                    self._forget()  # markers may have been lost
                    starts.pop(0)
                if not headers.is_control[i]:
                    if is_in_order:  # else a marker before it may lie elsewhere
                        self.begun.setdefault(producer, int(headers.first[i]))
                    continue
                file.seek(position)
                kind = _kind(
                    file.read(int(headers.size[i])), position, os.fspath(walked.segment.path)
                )
                if kind is None:
                    continue
                first, last = self.begun.pop(producer, None), int(headers.last[i])
                first = self.open_at_start.pop(producer, first)
                found.ends.setdefault(producer, []).append(last)
                self.ended[producer] = last
                if kind is ControlRecordType.ABORT:
                    found.aborts[producer, last] = first
        if starts:
            self._forget()
        return found

    def _goes_on(self, headers: Headers) -> bool:
        """Return whether no offset is missing from the start on to the end of a segment."""
        expected = np.append(self.next_offset, headers.last + 1)
        self.next_offset = int(expected[-1])
        return bool((headers.first == expected[:-1]).all())

    def _forget_start(self) -> None:
        """Forget what the producer snapshot said: a cleaner may have taken the markers of its transactions."""
        self.open_at_start.clear()
        self.start = None

    def _forget(self) -> None:
        self.begun.clear()
        self._forget_start()


def _kind(data: bytes, position: int, file: str) -> ControlRecordType | None:
    """What the control batch says about a transaction; None when it says nothing that is known."""
    from kafka_log.segment.reference import construct_engine

    try:
        batch = construct_engine(data, position, file, Policy.KAFKA, Limits(), True)
    except CodecError:
        return None
    for record in batch.records:
        for kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            if record.control is not None and record.control.type_id == kind:
                return kind
    return None
