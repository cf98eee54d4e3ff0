"""Transactions of a partition from the files that its broker keeps: transaction indexes and producer snapshots.

Reading all batch headers gives the same transactions, but takes time in proportion to their number. A file is trusted if it is complete
and agrees with itself, with the names of segments, and with samples of the batches that it refers to; in an object store, where
samples would be requests, those who read the batches compare them. Headers are read for segments whose files say too little, and
after the newest snapshot.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codecgen.runtime.errors import CodecError
from kafka_codecs import TRANSACTION_INDEX, TRANSACTION_INDEX_ENTRY, ControlRecordType
from kafka_log.logs.broker_files import (
    TooLargeError,
    list_snapshot_offsets,
    read_producer_snapshot,
    read_small_file,
)
from kafka_log.logs.index_files import find_position_by_index
from kafka_log.logs.offset_ranges import are_in_offset_order
from kafka_log.logs.partitions import Segment
from kafka_log.logs.transactions import (
    AbortedTransaction,
    MarkerReader,
    TransactionalBatch,
    Transactions,
    get_open_transactions,
    observe_transactions,
    summarize_transactions,
)
from kafka_log.segment.batch_headers import entries
from kafka_log.segment.framing import HeaderColumns
from kafka_log.segment.remote_files import BLOCK
from kafka_log.segment.urls import is_url

if TYPE_CHECKING:
    from kafka_log.segment.kernels import Engine

MAX_SCANNED_BYTES = BLOCK
"""Maximum size of a segment in an object store whose headers are read: one request gets all of it. Its files and their verification
would take more requests."""

MAX_CHECKED_TRANSACTIONS = 8
"""Maximum number of transactions per partition whose batches are looked up to verify the files."""

_ENTRY = TRANSACTION_INDEX_ENTRY.min_size
"""Size of an entry, whose fields all have fixed sizes."""


class _UntrustedFiles(Exception):
    """The files cannot be trusted, or reading headers is as fast."""


def read_transactions_from_files(
    segments: Sequence[Segment], engine: Engine = "auto"
) -> Transactions | None:
    """Return the transactions of one partition from the transaction indexes and producer snapshots
    of its broker. Return None if batch headers have to be read instead: these files are missing,
    invalid, say too little or contradict sampled batches, or there are no segments, or they are not
    live or not in order. In an object store aborted transactions are not compared with batches, and
    the result is not ``is_verified``. Never raise errors of files or batches.

    Args:
        segments: Segments in offset order.
        engine: Reader of batch headers.
    """
    if not segments or any(not s.has_canonical_name or s.state != "live" for s in segments):
        return None
    bases = [segment.base_offset for segment in segments]
    if any(after <= before for before, after in pairwise(bases)):
        return None
    if not are_in_offset_order(segments):
        return None
    try:
        return _TransactionFiles(segments, engine).read()
    except (_UntrustedFiles, CodecError, OSError):
        return None


def are_confirmed_by_batches(
    aborted: Sequence[AbortedTransaction], segments: Sequence[Segment], engine: Engine = "auto"
) -> bool:
    """Return whether the first batches and abort markers of aborted transactions lie in
    ``segments`` (in offset order), or were removed from them. Some of many transactions are looked
    up. Return False also if a batch cannot be read.
    """
    try:
        _TransactionFiles(segments, engine).check_aborted(aborted)
    except (_UntrustedFiles, CodecError, OSError):
        return False
    return True


@dataclass
class _TransactionFiles:
    """Reads and verifies the transaction indexes and producer snapshots of one partition.

    Args:
        segments: Live segments in offset order, whose names have their base offsets.
        engine: Reader of batch headers.
    """

    segments: Sequence[Segment]
    engine: Engine

    def __post_init__(self) -> None:
        self.directory = self.segments[0].path.parent
        self.snapshots: dict[int, list[Any] | None] = {}
        self.newer: set[AbortedTransaction] = set()
        self.earlier: dict[int, list[AbortedTransaction]] = {}
        self.names: set[str] | None = None
        self.unindexed: list[tuple[int, int]] = []
        self.in_store = is_url(self.directory)
        self.ends = [*(s.base_offset for s in self.segments[1:]), None]

    def read(self) -> Transactions:
        """Return the transactions of the partition: from its files up to the newest valid snapshot,
        from batch headers after it. Without a snapshot read all headers if the log begins at offset
        0. Raise _UntrustedFiles if it begins later, if the files are invalid, say too little or
        contradict sampled batches, or if the headers of all segments are as fast to read;
        CodecError or OSError if a batch or file cannot be read.
        """
        scanned = _small_at_end(self.segments)
        if len(scanned) == len(self.segments):
            if self._read_producers(scanned[0].base_offset) is not None:
                raise _UntrustedFiles
            scanned = []  # what is kept may know of transactions that began before the log
        at, start = self._find_newest_snapshot(scanned)
        aborted: list[AbortedTransaction] = []
        for segment, end in zip(self.segments, self.ends, strict=True):
            if segment.base_offset >= at:
                break
            aborted += self._read_aborted(segment, at if end is None else end)
        self._check_earlier()
        begun = {e.producer_id: e for e in self._read_producers(at) or ()}
        opened = get_open_transactions(begun.values(), at)
        self._check_samples(
            aborted, {producer: one.first_offset for producer, one in opened.items()}
        )
        rest = [s for s in self.segments if s.base_offset >= at]
        if start is not None:
            rest = [self.segments[-1]]
        after = summarize_transactions(
            observe_transactions(rest, opened, engine=self.engine, start=start or 0)
        )
        if not self.newer <= set(after.aborted):
            raise _UntrustedFiles
        return Transactions(
            (*aborted, *after.aborted),
            after.last_stable_offset,
            after.open_first_offsets,
            is_verified=not self.in_store,
            unindexed=tuple(self.unindexed),
            is_order_verified=False,
        )

    def _find_newest_snapshot(self, scanned: Sequence[Segment]) -> tuple[int, int | None]:
        """Return the newest offset with a valid producer snapshot, and its byte position if it lies
        inside the last segment; None as position if it is the base offset of a segment. Ignore
        other offsets, and those above the base offset of the first of ``scanned``. Without such a
        snapshot return (0, None) if the log begins at offset 0, else raise _UntrustedFiles. Raise
        CodecError or OSError if the directory or the last segment cannot be read.
        """
        bases = {segment.base_offset for segment in self.segments}
        last = self.segments[-1]
        for offset in sorted(list_snapshot_offsets(self.directory), reverse=True):
            if scanned and offset > scanned[0].base_offset:
                continue
            if offset > last.base_offset and self._read_producers(offset) is not None:
                start = _find_position(last, offset, self.engine)
                if start is not None:
                    return offset, start
            elif offset in bases and self._read_producers(offset) is not None:
                return offset, None
        if self.segments[0].base_offset == 0:
            return 0, None
        raise _UntrustedFiles

    def _read_producers(self, offset: int) -> list[Any] | None:
        """Return the producers in the snapshot at an offset, ``[]`` at offset 0; None if that
        snapshot is missing or invalid. Each file is read once.
        """
        if offset == 0:
            return []
        if offset not in self.snapshots:
            self.snapshots[offset] = read_producer_snapshot(
                self.directory / f"{offset:020d}.snapshot"
            )
        return self.snapshots[offset]

    def _read_aborted(self, segment: Segment, end: int) -> list[AbortedTransaction]:
        """Return the transactions that markers in a segment below offset ``end`` abort: from its
        transaction index; ``[]`` if there is no index and snapshots show none; else from its
        headers. Raise _UntrustedFiles if the index is invalid, or neither an index nor a producer
        snapshot at the segment's start exists; CodecError or OSError if the index or the segment
        cannot be read. Set ``newer`` to the entries of the index at or after ``end``.

        In an object store return ``[]`` if the segment has its other index files: brokers write a
        transaction index when they abort. Add the offsets to ``unindexed``, for readers to verify.
        """
        base = segment.base_offset
        # The last segment may have grown since the newest snapshot.
        is_last = segment is self.segments[-1]
        found = _read_index(segment.path.with_suffix(".txnindex"), base, None if is_last else end)
        if found is None:
            if self.in_store and self._has_other_indexes(segment):
                if self.unindexed and self.unindexed[-1][1] == base:
                    base = self.unindexed.pop()[0]
                self.unindexed.append((base, end))
                return []
            if self._has_none(base, end):
                return []
            before = self._read_producers(base)
            if before is None:
                raise _UntrustedFiles
            opened = get_open_transactions(before, base)
            stop = end if is_last else None
            walked = summarize_transactions(
                observe_transactions([segment], opened, engine=self.engine, stop=stop)
            )
            return list(walked.aborted)
        if earlier := [one for one in found if one.first_offset < base]:
            self.earlier[base] = earlier
        self.newer = {one for one in found if one.last_offset >= end}
        return [one for one in found if one not in self.newer]

    def _has_other_indexes(self, segment: Segment) -> bool:
        """Return whether the directory listing has the offset index and the time index of a segment."""
        if self.names is None:
            self.names = {child.name for child in self.directory.iterdir()}
        stem = segment.path.stem
        return {f"{stem}.index", f"{stem}.timeindex"} <= self.names

    def _check_earlier(self) -> None:
        """Raise _UntrustedFiles if an aborted transaction of the indexes read so far that began
        before the segment of its marker is not open, with the same first offset, in the producer
        snapshot at that segment's start. Skip segments whose snapshot is missing, invalid or cannot
        be read, and in an object store those whose snapshot was not read before.
        """
        for base, found in self.earlier.items():
            if self.in_store and base not in self.snapshots:
                continue
            before = self._read_producers(base)
            opened = {} if before is None else get_open_transactions(before, base)
            for one in () if before is None else found:
                known = opened.get(one.producer_id)
                if known is None or known.first_offset != one.first_offset:
                    raise _UntrustedFiles

    def _has_none(self, base: int, end: int) -> bool:
        """Return whether the producer snapshots at offsets ``base`` and ``end`` are both valid and
        have no producer that has ever ended a transaction or has one open. Offset 0 needs no
        snapshot. Return False if one at another offset is missing or invalid.

        A missing index alone proves nothing: brokers write none if nothing was aborted.
        """
        for offset in (base, end):
            known = self._read_producers(offset)
            if known is None or any(
                e.coordinator_epoch >= 0 or e.current_txn_first_offset >= 0 for e in known
            ):
                return False
        return True

    def _check_samples(
        self, aborted: list[AbortedTransaction], begun: dict[int, int | None]
    ) -> None:
        """Look up the batches of some aborted transactions and of some open ones (``begun``: first
        offsets by producer id). Raise _UntrustedFiles if one of them contradicts the files, or a
        transaction is both aborted and open; CodecError if a segment cannot be read. In an object
        store look up one open transaction if none is aborted, and nothing else.
        """
        ended = {(one.producer_id, one.first_offset) for one in aborted}
        if not ended.isdisjoint(begun.items()):
            raise _UntrustedFiles
        limit = MAX_CHECKED_TRANSACTIONS
        if self.in_store:
            limit = 0 if aborted else 1
        else:
            self.check_aborted(aborted)
        for producer, first in list(begun.items())[:limit]:
            if first is not None:
                self._check_batch(first, producer, None)

    def check_aborted(self, aborted: Sequence[AbortedTransaction]) -> None:
        """Look up the first batches and abort markers of aborted transactions, of every n-th from
        the last one back if there are more than MAX_CHECKED_TRANSACTIONS. Raise _UntrustedFiles if
        one is not there, CodecError if a segment cannot be read.
        """
        step = max(1, -(-len(aborted) // MAX_CHECKED_TRANSACTIONS))
        for one in aborted[::-step]:
            self._check_batch(one.last_offset, one.producer_id, ControlRecordType.ABORT)
            self._check_batch(one.first_offset, one.producer_id, None)

    def _check_batch(self, offset: int, producer: int, marker: ControlRecordType | None) -> None:
        """Raise _UntrustedFiles if the batch at ``offset`` is of another producer, begins at
        another offset, or is not the control batch ``marker`` (data if None). Do nothing if no
        batch has the offset: it may have been deleted or compacted away. Raise CodecError if the
        segment is damaged before it or cannot be read.
        """
        segment = next((s for s in reversed(self.segments) if s.base_offset <= offset), None)
        if segment is None:
            return
        header = _find_header(segment, offset, self.engine)
        if header is None or (header.base_offset or 0) > offset:
            return
        begins = header.base_offset == offset
        if (
            header.producer_id != producer
            or header.is_control != (marker is not None)
            or not begins
        ):
            raise _UntrustedFiles
        if marker is None:
            return
        with MarkerReader(segment, {}) as markers:
            place = header.position, header.size
            if markers.read_kind(*place, header.magic, header.codec, header.record_count) != marker:
                raise _UntrustedFiles


def _small_at_end(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Return the segments at the end of a log that lie in an object store and have at most
    4 MiB (:data:`MAX_SCANNED_BYTES`); an empty sequence if the last one is not such a file.
    """
    first = len(segments)
    while (
        first and segments[first - 1].size <= MAX_SCANNED_BYTES and is_url(segments[first - 1].path)
    ):
        first -= 1
    return segments[first:]


def _read_index(path: Path, base: int, end: int | None) -> list[AbortedTransaction] | None:
    """Return the entries of a transaction index; None if the file does not exist. Raise
    _UntrustedFiles if the file is empty, too large or invalid, a first offset is not before its
    last one, or last offsets do not ascend or lie outside of ``base`` to ``end`` (exclusive, None:
    no limit). Raise OSError if the file cannot be read.

    Args:
        path: The index.
        base: Base offset of its segment.
        end: First offset after the segment. None: unknown.
    """
    try:
        data = read_small_file(path)
    except FileNotFoundError:
        return None
    except TooLargeError:
        raise _UntrustedFiles from None
    if not data or len(data) % _ENTRY:
        raise _UntrustedFiles
    try:
        read = TRANSACTION_INDEX.parse(data, file=os.fspath(path)).entries
    except CodecError:
        raise _UntrustedFiles from None
    found = [AbortedTransaction(e.producer_id, e.first_offset, e.last_offset) for e in read]
    if any(after.last_offset <= before.last_offset for before, after in pairwise(found)):
        raise _UntrustedFiles
    for one in found:
        if not 0 <= one.first_offset < one.last_offset or one.last_offset < base:
            raise _UntrustedFiles
        if end is not None and one.last_offset >= end:
            raise _UntrustedFiles
    return found


def _find_header(segment: Segment, offset: int, engine: Engine) -> TransactionalBatch | None:
    """Return the header of the first batch whose last offset is ``offset`` or later; None if there
    is none. Batches before the position that the indexes give are not read. Raise CodecError if a
    header from there to the found one is damaged (no checksum is verified), or the file cannot be
    read.
    """
    columns = HeaderColumns(TransactionalBatch._fields, os.fspath(segment.path))
    start = find_position_by_index(segment, offset, None, engine)
    for entry in entries(segment.path, start=start):
        header = TransactionalBatch(*columns.read(entry))
        if header.last_offset >= offset:
            return header
    return None


def _find_position(segment: Segment, offset: int, engine: Engine) -> int | None:
    """Return the byte position at which the batches from ``offset`` on begin: that of a batch, or
    the end if the log ends right before ``offset``. Return None if it ends earlier, or a batch
    contains offsets on both sides. Raise CodecError if a batch before it is damaged, or the file
    cannot be read.
    """
    columns = HeaderColumns(("base_offset", "last_offset"), os.fspath(segment.path))
    start = find_position_by_index(segment, offset - 1, None, engine)
    following = None
    for entry in entries(segment.path, start=start):
        first, last = columns.read(entry)
        if last >= offset:
            return entry.position if first is not None and first >= offset else None
        following = last + 1, entry.position + entry.frame.size
    return following[1] if following is not None and following[0] == offset else None
