"""What transaction coordinators know: the latest state of each transactional id, from the topic __transaction_state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from kafka_codecs import TransactionStatus
from kafka_log.inspect.partition_headers import OnDamage as Tell
from kafka_log.logs.partitions import Partition
from kafka_log.read.internal_topics import TRANSACTION_STATE
from kafka_log.read.scanning import scan
from kafka_log.read.selection import Isolation
from kafka_log.segment.model import OnDamage, Policy

DEFAULT_PARTITIONS = 50
"""Partitions of the topic unless ``transaction.state.log.num.partitions`` says otherwise."""

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
        """The status as Kafka spells it, or its number; None when the id is forgotten."""
        if self.status is None:
            return None
        known = TransactionStatus.of(self.status)
        return str(self.status) if known is None else known.label

    @property
    def is_unfinished(self) -> bool:
        """Whether the coordinator has markers to write, now or when the transaction ends."""
        return any(self.status == status for status in _UNFINISHED)

    @property
    def is_ongoing(self) -> bool:
        """Whether it has not been decided yet how the transaction ends."""
        return self.status == int(TransactionStatus.ONGOING)


@dataclass(frozen=True, slots=True)
class Coordinators:
    """What is known of transactional ids. ``is_there``: some of the topic is here; ``is_whole``: all of it, as far as can be told."""

    states: Mapping[str, IdState] = field(default_factory=dict)
    by_producer: Mapping[int, str] = field(default_factory=dict)
    is_there: bool = False
    is_whole: bool = False

    def of(self, producer_id: int) -> IdState | None:
        """The state of the transactional id that a producer id belongs or belonged to."""
        name = self.by_producer.get(producer_id)
        return None if name is None else self.states[name]


def coordinators(partitions: Sequence[Partition], on_damage: Tell) -> Coordinators:
    """What the partitions of the topic say that are among these. Of copies of a partition the latest record of each id counts.

    What cannot be read is told to ``on_damage``. Raises OSError.
    """
    states: dict[str, IdState] = {}
    by_producer: dict[int, str] = {}
    homes: dict[int, set[str]] = {}
    is_damaged = False
    for partition in partitions:
        if partition.topic != TRANSACTION_STATE:
            continue
        names = homes.setdefault(partition.partition, set())
        if partition.error is not None:
            on_damage(str(partition.error))
            is_damaged = True
        if not partition.segments:
            continue
        try:
            _read(partition, Policy.KAFKA, states, by_producer, names)
        except CodecError as error:
            on_damage(str(error))
            is_damaged = True
            _read(partition, Policy.SALVAGE, states, by_producer, names)
    return Coordinators(
        states,
        by_producer,
        bool(homes),
        bool(homes) and not is_damaged and is_whole(homes),
    )


def is_whole(homes: Mapping[int, set[str]]) -> bool:
    """Whether partitions with these transactional ids are all of the topic: the hash of an id says in which of so many it is.

    Partitions that could as well be the first of the usual 50 are not taken for all.
    """
    count = len(homes)
    if set(homes) != set(range(count)) or not _fits(homes, count):
        return False
    return count >= DEFAULT_PARTITIONS or not _fits(homes, DEFAULT_PARTITIONS)


def _fits(homes: Mapping[int, set[str]], count: int) -> bool:
    return all(home_of(name, count) == number for number in homes for name in homes[number])


def home_of(transactional_id: str, count: int) -> int:
    """The partition of the topic that a transactional id belongs to, when there are ``count``: by Java's hash of a string."""
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
) -> None:
    """Take what one partition says, whose latest records count."""
    on_damage: OnDamage | None = "keep" if policy is Policy.SALVAGE else None
    found = [replace(partition, error=None)]  # the caller has told of it
    # The coordinators write outside of transactions: no marker has to be looked for.
    isolation: Isolation = "read_uncommitted"
    rows = scan(
        found, _COLUMNS, policy, view="transactions", isolation=isolation, on_damage=on_damage
    )
    for batch in rows:
        for row in _rows(batch):
            name, offset = row["transactional_id"], row["record_offset"]
            names.add(name)
            old = states.get(name)
            if old is None or old.offset <= offset:
                states[name] = _state(row)
            for column in ("previous_producer_id", "next_producer_id", "producer_id"):
                producer = row[column]
                if producer is not None and producer >= 0:
                    by_producer[producer] = name


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    arrays = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in batch.columns
    ]
    rows: list[dict[str, Any]] = pa.RecordBatch.from_arrays(
        arrays, names=batch.schema.names
    ).to_pylist()
    return rows


def _state(row: Mapping[str, Any]) -> IdState:
    partitions = frozenset(
        (of["topic"], number) for of in row["partitions"] or () for number in of["partition_ids"]
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
