"""States of transaction coordinators: the latest record of each transactional id in the topic __transaction_state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from kafka_codecs import TransactionStatus
from kafka_log.inspect.partition_headers import OnDamage as Tell
from kafka_log.logs.clusters import ClusterIds
from kafka_log.logs.names import TRANSACTION_STATE
from kafka_log.logs.partitions import Partition
from kafka_log.read.scanning import scan
from kafka_log.read.selection import Isolation
from kafka_log.segment.model import Lost, OnDamage, Policy

DEFAULT_PARTITIONS = 50
"""Number of partitions of ``__transaction_state``: the default of ``transaction.state.log.num.partitions``."""

_COLUMNS = (
    "transactional_id",
    "producer_id",
    "timeout_ms",
    "status",
    "partitions",
    "last_update_time",
    "start_time",
    "previous_producer_id",
    "next_producer_id",
    "record_offset",
)
_UNFINISHED = (
    TransactionStatus.ONGOING,
    TransactionStatus.PREPARE_COMMIT,
    TransactionStatus.PREPARE_ABORT,
    TransactionStatus.PREPARE_EPOCH_FENCE,
)


@dataclass(frozen=True, slots=True)
class IdState:
    """The latest state of a transactional id. ``status`` is None when the coordinator has forgotten the id."""

    transactional_id: str
    offset: int
    producer_id: int | None
    status: int | None
    timeout_ms: int | None = None
    start_time: int | None = None
    partitions: frozenset[tuple[str, int]] = frozenset()

    @property
    def status_name(self) -> str | None:
        """Name of the status as Kafka spells it, or its number as text if the number is unknown; None if the id is forgotten."""
        if self.status is None:
            return None
        known = TransactionStatus.find(self.status)
        return str(self.status) if known is None else known.label

    @property
    def is_unfinished(self) -> bool:
        """True if the coordinator has markers to write, now or when the transaction ends."""
        return any(self.status == status for status in _UNFINISHED)

    @property
    def is_ongoing(self) -> bool:
        """True if neither commit nor abort has been decided."""
        return self.status == int(TransactionStatus.ONGOING)


@dataclass(frozen=True, slots=True)
class Coordinators:
    """Latest states of transactional ids, by id and by producer id.

    ``is_there``: at least one partition of ``__transaction_state`` was found. ``is_whole``: every partition was found and is
    undamaged, as far as the ids show (see :func:`is_whole`). ``unsure`` are the ids whose partition has lost records, so that their
    latest state may be missing.
    """

    states: Mapping[str, IdState] = field(default_factory=dict)
    by_producer: Mapping[int, str] = field(default_factory=dict)
    is_there: bool = False
    is_whole: bool = False
    unsure: frozenset[str] = frozenset()

    def find_state(self, producer_id: int) -> IdState | None:
        """Return the state of the transactional id that uses or used a producer id; None if no id is known to."""
        name = self.by_producer.get(producer_id)
        return None if name is None else self.states[name]


class CoordinatorsOfClusters:
    """Latest states of transactional ids, by cluster. Producer ids are unique only in their cluster.

    Args:
        partitions: Partitions, of which those of ``__transaction_state`` are read.
        on_damage: Called as by :func:`read_coordinators`.
    """

    def __init__(self, partitions: Sequence[Partition], on_damage: Tell) -> None:
        self._ids = ClusterIds()
        found: dict[str | None, list[Partition]] = {}
        for partition in partitions:
            if partition.topic == TRANSACTION_STATE:
                found.setdefault(self._ids.get(partition), []).append(partition)
        if len(found) == 2 and None in found:  # directories without an id may be of the known one
            found = {max(filter(None, found)): [p for some in found.values() for p in some]}
        self._found = {name: read_coordinators(some, on_damage) for name, some in found.items()}

    def find_states(self, partition: Partition) -> Coordinators:
        """Return the latest states of the transactional ids in the cluster that a partition belongs to.
        If its cluster id is not known, return those of the only cluster that was read; with several,
        return no states.
        """
        stated = self._ids.get(partition)
        if stated is None and len(self._found) == 1:
            return next(iter(self._found.values()))
        return self._found.get(stated) or self._found.get(None) or Coordinators()


def read_coordinators(partitions: Sequence[Partition], on_damage: Tell) -> Coordinators:
    """Return the latest state of each transactional id in ``partitions``, which are of
    ``__transaction_state`` and of one cluster. For each that is damaged or unreadable, report a
    line to ``on_damage``, use its valid batches, add its ids to ``unsure``, and set ``is_whole`` to
    False. The same holds for a partition that lost records at its end, except that the caller
    reports it.

    If a partition has several copies, the record with the highest offset counts.
    """
    states: dict[str, IdState] = {}
    by_producer: dict[int, str] = {}
    homes: dict[int, set[str]] = {}
    damaged: set[int] = set()
    for partition in partitions:
        names = homes.setdefault(partition.partition, set())
        if partition.error is not None:
            on_damage(str(partition.error))
            damaged.add(partition.partition)
        if not partition.segments:
            continue
        try:
            is_lost = _read(partition, Policy.KAFKA, states, by_producer, names)
        except CodecError as error:
            on_damage(str(error))
            is_lost = True
            _read(partition, Policy.SALVAGE, states, by_producer, names)
        if is_lost:
            damaged.add(partition.partition)
    return Coordinators(
        states,
        by_producer,
        bool(homes),
        bool(homes) and not damaged and is_whole(homes),
        frozenset().union(*(homes[number] for number in damaged)),
    )


def is_whole(homes: Mapping[int, set[str]]) -> bool:
    """Return whether ``homes`` (transactional ids by partition number) has every partition of
    ``__transaction_state``. It has if the numbers have no gap, and all ids belong by their hash
    where they are. Return False if the ids also fit a topic of 50 partitions of which the last ones
    are missing.

    The hash of an id determines its partition for a given number of partitions.
    """
    count = len(homes)
    if set(homes) != set(range(count)) or not _matches_hashes(homes, count):
        return False
    return count >= DEFAULT_PARTITIONS or not _matches_hashes(homes, DEFAULT_PARTITIONS)


def _matches_hashes(homes: Mapping[int, set[str]], count: int) -> bool:
    """Return whether every id is in the partition that its hash selects in a topic of ``count`` partitions."""
    return all(
        transaction_state_partition(name, count) == number
        for number in homes
        for name in homes[number]
    )


def transaction_state_partition(transactional_id: str, count: int) -> int:
    """Return the partition of ``__transaction_state`` for an id if the topic has ``count`` partitions: Java's string hash modulo ``count``."""
    number = 0
    units = transactional_id.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        number = (31 * number + int.from_bytes(units[i : i + 2], "big")) & 0xFFFFFFFF
    signed = number - (1 << 32) if number >= 1 << 31 else number
    return (0 if signed == -(1 << 31) else abs(signed)) % count


def _read(
    partition: Partition,
    policy: Policy,
    states: dict[str, IdState],
    by_producer: dict[int, str],
    names: set[str],
) -> bool:
    """Update ``states``, ``by_producer`` and ``names`` from the records of one partition; an older
    record never replaces a newer state. Return whether records are lost. Raise CodecError at damage or an unreadable file, unless
    the policy is ``salvage``, which skips damaged batches and unreadable files.
    """
    on_damage: OnDamage | None = "drop" if policy is Policy.SALVAGE else None
    found = [replace(partition, error=None)]  # the caller has reported it
    # Coordinators write outside of transactions: no markers are needed.
    isolation: Isolation = "read_uncommitted"
    losses: list[Lost] = []
    rows = scan(
        found,
        _COLUMNS,
        policy,
        view="transactions",
        isolation=isolation,
        on_damage=on_damage,
        on_lost=lambda _, lost: losses.append(lost),
    )
    for batch in rows:
        for row in _to_rows(batch):
            name, offset = row["transactional_id"], row["record_offset"]
            names.add(name)
            old = states.get(name)
            if old is None or old.offset <= offset:
                states[name] = _state(row)
            for column in ("previous_producer_id", "next_producer_id", "producer_id"):
                producer = row[column]
                if producer is not None and producer >= 0:
                    by_producer[producer] = name
    return bool(losses)


def _to_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return a batch as a list of dictionaries, with timestamps as milliseconds."""
    arrays = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in batch.columns
    ]
    rows: list[dict[str, Any]] = pa.RecordBatch.from_arrays(
        arrays, names=batch.schema.names
    ).to_pylist()
    return rows


def _state(row: Mapping[str, Any]) -> IdState:
    """Return the state of a transactional id from a row of the view ``transactions``; null columns
    become None, and null partitions an empty set.
    """
    partitions = frozenset(
        (entry["topic"], number)
        for entry in row["partitions"] or ()
        for number in entry["partition_ids"]
    )
    return IdState(
        row["transactional_id"],
        row["record_offset"],
        row["producer_id"],
        row["status"],
        row["timeout_ms"],
        row["start_time"],
        partitions,
    )
