"""Transaction indexes, beside the abort markers of the segments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_codecs import TRANSACTION_INDEX_ENTRY, ControlRecordType
from kafka_log.disk.directory import Segment
from kafka_log.disk.names import CLEANER
from kafka_log.report.check.base import Check, Context, are
from kafka_log.report.check.finding import Finding, Severity
from kafka_log.report.check.indexes import REBUILD
from kafka_log.report.check.walk import Walked
from kafka_log.segment.model import Policy
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.regular_files import open_regular

_ENTRY = TRANSACTION_INDEX_ENTRY.least
"""Bytes of an entry: all its fields have fixed sizes."""


@dataclass(frozen=True, slots=True)
class Marker:
    """An abort marker. ``first`` is where its transaction begins, None when that is not known."""

    position: int
    first: int | None


class TransactionIndexCheck(Check):
    """Entries that name no abort marker, and abort markers of transactions with records that no entry names.

    The cleaner takes the entries of transactions whose records it took, and markers too, so a compacted partition's entries
    are only compared with the segment.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.begun: dict[int, int] = {}
        self.has_holes = context.broker.offset(CLEANER, context.key) is not None

    def segment(self, walked: Walked) -> Iterable[Finding]:
        markers = self._markers(walked)
        if not walked.segment.is_named:
            return
        path = walked.segment.path.with_suffix(".txnindex")
        named: set[tuple[int, int]] = set()
        is_whole = True
        if path.is_file():
            entries: list[tuple[int, int, int, int]] = []
            for item in self._entries(path):
                if isinstance(item, Finding):
                    # The rest of an entry at the end names no transaction, and brokers pass over it.
                    is_whole &= item.code == "txnindex_length"
                    yield item
                else:
                    entries.append(item)
            named = {(producer, last) for _, producer, _, last in entries}
            yield from self._compare(walked, path, entries, markers)
        if not is_whole or self.has_holes:
            return
        for (producer, offset), marker in markers.items():
            if (producer, offset) not in named and marker.first is not None:
                yield self.context.finding(
                    "error",
                    "txnindex_missing_entry",
                    path,
                    f"The transaction of producer {producer} that the marker at offset {offset} aborts is not in the index: "
                    "consumers that read committed records get its records.",
                    REBUILD,
                    first_offset=marker.first,
                    last_offset=offset,
                    producer_id=producer,
                )

    def unread(self, segment: Segment) -> None:
        self.begun.clear()

    def _entries(self, path: Path) -> Iterator[tuple[int, int, int, int] | Finding]:
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
        self,
        walked: Walked,
        path: Path,
        entries: list[tuple[int, int, int, int]],
        markers: dict[tuple[int, int], Marker],
    ) -> Iterator[Finding]:
        base = walked.segment.base_offset
        may_grow = self.context.may_grow(walked)
        end = walked.headers.last.max(initial=base - 1) if may_grow else MAX_OFFSET
        for position, producer, first, last in entries:
            what = None
            marker = markers.get((producer, last))
            if last < base or (walked.next_base is not None and last >= walked.next_base):
                what = "is not in this segment"
            elif not 0 <= first < last:
                what = f"begins at offset {first}, which is not before it"
            elif self.has_holes or walked.lost or last > end:
                continue
            elif marker is None:
                what = f"does not abort a transaction of producer {producer}"
            elif marker.first is not None and marker.first < first:
                # Its first batches may be gone; those that are there must not lie before.
                what = f"aborts a transaction that begins at offset {marker.first}, not {first}"
            if what is not None:
                yield self._wrong(
                    path,
                    "txnindex_entry",
                    f"An entry does not fit the batches: the marker at offset {last} {what}.",
                    position,
                    offsets=(first, last),
                    producer=producer,
                )

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

    def _markers(self, walked: Walked) -> dict[tuple[int, int], Marker]:
        """The abort markers of a segment, by producer and offset. ``begun`` knows the transactions that are open."""
        headers = walked.headers
        span = headers.last - headers.first + 1
        data = (headers.count >= 0) & ~headers.is_control
        self.has_holes |= bool((data & (headers.count < span)).any())
        self.has_holes |= bool((headers.is_control & (headers.count == 0)).any())
        starts = sorted(run.start for run in walked.lost)
        found: dict[tuple[int, int], Marker] = {}
        rows = headers.is_transactional.nonzero()[0].tolist()
        with walked.segment.path.open("rb") as file:
            for i in rows:
                position, producer = int(headers.position[i]), int(headers.producer_id[i])
                while starts and starts[0] < position:
                    self.begun.clear()  # markers may have been lost
                    starts.pop(0)
                if not headers.is_control[i]:
                    self.begun.setdefault(producer, int(headers.first[i]))
                    continue
                file.seek(position)
                kind = _kind(
                    file.read(int(headers.size[i])), position, os.fspath(walked.segment.path)
                )
                if kind is None:
                    continue
                first = self.begun.pop(producer, None)
                if kind is ControlRecordType.ABORT:
                    found[producer, int(headers.last[i])] = Marker(position, first)
        if starts:
            self.begun.clear()
        return found


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
