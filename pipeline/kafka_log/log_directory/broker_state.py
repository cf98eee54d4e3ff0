"""What brokers keep in logs about their clients and themselves: transactions, producers, groups, metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_log.log_directory.opened import Opened, as_set, readable, tell, time_of
from kafka_log.read.arguments import (
    flag,
    optional_number,
    several,
    text_of,
)
from kafka_log.segment.times import Time, moment

if TYPE_CHECKING:
    from kafka_log.inspect.partition_headers import OnDamage
    from kafka_log.segment.ranges import Range


class BrokerState(Opened):
    """Questions about what brokers know."""

    def txn(
        self,
        *,
        states: str | Iterable[str] = (),
        producers: int | Iterable[int] | None = None,
        offsets: Range | None = None,
        timestamps: Range | None = None,
        now: Time | None = None,
        max_timeout_ms: int | None = None,
        on_damage: OnDamage | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Transactions: a row for each that a partition shows, open ones first.

        ``state`` is open, committed or aborted; ``hanging`` says of an open one whether nobody is left who would end it, and
        ``reason`` why, or why not (docs/tool/txn.md has the rule). ``transactional_id`` and ``coordinator_state`` come from the topic
        ``__transaction_state``, if it is below the path, whatever topics are chosen. ``last_offset`` is that of the marker, or
        of the last record of an open one. ``records`` are those that are still there. ``duration_ms`` goes from the first
        timestamp to that of the marker, or for open ones to ``now``. ``hides`` is how many offsets of the partition lie
        behind its last stable offset. See :data:`kafka_log.inspect.transactions.table.TRANSACTIONS`.

        ``states`` (also ``hanging``; empty: all) and ``producers`` choose, and the ranges ``offsets`` and ``timestamps``: those that lie in
        them in part, from the first to the last. ``now`` is the time at which the log stood as it is; None: the present, and no transaction hangs for its age alone. ``max_timeout_ms`` is the timeout of
        transactions whose own is not known; None: 15 minutes.

        Bytes that are no batches are passed over, as are partitions whose directory cannot be read, and ``on_damage`` is called
        with a line about them; None: CodecError is raised, with file and byte. ``advance`` is told of bytes of segments that are done. Raises ValueError for a state that there is not, OSError.
        """
        from kafka_log.inspect.partition_headers import raise_damage
        from kafka_log.inspect.transactions.coordinator_states import coordinators
        from kafka_log.inspect.transactions.hanging import MAX_TIMEOUT_MS, Clock
        from kafka_log.inspect.transactions.table import transaction_table
        from kafka_log.read.internal_topics import TRANSACTION_STATE
        from kafka_log.read.selection import Selection
        from kafka_log.segment.ranges import checked_plain_offsets

        told = on_damage or raise_damage
        present = time_of(now)
        limit = optional_number("max_timeout_ms", max_timeout_ms)
        chosen_states = several(str, text_of("states"))("states", states) or ()
        own = [p for p in self._there.found if p.topic == TRANSACTION_STATE]
        if on_damage is None:
            tell(own, None)
        # Of its own topic coordinators() tells.
        tell((p for p in self.found if p.topic != TRANSACTION_STATE), on_damage)
        return transaction_table(
            self._logs,
            coordinators(own, told),
            Clock(present, now is not None, MAX_TIMEOUT_MS if limit is None else limit),
            told,
            states=set(chosen_states),
            wanted=Selection(
                producers=producers,
                offsets=checked_plain_offsets("offsets", offsets),
                timestamps=timestamps,
            ),
            advance=advance,
        )

    def producers(
        self,
        *,
        producers: int | Iterable[int] | None = None,
        offsets: Range | None = None,
        timestamps: Range | None = None,
        on_damage: OnDamage | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Idempotent and transactional producers: a row for each producer id and epoch of a partition.

        Sequences, offsets and timestamps are the first and last ones of its batches that are still there. ``gaps`` counts sequence
        numbers that are missing between batches, ``duplicates`` batches whose first sequence number was there before, ``markers``
        the transaction markers with this epoch. ``snapshot_last_sequence`` is what the newest producer snapshot of the partition
        says; producers that only it knows have a row too. See :data:`kafka_log.inspect.producers.table.PRODUCERS`.

        ``producers`` choose, and the ranges ``offsets`` and ``timestamps``: then only batches count that may have records in them, as their
        headers say. ``on_damage`` and ``advance`` are as in :meth:`txn`. Raises OSError.
        """
        from kafka_log.inspect.partition_headers import raise_damage
        from kafka_log.inspect.producers.table import producer_table
        from kafka_log.read.selection import Selection

        told = on_damage or raise_damage
        tell(self.found, on_damage)
        wanted = Selection(producers=producers, offsets=offsets, timestamps=timestamps)
        return producer_table(self._logs, told, wanted, advance)

    def groups(
        self,
        *,
        names: str | Iterable[str] | None = None,
        at: Time | None = None,
        offsets: Range | None = None,
        timestamps: Range | None = None,
        states: bool = False,
        salvage: bool = False,
        on_damage: OnDamage | None = None,
    ) -> pa.Table:
        """What groups have committed, from ``__consumer_offsets``: a row for each group and partition (see
        :data:`kafka_log.inspect.groups.table.COMMITS`), or (``states``) for each group (:data:`kafka_log.inspect.groups.table.GROUPS`).

        ``names`` are the groups, None: all; ``topics`` and ``partitions`` of this object choose among the commits. ``at`` is a time: what was written after it does not count. Transactions count whose commit is there. Of the
        commits that count ``offsets`` and ``timestamps`` (milliseconds) choose: committed offsets and times of the commit in these
        ranges. Raises :class:`~codecgen.runtime.errors.CodecError` for damage in that topic, or (``salvage``) goes on after it;
        ValueError for what is no range. Of directories that cannot be read ``on_damage`` is told, and the rest is the answer: what they
        have of commits is missing, and the lag of their partitions null; None: the error is raised.
        """
        from kafka_log.inspect.groups.table import Groups, commit_table, group_table
        from kafka_log.read.internal_topics import CONSUMER_OFFSETS
        from kafka_log.segment.ranges import checked_plain_offsets, checked_range

        of_groups = flag("states", states)
        wanted = Groups(
            as_set(several(str, text_of("names of groups"))("names", names)),
            as_set(self._topics),
            as_set(self._numbers),
            moment("at", at),
            checked_plain_offsets("offsets", offsets),
            checked_range("timestamps", timestamps),
            flag("salvage", salvage),
        )
        there = self._there.found
        if any(p.topic == CONSUMER_OFFSETS for p in there):
            mine = [p for p in there if p.topic == CONSUMER_OFFSETS or self._chooses(p)]
            there = readable(mine, on_damage, CONSUMER_OFFSETS)
        return (group_table if of_groups else commit_table)(there, wanted)

    def metadata(
        self,
        what: str = "topics",
        *,
        as_of: int | None = None,
        salvage: bool = False,
        on_damage: OnDamage | None = None,
        show_secrets: bool = False,
    ) -> pa.Table:
        """What ``__cluster_metadata`` says: a row for each thing of a kind (:data:`kafka_log.inspect.metadata.table.KINDS`: ``topics``,
        ``partitions``, ``configs``, ``brokers``, ...) that there is after the record at the offset ``as_of`` (None: the last one; -1: before the first one).

        Reading begins at the newest snapshot that is whole. Where after it records are missing or damaged, or are not known, the answer is
        as of the last offset before these, and ``on_damage`` is called with a line about them, as about snapshots that are not
        whole; None: :class:`~kafka_log.logs.partitions.DirectoryError` or :class:`~codecgen.runtime.errors.CodecError` is raised for such records.
        ``salvage`` passes over them: what they said is missing. Values of settings that are secrets are ``(redacted)`` unless ``show_secrets``.
        Raises ValueError for a kind or an offset that is not there.
        """
        from kafka_log.inspect.metadata.table import state_table

        return state_table(
            self._there.found,
            what,
            optional_number("as_of", as_of),
            topics=as_set(self._topics),
            numbers=as_set(self._numbers),
            salvage=flag("salvage", salvage),
            on_damage=on_damage,
            show_secrets=flag("show_secrets", show_secrets),
        )

    def metadata_changes(
        self,
        first: int | None = None,
        last: int | None = None,
        what: str = "topics",
        *,
        salvage: bool = False,
        on_damage: OnDamage | None = None,
        show_secrets: bool = False,
    ) -> pa.Table:
        """What is not the same after the records at two offsets: a row for each thing that was added, removed or changed: what
        identifies it, and :data:`kafka_log.inspect.metadata.changes.DIFFERENCES`. ``first`` None is the earliest that can be told (with a log that begins at
        offset 0: before its first record), ``last`` None the end. What cannot be told is left out as of :meth:`metadata`: then other
        offsets are compared, and ``on_damage`` is told which. Secrets are compared, and ``(redacted)`` as there. Raises as it does, also where nothing is left to compare."""
        from kafka_log.inspect.metadata.changes import change_table

        return change_table(
            self._there.found,
            what,
            optional_number("first", first),
            optional_number("last", last),
            topics=as_set(self._topics),
            numbers=as_set(self._numbers),
            salvage=flag("salvage", salvage),
            on_damage=on_damage,
            show_secrets=flag("show_secrets", show_secrets),
        )

    def coordinator(
        self,
        names: str | Iterable[str],
        *,
        partitions: int | None = None,
        on_damage: OnDamage | None = None,
    ) -> pa.Table:
        """The partitions of ``__consumer_offsets`` and ``__transaction_state`` that groups or transactional ids belong to, and the
        directories that are these (see :data:`kafka_log.inspect.groups.coordinators.COORDINATORS`). The partition of a share group in
        ``__share_group_state`` goes by ``group:topic id:partition``, which is a name like others.

        ``partitions`` is how many the topics have, None: what ``__cluster_metadata`` says where it is there, else 50. Raises
        ValueError for a name that is no text, or a number of partitions that cannot be. ``on_damage`` is told of a metadata log that cannot
        be read, which would have said it; None: the error is raised.
        """
        from kafka_log.inspect.groups.coordinators import coordinator_table
        from kafka_log.logs.names import CLUSTER_METADATA

        chosen = several(str, text_of("names"))("names", names) or ()
        count = optional_number("partitions", partitions)
        there = self._there.found
        if count is None:
            tell((p for p in there if p.topic == CLUSTER_METADATA), on_damage)
        return coordinator_table(chosen, there, count)
