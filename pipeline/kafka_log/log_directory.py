"""A log directory that answers questions, each with an Arrow table."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_log.disk.directory import Partition, chosen, discover

if TYPE_CHECKING:
    from kafka_log.report.partition_headers import OnDamage

Place = str | os.PathLike[str]


class LogDirectory:
    """The partitions below a path: a segment, a partition's directory, a broker's log directory, or several of these.

    ``topics`` and ``partitions`` choose among what is there. Each method answers one question with an Arrow table, and reads the
    files anew. Raises :class:`~kafka_log.disk.directory.DirectoryError` when there is no log, NotThere (a ValueError) for a topic or a
    partition that is not there.
    """

    def __init__(
        self,
        path: Place | Iterable[Place],
        *,
        topics: str | Iterable[str] | None = None,
        partitions: int | Iterable[int] | None = None,
    ) -> None:
        self.path = path
        self._topics = topics
        self._numbers = partitions

    @cached_property
    def partitions(self) -> list[Partition]:
        """The partitions, by topic and number."""
        return chosen(discover(self.path), self._topics, self._numbers)

    def ls(self, *, segments: bool = False) -> pa.Table:
        """What lies there: a row for each partition, or (``segments``) for each segment. See :mod:`kafka_log.report.listing`."""
        from kafka_log.report.listing import partition_table, segment_table

        return segment_table(self.partitions) if segments else partition_table(self.partitions)

    def txn(
        self,
        *,
        states: str | Iterable[str] = (),
        producer_ids: int | Iterable[int] = (),
        now: int | None = None,
        max_timeout_ms: int | None = None,
        on_damage: OnDamage | None = None,
    ) -> pa.Table:
        """Transactions: a row for each that a partition shows, open ones first.

        ``state`` is open, committed or aborted; ``hanging`` says of an open one whether nobody is left who would end it, and
        ``reason`` why, or why not (docs/tool/txn.md has the rule). ``transactional_id`` and ``coordinator_state`` come from the topic
        ``__transaction_state``, if it is below the path, whatever topics are chosen. ``last_offset`` is that of the marker, or
        of the last record of an open one. ``records`` are those that are still there. ``duration_ms`` goes from the first
        timestamp to that of the marker, or for open ones to ``now``. ``hides`` is how many offsets of the partition lie
        behind its last stable offset. See :data:`kafka_log.report.transactions.TRANSACTIONS`.

        ``states`` (also ``hanging``) and ``producer_ids`` choose; empty: all. ``now`` is the time at which the log stood as it is, in
        milliseconds since 1970; None: the present, and no transaction hangs for its age alone. ``max_timeout_ms`` is the timeout of
        transactions whose own is not known; None: 15 minutes.

        Bytes that are no batches are passed over, and ``on_damage`` is called with a line about them; None: CodecError is raised,
        with file and byte. Raises ValueError for a state that there is not, OSError.
        """
        from kafka_log.report.coordinators import coordinators
        from kafka_log.report.hanging import MAX_TIMEOUT_MS, Clock
        from kafka_log.report.partition_headers import raise_damage
        from kafka_log.report.transactions import transaction_table

        told = on_damage or raise_damage
        present = int(time.time() * 1000) if now is None else now
        limit = MAX_TIMEOUT_MS if max_timeout_ms is None else max_timeout_ms
        return transaction_table(
            self.partitions,
            coordinators(discover(self.path), told),
            Clock(present, now is not None, limit),
            told,
            states={states} if isinstance(states, str) else set(states),
            producer_ids=_numbers(producer_ids),
        )

    def producers(
        self, *, producer_ids: int | Iterable[int] = (), on_damage: OnDamage | None = None
    ) -> pa.Table:
        """Idempotent and transactional producers: a row for each producer id and epoch of a partition.

        Sequences, offsets and timestamps are the first and last ones of its batches that are still there. ``gaps`` counts sequence
        numbers that are missing between batches, ``duplicates`` batches whose first sequence number was there before, ``markers``
        the transaction markers with this epoch. ``snapshot_last_sequence`` is what the newest producer snapshot of the partition
        says; producers that only it knows have a row too. See :data:`kafka_log.report.producers.PRODUCERS`.

        ``producer_ids`` choose; empty: all. ``on_damage`` is as in :meth:`txn`. Raises OSError.
        """
        from kafka_log.report.partition_headers import raise_damage
        from kafka_log.report.producers import producer_table

        told = on_damage or raise_damage
        return producer_table(self.partitions, told, producer_ids=_numbers(producer_ids))


def _numbers(given: int | Iterable[int]) -> set[int]:
    return {given} if isinstance(given, int) else set(given)
