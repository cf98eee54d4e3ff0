"""Find transactions in partitions and return them as an Arrow table."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
from typing import Any, Literal

import pyarrow as pa

from codecgen.runtime.errors import ValueRefused
from kafka_log.inspect.partition_headers import (
    OnDamage,
    PartitionHeaders,
    SmallSegmentHeaders,
)
from kafka_log.inspect.transactions.coordinator_states import (
    Coordinators,
    CoordinatorsOfClusters,
)
from kafka_log.inspect.transactions.hanging import Clock, judge_transaction
from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.incomplete_tails import find_losses
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.partitions import Partition, Segment, pair_with_next_base_offset
from kafka_log.logs.removed_segments import read_history
from kafka_log.logs.transactions import (
    MarkerCache,
    MarkerReader,
    ObservedTransaction,
    Step,
    TransactionalBatch,
    TransactionState,
    pair_with_marker_kind,
    read_open_transactions,
    sort_steps,
    track_transactions,
)
from kafka_log.read.selection import Selection
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.model import Batch, Policy
from kafka_log.segment.offset_order import OffsetOrder
from kafka_log.segment.ranges import EVERYTHING, Range

Wanted = Literal["open", "aborted", "committed", "hanging"]
WANTED: tuple[Wanted, ...] = ("open", "aborted", "committed", "hanging")

_TIME = pa.timestamp("ms", "UTC")

TRANSACTIONS = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Topic name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Partition number."}),
        pa.field("state", pa.string(), False, {"doc": "open, committed or aborted."}),
        pa.field(
            "hanging",
            pa.bool_(),
            True,
            {
                "doc": "Whether the transaction is open and no coordinator will end it; null if that cannot be known."
            },
        ),
        pa.field("producer_id", pa.int64(), False, {"doc": "Producer id."}),
        pa.field("producer_epoch", pa.int16(), False, {"doc": "Producer epoch."}),
        pa.field(
            "transactional_id",
            pa.string(),
            True,
            {"doc": "Transactional id; null if __transaction_state does not have it."},
        ),
        pa.field(
            "coordinator_state",
            pa.string(),
            True,
            {"doc": "State in __transaction_state; null if it is not known."},
        ),
        pa.field("first_offset", pa.int64(), True, {"doc": "Offset of the first record."}),
        pa.field(
            "last_offset",
            pa.int64(),
            True,
            {"doc": "Offset of the marker; of the last record if the transaction is open."},
        ),
        pa.field("first_timestamp", _TIME, True, {"doc": "Timestamp of the first record."}),
        pa.field(
            "last_timestamp",
            _TIME,
            True,
            {"doc": "Timestamp of the marker; of the last record if the transaction is open."},
        ),
        pa.field("records", pa.int64(), False, {"doc": "Number of records that still exist."}),
        pa.field(
            "duration_ms",
            pa.int64(),
            True,
            {
                "doc": "Milliseconds from the first record to the marker; to now if the transaction is open."
            },
        ),
        pa.field(
            "hides",
            pa.int64(),
            True,
            {
                "doc": "For an open transaction: number of offsets of the partition from its last stable offset on; else null."
            },
        ),
        pa.field("reason", pa.string(), True, {"doc": "Why the transaction hangs, or why not."}),
        pa.field("directory", pa.string(), False, {"doc": "Path of the partition directory."}),
    ]
)

_ROWS = 1 << 16
_COLUMNS = (*TransactionalBatch._fields, "is_transactional")


def transaction_table(
    partitions: Sequence[Partition],
    known: CoordinatorsOfClusters,
    clock: Clock,
    on_damage: OnDamage,
    *,
    states: Collection[str] = (),
    wanted: Selection,
    advance: Callable[[int], None] = lambda _: None,
) -> pa.Table:
    """Return one row per transaction and partition in the columns of :data:`TRANSACTIONS`, selected
    by ``wanted`` and ``states`` (``()``: all; ``hanging`` selects those that hang, and those that
    may). Open ones come first, of these hanging ones (judged by ``known`` coordinators and
    ``clock``), then those that may hang; then ended ones by partition and marker. Only where a
    transaction would hang are checksums verified, and lost records looked for
    (:func:`~kafka_log.logs.incomplete_tails.find_losses`, which are not reported), from it on: its
    marker may be damaged or lost. Other damage and unreadable files are reported to ``on_damage``. Raise
    UnreadableError (an OSError) if a marker cannot be read; ValueError if a state is not in
    :data:`WANTED`.

    Memory holds the rows.

    Args:
        partitions: The partitions to search.
        known: The coordinators' states, by cluster.
        clock: The time at which open transactions are judged.
        on_damage: Called with a line for each lost range.
        states: Wanted states out of :data:`WANTED`; empty selects all.
        wanted: Producers, and the ranges of offsets and timestamps that a transaction has to overlap.
        advance: Called with the size of each segment after it is read.
    """
    unknown = sorted(set(states) - set(WANTED))
    if unknown:
        raise ValueError(f"state is {unknown[0]!r}; known: {', '.join(WANTED)}")
    open_rows: list[tuple[Any, ...]] = []
    ended = _Rows()
    unread = {partition.key for partition in partitions if partition.error is not None}
    markers: MarkerCache = {}
    ahead = SmallSegmentHeaders(chain.from_iterable(p.segments for p in partitions), _COLUMNS)
    for partition in partitions:
        # The records after the segments of a tier are in the partition's own directory.
        is_cut = partition.state == "remote" and partition.key in unread

        def rows_of(
            segments: Sequence[Segment], partition: Partition = partition, is_cut: bool = is_cut
        ) -> list[tuple[Any, ...]]:
            """Return the rows of the partition's transactions in these segments."""
            left = replace(partition, segments=tuple(segments))
            return list(
                _partition_rows(
                    left,
                    known.find_states(partition),
                    clock,
                    on_damage,
                    advance,
                    ahead,
                    markers,
                    is_cut=is_cut,
                )
            )

        resolved = wanted.resolve_offsets(partition.segments)
        for row in read_history(partition.segments, rows_of):
            state, is_hanging = row[2], row[3]
            named = state in states or (is_hanging is not False and "hanging" in states)
            if (states and not named) or not _is_wanted(row, resolved):
                continue
            if state == TransactionState.OPEN.value:
                open_rows.append(row)
            else:
                ended.add(row)
    first = _Rows()
    for row in sorted(open_rows, key=lambda row: (True, None, False).index(row[3])):
        first.add(row)
    return pa.Table.from_batches([*first.batches(), *ended.batches()], TRANSACTIONS)


def _is_wanted(row: tuple[Any, ...], wanted: Selection) -> bool:
    """Return whether a row is of a wanted producer and overlaps the wanted offsets and timestamps;
    a row without timestamps overlaps only an unlimited range.
    """
    producer, first, last, begin, end = (
        row[TRANSACTIONS.get_field_index(name)]
        for name in (
            "producer_id",
            "first_offset",
            "last_offset",
            "first_timestamp",
            "last_timestamp",
        )
    )
    of_producer = wanted.producers is None or producer in wanted.producers
    return (
        of_producer
        and _overlaps(first, last, wanted.offsets)
        and _overlaps(begin, end, wanted.timestamps)
    )


def _overlaps(first: int | None, last: int | None, bounds: Range) -> bool:
    """Return whether the range ``first`` to ``last`` (both included) overlaps the half-open range
    ``bounds``. If one is None, the other one stands for both. If both are None, return False unless
    ``bounds`` is unlimited.
    """
    if bounds == EVERYTHING:
        return True
    first, last = last if first is None else first, first if last is None else last
    low, high = bounds
    if first is None or last is None:
        return False
    return (low is None or last >= low) and (high is None or first < high)


def _partition_rows(
    partition: Partition,
    known: Coordinators,
    clock: Clock,
    on_damage: OnDamage,
    advance: Callable[[int], None],
    ahead: SmallSegmentHeaders,
    markers: MarkerCache,
    *,
    is_cut: bool,
) -> Iterator[tuple[Any, ...]]:
    """Yield a row of :data:`TRANSACTIONS` for each transaction of one partition: ended ones in the
    order of their markers, then open ones. The ``known`` coordinators and ``clock`` judge which
    open ones hang; with ``is_cut``, or damage that may hide their markers, that is unknown. Damage and unreadable files are
    skipped and reported to ``on_damage``. Raise UnreadableError if a marker cannot be read, or
    retention deletes a segment meanwhile.
    """
    headers = PartitionHeaders(partition, _COLUMNS, on_damage, advance=advance, ahead=ahead)
    begun = read_open_transactions(partition.segments[0]) if partition.segments else {}
    place = utf8(partition.topic), partition.partition
    directory = utf8(os.fspath(partition.directory))
    hides: int | None = None
    steps = sort_steps(_steps(headers, markers, on_damage), partition.segments)
    is_damaged: bool | None = None
    for one in track_transactions(steps, begun):
        is_hanging: bool | None = False
        reason = None
        if one.state is TransactionState.OPEN:
            # All of the partition has been read, and the first of the open ones comes first.
            hides = _count_hidden_offsets(partition, headers, one) if hides is None else hides
            judge = partial(judge_transaction, one, place, known, clock)
            verdict = judge(is_cut=is_cut or headers.is_cut)
            if verdict.is_hanging:
                # The first of the open ones has the lowest offset: its answer is that of all.
                if is_damaged is None:
                    begin = one.first_offset or 0
                    wrong = _find_wrong_checksum(partition, begin)
                    if wrong is not None:
                        on_damage(wrong)
                    lost = find_losses(partition, (begin, None), LogStarts(), read_broker_files)
                    is_damaged = wrong is not None or any(True for _ in lost)
                verdict = judge(is_cut=is_damaged)
            is_hanging, reason = verdict.is_hanging, verdict.reason
        state = known.find_state(one.producer_id)
        yield (
            *place,
            one.state.value,
            is_hanging,
            one.producer_id,
            one.producer_epoch,
            None if state is None else utf8(state.transactional_id),
            None if state is None else state.status_name,
            one.first_offset,
            one.last_offset,
            one.first_timestamp,
            one.last_timestamp,
            one.records,
            _duration_ms(one, clock),
            hides if one.state is TransactionState.OPEN else None,
            reason,
            directory,
        )


def _steps(headers: PartitionHeaders, known: MarkerCache, on_damage: OnDamage) -> Iterator[Step]:
    """Yield each transactional batch of a partition, control batches paired with the kind of their
    marker (``known`` markers are extended). Report control records whose key cannot be decoded to
    ``on_damage``, and set ``is_cut``: their transactions seem to be open. Report at the end the
    first batch whose offsets cannot be right. Raise UnreadableError if a marker cannot be
    read, or retention deletes a segment meanwhile.
    """
    error: ValueRefused | None = None
    has_steps = False
    following = dict(pair_with_next_base_offset(headers.partition.segments))
    for segment, batches in groupby(headers, key=lambda pair: pair[0]):
        order = OffsetOrder(segment.path, following.get(segment))
        with ExitStack() as stack:
            markers: MarkerReader | None = None
            for _, batch in batches:
                order.add_headers(batch)
                if not batch.column("is_transactional").true_count:
                    continue
                if markers is None:
                    markers = stack.enter_context(MarkerReader(segment, known))
                rows = batch.filter(batch.column("is_transactional"))
                columns = (rows.column(name).to_pylist() for name in TransactionalBatch._fields)
                for values in zip(*columns, strict=True):
                    has_steps = True
                    header, kind = pair_with_marker_kind(TransactionalBatch(*values), markers)
                    if header.is_control and kind is None:
                        unread = markers.find_error(header.position)
                        if unread is not None:
                            headers.is_cut = True
                            on_damage(str(unread))
                    yield header, kind
        order.finish()
        error = error or order.error
    if error is not None and has_steps:
        on_damage(str(error))


def _find_wrong_checksum(partition: Partition, first_offset: int) -> str | None:
    """Return a line about the first batch with a wrong checksum in the segments from the one with
    ``first_offset`` on; None if there is none. Bytes that are no batch, and files that cannot be
    read, do not count.
    """
    segments = partition.segments
    begin = max((i for i, s in enumerate(segments) if s.base_offset <= first_offset), default=0)
    for segment in segments[begin:]:
        reader = BlockReader(
            segment.path,
            policy=Policy.KAFKA,
            tail=segment.tail,
            size=segment.size,
            records=False,
        )
        for part in reader.items():
            if isinstance(part, Batch) and not part.is_valid:
                return f"{os.fspath(segment.path)}: the batch at byte {part.position} has a wrong checksum"
    return None


def _count_hidden_offsets(
    partition: Partition, headers: PartitionHeaders, transaction: ObservedTransaction
) -> int:
    """Return the number of offsets that read_committed hides, 0 if the log has no batch. They reach
    from the first offset of ``transaction``, the earliest open one, or the start of the log if that
    is higher, to the end of the log.
    """
    first = partition.segments[0]
    start = first.base_offset if first.has_canonical_name else 0
    return max((headers.end_offset or 0) - max(transaction.first_offset or 0, start), 0)


def _duration_ms(transaction: ObservedTransaction, clock: Clock) -> int | None:
    """Return the milliseconds from the first record to the marker, or to ``clock.now`` if the
    transaction is open; None if its first or last timestamp is unknown.
    """
    end = clock.now if transaction.state is TransactionState.OPEN else transaction.last_timestamp
    if end is None or transaction.first_timestamp is None:
        return None
    return end - transaction.first_timestamp


@dataclass
class _Rows:
    """Buffer of rows that converts every 65,536 rows to Arrow, which takes less memory."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    done: list[pa.RecordBatch] = field(default_factory=list)

    def add(self, row: tuple[Any, ...]) -> None:
        """Append a row; convert the buffered rows if there are enough."""
        self.rows.append(row)
        if len(self.rows) >= _ROWS:
            self._flush()

    def batches(self) -> list[pa.RecordBatch]:
        """Return all rows as record batches, in the order in which they were added."""
        self._flush()
        return self.done

    def _flush(self) -> None:
        """Convert the buffered rows, if any, to a record batch."""
        if self.rows:
            arrays = [
                pa.array(values, field.type)
                for values, field in zip(zip(*self.rows, strict=True), TRANSACTIONS, strict=True)
            ]
            self.done.append(pa.RecordBatch.from_arrays(arrays, schema=TRANSACTIONS))
            self.rows = []
