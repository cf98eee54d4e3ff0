"""Transactions of one partition, from its batches: when each began, and how it ended."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from kafka_codecs import ControlRecordType, TimestampType
from kafka_log.logs.broker_files import read_producer_snapshot
from kafka_log.logs.header_rows import DamageHandling, read_header_rows, should_use_kernels
from kafka_log.logs.partitions import Segment
from kafka_log.logs.removed_segments import explain_removal
from kafka_log.segment import framing
from kafka_log.segment.model import Policy
from kafka_log.segment.positioned_reads import UnreadableError, open_segment, read_exactly
from kafka_log.segment.reader import SegmentReader

if TYPE_CHECKING:
    from kafka_log.segment.kernels import Engine


_KINDS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)

MAX_CACHED_BODY_BYTES = 64
"""The most bytes after the header of a batch that are remembered: markers have 17."""

MAX_CACHED_BODIES = 4096
"""How many of them are remembered: markers of one kind differ in the epoch of the coordinator alone."""


class Marker(NamedTuple):
    """What a control batch says about a transaction."""

    kind: ControlRecordType
    coordinator_epoch: int


MarkerCache = dict[tuple[int, int, int, bytes], Marker | None]
"""What control batches say, by magic, codec, number of records and the bytes after the header."""


class MarkerReader:
    """Reads the markers of one segment, which stays open meanwhile. Raises UnreadableError.

    Control batches that have the same bytes after their headers say the same, so the reference codecs read one of each:
    ``known`` has what they found, also of other segments.
    """

    def __init__(self, segment: Segment, known: MarkerCache) -> None:
        self._segment = segment
        self._known = known
        rolled = segment.size if segment.rolled else None
        self._file = open_segment(segment.path, is_listed=True, size=rolled)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def read_kind(
        self, position: int, size: int, magic: int, codec: int, record_count: int
    ) -> ControlRecordType | None:
        """Whether a control batch with these columns of the view batches commits or aborts; None when it does neither."""
        found = self.read_marker(position, size, magic, codec, record_count)
        return None if found is None else found.kind

    def read_marker(
        self, position: int, size: int, magic: int, codec: int, record_count: int
    ) -> Marker | None:
        """The same, with the epoch of the coordinator: -1 where the value cannot be read."""
        head = framing.layout_of(magic).head_size
        if not 0 <= size - head <= MAX_CACHED_BODY_BYTES:
            return self._read(position)
        content = read_exactly(self._file, position + head, size - head)
        body = magic, codec, record_count, content
        if body not in self._known:
            found = self._read(position)
            if len(self._known) >= MAX_CACHED_BODIES:
                return found
            self._known[body] = found
        return self._known[body]

    def _read(self, position: int) -> Marker | None:
        segment, end = self._segment, position + 1
        reader = SegmentReader(segment.path, start=position, stop=end, size=segment.size)
        for batch in reader:
            for record in batch.records:
                if record.control is None or record.control.type_id is None:
                    continue
                for kind in _KINDS:
                    if record.control.type_id == kind:
                        value = record.control.value or {}
                        return Marker(kind, value.get("coordinatorEpoch", -1))
        error = None if reader.end is None else reader.end.error
        if isinstance(error, UnreadableError):
            raise error
        return None


_WHERE = "is_transactional"
"""The column of the view batches that says which headers count."""


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """A transaction that was aborted. ``last_offset`` is that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class Transactions:
    """Aborted transactions, in the order of their markers, and the first offset of one that has not ended.

    From ``last_stable_offset`` on a consumer that reads committed records gets nothing; None when all have ended. ``begun`` has
    the first offsets of those that have not, by their producers.
    """

    aborted: tuple[AbortedTransaction, ...]
    last_stable_offset: int | None
    open_first_offsets: tuple[tuple[int, int], ...] = ()


class TransactionState(StrEnum):
    """How far a transaction is in a partition: it is open until its marker is there."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class ObservedTransaction:
    """A transaction as a partition shows it.

    ``producer_epoch`` is that of its data, or of the marker where there is no data: markers may have the epoch after it.
    ``first_offset`` is None for a marker whose data is gone, or never was. ``last_offset`` is that of the marker, or of the
    last record. Timestamps are in milliseconds, None where the log has none. ``records`` are those that are still there.
    """

    state: TransactionState
    producer_id: int
    producer_epoch: int
    first_offset: int | None
    last_offset: int | None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    records: int = 0


class TransactionalBatch(NamedTuple):
    """What counts of a transactional batch: columns of the view batches, timestamps in milliseconds."""

    position: int
    size: int
    magic: int
    codec: int
    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    is_control: bool
    record_count: int
    timestamp_type: int
    base_timestamp: int | None
    max_timestamp: int


Step = tuple[TransactionalBatch, ControlRecordType | None]
"""A transactional batch, and what it says when it is a marker."""


@dataclass(slots=True)
class _Open:
    """A transaction that has begun, so far."""

    producer_epoch: int
    first_offset: int
    last_offset: int | None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    records: int = 0


def track_transactions(
    steps: Iterable[Step], begun: Mapping[int, ObservedTransaction]
) -> Iterator[ObservedTransaction]:
    """What a transaction is: from the first transactional batch of a producer id to its next marker, whatever the epochs.

    Gives those that end when they do; after the last step those that are open, by their first offsets. ``begun`` are those that
    are open before the first step, by their producers (see :func:`open_before`).
    """
    started = {
        producer: _Open(old.producer_epoch, old.first_offset, old.last_offset)
        for producer, old in begun.items()
        if old.first_offset is not None
    }
    for header, kind in steps:
        if header.producer_id < 0:
            continue  # brokers keep no state of it
        if not header.is_control:
            now = started.get(header.producer_id)
            if now is None:
                now = _Open(header.producer_epoch, header.base_offset, None)
                started[header.producer_id] = now
            if now.first_timestamp is None and now.first_offset == header.base_offset:
                now.first_timestamp = _first_timestamp(header)
            now.producer_epoch = header.producer_epoch
            now.last_offset = header.last_offset
            now.last_timestamp = _time(header.max_timestamp)
            now.records += max(header.record_count, 0)
        elif kind is not None:
            yield _ended(header, kind, started.pop(header.producer_id, None))
    for producer, one in sorted(started.items(), key=lambda item: (item[1].first_offset, item[0])):
        offsets = one.first_offset, one.last_offset
        times = one.first_timestamp, one.last_timestamp
        yield ObservedTransaction(
            TransactionState.OPEN, producer, one.producer_epoch, *offsets, *times, one.records
        )


def _ended(
    header: TransactionalBatch, kind: ControlRecordType, one: _Open | None
) -> ObservedTransaction:
    state = (
        TransactionState.ABORTED if kind is ControlRecordType.ABORT else TransactionState.COMMITTED
    )
    last, time = header.base_offset, _time(header.max_timestamp)
    if one is None:
        epoch = header.producer_epoch
        return ObservedTransaction(
            state, header.producer_id, epoch, None, last, last_timestamp=time
        )
    epoch, first = one.producer_epoch, one.first_offset
    return ObservedTransaction(
        state, header.producer_id, epoch, first, last, one.first_timestamp, time, one.records
    )


def _first_timestamp(header: TransactionalBatch) -> int | None:
    """That of the first record, as far as a header has it."""
    from_producer = (
        header.timestamp_type != TimestampType.LOG_APPEND_TIME and header.base_timestamp is not None
    )
    first = header.base_timestamp if from_producer else header.max_timestamp
    return _time(header.max_timestamp if first is None or first < 0 else first)


def _time(milliseconds: int) -> int | None:
    return milliseconds if milliseconds >= 0 else None


def read_transactions(
    segments: Iterable[Segment],
    policy: Policy = Policy.KAFKA,
    *,
    damage_raises: bool = True,
    engine: Engine = "auto",
) -> Transactions:
    """The transactions in the segments of one partition, which are given in the order of offsets.

    Only headers and markers are read, and the producer snapshot beside the first segment, which knows the transactions that
    began before it. Bytes that are no batch are an error, or (``damage_raises`` False) passed over as ``salvage`` does it for
    records; a transaction whose marker is lost with them counts as not ended. Then ``policy`` says what a batch is: under
    ``salvage`` one with a wrong checksum is none, and all bytes are read to know it; otherwise no checksum is verified.

    Raises UnreadableError for a segment that retention removes meanwhile.
    """
    segments = list(segments)
    lenient = DamageHandling.VERIFY if policy is Policy.SALVAGE else DamageHandling.RESYNCHRONIZE
    damage = DamageHandling.RAISE if damage_raises else lenient
    before = read_open_transactions(segments[0]) if segments else {}
    return summarize_transactions(observe_transactions(segments, before, damage, engine))


def observe_transactions(
    segments: Sequence[Segment],
    begun: Mapping[int, ObservedTransaction],
    damage: DamageHandling = DamageHandling.RAISE,
    engine: Engine = "auto",
    *,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[ObservedTransaction]:
    """What :func:`walk` sees in segments, from the byte ``start`` of the first one on, where a batch begins, and up to the offset ``stop``."""
    steps = _steps(segments, damage, engine, start)
    if stop is not None:
        steps = (one for one in steps if one[0].last_offset < stop)
    return track_transactions(steps, begun)


def summarize_transactions(seen: Iterable[ObservedTransaction]) -> Transactions:
    """What counts for consumers of transactions."""
    aborted: list[AbortedTransaction] = []
    begun: list[tuple[int, int]] = []
    for found in seen:
        first, last = found.first_offset, found.last_offset
        if first is None:
            continue
        if found.state is TransactionState.OPEN:
            begun.append((found.producer_id, first))
        elif found.state is TransactionState.ABORTED and last is not None:
            aborted.append(AbortedTransaction(found.producer_id, first, last))
    stable = min((first for _, first in begun), default=None)
    return Transactions(tuple(aborted), stable, tuple(sorted(begun)))


def read_open_transactions(segment: Segment) -> dict[int, ObservedTransaction]:
    """The transactions that are open where a log begins, by their producers: what the producer snapshot there says."""
    if not segment.has_canonical_name or segment.base_offset == 0:
        return {}
    entries = read_producer_snapshot(segment.path.with_suffix(".snapshot")) or ()
    return get_open_transactions(entries, segment.base_offset)


def get_open_transactions(entries: Iterable[Any], offset: int) -> dict[int, ObservedTransaction]:
    """The transactions that are open at an offset, by what a producer snapshot says there."""
    return {
        e.producer_id: ObservedTransaction(
            TransactionState.OPEN,
            e.producer_id,
            e.producer_epoch,
            e.current_txn_first_offset,
            e.last_offset if e.last_offset >= 0 else None,
        )
        for e in entries
        if 0 <= e.current_txn_first_offset < offset
    }


def _steps(
    segments: Sequence[Segment], damage: DamageHandling, engine: Engine, start: int = 0
) -> Iterator[Step]:
    """All batches that are part of a transaction."""
    known: MarkerCache = {}
    columnar = should_use_kernels(sum(segment.size for segment in segments), engine)
    for segment in segments:
        try:
            markers = MarkerReader(segment, known)
        except UnreadableError as error:
            removed = error.errno == errno.ENOENT and explain_removal(segment) is not None
            if damage is DamageHandling.RAISE or removed:
                raise
            continue
        with markers:
            for values in read_header_rows(
                segment,
                TransactionalBatch._fields,
                _WHERE,
                damage,
                columnar=columnar,
                engine=engine,
                start=start,
            ):
                header = TransactionalBatch(*values)
                try:
                    found = pair_with_marker_kind(header, markers)
                except UnreadableError:
                    if damage is DamageHandling.RAISE:
                        raise
                    found = header, None  # nobody knows what it says
                yield found
        start = 0


def pair_with_marker_kind(header: TransactionalBatch, markers: MarkerReader) -> Step:
    """A batch for :func:`walk`."""
    if not header.is_control:
        return header, None
    place = header.position, header.size
    return header, markers.read_kind(*place, header.magic, header.codec, header.record_count)
