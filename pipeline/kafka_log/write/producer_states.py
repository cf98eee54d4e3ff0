"""What a broker knows of the producers of a partition, from its batches: for transaction indexes and producer snapshots.

The rules are those of Kafka's ProducerStateManager when it goes through a log that is there already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from codecgen.runtime.construct import Choice, Layout
from kafka_codecs import (
    PRODUCER_SNAPSHOT,
    PRODUCER_SNAPSHOT_ENTRY,
    TRANSACTION_INDEX_ENTRY,
    ControlRecordType,
    ProducerSnapshotEntry,
)
from kafka_log.logs.transactions import Marker


class ProducerBatch(NamedTuple):
    """Columns of the view ``batches`` that producer state depends on. Timestamps are in milliseconds."""

    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    last_sequence: int
    is_transactional: bool
    max_timestamp: int


def _absent(name: str) -> int:
    """Return the number that says that a field of a snapshot's entry has no value."""
    found = PRODUCER_SNAPSHOT_ENTRY.by_name[name].absent
    assert found is not None, name
    return found


def _newest(choice: Choice) -> Layout:
    """Return the layout of the newest version of a file."""
    return choice.cases[max(choice.cases)]


@dataclass(slots=True)
class _Producer:
    """The state of one producer: an entry of a producer snapshot."""

    producer_epoch: int
    last_sequence: int = _absent("last_sequence")
    last_offset: int = _absent("last_offset")
    offset_delta: int = 0
    timestamp: int = _absent("timestamp")
    coordinator_epoch: int = _absent("coordinator_epoch")
    current_txn_first_offset: int = _absent("current_txn_first_offset")

    def move_to(self, epoch: int) -> None:
        """Set the producer epoch. If it differs from the current one, forget the last sequence and
        offset, which belong to the old epoch. Do nothing if it is the same.
        """
        if epoch != self.producer_epoch:
            self.producer_epoch = epoch
            self.last_sequence = _absent("last_sequence")
            self.last_offset = _absent("last_offset")
            self.offset_delta = 0


_NAMES = tuple(_Producer.__slots__)


class ProducerStates:
    """The states of the producers of one partition. ``before`` are the entries of the producer snapshot where the log begins."""

    def __init__(self, before: Iterable[ProducerSnapshotEntry] = ()) -> None:
        self._producers = {
            entry.producer_id: _Producer(*(getattr(entry, name) for name in _NAMES))
            for entry in before
        }
        self._open = {
            producer: one.current_txn_first_offset
            for producer, one in self._producers.items()
            if one.current_txn_first_offset >= 0
        }

    def add(self, batch: ProducerBatch) -> None:
        """Update the state of a batch's producer, new if it is unknown, by a data batch: epoch,
        last sequence, offsets and timestamp. A transactional batch begins a transaction unless one
        is open. Older epochs and gaps of sequences are accepted.
        """
        one = self._producers.get(batch.producer_id)
        if one is None:
            one = self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
        one.move_to(batch.producer_epoch)
        one.last_sequence = batch.last_sequence
        one.last_offset = batch.last_offset
        one.offset_delta = batch.last_offset - batch.base_offset
        one.timestamp = batch.max_timestamp
        if batch.is_transactional and one.current_txn_first_offset < 0:
            one.current_txn_first_offset = batch.base_offset
            self._open[batch.producer_id] = batch.base_offset

    def end(self, batch: ProducerBatch, marker: Marker) -> bytes:
        """Update the state of a marker's producer, new if it is unknown, and end its open
        transaction. Return the bytes of the transaction index entry; ``b""`` for a commit, and for a
        producer without an open transaction.
        """
        one = self._producers.get(batch.producer_id)
        if one is None:
            one = self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
        one.move_to(batch.producer_epoch)
        one.coordinator_epoch = marker.coordinator_epoch
        one.timestamp = batch.max_timestamp
        one.current_txn_first_offset = _absent("current_txn_first_offset")
        first = self._open.pop(batch.producer_id, None)
        if first is None or marker.kind is not ControlRecordType.ABORT:
            return b""
        return _newest(TRANSACTION_INDEX_ENTRY).build(
            {
                "producer_id": batch.producer_id,
                "first_offset": first,
                "last_offset": batch.base_offset,
                "last_stable_offset": min(self._open.values(), default=batch.base_offset + 1),
            }
        )

    def snapshot(self) -> bytes:
        """Return the bytes of a producer snapshot file with the present states of all producers,
        perhaps none.
        """
        entries: list[Any] = [
            {"producer_id": producer} | {name: getattr(one, name) for name in _NAMES}
            for producer, one in self._producers.items()
        ]
        return _newest(PRODUCER_SNAPSHOT).build({"entries": entries})
