"""A log directory that answers questions, each with an Arrow table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from kafka_log.disk.directory import (
    Include,
    Partition,
    Segment,
    Survey,
    chosen,
    is_partition,
    survey,
)
from kafka_log.disk.files import PassedOver, of_topics
from kafka_log.disk.names import states_of
from kafka_log.disk.replicas import Replicas, one_of_each
from kafka_log.disk.tiers import with_tiers
from kafka_log.segment.model import Policy
from kafka_log.segment.places import local_path, place_of

if TYPE_CHECKING:
    from kafka_log.report.export import Exported, Format
    from kafka_log.report.partition_headers import OnDamage
    from kafka_log.report.stat_asked import StatOptions
    from kafka_log.report.stat_columns import By
    from kafka_log.segment.kernels import Engine
    from kafka_log.segment.ranges import Range
    from kafka_log.tables.selection import OtherFilters, RowFilters, Selection

Place = str | os.PathLike[str]


class LogDirectory:
    """The partitions below a path: a segment, a partition's directory, a broker's log directory, or several of these.

    ``topics`` and ``partitions`` choose among what is there, ``include`` adds segments that are not live: states (see
    :data:`~kafka_log.disk.directory.State`), one text with commas between, or ``all``. Of partitions that lie in several of the directories all ``replicas`` are read (``keep``), the one
    whose log goes furthest (``newest``), or (``error``) that is a DirectoryError. Each method answers one question with an Arrow table, and reads the
    files anew. Raises :class:`~kafka_log.disk.directory.DirectoryError` when there is no log, NotThere (a ValueError) for a topic or a
    partition that is not there.
    """

    def __init__(
        self,
        path: Place | Iterable[Place],
        *,
        topics: str | Iterable[str] | None = None,
        partitions: int | Iterable[int] | None = None,
        include: Include = (),
        replicas: Replicas = "keep",
    ) -> None:
        self.path = [path] if isinstance(path, str | os.PathLike) else list(path)
        self.include = states_of(include)
        self.replicas = replicas
        self._topics = [topics] if isinstance(topics, str) else topics
        self._numbers = partitions

    @cached_property
    def _there(self) -> Survey:
        return survey(self.path, self.include, unreadable_raises=False)

    @cached_property
    def found(self) -> list[Partition]:
        """The partitions, by topic and number, also those that cannot be read: these say so."""
        return one_of_each(chosen(self._there.found, self._topics, self._numbers), self.replicas)

    @property
    def partitions(self) -> list[Partition]:
        """The partitions, by topic and number. Raises UnreadableError, an OSError, where one of them cannot be read."""
        _tell(self.found, None)
        return self.found

    @property
    def _logs(self) -> list[Partition]:
        """The partitions with what tiered storage has of them, each record once; also those that cannot be read."""
        return with_tiers(self.found)

    @cached_property
    def left_out(self) -> list[Segment]:
        """The segments that are there, but not live: deleted, stray and the like. ``include`` takes them in."""
        segments = self._there.left_out
        return [s for s in segments if self._topics is None or s.topic in self._topics]

    @cached_property
    def passed_over(self) -> list[PassedOver]:
        """What is not read though it has the name of a segment and is no file (a link to nothing, a FIFO, ...), or has segments and the
        name of no partition: each with why. A path of its own reads such a directory."""
        return of_topics(self._there.passed_over, _with_own_topics(self._topics))

    def ls(self, *, segments: bool = False) -> pa.Table:
        """What lies there: a row for each partition, or (``segments``) for each segment. See :mod:`kafka_log.report.listing`."""
        from kafka_log.report.listing import partition_table, segment_table

        return segment_table(self.found) if segments else partition_table(self.found)

    def stat(
        self,
        *,
        by: By | Iterable[By] = "partition",
        top: int | None = None,
        now: int | None = None,
        **options: Unpack[StatOptions],
    ) -> pa.Table:
        """Numbers of batches and records: a row for each partition, or for each of what ``by`` says: ``topic``, ``partition``,
        ``producer``, ``codec``, ``hour``, or several of these. See :func:`kafka_log.report.stat_columns.stat_schema` for the columns.

        Headers and checksums are read, with ``deep`` every record: then counts and timestamps are those of the records that are
        there, and ``ratio`` says how much compression saves. ``top``: the rows with the most bytes only, the largest first.
        ``now`` (milliseconds since 1970; None: the present) is what ``future`` counts from. ``offsets``, ``timestamps`` and
        ``producers`` choose batches, as in :class:`~kafka_log.tables.selection.Selection`, and ``policy`` says what damage is (default
        ``kafka``); ``engine`` and ``limits`` are as of :class:`~kafka_log.segment.block_reader.BlockReader`. ``on_problem`` is told of
        each problem in a line, ``advance`` of bytes that are done. Raises ValueError for what cannot be asked for.
        """
        from kafka_log.report.stat import stat_table
        from kafka_log.report.stat_asked import Asked

        return stat_table(self.found, by, top=top, asked=Asked.of(_present(now), **options))

    def largest(self, count: int = 10, **options: Unpack[StatOptions]) -> pa.Table:
        """The largest batches (:data:`kafka_log.report.stat_largest.LARGEST_BATCHES`) or, with ``deep``, the largest records by the bytes of
        their keys, values and headers (:data:`~kafka_log.report.stat_largest.LARGEST_RECORDS`). The rest, and what it raises, is as in
        :meth:`stat`.
        """
        from kafka_log.report.stat_asked import Asked
        from kafka_log.report.stat_largest import largest_table

        return largest_table(self.found, count, Asked.of(_present(None), **options))

    def export(
        self,
        out: Place,
        kind: Format = "parquet",
        *,
        columns: Sequence[str] | None = None,
        view: str | None = None,
        policy: Policy | str | None = None,
        selection: Selection | None = None,
        overwrite: bool = False,
        **filters: Unpack[RowFilters],
    ) -> Iterator[Exported]:
        """Write a file for each partition, one after the other as this is iterated. ``kind`` is ``parquet``, ``arrow``, ``jsonl`` or
        ``csv``. Raises ExportError, and what :func:`~kafka_log.scan` raises; files that are whole stay. See :func:`kafka_log.report.export.export`."""
        from kafka_log.report.export import export
        from kafka_log.write.beside import refuse_inside

        place = local_path(out)
        refuse_inside(place, [path for path in self._paths if isinstance(path, Path)])
        return export(
            self.found,
            place,
            kind,
            columns=columns,
            view=view,
            policy=policy,
            selection=selection,
            overwrite=overwrite,
            **filters,
        )

    def salvage(
        self,
        out: Place,
        *,
        flatten: bool = False,
        keep_damaged: bool = False,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Write what can be read of the partitions below another directory, each as a partition's directory that a broker loads.

        Batches that are good keep their bytes, in segments that begin where they did. Of others the records that can be read are
        written anew; those whose checksum is wrong are lost, unless ``keep_damaged``. With ``flatten`` only committed data is
        written: no markers, no producers, nothing of transactions that were aborted or have not ended. What is lost or left out is
        said: a row of :data:`kafka_log.write.said.SAID` for each. Log start offsets inside of first segments, as the broker has written
        them down, stand in ``log-start-offset-checkpoint`` beside the directories. What the same call has written is kept.

        ``advance`` is told of bytes of segments that are done. Raises :class:`~kafka_log.write.beside.OutError` (a DirectoryError)
        for a place that is inside of what is read or holds anything else, OSError.
        """
        from kafka_log.write import jobs

        options: dict[str, Any] = {
            "flatten": flatten,
            "keep_damaged": keep_damaged,
            "advance": advance,
        }
        return jobs.salvage(self.found, local_path(out), self._paths, **options)

    def cut(
        self,
        out: Place,
        offsets: Range | None = None,
        timestamps: Range | None = None,
        *,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Write a part of the partitions below another directory, as :meth:`salvage` does: the batches of which an offset is in
        ``offsets`` and a timestamp (milliseconds) in ``timestamps``. The first of a range is in, the end is not, None is open; None for a
        range is everything.
        Raises ValueError for what is no range, and as salvage."""
        from kafka_log.segment.ranges import checked_range
        from kafka_log.write import jobs
        from kafka_log.write.choice import Wanted

        wanted = Wanted(checked_range("offsets", offsets), checked_range("timestamps", timestamps))
        return jobs.cut(self.found, local_path(out), self._paths, wanted, advance)

    def convert(
        self,
        out: Place,
        *,
        codec: str | None = None,
        level: int | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Write the partitions below another directory, as directories that a broker loads: messages of the formats before 0.11 as
        record batches, and all compressed with ``codec`` (none, gzip, snappy, lz4, zstd; None: as they are) at a ``level`` of it
        (None: the usual one; with one, what has the codec already is compressed anew). Records keep all that they have. Headers of
        record batches too, but for what says how they are compressed; those that stay as they are keep their bytes.

        A row of :data:`kafka_log.write.conversion.CONVERTED` for each segment, with its bytes before and after. A partition that is
        damaged, or cannot be read, is refused: a row says why, nothing of it is written, and the others are. What the same call has
        written is kept. Raises ValueError for a codec or a level that there is not, and as :meth:`salvage`.
        """
        from kafka_log.write import jobs
        from kafka_log.write.recompression import target

        return jobs.convert(self.found, local_path(out), self._paths, target(codec, level), advance)

    def reindex(
        self,
        out: Place,
        *,
        interval_bytes: int = 4096,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Write the files that a broker keeps beside segments below another directory: offset, time and transaction indexes, producer
        snapshots. ``interval_bytes`` is the ``index.interval.bytes`` of the topics. A row of :data:`kafka_log.write.said.SAID` for
        each segment, and for what could not be read and has no entry. Raises as :meth:`salvage`."""
        from kafka_log.write import jobs

        options: dict[str, Any] = {"interval_bytes": interval_bytes, "advance": advance}
        return jobs.reindex(self.found, local_path(out), self._paths, **options)

    @property
    def _paths(self) -> list[Path]:
        return list(map(place_of, self.path))

    def keys(
        self,
        *,
        advance: Callable[[int], None] = lambda _: None,
        selection: Selection | None = None,
        **filters: Unpack[RowFilters],
    ) -> pa.Table:
        """What compaction would leave: a row for each partition with its records, keys, tombstones, and how many records are obsolete
        or live; bytes are those of keys and values, not compressed. ``problem`` is the first damage of a partition, whose other
        records are counted, or says why its directory cannot be read. The ``selection``, or its keywords, say which records there are, as of :func:`kafka_log.scan`; ``advance`` is told of bytes of partitions that
        are done. Memory: some 150 bytes for each key of a partition. See :mod:`kafka_log.report.keys`. Raises OSError."""
        from kafka_log.report.keys import key_table
        from kafka_log.tables.selection import changed

        return key_table(self._logs, _of_rows(changed(selection, None, filters)), advance)

    def records_of_key(
        self,
        keys: bytes | Iterable[bytes | None],
        *,
        note: Callable[[str], None] | None = None,
        advance: Callable[[int], None] = lambda _: None,
        selection: Selection | None = None,
        **filters: Unpack[OtherFilters],
    ) -> pa.Table:
        """All records of a key, or of several (None: those without one): offset, timestamp (milliseconds), bytes of the value, whether
        it is a tombstone, whether it is the latest of its key in its partition, and the segment. The ``selection``, or its keywords, and
        ``advance`` are as in :meth:`keys`. Raises OSError, and CodecError for damage; with a ``note``, which takes the text of the error, what lies around the
        damage is read, and the other partitions where a directory cannot be read."""
        from kafka_log.report.keys import records_of_keys
        from kafka_log.tables.selection import changed

        wanted = changed(selection, None, {**filters, "keys": keys})
        return records_of_keys(self._logs, _of_rows(wanted), note, advance)

    def txn(
        self,
        *,
        states: str | Iterable[str] = (),
        producers: int | Iterable[int] | None = None,
        offsets: Range | None = None,
        timestamps: Range | None = None,
        now: int | None = None,
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
        behind its last stable offset. See :data:`kafka_log.report.transactions.TRANSACTIONS`.

        ``states`` (also ``hanging``; empty: all) and ``producers`` choose, and the ranges ``offsets`` and ``timestamps``: those that lie in
        them in part, from the first to the last. ``now`` is the time at which the log stood as it is, in
        milliseconds since 1970; None: the present, and no transaction hangs for its age alone. ``max_timeout_ms`` is the timeout of
        transactions whose own is not known; None: 15 minutes.

        Bytes that are no batches are passed over, as are partitions whose directory cannot be read, and ``on_damage`` is called
        with a line about them; None: CodecError is raised, with file and byte. ``advance`` is told of bytes of segments that are done. Raises ValueError for a state that there is not, OSError.
        """
        from kafka_log.report.hanging import MAX_TIMEOUT_MS, Clock
        from kafka_log.report.partition_headers import raise_damage
        from kafka_log.report.transaction_states import coordinators
        from kafka_log.report.transactions import transaction_table
        from kafka_log.tables.own_topics import TRANSACTION_STATE
        from kafka_log.tables.selection import Selection

        told = on_damage or raise_damage
        present = _present(now)
        limit = MAX_TIMEOUT_MS if max_timeout_ms is None else max_timeout_ms
        own = [p for p in self._there.found if p.topic == TRANSACTION_STATE]
        if on_damage is None:
            _tell(own, None)
        # Of its own topic coordinators() tells.
        _tell((p for p in self.found if p.topic != TRANSACTION_STATE), on_damage)
        return transaction_table(
            self._logs,
            coordinators(own, told),
            Clock(present, now is not None, limit),
            told,
            states={states} if isinstance(states, str) else set(states),
            wanted=Selection(producers=producers, offsets=offsets, timestamps=timestamps),
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
        says; producers that only it knows have a row too. See :data:`kafka_log.report.producers.PRODUCERS`.

        ``producers`` choose, and the ranges ``offsets`` and ``timestamps``: then only batches count that may have records in them, as their
        headers say. ``on_damage`` and ``advance`` are as in :meth:`txn`. Raises OSError.
        """
        from kafka_log.report.partition_headers import raise_damage
        from kafka_log.report.producers import producer_table
        from kafka_log.tables.selection import Selection

        told = on_damage or raise_damage
        _tell(self.found, on_damage)
        wanted = Selection(producers=producers, offsets=offsets, timestamps=timestamps)
        return producer_table(self._logs, told, wanted, advance)

    def groups(
        self,
        *,
        names: str | Iterable[str] | None = None,
        at: int | None = None,
        offsets: Range | None = None,
        timestamps: Range | None = None,
        states: bool = False,
        salvage: bool = False,
        on_damage: OnDamage | None = None,
    ) -> pa.Table:
        """What groups have committed, from ``__consumer_offsets``: a row for each group and partition (see
        :data:`kafka_log.report.groups.COMMITS`), or (``states``) for each group (:data:`kafka_log.report.group_states.GROUPS`).

        ``names`` are the groups, None: all; ``topics`` and ``partitions`` of this object choose among the commits. ``at`` is a time
        in milliseconds since the epoch: what was written after it does not count. Transactions count whose commit is there. Of the
        commits that count ``offsets`` and ``timestamps`` (milliseconds) choose: committed offsets and times of the commit in these
        ranges. Raises :class:`~codecgen.runtime.errors.CodecError` for damage in that topic, or (``salvage``) goes on after it;
        ValueError for what is no range. Of directories that cannot be read ``on_damage`` is told, and the rest is the answer: what they
        have of commits is missing, and the lag of their partitions null; None: the error is raised.
        """
        from kafka_log.report.group_states import group_table
        from kafka_log.report.groups import Groups, commit_table
        from kafka_log.segment.ranges import checked_range
        from kafka_log.tables.own_topics import CONSUMER_OFFSETS

        wanted = Groups(
            _set(names),
            _set(self._topics),
            _set(self._numbers),
            at,
            checked_range("offsets", offsets),
            checked_range("timestamps", timestamps),
            salvage,
        )
        there = self._there.found
        if any(p.topic == CONSUMER_OFFSETS for p in there):
            mine = [p for p in there if p.topic == CONSUMER_OFFSETS or self._chooses(p)]
            there = _readable(mine, on_damage, CONSUMER_OFFSETS)
        return (group_table if states else commit_table)(there, wanted)

    def metadata(
        self,
        what: str = "topics",
        *,
        as_of: int | None = None,
        salvage: bool = False,
        on_damage: OnDamage | None = None,
    ) -> pa.Table:
        """What ``__cluster_metadata`` says: a row for each thing of a kind (:data:`kafka_log.report.metadata.KINDS`: ``topics``,
        ``partitions``, ``configs``, ``brokers``, ...) that there is after the record at the offset ``as_of`` (None: the last one).

        Raises ValueError for a kind or an offset that is not there, :class:`~kafka_log.disk.directory.DirectoryError` where records
        are missing, :class:`~codecgen.runtime.errors.CodecError` for damage and for records that are not known, or (``salvage``) passes
        over these. Of replicas of that topic that cannot be read ``on_damage`` is told where another one can; None: the error is raised.
        """
        from kafka_log.report.metadata import state_table

        topics, numbers = _set(self._topics), _set(self._numbers)
        return state_table(
            self._metadata_logs(on_damage),
            what,
            as_of,
            topics=topics,
            numbers=numbers,
            salvage=salvage,
        )

    def metadata_changes(
        self,
        first: int | None = None,
        last: int | None = None,
        what: str = "topics",
        *,
        salvage: bool = False,
        on_damage: OnDamage | None = None,
    ) -> pa.Table:
        """What is not the same after the records at two offsets: a row for each thing that was added, removed or changed, with the
        columns that differ and what they said, as JSON. ``first`` None is the earliest that can be told (with a log that begins at
        offset 0: before its first record), ``last`` None the end. Raises as :meth:`metadata`."""
        from kafka_log.report.metadata_changes import change_table

        topics, numbers = _set(self._topics), _set(self._numbers)
        return change_table(
            self._metadata_logs(on_damage),
            what,
            first,
            last,
            topics=topics,
            numbers=numbers,
            salvage=salvage,
        )

    def _metadata_logs(self, on_damage: OnDamage | None) -> list[Partition]:
        """The replicas of the metadata log that can be read; all partitions where there is none."""
        from kafka_log.disk.names import CLUSTER_METADATA

        there = self._there.found
        mine = [p for p in there if p.topic == CLUSTER_METADATA]
        return _readable(mine, on_damage, CLUSTER_METADATA) or there

    def coordinator(
        self,
        names: str | Iterable[str],
        *,
        partitions: int | None = None,
        on_damage: OnDamage | None = None,
    ) -> pa.Table:
        """The partitions of ``__consumer_offsets`` and ``__transaction_state`` that groups or transactional ids belong to, and the
        directories that are these (see :data:`kafka_log.report.coordinators.COORDINATORS`). The partition of a share group in
        ``__share_group_state`` goes by ``group:topic id:partition``, which is a name like others.

        ``partitions`` is how many the topics have, None: what ``__cluster_metadata`` says where it is there, else 50. Raises
        ValueError for a name that is no text, or a number of partitions that cannot be. ``on_damage`` is told of a metadata log that cannot
        be read, which would have said it; None: the error is raised.
        """
        from kafka_log.disk.names import CLUSTER_METADATA
        from kafka_log.report.coordinators import coordinator_table

        chosen = [names] if isinstance(names, str) else names
        there = self._there.found
        if partitions is None:
            _tell((p for p in there if p.topic == CLUSTER_METADATA), on_damage)
        return coordinator_table(chosen, there, partitions)

    def check(
        self,
        *,
        deep: bool = False,
        offsets: Range | None = None,
        timestamps: Range | None = None,
        producers: int | Iterable[int] | None = None,
        engine: Engine = "auto",
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """What is wrong: a row for each finding, the worst first. Nothing is changed.

        Columns: ``severity`` (error, warning, note), ``code``, ``topic``, ``partition``, ``file``, ``byte`` (position in the
        file), ``first_offset`` and ``last_offset`` that are concerned, ``records`` (lost or at risk at most), ``meaning`` and
        ``remedy``. Numbers are null where unknown. Headers, checksums and the files beside the segments are checked; with
        ``deep`` every record is decoded too. ``offsets``, ``timestamps`` and ``producers`` choose findings: those of batches that may
        have such records, as their headers say, and those of which nobody knows the batches. ``advance`` is told of bytes of segments that are done. Memory holds the batch headers of one segment. A file that cannot be read
        is a finding; nothing is raised for damage. See :mod:`kafka_log.report.check`.
        """
        from kafka_log.report.check import check_table
        from kafka_log.tables.selection import Selection

        return check_table(
            self.found,
            self._broker_directories(),
            deep=deep,
            wanted=Selection(offsets=offsets, timestamps=timestamps, producers=producers),
            engine=engine,
            advance=advance,
        )

    def diff(
        self,
        other: Place | LogDirectory,
        *,
        on_damage: OnDamage | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Two replicas of partitions (this is A, the other one B): a row for each partition.

        ``verdict`` is the worst of ``findings``: ``parted`` (other records at the same offsets), ``missing`` (records inside the other
        log that no cleaner removes), ``damaged``; the rest is no difference: ``only_in``, ``behind``, ``trimmed``, ``cleaned``,
        ``batches``, ``segments``, ``same``. ``first_offset`` is where it begins. Counts are of records, markers too. See
        :data:`kafka_log.report.diff.answer.DIFFERENCES`. Segments that are not live count where ``include`` (of
        this one, where ``other`` is a path) has taken them in, for what lies before the live ones. Partitions are paired by their
        names; a path of one partition with another such path whatever their names are. ``advance`` is told of bytes that are done. Memory: a chunk of each log, and
        a few hundred bytes for each key of records that one side has not. Partitions of which a side cannot be read have no row, and ``on_damage`` is told of
        them; None: the error is raised. Raises OSError.
        """
        from kafka_log.report.diff import diff_table, pairs_of
        from kafka_log.report.diff.logs import logs_of

        there = other
        if not isinstance(there, LogDirectory):
            there = LogDirectory(there, include=self.include)
        by_path = not self._broker_directories() and not there._broker_directories()
        sides = (self.found, [p for p in there.found if self._chooses(p)])
        _tell((p for side in sides for p in side), on_damage)
        closed = {p.key for side in sides for p in side if p.error and p.state == "live" and not p.segments}  # fmt: skip
        a, b = (logs_of(p for p in side if p.key not in closed) for side in sides)
        pairs = pairs_of(a, b, whatever_their_names=by_path)
        return diff_table(pairs, advance)

    def _chooses(self, partition: Partition) -> bool:
        topics, numbers = _set(self._topics), _set(self._numbers)
        return (topics is None or partition.topic in topics) and (
            numbers is None or partition.partition in numbers
        )

    def _broker_directories(self) -> list[Path]:
        """The paths that are brokers' log directories; none when partitions were chosen."""
        if self._topics is not None or self._numbers is not None:
            return []
        paths = dict.fromkeys(self._paths)
        return [path for path in paths if path.is_dir() and not is_partition(path)]


def _with_own_topics(topics: Iterable[str] | None) -> list[str] | None:
    """Topics, and those of Kafka's own from which answers about any topic come; None: all."""
    from kafka_log.disk.names import CLUSTER_METADATA
    from kafka_log.tables.own_topics import CONSUMER_OFFSETS, TRANSACTION_STATE

    own = (CONSUMER_OFFSETS, TRANSACTION_STATE, CLUSTER_METADATA)
    return None if topics is None else [*topics, *own]


def _readable(
    found: Sequence[Partition], on_damage: OnDamage | None, topic: str
) -> list[Partition]:
    """The partitions, of which those of a topic hold the answer, without what cannot be read: ``on_damage`` is told of it. Raises
    UnreadableError where nobody wants to be told, or nothing of the topic can be read."""
    closed = [p for p in found if p.error is not None and not p.segments]
    of_topic = [p for p in found if p.topic == topic]
    if of_topic and all(p in closed for p in of_topic):
        _tell(of_topic, None)
    _tell(found, on_damage)
    return [replace(p, error=None) for p in found if p.topic != topic or p not in closed]


def _tell(found: Iterable[Partition], on_damage: OnDamage | None) -> None:
    """Tell of the partitions that cannot be read. Raises UnreadableError where nobody wants to be told."""
    for partition in found:
        if partition.error is None:
            continue
        if on_damage is None:
            raise partition.error
        on_damage(str(partition.error))


def _present(now: int | None) -> int:
    return int(time.time() * 1000) if now is None else now


def _of_rows(selection: Selection) -> Selection:
    """A selection of rows in partitions that are chosen."""
    return selection.but(topics=None, partitions=None, include=())


def _set(chosen: Any) -> frozenset[Any] | None:
    """What is chosen, None for all."""
    if chosen is None:
        return None
    return frozenset([chosen] if isinstance(chosen, str | int) else chosen)
