"""Transactions of a partition, reconstructed from its batch headers and transaction markers."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from codecgen.runtime.errors import ValueRefused, Where
from kafka_codecs import ControlRecordType, TimestampType
from kafka_log.logs.broker_files import read_producer_snapshot
from kafka_log.logs.header_rows import DamageHandling, read_header_rows, should_use_kernels
from kafka_log.logs.offset_ranges import are_in_offset_order
from kafka_log.logs.partitions import Segment
from kafka_log.logs.removed_segments import explain_removal
from kafka_log.segment import framing
from kafka_log.segment.model import Policy
from kafka_log.segment.offset_order import OffsetOrder
from kafka_log.segment.positioned_reads import UnreadableError, open_segment, read_exactly
from kafka_log.segment.reader import SegmentReader

if TYPE_CHECKING:
    from kafka_log.segment.kernels import Engine


_KINDS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)

MAX_CACHED_BODY_BYTES = 64
"""Maximum size of a cached control batch, without its header. Markers have 17 bytes."""

MAX_CACHED_BODIES = 4096
"""Maximum number of cached control batches. Markers of one kind differ only in the coordinator epoch."""


class Marker(NamedTuple):
    """The kind of a transaction marker, and the epoch of the coordinator that wrote it."""

    kind: ControlRecordType
    coordinator_epoch: int


MarkerCache = dict[tuple[int, int, int, bytes], Marker | None]
"""Markers (None for other control records) by magic, codec, record count and the bytes after the batch header."""


class MarkerReader:
    """Reads the transaction markers of one segment, whose file stays open until the context ends.

    Control batches with the same bytes after their headers have the same meaning, so that the reference codec decodes one of each.

    Args:
        segment: The segment.
        known: Cache of decoded markers, also of other segments. It is extended.

    Raises:
        UnreadableError: If the file cannot be opened or read.
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
        """Return COMMIT or ABORT for the transaction marker in the control batch with these columns
        of the view ``batches``. Return None for another control batch, or one that cannot be
        decoded. Checksums are not verified. Raise UnreadableError if the bytes cannot be read.
        """
        found = self.read_marker(position, size, magic, codec, record_count)
        return None if found is None else found.kind

    def read_marker(
        self, position: int, size: int, magic: int, codec: int, record_count: int
    ) -> Marker | None:
        """Return the marker in the control batch with these columns of the view ``batches``; None
        for another control batch, or one that cannot be decoded. Checksums are not verified.
        Batches with equal bytes are decoded once. Raise UnreadableError if the bytes cannot be
        read.
        """
        head = framing.layout_of(magic).leading_size
        if not 0 <= size - head <= MAX_CACHED_BODY_BYTES:
            return self._decode(position)
        content = read_exactly(self._file, position + head, size - head)
        body = magic, codec, record_count, content
        if body not in self._known:
            found = self._decode(position)
            if len(self._known) >= MAX_CACHED_BODIES:
                return found
            self._known[body] = found
        return self._known[body]

    def find_error(self, position: int) -> ValueRefused | None:
        """Return an error for the first control record that cannot be decoded in the batch at a byte
        position, with its offset and the reason; None if there is none.
        """
        segment = self._segment
        reader = SegmentReader(segment.path, start=position, stop=position + 1, size=segment.size)
        for batch in reader:
            for record in batch.records:
                if record.control is not None and record.control.error is not None:
                    return ValueRefused(
                        f"whether the transaction of producer {batch.producer_id} was committed is not known: the control record at offset"
                        f" {record.offset} cannot be decoded: {record.control.error.reason}",
                        Where(file=os.fspath(segment.path), position=position),
                    )
        return None

    def _decode(self, position: int) -> Marker | None:
        """Return the transaction marker in the control batch at a byte position, decoded with the
        reference codec; None if it is no marker or cannot be decoded. A wrong checksum is ignored.
        Raise UnreadableError if the bytes cannot be read.
        """
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
"""The column of the view ``batches`` that selects headers."""


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """An aborted transaction.

    Attributes:
        producer_id: Producer id.
        first_offset: Offset of its first record.
        last_offset: Offset of its marker.
    """

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class Transactions:
    """What read_committed needs to know about the transactions of a partition.

    Attributes:
        aborted: Aborted transactions in the order of their markers.
        last_stable_offset: First offset of an open transaction; read_committed consumers get nothing from it on. None without one.
        open_first_offsets: Producer id and first offset of each open transaction.
        is_verified: Whether batches were compared with the aborted transactions. If False, whoever reads rows has to do that.
        unindexed: Ascending half-open ranges of offsets in which nothing is aborted if missing transaction indexes are right. Readers of rows
            verify it.
        is_order_verified: Whether the offsets of all batches were compared. If False, whoever reads rows has to do that.
        error: The error of a batch whose offsets cannot be right, or of a marker that cannot be decoded, if damage is accepted: the
            transactions may be wrong.
    """

    aborted: tuple[AbortedTransaction, ...]
    last_stable_offset: int | None
    open_first_offsets: tuple[tuple[int, int], ...] = ()
    is_verified: bool = field(default=True, compare=False)
    unindexed: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    is_order_verified: bool = field(default=True, compare=False)
    error: ValueRefused | None = field(default=None, compare=False)


class TransactionState(StrEnum):
    """State of a transaction in a partition. It is open until its marker is written."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class ObservedTransaction:
    """A transaction as a partition shows it.

    Attributes:
        state: Its state.
        producer_id: Producer id.
        producer_epoch: Producer epoch of its records, or of the marker if it has no records. A marker may have the next epoch.
        first_offset: Offset of the first record. None for a marker without records.
        last_offset: Offset of the marker, or of the last record of an open transaction.
        first_timestamp: Timestamp of the first record in milliseconds, None if unknown.
        last_timestamp: Timestamp of the marker or the last record in milliseconds, None if unknown.
        records: Number of existing records.
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
    """The columns of a transactional batch that matter for transactions. Timestamps are in milliseconds."""

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
"""A transactional batch, and COMMIT or ABORT if it is a marker."""


@dataclass(slots=True)
class _OpenTransaction:
    """A transaction that has not ended yet."""

    producer_epoch: int
    first_offset: int
    last_offset: int | None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    records: int = 0


def track_transactions(
    steps: Iterable[Step], begun: Mapping[int, ObservedTransaction]
) -> Iterator[ObservedTransaction]:
    """Yield each transaction of ``steps`` and ``begun`` (open before them, by producer id) when a
    marker ends it, and after the last step the open ones by first offset. A marker without a
    transaction is yielded too, without first offset. A transaction is the batches of one producer
    id up to its next marker, whatever the epochs. Ignore batches with a negative producer id.

    Args:
        steps: Transactional batches in offset order.
        begun: Transactions that are open before the first step, by producer id (:func:`read_open_transactions`).
    """
    started = {
        producer: _OpenTransaction(old.producer_epoch, old.first_offset, old.last_offset)
        for producer, old in begun.items()
        if old.first_offset is not None
    }
    for header, kind in steps:
        if header.producer_id < 0:
            continue  # brokers keep no state of such a producer
        one = started.get(header.producer_id)
        if one is not None and header.base_offset < one.first_offset:
            # The snapshot is of a later segment: the one with this batch has a wrong name.
            del started[header.producer_id]
        if not header.is_control:
            now = started.get(header.producer_id)
            if now is None:
                now = _OpenTransaction(header.producer_epoch, header.base_offset, None)
                started[header.producer_id] = now
            if now.first_timestamp is None and now.first_offset == header.base_offset:
                now.first_timestamp = _first_timestamp(header)
            now.producer_epoch = header.producer_epoch
            now.last_offset = header.last_offset
            now.last_timestamp = _known_time(header.max_timestamp)
            now.records += max(header.record_count, 0)
        elif kind is not None:
            yield _end_transaction(header, kind, started.pop(header.producer_id, None))
    for producer, one in sorted(started.items(), key=lambda item: (item[1].first_offset, item[0])):
        offsets = one.first_offset, one.last_offset
        times = one.first_timestamp, one.last_timestamp
        yield ObservedTransaction(
            TransactionState.OPEN, producer, one.producer_epoch, *offsets, *times, one.records
        )


def sort_steps(steps: Iterable[Step], segments: Sequence[Segment]) -> Iterator[Step]:
    """Yield the transactional batches ``steps`` of ``segments`` in the order of their offsets. If
    the segments are in this order, yield them as they come. If segments have wrong names or
    overlap, hold all of them in memory first, and yield the first of several with one base offset.
    Errors of ``steps`` pass through.
    """
    remaining = iter(steps)
    first = next(remaining, None)
    if first is None:
        return  # most partitions have no transactions: their segments are not read again
    steps = chain([first], remaining)
    if are_in_offset_order(segments):
        yield from steps
        return
    by_offset: dict[int, Step] = {}
    for step in steps:
        by_offset.setdefault(step[0].base_offset, step)
    yield from (by_offset[offset] for offset in sorted(by_offset))


def _end_transaction(
    header: TransactionalBatch, kind: ControlRecordType, transaction: _OpenTransaction | None
) -> ObservedTransaction:
    """Return ``transaction`` as committed or aborted (``kind``), with the marker ``header`` as its
    last offset. If ``transaction`` is None, return one without first offset, and with 0 records.
    """
    state = (
        TransactionState.ABORTED if kind is ControlRecordType.ABORT else TransactionState.COMMITTED
    )
    last, time = header.base_offset, _known_time(header.max_timestamp)
    if transaction is None:
        epoch = header.producer_epoch
        return ObservedTransaction(
            state, header.producer_id, epoch, None, last, last_timestamp=time
        )
    epoch, first = transaction.producer_epoch, transaction.first_offset
    return ObservedTransaction(
        state,
        header.producer_id,
        epoch,
        first,
        last,
        transaction.first_timestamp,
        time,
        transaction.records,
    )


def _first_timestamp(header: TransactionalBatch) -> int | None:
    """Return the timestamp of the first record of a batch in milliseconds: the base timestamp, or
    the largest one if the broker sets timestamps or the base is missing or negative. Return None if
    that is unknown.
    """
    from_producer = (
        header.timestamp_type != TimestampType.LOG_APPEND_TIME and header.base_timestamp is not None
    )
    first = header.base_timestamp if from_producer else header.max_timestamp
    return _known_time(header.max_timestamp if first is None or first < 0 else first)


def _known_time(milliseconds: int) -> int | None:
    """Return a timestamp, None if it is negative."""
    return milliseconds if milliseconds >= 0 else None


def read_transactions(
    segments: Iterable[Segment],
    policy: Policy = Policy.KAFKA,
    *,
    damage_raises: bool = True,
    engine: Engine = "auto",
) -> Transactions:
    """Return the aborted and open transactions in the segments of one partition, from batch headers
    and markers. Checksums are verified only under the policy ``salvage`` without ``damage_raises``.
    With ``damage_raises``, raise CodecError if a batch is damaged, its offsets cannot be right or
    its marker cannot be decoded, and UnreadableError if a segment cannot be read. Otherwise skip
    damage, and return the first error of the latter two kinds as ``error``. Always raise
    UnreadableError if retention deletes a segment meanwhile.

    Only batch headers and markers are read, and the producer snapshot beside the first segment, which has transactions that began before it.
    A transaction whose marker is lost by damage counts as open.

    Args:
        segments: Segments of the partition. Batches are followed in the order of their offsets if segments are not.
        policy: Under ``salvage`` and without ``damage_raises``, batches with a wrong checksum are skipped, which takes reading all bytes.
            Otherwise no checksum is verified.
        damage_raises: Raise for bytes that are not a batch. If False, skip them.
        engine: Reader of batch headers.
    """
    segments = list(segments)
    lenient = DamageHandling.VERIFY if policy is Policy.SALVAGE else DamageHandling.RESYNCHRONIZE
    damage = DamageHandling.RAISE if damage_raises else lenient
    before = read_open_transactions(segments[0]) if segments else {}
    errors: list[ValueRefused] = []
    found = summarize_transactions(
        observe_transactions(segments, before, damage, engine, errors=errors)
    )
    return replace(found, error=errors[0]) if errors else found


def observe_transactions(
    segments: Sequence[Segment],
    begun: Mapping[int, ObservedTransaction],
    damage: DamageHandling = DamageHandling.RAISE,
    engine: Engine = "auto",
    *,
    start: int = 0,
    stop: int | None = None,
    errors: list[ValueRefused] | None = None,
) -> Iterator[ObservedTransaction]:
    """Yield each transaction in ``segments`` when it ends, with None as first offset if its
    beginning is unknown; then the open ones. ``begun`` are open before, by producer id. Reading
    begins at byte ``start`` of the first segment; batches that reach offset ``stop`` are ignored.
    At damage and unreadable segments raise CodecError or UnreadableError if ``damage`` is RAISE,
    else skip them; always raise UnreadableError for a segment that retention deletes meanwhile. At
    the end raise ValueRefused (RAISE), or append it to ``errors``, if there are transactions and the
    offsets of a batch cannot be right (:class:`OffsetOrder`) or a marker cannot be decoded.

    Args:
        segments: Segments of the partition, as for :func:`read_transactions`.
        begun: Transactions that are open before the first batch, by producer id.
        damage: What to do with bytes that are not a batch.
        engine: Reader of batch headers.
        start: Position of the first batch to read in the first segment.
        stop: Ignore batches that reach this offset. None: no limit.
        errors: Gets the error that leaves open what is committed, if damage is no error.
    """
    errors = [] if errors is None else errors
    steps = sort_steps(_steps(segments, damage, engine, start, errors), segments)
    if stop is not None:
        steps = (one for one in steps if one[0].last_offset < stop)
    return track_transactions(steps, begun)


def summarize_transactions(seen: Iterable[ObservedTransaction]) -> Transactions:
    """Return the aborted transactions of ``seen`` in order, the open ones by producer id, and the
    last stable offset, the lowest first offset of an open one (None without any). Ignore committed
    transactions, and those without first offset.
    """
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
    """Return the transactions that are open at the base offset of a log's first segment, by
    producer id, from the producer snapshot beside it. Return ``{}`` at offset 0, if the segment's
    name is not 20 digits and ``.log``, or if the snapshot is missing or invalid.
    """
    if not segment.has_canonical_name or segment.base_offset == 0:
        return {}
    entries = read_producer_snapshot(segment.path.with_suffix(".snapshot")) or ()
    return get_open_transactions(entries, segment.base_offset)


def get_open_transactions(entries: Iterable[Any], offset: int) -> dict[int, ObservedTransaction]:
    """Return the transactions that the entries of a producer snapshot show as open and begun before
    ``offset``, by producer id.
    """
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
    segments: Sequence[Segment],
    damage: DamageHandling,
    engine: Engine,
    start: int,
    errors: list[ValueRefused],
) -> Iterator[Step]:
    """Yield all transactional batches of segments in order, from byte ``start`` of the first one
    on. Each comes with COMMIT or ABORT if it is a readable marker, else with None. If ``damage`` is
    RAISE, raise CodecError at a damaged batch, UnreadableError for an unreadable segment; otherwise
    skip them, but raise UnreadableError for a segment that retention has deleted. After the last
    step, if there was one, raise or append the first error of offsets that cannot be right, or of a
    marker that cannot be decoded.
    """
    known: MarkerCache = {}
    wrong: ValueRefused | None = None
    has_steps = False
    next_bases = [s.base_offset if s.has_canonical_name else None for s in segments[1:]]
    columnar = should_use_kernels(sum(segment.size for segment in segments), engine)
    for number, (segment, next_base) in enumerate(zip(segments, [*next_bases, None], strict=False)):
        order = OffsetOrder(segment.path, next_base, is_start=number > 0 or start == 0)
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
                start=start if number == 0 else 0,
                order=order,
            ):
                has_steps = True
                header = TransactionalBatch(*values)
                try:
                    found = pair_with_marker_kind(header, markers)
                except UnreadableError:
                    if damage is DamageHandling.RAISE:
                        raise
                    found = header, None  # the kind of the marker is unknown
                if header.is_control and found[1] is None:
                    wrong = wrong or markers.find_error(header.position)
                yield found
        order.finish()
        wrong = wrong or order.error
    if wrong is not None and has_steps:
        if damage is DamageHandling.RAISE:
            raise wrong
        errors.append(wrong)


def pair_with_marker_kind(header: TransactionalBatch, markers: MarkerReader) -> Step:
    """Return a batch with COMMIT or ABORT if it is a transaction marker; with None if it is data,
    another control batch or one that cannot be decoded. Checksums are not verified. Raise
    UnreadableError if the file cannot be read.
    """
    if not header.is_control:
        return header, None
    place = header.position, header.size
    return header, markers.read_kind(*place, header.magic, header.codec, header.record_count)
