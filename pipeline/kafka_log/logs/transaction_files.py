"""The transactions of a partition by what its broker has kept of them: transaction indexes and producer snapshots.

A walk over all batch headers says the same, and takes as long as there are headers. What is kept is believed where it is whole
and agrees: with itself, with the segments' names, and with the batches that it names, of which some are looked at. Segments
whose files say too little are walked; so is what follows the newest snapshot.
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
from kafka_log.segment.batch_headers import Columns, entries
from kafka_log.segment.places import is_url
from kafka_log.segment.remote_files import BLOCK

if TYPE_CHECKING:
    from kafka_log.segment.kernels import Engine

MAX_SCANNED_BYTES = BLOCK
"""Maximum size of a segment in a store that is walked: one request gets all of it. To ask for what is kept of it, and for what
bears that out, takes longer."""

MAX_CHECKED_TRANSACTIONS = 8
"""Maximum number of transactions of one partition whose batches are looked up, to know that its files are about them."""

REQUESTS_PER_LOOKUP = 4
"""Requests to a store for the batches of one transaction: an index and a block of a segment for its first one and for its marker."""

_ENTRY = TRANSACTION_INDEX_ENTRY.least
"""Bytes of an entry: all its fields have fixed sizes."""


class _Doubt(Exception):
    """What is kept is not to be believed, or a walk is as fast."""


def read_transactions_from_files(
    segments: Sequence[Segment], engine: Engine = "auto"
) -> Transactions | None:
    """The transactions in the segments of one partition, in the order of offsets. None where what is kept says too little, or what
    is not so, or where batches are damaged that are looked at: then a walk over all of them tells. None too where all segments are small and in a
    store, and the transactions are known that are open where the log begins: a walk takes one request for each."""
    if not segments or any(not s.has_canonical_name or s.state != "live" for s in segments):
        return None
    bases = [segment.base_offset for segment in segments]
    if any(after <= before for before, after in pairwise(bases)):
        return None
    try:
        return _Kept(segments, engine).found()
    except (_Doubt, CodecError, OSError):
        return None


@dataclass
class _Kept:
    segments: Sequence[Segment]
    engine: Engine

    def __post_init__(self) -> None:
        self.directory = self.segments[0].path.parent
        self.snapshots: dict[int, list[Any] | None] = {}
        self.newer: set[AbortedTransaction] = set()
        self.earlier: dict[int, list[AbortedTransaction]] = {}
        self.in_store = is_url(self.directory)
        self.requests = 0
        self.ends = [*(s.base_offset for s in self.segments[1:]), None]

    def found(self) -> Transactions:
        walked = _small_at_end(self.segments)
        if len(walked) == len(self.segments):
            if self._producers(walked[0].base_offset) is not None:
                raise _Doubt
            walked = []  # what is kept may know of transactions that began before the log
        at, start = self._newest(walked)
        aborted: list[AbortedTransaction] = []
        for segment, end in zip(self.segments, self.ends, strict=True):
            if segment.base_offset >= at:
                break
            aborted += self._aborted(segment, at if end is None else end)
        self._check_earlier()
        begun = {e.producer_id: e for e in self._producers(at) or ()}
        opened = get_open_transactions(begun.values(), at)
        self._check(aborted, {producer: one.first_offset for producer, one in opened.items()}, at)
        rest = [s for s in self.segments if s.base_offset >= at]
        if start is not None:
            rest = [self.segments[-1]]
        after = summarize_transactions(
            observe_transactions(rest, opened, engine=self.engine, start=start or 0)
        )
        if not self.newer <= set(after.aborted):
            raise _Doubt
        return Transactions(
            (*aborted, *after.aborted), after.last_stable_offset, after.open_first_offsets
        )

    def _newest(self, walked: Sequence[Segment]) -> tuple[int, int | None]:
        """The newest offset at which the producers are known, before any in segments that are walked; inside of the last segment also the
        byte where it lies."""
        bases = {segment.base_offset for segment in self.segments}
        last = self.segments[-1]
        for offset in sorted(list_snapshot_offsets(self.directory), reverse=True):
            if walked and offset > walked[0].base_offset:
                continue
            if offset > last.base_offset and self._producers(offset) is not None:
                start = _position_of(last, offset, self.engine)
                if start is not None:
                    return offset, start
            elif offset in bases and self._producers(offset) is not None:
                return offset, None
        if self.segments[0].base_offset == 0:
            return 0, None
        raise _Doubt

    def _producers(self, offset: int) -> list[Any] | None:
        """Those that are known at an offset. None where nobody knows."""
        if offset == 0:
            return []
        if offset not in self.snapshots:
            self.requests += 1
            self.snapshots[offset] = read_producer_snapshot(
                self.directory / f"{offset:020d}.snapshot"
            )
        return self.snapshots[offset]

    def _aborted(self, segment: Segment, end: int) -> list[AbortedTransaction]:
        """The transactions that were aborted by markers in a segment, which ends before an offset."""
        base = segment.base_offset
        # The last one may have grown since the newest snapshot.
        is_last = segment is self.segments[-1]
        found = _index(segment.path.with_suffix(".txnindex"), base, None if is_last else end)
        if found is None:
            if self._has_none(base, end):
                return []
            before = self._producers(base)
            if before is None:
                raise _Doubt
            opened = get_open_transactions(before, base)
            stop = end if is_last else None
            walked = summarize_transactions(
                observe_transactions([segment], opened, engine=self.engine, stop=stop)
            )
            return list(walked.aborted)
        self.requests += 1
        if earlier := [one for one in found if one.first_offset < base]:
            self.earlier[base] = earlier
        self.newer = {one for one in found if one.last_offset >= end}
        return [one for one in found if one not in self.newer]

    def _has_requests(self, count: int) -> bool:
        """Return whether so many more requests may be made: on a disk always, in a store as long as they are one for each segment
        and one for the partition."""
        return not self.in_store or self.requests + count <= len(self.segments) + 1

    def _check_earlier(self) -> None:
        """Compare transactions that began before the segment in which they were aborted with those that are open where it begins."""
        for base, found in self.earlier.items():
            if base not in self.snapshots and not self._has_requests(1):
                continue
            before = self._producers(base)
            opened = {} if before is None else get_open_transactions(before, base)
            for one in () if before is None else found:
                known = opened.get(one.producer_id)
                if known is None or known.first_offset != one.first_offset:
                    raise _Doubt

    def _has_none(self, base: int, end: int) -> bool:
        """Whether no producer that is known where a segment begins or ends has ever ended a transaction, or has one open. A missing
        index says nothing by itself: brokers write none where nothing was aborted."""
        for offset in (base, end):
            known = self._producers(offset)
            if known is None or any(
                e.coordinator_epoch >= 0 or e.current_txn_first_offset >= 0 for e in known
            ):
                return False
        return True

    def _check(
        self, aborted: list[AbortedTransaction], begun: dict[int, int | None], at: int
    ) -> None:
        """Look up some of the batches that are named: those of one transaction at least."""
        ended = {(one.producer_id, one.first_offset) for one in aborted}
        for producer, first in begun.items():
            if (producer, first) in ended:
                raise _Doubt
        step = max(1, -(-len(aborted) // MAX_CHECKED_TRANSACTIONS))
        ended_ones = [(one.producer_id, one.first_offset, one.last_offset) for one in aborted]
        open_ones = [(producer, first, None) for producer, first in begun.items()]
        found = [*ended_ones[::-step], *open_ones[:MAX_CHECKED_TRANSACTIONS]]
        for number, (producer, first, last) in enumerate(found):
            if number and not self._has_requests(REQUESTS_PER_LOOKUP):
                break
            self.requests += REQUESTS_PER_LOOKUP
            if last is not None:
                self._check_batch(last, producer, ControlRecordType.ABORT)
            if first is not None:
                self._check_batch(first, producer, None)

    def _check_batch(self, offset: int, producer: int, marker: ControlRecordType | None) -> None:
        """Doubt a batch of a transaction that is not what is said of it. It may be gone with its segment, or by compaction."""
        segment = next((s for s in reversed(self.segments) if s.base_offset <= offset), None)
        if segment is None:
            return
        header = _header_at(segment, offset, self.engine)
        if header is None or (header.base_offset or 0) > offset:
            return
        begins = header.base_offset == offset
        if (
            header.producer_id != producer
            or header.is_control != (marker is not None)
            or not begins
        ):
            raise _Doubt
        if marker is None:
            return
        with MarkerReader(segment, {}) as markers:
            place = header.position, header.size
            if markers.read_kind(*place, header.magic, header.codec, header.record_count) != marker:
                raise _Doubt


def _small_at_end(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Return the segments at the end of a log that are small and in a store."""
    first = len(segments)
    while (
        first and segments[first - 1].size <= MAX_SCANNED_BYTES and is_url(segments[first - 1].path)
    ):
        first -= 1
    return segments[first:]


def _index(path: Path, base: int, end: int | None) -> list[AbortedTransaction] | None:
    """What a transaction index says of the segment from ``base`` up to ``end`` (None: nobody knows). None where it is missing, and raises _Doubt for one that
    is not whole, or says what cannot be."""
    try:
        data = read_small_file(path)
    except FileNotFoundError:
        return None
    except TooLargeError:
        raise _Doubt from None
    if not data or len(data) % _ENTRY:
        raise _Doubt
    try:
        read = TRANSACTION_INDEX.parse(data, file=os.fspath(path)).entries
    except CodecError:
        raise _Doubt from None
    found = [AbortedTransaction(e.producer_id, e.first_offset, e.last_offset) for e in read]
    if any(after.last_offset <= before.last_offset for before, after in pairwise(found)):
        raise _Doubt
    for one in found:
        if not 0 <= one.first_offset < one.last_offset or one.last_offset < base:
            raise _Doubt
        if end is not None and one.last_offset >= end:
            raise _Doubt
    return found


def _header_at(segment: Segment, offset: int, engine: Engine) -> TransactionalBatch | None:
    """The header of the batch that has an offset, or the first one after it. Raises CodecError for damage on the way."""
    columns = Columns(TransactionalBatch._fields, os.fspath(segment.path))
    start = find_position_by_index(segment, offset, None, engine)
    for entry in entries(segment.path, start=start):
        header = TransactionalBatch(*columns.of(entry))
        if header.last_offset >= offset:
            return header
    return None


def _position_of(segment: Segment, offset: int, engine: Engine) -> int | None:
    """The byte where batches from an offset on begin. None where the log ends before it, or a batch lies on both sides."""
    columns = Columns(("base_offset", "last_offset"), os.fspath(segment.path))
    start = find_position_by_index(segment, offset - 1, None, engine)
    following = None
    for entry in entries(segment.path, start=start):
        first, last = columns.of(entry)
        if last >= offset:
            return entry.position if first is not None and first >= offset else None
        following = last + 1, entry.position + entry.frame.size
    return following[1] if following is not None and following[0] == offset else None
