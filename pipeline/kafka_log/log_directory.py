"""LogDirectory: a log directory that answers questions with Arrow tables."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.discovery import Survey, survey, warn_if_all_excluded
from kafka_log.logs.names import CLUSTER_METADATA, Include
from kafka_log.logs.partition_filters import Numbers, PartitionFilter, TopicFilter
from kafka_log.logs.partitions import (
    DirectoryError,
    NotFoundError,
    Partition,
    Segment,
    SkippedPath,
    filter_by_topics,
    filter_segments,
    select_partitions,
)
from kafka_log.logs.replicas import Replicas, select_replicas
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.read.arguments import (
    OFFSET_BITS,
    flag,
    number,
    one_of,
    optional_number,
    text_of,
    tuple_of,
)
from kafka_log.segment.model import Policy
from kafka_log.segment.paths import local_path, make_path, path_list
from kafka_log.segment.times import Time, Times, parse_time, present
from kafka_log.segment.urls import is_url

if TYPE_CHECKING:
    from kafka_log.inspect.export import ExportedFile, Format
    from kafka_log.inspect.listing import By as ListBy
    from kafka_log.inspect.partition_headers import OnDamage
    from kafka_log.inspect.statistics.columns import By
    from kafka_log.inspect.statistics.options import StatOptions
    from kafka_log.read.scanning import ScanOptions
    from kafka_log.read.schemas.decoding import Decoding
    from kafka_log.read.selection import OtherFilters, RowFilters, Selection
    from kafka_log.segment.kernels import Engine
    from kafka_log.segment.ranges import Range

PathLike = str | os.PathLike[str]

MAX_INDEX_INTERVAL = (1 << 31) - 1


class LogDirectory:
    """Partitions below one or several paths. Each method answers one question with an Arrow table,
    and reads the files anew. It raises DirectoryError if a path holds no log, OSError if a
    directory of logs cannot be listed. Methods that read the selected partitions also raise
    NotFoundError (a ValueError) if a selected topic or partition does not exist, and DirectoryError
    if two directories hold one partition and ``replicas`` is ``error``. Methods that write raise
    ValueError if ``out`` is the URL of a store.

    A path is a segment, a partition directory, a broker's log directory, a directory above log directories, or a URL of one of these.
    Times are milliseconds since 1970, datetimes, or texts as on the command line (``2026-11-22T10:15``, ``-2h``). A range is a pair:
    the first value is included, the second is not, None is open. A range of times may be a text: ``2026-11-22`` (that day), ``-2h:``.

    If several directories hold the same partition and ``replicas`` is None, answers whose rows name a directory or file have rows of
    each copy (:meth:`ls`, :meth:`stat` by partition, :meth:`check`, :meth:`keys`, :meth:`txn`, :meth:`producers`). All other methods
    raise DirectoryError, because they would count records twice.

    Args:
        path: A path, or several paths.
        topics: Topics to read: names, glob patterns such as ``orders-*``, or one text with commas between. Patterns match Kafka's
            internal topics only if they begin with two underscores. None: all.
        partitions: Partition numbers to read: numbers, ranges, or a text such as ``0-3,7``. None: all.
        include: States of segments to read besides live ones (:data:`~kafka_log.logs.names.State`): names, one text with commas
            between names, or ``all``.
        replicas: What to do when several directories hold the same partition: ``keep`` reads all copies, ``newest`` the copy with
            the highest end offset, ``error`` raises DirectoryError.

    Raises:
        DirectoryError: On the first read, if a path does not exist or holds no log.
        NotFoundError: On the first read, if a topic or partition does not exist. It is a ValueError.
        ValueError: If an argument is not one of the documented values.

    Example:
        >>> log = LogDirectory("/var/lib/kafka/data", topics="orders")
        >>> log.check(deep=True).num_rows
        0
    """

    def __init__(
        self,
        path: PathLike | Iterable[PathLike],
        *,
        topics: str | Iterable[str] | None = None,
        partitions: str | int | Iterable[Numbers] | None = None,
        include: Include = (),
        replicas: Replicas | None = None,
    ) -> None:
        from kafka_log.read.selection import Selection

        self.path = path_list("path", path)
        selection = Selection(
            topics=topics, partitions=partitions, include=include, replicas=replicas or "error"
        )
        self.include = selection.include
        self.replicas = None if replicas is None else selection.replicas
        self._topics = selection.topics
        self._numbers = selection.partitions

    @property
    def partitions(self) -> list[Partition]:
        """Selected partitions, by topic and number. Raise UnreadableError (an OSError) if the
        directory of a partition cannot be read, or has a ``.log`` file with a name that no segment
        can have; DirectoryError if a path holds no log, or two directories hold one partition and
        ``replicas`` is ``error``; NotFoundError if a selected topic or partition does not exist.
        """
        _report_unreadable(self.all_partitions, None)
        return self.all_partitions

    @cached_property
    def all_partitions(self) -> list[Partition]:
        """Selected partitions, by topic and number. One that cannot be listed has an ``error`` and
        no segments; one with a ``.log`` file that is no segment by its name may have both, and so
        has the newest replica if the end of another one is not known. Warn if all segments are
        excluded by their state. Raise DirectoryError if a path holds no log, or two directories
        hold one partition and ``replicas`` is ``error``, or hold topics with different ids and it
        is ``newest``; NotFoundError if a selected topic or partition does not exist.
        """
        found = self._survey
        try:
            selected = select_partitions(
                found.partitions, self._topics, self._numbers, found.excluded_segments
            )
        except NotFoundError as error:
            if self._select_checkpointed() is None:
                raise
            hint = "checkpoint files of the broker name what is missing: kafka-log check reports it"
            raise NotFoundError(f"{error}; {hint}") from None
        excluded = filter_segments(self.excluded_segments, None, self._numbers)
        warn_if_all_excluded(selected, excluded, stacklevel=2)
        return select_replicas(selected, self.replicas or "keep")

    @property
    def topics(self) -> list[str]:
        """Names of the topics of the selected partitions, sorted. Raise what :attr:`all_partitions`
        raises.
        """
        return sorted({partition.topic for partition in self.all_partitions})

    @cached_property
    def partitions_to_check(self) -> list[Partition]:
        """Selected partitions as in ``all_partitions``, but a topic or partition that only checkpoint files of
        the log directories name is no NotFoundError: :meth:`check` has a finding about it.
        """
        try:
            return self.all_partitions
        except NotFoundError:
            if (selected := self._select_checkpointed()) is None:
                raise
            return select_replicas(selected, self.replicas or "keep")

    def _select_checkpointed(self) -> list[Partition] | None:
        """Return the selected partitions if topics and partitions in checkpoint files of the log directories count
        as existing; None if one that was selected does not exist even so. Raise OSError if a log directory may
        not be searched.
        """
        found = self._survey
        lines = {
            (key, directory)
            for directory in found.directories
            for offsets in read_broker_files(directory).checkpoints.values()
            for key in offsets
        }
        missing = [
            Partition(topic, number, directory / f"{topic}-{number}", ())
            for (topic, number), directory in sorted(lines)
        ]
        with suppress(NotFoundError):
            selected = select_partitions(
                [*found.partitions, *missing], self._topics, self._numbers, found.excluded_segments
            )
            return [p for p in selected if any(p is one for one in found.partitions)]
        return None

    @cached_property
    def excluded_segments(self) -> list[Segment]:
        """Segments of the selected topics that are not read because of their state (deleted, stray ...). ``include`` adds them."""
        return filter_segments(self._survey.excluded_segments, self._topics)

    @cached_property
    def skipped_paths(self) -> list[SkippedPath]:
        """Paths that are not read, each with the reason: they end in ``.log`` but are no regular file
        and have no name of a segment, or have segments but not the name of a partition. With
        selected topics, only those that may belong to them or to internal topics. Raise
        DirectoryError if a path holds no log.

        To read a directory with another name, pass its own path. A path with the name of a segment is never skipped.
        """
        return filter_by_topics(self._survey.skipped_paths, _add_internal_topics(self._topics))

    def refuse_duplicates(self, partitions: Sequence[Partition]) -> list[Partition]:
        """Return ``partitions`` as a list. Raise DirectoryError if two directories hold the same
        partition in the same state and ``replicas`` is None; else nothing is checked.
        """
        return select_replicas(partitions, "error") if self.replicas is None else list(partitions)

    def __repr__(self) -> str:
        path, *rest = self._summarize().items()
        return f"LogDirectory({'; '.join([path[1], *(f'{name}: {text}' for name, text in rest)])})"

    def _repr_html_(self) -> str:
        rows = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._summarize().items())  # fmt: skip
        return f"<table>{''.join(rows)}</table>"

    def ls(self, *, by: ListBy = "partition", segments: bool = False) -> pa.Table:
        """List partitions: one row per partition and segment state
        (:data:`kafka_log.inspect.listing.PARTITIONS`), also for unreadable ones. With ``by``
        ``"topic"`` return one row per topic and state, with ``segments`` one per segment. Raise
        DirectoryError if a path holds no log; NotFoundError if a selected topic or partition does
        not exist; ValueError if ``by`` is neither ``"partition"`` nor ``"topic"``, or is
        ``"topic"`` with ``segments``. With ``segments`` raise OSError if the system cannot tell the
        time of a segment.

        Args:
            by: ``topic`` returns the disk usage of each topic and segment state instead, most bytes first
                (:data:`kafka_log.inspect.listing.TOPICS`): ``bytes`` of all replicas, ``largest_replica_bytes`` of one per partition.
            segments: Return one row per segment instead (:data:`kafka_log.inspect.listing.SEGMENTS`).

        Raises:
            ValueError: If ``by`` is unknown, or is ``topic`` with ``segments``.

        Example:
            >>> LogDirectory("/var/lib/kafka/data").ls(segments=True).to_pandas()
        """
        from kafka_log.inspect.listing import BY, partition_table, segment_table, topic_table

        by_topic = (one_of(BY)("by", by) or "partition") == "topic"
        if flag("segments", segments):
            if by_topic:
                raise ValueError("by='topic' and segments=True exclude each other: leave one out")
            return segment_table(self.all_partitions)
        table = topic_table if by_topic else partition_table
        return table(self.all_partitions)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        policy: Policy | str | None = None,
        **options: Unpack[ScanOptions],
    ) -> pa.RecordBatchReader:
        """Return the records of the selected partitions, or rows of a view, as a stream of Arrow
        record batches: :func:`kafka_log.scan` of these paths, with this selection. Filters in
        ``options`` replace those of the selection.

        Args:
            columns: As in :func:`kafka_log.scan`.
            policy: What counts as damage: ``kafka`` (default), ``strict`` or ``salvage``.
            options: The keywords of :func:`kafka_log.scan`.

        Returns:
            The stream. It raises :class:`CodecError` for damage that is an error.

        Raises:
            TypeError: For an unknown option.
            ValueError: For unknown columns, views and values of options.

        Example:
            >>> log = LogDirectory("/var/lib/kafka/data", topics="orders")
            >>> log.scan(["offset", "value"], timestamps="-2h:").read_all()
        """
        from kafka_log.read.scanning import scan
        from kafka_log.read.selection import Selection

        selection = Selection(
            topics=self._topics,
            partitions=self._numbers,
            include=self.include,
            replicas=self.replicas or "error",
        )
        return scan(self.path, columns, policy, selection=selection, **options)

    def stat(
        self,
        *,
        by: By | Iterable[By] = "partition",
        top: int | None = None,
        now: Time | None = None,
        **options: Unpack[StatOptions],
    ) -> pa.Table:
        """Count batches, records and bytes: one row per partition and segment state, or per
        combination of the values of ``by``, sorted by them
        (:data:`kafka_log.inspect.statistics.columns.STAT`). With ``top`` return only the rows with
        the most bytes, largest first. Damage and unreadable files do not raise. ``strict`` stops a
        file at its first problem; ``kafka`` counts batches with a wrong checksum and stops at bytes
        that are no batch; ``salvage`` also counts what follows. Warn if batches below the log start
        offset are left out, or records are counted twice. Raise ValueError if an argument is not
        one of the documented values; DirectoryError if rows are not by partition, several
        directories hold one, and ``replicas`` is None.

        Columns that have no meaning for several partitions are left out unless rows are by partition.

        Args:
            by: ``topic``, ``partition``, ``producer``, ``codec``, ``day``, ``hour``, ``minute``, or several of these.
            top: Maximum number of rows, those with the most bytes first. None: all rows.
            now: Time after which a timestamp counts as ``future``. None: the present.
            **options: ``deep`` decodes every record: counts and timestamps are then those of existing records, and ``ratio`` says
                how much compression saves. Otherwise only batch headers and checksums are read. ``offsets``, ``timestamps``, ``producers``
                and ``deleted_records`` select batches as in :class:`~kafka_log.read.selection.Selection`: a batch counts as a whole if
                it may have a selected record. ``policy`` (default ``kafka``) says what damage
                is. ``engine`` and ``limits`` are as in :class:`~kafka_log.segment.block_reader.BlockReader`. ``on_problem`` is called
                with a line per problem, ``advance`` with the number of bytes read since the last call.

        Raises:
            DirectoryError: If rows are not by partition, several directories hold one, and ``replicas`` is None.
            ValueError: If an argument is not one of the documented values.

        Example:
            >>> LogDirectory("/var/lib/kafka/data").stat(by="topic", top=10).to_pandas()
        """
        from kafka_log.inspect.statistics.options import Asked
        from kafka_log.inspect.statistics.table import parse_by, stat_table

        max_rows = optional_number("top", top, 0)
        asked = Asked.from_keywords(_time_or_present(now), **options)
        grouping = parse_by(by)
        partitions = self.all_partitions
        if "partition" not in grouping:
            partitions = self.refuse_duplicates(partitions)
        return stat_table(partitions, grouping, top=max_rows, asked=asked)

    def largest(
        self,
        count: int = 10,
        *,
        by: By | Iterable[By] | None = None,
        **options: Unpack[StatOptions],
    ) -> pa.Table:
        """Return the ``count`` largest batches, largest first
        (:data:`kafka_log.inspect.statistics.largest.LARGEST_BATCHES`), or with ``deep`` the largest
        data records. With ``by`` return that many for each combination of its values, sorted by
        these first. Damage does not raise, and batches with a wrong checksum, and their
        records, count unless under ``strict``. Raise ValueError if an argument is not one of the
        documented values; DirectoryError if several directories hold one partition and ``replicas``
        is None.

        The size of a record is the bytes of its key, value and headers
        (:data:`~kafka_log.inspect.statistics.largest.LARGEST_RECORDS`).

        Args:
            count: Maximum number of rows, in total or per value of ``by``.
            by: As in :meth:`stat`. Rows are then ordered by these values first.
            **options: As in :meth:`stat`.

        Raises:
            DirectoryError: If several directories hold one partition and ``replicas`` is None.
            ValueError: If an argument is not one of the documented values.

        Example:
            >>> LogDirectory("/var/lib/kafka/data").largest(3, by="topic", deep=True)
        """
        from kafka_log.inspect.statistics.largest import largest_table
        from kafka_log.inspect.statistics.options import Asked
        from kafka_log.inspect.statistics.table import parse_by

        grouping = () if by is None else parse_by(by)
        max_rows = number(0, OFFSET_BITS, "numbers of rows")("count", count)
        partitions = self.refuse_duplicates(self.all_partitions)
        asked = Asked.from_keywords(_time_or_present(None), **options)
        return largest_table(partitions, max_rows, grouping, asked)

    def check(
        self,
        *,
        deep: bool = False,
        offsets: Range | None = None,
        timestamps: Times | None = None,
        producers: int | Iterable[int] | None = None,
        engine: Engine = "auto",
        advance: Callable[[int], None] = lambda _: None,
        on_checked: Callable[[int], None] | None = None,
    ) -> pa.Table:
        """Check batch headers, checksums and the files beside the segments for damage and
        contradictions: one row per finding, the most severe first; ``deep`` decodes every record
        too. Ranges and ``producers`` drop findings about other batches. Damage and unreadable files
        are findings. Warn if filters select no batch and ``on_checked`` is None. Raise ValueError
        for an invalid argument; DirectoryError if a path holds no log; OSError only if a log
        directory may not be searched.

        No file is changed. Of findings about the log directories' own files, a selection of topics or partitions leaves those about
        its partitions, and damaged checkpoint files.
        Memory use is bounded by the batch headers of one segment. :data:`kafka_log.inspect.check.finding.FINDINGS` lists the columns:
        ``severity`` (error, warning, note), ``code``, ``topic``, ``partition``, ``file``, ``byte`` (position in the file),
        ``first_offset`` and ``last_offset`` affected, ``records`` (maximum number lost or at risk), ``meaning`` and ``remedy``.
        Unknown numbers are null.

        Args:
            deep: Decode every record too.
            offsets: Offset range. Findings outside it are dropped, except those without a batch. Negative offsets count from the end of each partition.
            timestamps: Timestamp range. As ``offsets``.
            producers: Producer ids. As ``offsets``.
            engine: Reader of batches and records.
            advance: Called with the number of segment bytes read since the last call.
            on_checked: Called with the number of batches that were checked and selected. None: warn if the filters select no batch.

        Raises:
            ValueError: If an argument is not one of the documented values.

        Example:
            >>> for finding in LogDirectory("/var/lib/kafka/data").check().to_pylist():
            ...     print(finding["severity"], finding["file"], finding["meaning"])
        """
        from kafka_log.inspect.check.table import check_table
        from kafka_log.read.selection import Selection

        selection = Selection(
            offsets=offsets,
            timestamps=timestamps,
            producers=producers,
        )
        counts: list[int] = []
        table = check_table(
            self.partitions_to_check,
            self._survey.directories,
            deep=flag("deep", deep),
            wanted=selection,
            selects=self._selects if self._has_selection else None,
            others=[p for p in self._survey.partitions if not self._selects(p.key)],
            engine=engine,
            advance=advance,
            judged=counts.append if on_checked is None else on_checked,
        )
        filters = selection.to_keywords()
        if on_checked is None and filters and not any(counts):
            names = ", ".join(filters)
            warnings.warn(
                f"kafka-log: no batch was checked: none matches {names}; correct or leave out the filter",
                stacklevel=2,
            )
        return table

    def diff(
        self,
        other: PathLike | LogDirectory,
        *,
        on_damage: OnDamage | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Compare the replicas of this log directory (A) with those of another one (B): one row per
        partition; damage does not raise. Raise DirectoryError if ``other`` holds no log, or several
        directories of a side hold the same partition and ``replicas`` is None; UnreadableError (an
        OSError) if the directory of a partition cannot be read and ``on_damage`` is None, or
        retention deletes a segment meanwhile.

        :data:`kafka_log.inspect.diff.table.DIFFERENCES` lists the columns. ``verdict`` is the worst of ``findings``. Differences are
        ``parted`` (other records at the same offsets), ``missing`` (records that no cleaner removes) and ``damaged``. The other
        verdicts are no difference of records: ``only_in``, ``behind``, ``trimmed``, ``cleaned``, ``batches``, ``segments``, ``same``.
        ``first_offset`` is where the difference begins. Counts include markers. Excluded segments that ``include`` adds count before
        the live ones. Memory use is a chunk per log, and a few hundred bytes per key of records that only one side has.

        Partitions are paired by topic and number. If each side is a path of one partition, the names do not matter.

        Args:
            other: The other log directory. A path is opened with the ``include`` and ``replicas`` of this one.
            on_damage: Called with a line per partition that cannot be read on one side. It gets no row. None: raise the error.
            advance: Called with the number of bytes compared since the last call.

        Raises:
            DirectoryError: If several directories of a side hold the same partition and ``replicas`` is None.
            UnreadableError: If the directory of a partition cannot be read and ``on_damage`` is None. It is an OSError.

        Example:
            >>> LogDirectory("/mnt/broker-1").diff("/mnt/broker-2").to_pandas()[["topic", "partition", "verdict"]]
        """
        from kafka_log.inspect.diff.table import diff_table

        _, opened = self._with_others(other)
        return diff_table(self._pair_with(opened, on_damage), advance)

    def write_unshared(
        self,
        other: PathLike | LogDirectory,
        out: PathLike,
        *,
        on_damage: OnDamage | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Write the records that the replicas of this log directory have, and those of another one
        lack or have with other values, into partition directories below ``out`` that a broker
        loads, and return the report. Nothing is created if there are none; a partition that the
        other one lacks as a whole is only a row ``left out``. Raise DirectoryError, UnreadableError
        as :meth:`diff`; OutputError if ``out`` lies inside a path that is read or a broker's log
        directory, or holds anything else; OutputLockedError if another process writes to it;
        OSError if a file cannot be written, or a segment disappears meanwhile; ValueError if
        ``out`` is the URL of a store.

        :data:`kafka_log.write.rewrite.report.REPORT_SCHEMA` lists the columns. Rows ``kept`` say why records are written. A batch is
        written whole, with its offsets, if one of its records is. Rows ``lost`` are damage of this side.

        Args:
            other: The other log directory. A path is opened with the ``include`` and ``replicas`` of this one.
            out: Output directory, empty or with output of the same call. It must not lie inside the paths that are read.
            on_damage: As in :meth:`diff`.
            advance: Called with the number of segment bytes read since the last call.

        Raises:
            OutputError: If ``out`` lies inside a path that is read, or holds anything else. It is a DirectoryError.
            DirectoryError: If several directories of a side hold the same partition and ``replicas`` is None.
            UnreadableError: If the directory of a partition cannot be read and ``on_damage`` is None. It is an OSError.
            OSError: If a file cannot be written.
            ValueError: If ``out`` is the URL of a store.

        Example:
            >>> LogDirectory("/mnt/broker-1").write_unshared("/mnt/broker-2", "/mnt/only-1").to_pylist()
        """
        from kafka_log.inspect.merge.unshared_batches import write_unshared

        _, opened = self._with_others(other)
        pairs = self._pair_with(opened, on_damage)
        paths = [*self._paths, *opened._paths]
        return write_unshared(pairs, local_path(out), paths, advance)

    def _pair_with(
        self, opened: LogDirectory, on_damage: OnDamage | None
    ) -> list[tuple[Partition | None, Partition | None]]:
        """Return pairs of the partitions of this log directory and of another one; None for a side
        that lacks the partition. Report partitions that cannot be read to ``on_damage``, and leave
        them out; raise their UnreadableError if it is None. Raise DirectoryError if several
        directories of a side hold the same partition and ``replicas`` is None.
        """
        from kafka_log.inspect.diff.side import join_logs
        from kafka_log.inspect.diff.table import pair_partitions

        by_path = not self._log_directories() and not opened._log_directories()
        sides = (self._partitions_of(self), self._partitions_of(opened))
        _report_unreadable((p for side in sides for p in side), on_damage)
        closed = {p.key for side in sides for p in side if p.error and p.state == "live" and not p.segments}  # fmt: skip
        a, b = (join_logs(p for p in side if p.key not in closed) for side in sides)
        return pair_partitions(a, b, whatever_their_names=by_path)

    def txn(
        self,
        *,
        states: str | Iterable[str] = (),
        producers: int | Iterable[int] | None = None,
        offsets: Range | None = None,
        timestamps: Times | None = None,
        now: Time | None = None,
        max_timeout_ms: int | None = None,
        on_damage: OnDamage | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """List transactions: one row per transaction and partition, open ones first
        (:data:`kafka_log.inspect.transactions.table.TRANSACTIONS`). They have one of ``states`` and
        ``producers`` and overlap the ranges. Without ``now`` none hangs by its age alone. Checksums
        are verified only from a transaction on that would hang. Damage and unreadable files are
        skipped and reported to ``on_damage``; if it is None, raise CodecError. Raise ValueError if a state does not
        exist or an argument is invalid; UnreadableError (a CodecError) if the file of a transaction
        marker disappears meanwhile.

        ``state`` is open, committed or aborted. ``hanging`` is true for an open transaction that no producer or coordinator will end,
        null if that cannot be known, and ``reason`` explains it (docs/tool/txn.md has the rule). ``transactional_id`` and ``coordinator_state`` come from the topic
        ``__transaction_state`` if it lies below the path, also when it is not selected. ``last_offset`` is the offset of the marker,
        or of the last record of an open transaction. ``records`` counts existing records. ``duration_ms`` ends at the marker, or at
        ``now`` for open transactions. ``hides`` is the number of offsets at or after the last stable offset.

        Args:
            states: States to return. ``hanging`` selects transactions that hang or may hang. Empty: all.
            producers: Producer ids. None: all.
            offsets: Offset range. A transaction that overlaps it is returned. Negative offsets count from the end of each partition.
            timestamps: Timestamp range. A transaction that overlaps it is returned.
            now: Time at which the log was copied. None: the present; then no transaction hangs because of its age alone.
            max_timeout_ms: Timeout of transactions whose own timeout is unknown. None: 15 minutes.
            on_damage: Called with a line per damaged range or unreadable partition, which is then skipped. None: raise the error.
            advance: Called with the number of segment bytes read since the last call.

        Raises:
            CodecError: If a batch is damaged or a file cannot be read, and ``on_damage`` is None.
            ValueError: If a state does not exist.

        Example:
            >>> LogDirectory("/var/lib/kafka/data").txn(states="hanging")
        """
        from kafka_log.inspect.partition_headers import raise_damage
        from kafka_log.inspect.transactions.coordinator_states import CoordinatorsOfClusters
        from kafka_log.inspect.transactions.hanging import MAX_TIMEOUT_MS, Clock
        from kafka_log.inspect.transactions.table import transaction_table
        from kafka_log.logs.names import TRANSACTION_STATE
        from kafka_log.read.selection import Selection

        report = on_damage or raise_damage
        time = _time_or_present(now)
        limit = optional_number("max_timeout_ms", max_timeout_ms)
        selected_states = tuple_of(str, text_of("states"))("states", states) or ()
        coordinator_logs = [p for p in self._survey.partitions if p.topic == TRANSACTION_STATE]
        if on_damage is None:
            _report_unreadable(coordinator_logs, None)
        # CoordinatorsOfClusters reports unreadable partitions of its topic itself.
        partitions = self._merged_partitions
        others = [p for p in partitions if p.topic != TRANSACTION_STATE]
        _report_unreadable(others, on_damage)
        _report_gaps([*others, *coordinator_logs], on_damage, Selection())
        return transaction_table(
            partitions,
            CoordinatorsOfClusters(coordinator_logs, report),
            Clock(time, now is not None, MAX_TIMEOUT_MS if limit is None else limit),
            report,
            states=set(selected_states),
            wanted=Selection(
                producers=producers,
                offsets=offsets,
                timestamps=timestamps,
            ),
            advance=advance,
        )

    def producers(
        self,
        *,
        producers: int | Iterable[int] | None = None,
        offsets: Range | None = None,
        timestamps: Times | None = None,
        on_damage: OnDamage | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """List idempotent and transactional producers: one row per partition, producer id and
        producer epoch. They have a batch in the ranges; without ranges, producers that only a
        producer snapshot has are included. ``producers`` selects ids. No checksum is verified.
        Other damage and unreadable files are skipped and reported to ``on_damage``; if it is None,
        raise CodecError. Raise ValueError for an invalid argument.

        :data:`kafka_log.inspect.producers.table.PRODUCERS` lists the columns. Sequence numbers, offsets and timestamps are the first and
        last ones of existing batches. ``gaps`` counts sequence numbers missing between batches, ``duplicates`` batches whose first
        sequence number occurred before, ``markers`` transaction markers of this epoch. ``snapshot_last_sequence`` comes from the
        newest producer snapshot; producers that only the snapshot knows have a row too.

        Args:
            producers: Producer ids. None: all.
            offsets: Offset range. Only batches whose header says that they may have records in it count.
            timestamps: Timestamp range. As ``offsets``.
            on_damage: Called with a line per damaged range or unreadable partition, which is then skipped. None: raise the error.
            advance: Called with the number of segment bytes read since the last call.

        Raises:
            CodecError: If a batch is damaged or a file cannot be read, and ``on_damage`` is None.

        Example:
            >>> LogDirectory("/var/lib/kafka/data", topics="orders").producers(producers=[4001])
        """
        from kafka_log.inspect.partition_headers import raise_damage
        from kafka_log.inspect.producers.table import producer_table
        from kafka_log.read.selection import Selection

        report = on_damage or raise_damage
        partitions = self._merged_partitions
        _report_unreadable(partitions, on_damage)
        selection = Selection(producers=producers, offsets=offsets, timestamps=timestamps)
        _report_gaps(partitions, on_damage, selection)
        return producer_table(partitions, report, selection, advance)

    def groups(
        self,
        *,
        names: str | Iterable[str] | None = None,
        at: Time | None = None,
        offsets: Range | None = None,
        timestamps: Times | None = None,
        states: bool = False,
        salvage: bool = False,
        on_damage: OnDamage | None = None,
    ) -> pa.Table:
        """Return committed offsets from ``__consumer_offsets``, a row per group and partition,
        sorted, or with ``states`` per group. Select by committed offset (``offsets``) and commit
        time (``timestamps``); ignore writes after ``at``. Raise CodecError for damage unless
        ``salvage``, which leaves damaged batches out; NotFoundError without ``__consumer_offsets``;
        DirectoryError if it is of different clusters, or replicas of it state different topic ids; UnreadableError for an
        unreadable directory unless ``on_damage`` is given, and always if no partition of that topic
        is readable; ValueError for invalid arguments.

        The columns are :data:`kafka_log.inspect.groups.table.COMMITS`.
        Commits in transactions count if the transaction was committed. With ``at``, a warning names partitions of ``__consumer_offsets``
        whose earlier commits the log cleaner may have removed. The ``topics`` and ``partitions`` of this object select the
        partitions that were committed, not the partitions of ``__consumer_offsets``.

        Args:
            names: Groups. None: all.
            at: Ignore what was written after this time.
            offsets: Range of committed offsets.
            timestamps: Range of commit times.
            states: Return one row per group with its state instead (:data:`kafka_log.inspect.groups.table.GROUPS`).
            salvage: Continue after damage in ``__consumer_offsets``.
            on_damage: Called with a line per directory that cannot be read. Its commits are missing, and the lag of its partitions is
                null. None: raise the error. Called also with a line per partition of ``__consumer_offsets`` that lost
                records at its end. None: warn.

        Raises:
            CodecError: If ``__consumer_offsets`` is damaged and ``salvage`` is False.
            NotFoundError: If ``__consumer_offsets`` does not lie below the path.
            DirectoryError: If replicas of a partition of ``__consumer_offsets`` state different topic ids, or its directories different cluster ids.
            UnreadableError: If a directory cannot be read and ``on_damage`` is None. It is an OSError.
            ValueError: If a range is not a range.

        Example:
            >>> LogDirectory("/var/lib/kafka/data").groups(names="billing", at="2026-11-22T10:15")
        """
        from kafka_log.inspect.groups.compaction import warn_of_removed_commits
        from kafka_log.inspect.groups.table import (
            Groups,
            commit_table,
            group_table,
            offsets_partitions,
        )
        from kafka_log.logs.names import CONSUMER_OFFSETS
        from kafka_log.segment.model import Lost, describe_lost
        from kafka_log.segment.ranges import checked_plain_offsets
        from kafka_log.segment.times import checked_times

        table = group_table if flag("states", states) else commit_table
        selection = Groups(
            _as_set(tuple_of(str, text_of("names of groups"))("names", names)),
            self._topic_filter,
            self._partition_filter,
            parse_time("at", at),
            checked_plain_offsets("offsets", offsets),
            checked_times("timestamps", timestamps),
            flag("salvage", salvage),
        )
        partitions = self._survey.partitions
        if any(p.topic == CONSUMER_OFFSETS for p in partitions):
            own = [p for p in partitions if p.topic == CONSUMER_OFFSETS or self._selects(p.key)]
            partitions = _drop_unreadable(own, on_damage, CONSUMER_OFFSETS)
        lines: dict[str, str] = {}

        def note_lost_end(segment: Segment, lost: Lost) -> None:
            """Note the line about the lost end of a log, once."""
            lines[describe_lost(segment.path, lost)] = segment.topic

        found = table(partitions, selection, note_lost_end)
        for line, topic in lines.items():
            if topic != CONSUMER_OFFSETS:
                ending = "log_end_offset and lag of its partition are null"
            elif on_damage is None:
                ending = "newer commits may be missing"
            else:
                on_damage(f"{line}; newer commits may be missing")
                continue
            warnings.warn(f"kafka-log: {line}; {ending}", stacklevel=2)
        if selection.at is not None:
            warn_of_removed_commits(offsets_partitions(partitions), selection.at, stacklevel=2)
        return found

    def metadata(
        self,
        kind: str = "topics",
        *,
        as_of: int | None = None,
        salvage: bool = False,
        on_damage: OnDamage | None = None,
        show_secrets: bool = False,
    ) -> pa.Table:
        """Return the cluster metadata after the record at offset ``as_of`` (None: the last one) of
        ``__cluster_metadata``: one row per topic, partition, broker or other object of a kind. With
        ``salvage``, records that are unreadable, unknown or missing are skipped, but not those with
        only a wrong checksum; with only ``on_damage``, the answer ends before them; else, or if no
        state can be read, raise CodecError or DirectoryError. Raise UnreadableError if a directory
        of the metadata log cannot be read and ``on_damage`` is None; ValueError if the kind, the
        offset or the metadata log does not exist.

        Reading begins at the newest complete snapshot.

        Args:
            kind: One of :data:`kafka_log.inspect.metadata.table.KINDS`: ``topics``, ``partitions``, ``configs``, ``brokers`` ...
            as_of: Offset of the last record that counts. None: the last record; -1: before the first one.
            salvage: Skip records that are missing, damaged or unknown. Their changes are missing from the answer.
            on_damage: Called with a line per incomplete snapshot, and with a line if records are missing, damaged or unknown: the
                answer is then as of the last offset before them. None: raise the error.
            show_secrets: Show values of sensitive configs instead of ``(redacted)``.

        Raises:
            CodecError: If a record is damaged or unknown, and neither ``salvage`` nor ``on_damage`` is given.
            DirectoryError: If records are missing, and neither ``salvage`` nor ``on_damage`` is given.
            ValueError: If the kind or the offset does not exist.

        Example:
            >>> LogDirectory("/var/lib/kafka/metadata").metadata("configs")
        """
        from kafka_log.inspect.metadata.table import state_table

        return state_table(
            self._survey.partitions,
            kind,
            optional_number("as_of", as_of),
            topics=self._topic_filter,
            numbers=self._partition_filter,
            salvage=flag("salvage", salvage),
            on_damage=on_damage,
            show_secrets=flag("show_secrets", show_secrets),
        )

    def metadata_changes(
        self,
        first: int | None = None,
        last: int | None = None,
        kind: str = "topics",
        *,
        salvage: bool = False,
        on_damage: OnDamage | None = None,
        show_secrets: bool = False,
    ) -> pa.Table:
        """Compare the cluster metadata after ``first`` (None: the earliest known state) and
        ``last`` (None: the end), which may be the lower one. Return one row per added, removed or
        changed object of a kind, sorted by its key. ``salvage`` skips unreadable or missing
        records; ``on_damage`` alone compares the states before them; otherwise, or without two
        states, raise CodecError or DirectoryError. Raise ValueError if the kind, an offset or the
        metadata log does not exist.

        The columns identify the thing and continue with :data:`kafka_log.inspect.metadata.changes.DIFFERENCES`. If the metadata after
        ``first`` or ``last`` cannot be known, other offsets are compared, and ``on_damage`` is called with them. Sensitive configs
        are compared, and shown as ``(redacted)``.

        Args:
            first: Offset of the earlier state. None: the earliest known one (before the first record if the log begins at offset 0).
            last: Offset of the later state. None: the end of the log.
            kind: As in :meth:`metadata`.
            salvage: As in :meth:`metadata`.
            on_damage: As in :meth:`metadata`.
            show_secrets: As in :meth:`metadata`.

        Raises:
            CodecError: As in :meth:`metadata`, and if damage leaves no two states to compare.
            DirectoryError: As in :meth:`metadata`, and if missing records leave no two states to compare.
            ValueError: As in :meth:`metadata`.

        Example:
            >>> LogDirectory("/var/lib/kafka/metadata").metadata_changes(1000, None, "configs")
        """
        from kafka_log.inspect.metadata.changes import change_table

        return change_table(
            self._survey.partitions,
            kind,
            optional_number("first", first),
            optional_number("last", last),
            topics=self._topic_filter,
            numbers=self._partition_filter,
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
        """Return the partitions of internal topics that coordinate groups or transactional ids,
        with their directories: one row per name and topic. Each name is looked up as a group and as
        a transactional id. ``partitions`` is the number of partitions of a topic (None: that in the
        cluster metadata, else 50). Raise ValueError if a name is not valid UTF-8, or ``partitions``
        is below 1 or contradicts a directory; CodecError or DirectoryError if ``partitions`` and
        ``on_damage`` are None and the metadata log cannot be read to its end.

        :data:`kafka_log.inspect.groups.coordinators.COORDINATORS` lists the columns. Groups belong to ``__consumer_offsets``, transactional ids
        to ``__transaction_state``, share groups to ``__share_group_state``; the name of a share group's partition is
        ``group:topic id:partition``.

        Args:
            names: Groups and transactional ids.
            partitions: Number of partitions of each internal topic. None: the number in ``__cluster_metadata``, or 50 without it.
            on_damage: Called with a line if the metadata log cannot be read to its end: the numbers are then those before the first
                unreadable record, or 50. None: raise the error.

        Raises:
            CodecError: If the metadata log is needed and damaged or unreadable, and ``on_damage`` is None.
            DirectoryError: If the metadata log is needed and records of it are missing, and ``on_damage`` is None.
            ValueError: If a name is not valid UTF-8, or ``partitions`` is below 1 or contradicts a directory.

        Example:
            >>> LogDirectory("/var/lib/kafka/data").coordinator("billing", partitions=50)
        """
        from kafka_log.inspect.groups.coordinators import coordinator_table

        selected = tuple_of(str, text_of("names"))("names", names) or ()
        count = optional_number("partitions", partitions)
        return coordinator_table(selected, self._survey.partitions, count, on_damage)

    def keys(
        self,
        *,
        advance: Callable[[int], None] = lambda _: None,
        selection: Selection | None = None,
        **filters: Unpack[RowFilters],
    ) -> pa.Table:
        """Count keys, tombstones, and records that compaction would remove: one row per partition
        (:data:`kafka_log.inspect.keys.table.KEYS`). Damage and unreadable files do not raise:
        batches with damage, also a wrong checksum, are not counted, and ``problem`` describes the
        first. Raise ValueError if the selection has an invalid value, ``include`` or ``replicas``,
        which belong to LogDirectory, or a topic or partition that does not exist.

        Bytes are those of uncompressed keys and values. ``problem`` is the first damage of a partition, whose other records are
        counted, or the reason why its directory cannot be read. Memory use is about 150 bytes per key of a partition.

        Args:
            advance: Called with the number of bytes read since the last call.
            selection: Which records to read, as in :func:`kafka_log.scan`.
            **filters: Single filters of a selection, instead of ``selection``.

        Raises:
            ValueError: If the selection has ``include`` or ``replicas``, which belong to LogDirectory.

        Example:
            >>> LogDirectory("/var/lib/kafka/data", topics="users").keys().to_pandas()
        """
        from kafka_log.inspect.keys.table import key_table
        from kafka_log.read.selection import change_selection

        wanted = change_selection(selection, None, filters)
        partitions = self._select_partitions(self._merged_partitions, wanted)
        return key_table(partitions, _only_row_filters(wanted), advance)

    def schemas(
        self,
        *,
        source: PathLike | None = None,
        records: int | None = 10_000,
        on_problem: Callable[[str], None] | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """List the schemas of ``source`` (None: of the topic ``_schemas`` in the paths or beside
        the partitions, if it exists), one row per version of a subject; with selected topics only
        of those in use. Ids that the first ``records`` of a partition have and that are not
        registered have a row too. Raise DirectoryError if a path or ``source`` holds no log or
        schemas, or several directories hold one partition and ``replicas`` is None; OSError if
        ``source`` cannot be read; ValueError if it is invalid, and for problems of records if
        ``on_problem`` is None.

        :data:`kafka_log.inspect.schemas.table.SCHEMAS` lists the columns. The schemas come from the topic ``_schemas`` below the
        paths, also if ``topics`` does not select it. With selected topics, only schemas that they use are listed. Keys and values
        count if they begin with an id, or a header has one, as serializers of schema registries write them.

        Args:
            source: Another source of schemas: a path with the topic, a directory of files ``SUBJECT.ID.avsc`` (``.proto``, ``.json``), a
                saved answer of a registry's ``/schemas``, or the URL of a registry.
            records: Maximum number of records to read of each partition, to find the schemas that it uses. None: all.
            on_problem: Called with a line per problem of the registry's records and of the logs.
            advance: Called with the size of each partition after it is read.

        Raises:
            DirectoryError: If a path or ``source`` holds no log or schemas.
            OSError: If ``source`` cannot be read.
            ValueError: If ``source`` is invalid, and for problems if ``on_problem`` is None.

        Example:
            >>> LogDirectory("/var/lib/kafka/data").schemas().to_pandas()
        """
        from kafka_log.inspect.schemas.table import schema_table
        from kafka_log.read.schemas.sources import read_registry

        most = optional_number("records", records, 0)
        partitions = self.refuse_duplicates(self.all_partitions)
        problems: list[str] = []
        table = schema_table(
            read_registry(self._survey.partitions, source),
            merge_tiered_segments(partitions),
            records=most,
            only_used=self._topics is not None,
            on_problem=problems.append if on_problem is None else on_problem,
            advance=advance,
        )
        if on_problem is None and problems:
            raise ValueError(
                f"{problems[0]} (problem 1 of {len(problems)}; with on_problem=print the others are shown, and the"
                " schemas that can be read are returned)"
            )
        return table

    def records_of_key(
        self,
        keys: bytes | Iterable[bytes | None],
        *,
        on_problem: Callable[[str], None] | None = None,
        advance: Callable[[int], None] = lambda _: None,
        selection: Selection | None = None,
        **filters: Unpack[OtherFilters],
    ) -> pa.Table:
        """Return all records with one of ``keys`` (None: records without a key): one row per
        record, in the order of the logs (:data:`kafka_log.inspect.keys.table.RECORDS_OF_KEY`).
        Raise CodecError if a batch is damaged or a file cannot be read, and ``on_problem`` is None;
        else damaged batches are left out. Raise DirectoryError if several directories hold one
        partition and ``replicas`` is None; ValueError for an invalid selection, or a topic or
        partition that does not exist.

        A row has the offset, the timestamp (milliseconds), the bytes of the value, whether it is a tombstone, whether it is the latest
        record of its key in its partition, and the segment.

        Args:
            keys: A key or several keys. None stands for records without a key.
            on_problem: Called with the text of each error; records around the damage and the other partitions are read. None: raise it.
            advance: Called with the number of bytes read since the last call.
            selection: Which records to read, as in :func:`kafka_log.scan`.
            **filters: Single filters of a selection, instead of ``selection``.

        Raises:
            DirectoryError: If several directories hold one partition and ``replicas`` is None.
            CodecError: If a batch is damaged or a file cannot be read, and ``on_problem`` is None.

        Example:
            >>> LogDirectory("/var/lib/kafka/data", topics="users").records_of_key(b"user-42")
        """
        from kafka_log.inspect.keys.table import records_of_keys
        from kafka_log.read.selection import change_selection

        wanted = change_selection(selection, None, {**filters, "keys": keys})
        partitions = self.refuse_duplicates(
            self._select_partitions(self._merged_partitions, wanted)
        )
        return records_of_keys(partitions, _only_row_filters(wanted), on_problem, advance)

    def export(
        self,
        out: PathLike,
        format: Format = "parquet",
        *,
        columns: Sequence[str] | None = None,
        view: str | None = None,
        show_secrets: bool = False,
        policy: Policy | str | None = None,
        selection: Selection | None = None,
        overwrite: bool = False,
        decode: Decoding | None = None,
        schemas: PathLike | None = None,
        schema_version: int | None = None,
        **filters: Unpack[RowFilters],
    ) -> Generator[ExportedFile, None, None]:
        """Write the records of each partition into a file of its own, one per step of the
        iteration; the file of an equal earlier export is kept. Raise at once DirectoryError if
        several directories hold one partition and ``replicas`` is None, OutputError if ``out`` lies
        in a path that is read or a broker's log directory, ValueError for an invalid argument,
        OSError or DirectoryError if ``schemas`` cannot be read. Raise while iterating ValueError if
        a topic has no schemas to decode, ExportError if a file of another export is there (unless
        ``overwrite``), OutputLockedError if another process writes to ``out``, CodecError at damage
        unless under ``salvage``, OSError if a file cannot be written. ``salvage`` writes what is
        readable, also with a wrong checksum.

        The output directory is locked until the iterator is exhausted or closed. Complete files stay when a later one fails.
        :func:`kafka_log.inspect.export.export` describes the files.

        Args:
            out: Output directory. It must not lie inside the paths that are read.
            format: ``parquet``, ``arrow``, ``jsonl`` or ``csv``.
            columns: Columns to write. None: the default columns.
            view: A view whose rows are written instead of records.
            show_secrets: Write values of sensitive configs instead of ``(redacted)``.
            policy: What counts as damage: ``strict``, ``kafka`` or ``salvage``.
            selection: Which records to write, as in :func:`kafka_log.scan`.
            overwrite: Replace files that other exports wrote.
            decode: Decode keys and values with the schemas of a schema registry, or values by a layout, as in :func:`kafka_log.scan`.
            schemas: Source of the schemas, as in :func:`kafka_log.scan`.
            schema_version: Version to which values are resolved, as in :func:`kafka_log.scan`.
            **filters: Single filters of a selection, instead of ``selection``.

        Yields:
            The file of each partition, when it is complete.

        Raises:
            ExportError: If a file is there that another export wrote, and ``overwrite`` is False.
            OutputError: If ``out`` lies inside a path that is read.
            CodecError: At damage, unless the policy is ``salvage``.
            OSError: If a file cannot be read or written.
            DirectoryError: If several directories hold the same partition and ``replicas`` is None.
            ValueError: If an argument is not one of the documented values.

        Example:
            >>> for file in LogDirectory("/var/lib/kafka/data", topics="orders").export("out", "parquet"):
            ...     print(file.path)
        """
        from kafka_log.inspect.export import FORMATS, export
        from kafka_log.read.scanning import check_decoding
        from kafka_log.read.schemas.layout_names import is_layout_name
        from kafka_log.read.selection import change_selection
        from kafka_log.write.staged_output import refuse_inside

        output = local_path(out)
        one_of(FORMATS)("format", format)
        names = tuple_of(str, text_of("names of columns"))("columns", columns)
        refuse_inside(output, [path for path in self._paths if isinstance(path, Path)])
        wanted = change_selection(selection, policy, filters)
        check_decoding(decode, view, schemas, schema_version)
        registry = None
        if decode is not None and not is_layout_name(decode):
            from kafka_log.read.schemas.sources import read_registry

            registry = read_registry(self._survey.partitions, schemas)
        return export(
            self.refuse_duplicates(self._select_partitions(self.all_partitions, wanted)),
            output,
            format,
            columns=names,
            view=None if view is None else text_of("the name of a view")("view", view),
            selection=_only_row_filters(wanted),
            overwrite=flag("overwrite", overwrite),
            show_secrets=flag("show_secrets", show_secrets),
            decode=decode,
            schemas=registry,
            schema_version=schema_version,
        )

    def salvage(
        self,
        out: PathLike,
        *,
        flatten: bool = False,
        keep_damaged: bool = False,
        repair: bool = False,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Write all readable records into partition directories below ``out`` that a broker loads,
        and return the report. It has rows of what was kept, rewritten, left out or lost, also of
        unreadable files. Records with a wrong checksum are lost, unless ``keep_damaged`` keeps or
        ``repair`` repairs them. Output of an equal earlier call is kept. Raise OutputError if
        ``out`` lies inside a path that is read or a broker's log directory, or holds anything else;
        OutputLockedError if another process writes to it; DirectoryError if several directories
        hold one partition and ``replicas`` is None; OSError if a file cannot be written; ValueError
        if ``out`` is the URL of a store.

        :data:`kafka_log.write.rewrite.report.REPORT_SCHEMA` lists the columns. Good batches keep their bytes, in segments with the same base offsets.
        Readable records of damaged batches are encoded again. A log start offset inside the first segment is written to
        ``log-start-offset-checkpoint``.

        Args:
            out: Output directory, empty or with output of the same call. It must not lie inside the paths that are read.
            flatten: Write committed records only: no markers, no producer ids, no records of aborted or open transactions.
            keep_damaged: Keep records of batches with a wrong checksum.
            repair: Repair flipped bits first, from checksums and neighboring batches. The report has a row for each repair, and
                for each damaged batch without one.
            advance: Called with the number of segment bytes read since the last call.

        Raises:
            OutputError: If ``out`` lies inside a path that is read, or holds anything else. It is a DirectoryError.
            DirectoryError: If several directories hold one partition and ``replicas`` is None.
            OSError: If a file cannot be written.
            ValueError: If ``out`` is the URL of a store.

        Example:
            >>> LogDirectory("/mnt/broken-disk").salvage("/mnt/recovered").to_pylist()
        """
        from kafka_log.write.rewrite import commands as jobs

        options: dict[str, Any] = {
            "flatten": flag("flatten", flatten),
            "keep_damaged": flag("keep_damaged", keep_damaged),
            "repair": flag("repair", repair),
            "advance": advance,
        }
        partitions = self.refuse_duplicates(self.all_partitions)
        return jobs.salvage(partitions, local_path(out), self._paths, **options)

    def repairs(self, *, advance: Callable[[int], None] = lambda _: None) -> pa.Table:
        """Return the repairs that :meth:`salvage` with ``repair`` would write; nothing is written.
        Each repaired batch has a row ``repaired``, with the wrong bytes and the probability of a
        wrong guess; each damaged batch without a repair a row ``not repaired``; a partition whose
        directory cannot be read a row ``lost``; a segment that cannot be opened none. Raise
        DirectoryError if a path holds no log; NotFoundError if a selected topic or partition does
        not exist.

        Args:
            advance: As in :meth:`salvage`.

        Example:
            >>> LogDirectory("/mnt/broken-disk").repairs().to_pylist()
        """
        from kafka_log.write.rewrite.commands import list_repairs

        return list_repairs(self.all_partitions, advance)

    def merge(
        self,
        others: PathLike | LogDirectory | Iterable[PathLike | LogDirectory],
        out: PathLike,
        *,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Write one log for each partition of this log directory and ``others``, from the whole
        batches of all replicas, into partition directories below ``out`` that a broker loads, and
        return the report. Where replicas diverge, the log with the later leader epoch is written.
        Raise OutputError if ``out`` lies inside a path that is read or a broker's log directory, or
        holds anything else; OutputLockedError if another process writes to it; DirectoryError if
        several directories of one of them hold the same partition; OSError if a file cannot be
        written; ValueError if ``out`` is the URL of a store.

        :data:`kafka_log.write.rewrite.report.REPORT_SCHEMA` lists the columns. Rows ``lost`` are offsets that no replica has whole, rows
        ``diverged`` records that are not written because another replica has a later leader epoch there. Memory use is at its peak
        about 450 bytes for each batch of a partition and replica.

        Args:
            others: Further log directories: a path, a LogDirectory, or several of them. Paths are opened with the ``include`` and
                ``replicas`` of this one. Only topics and partitions that this one selects are read.
            out: Output directory, empty or with output of the same call. It must not lie inside the paths that are read.
            advance: Called with the number of segment bytes read since the last call.

        Raises:
            OutputError: If ``out`` lies inside a path that is read, or holds anything else. It is a DirectoryError.
            DirectoryError: If several directories of one LogDirectory hold the same partition.
            OSError: If a file cannot be written.
            ValueError: If ``out`` is the URL of a store.

        Example:
            >>> LogDirectory("/mnt/broker-1").merge(["/mnt/broker-2", "/mnt/broker-3"], "/mnt/merged").to_pylist()
        """
        from kafka_log.inspect.merge.merging import group_replicas, merge_replicas

        sides = self._with_others(others)
        replicas = group_replicas(self._partitions_of(side) for side in sides)
        paths = [path for side in sides for path in side._paths]
        return merge_replicas(replicas, local_path(out), paths, advance)

    def merge_plan(
        self,
        others: PathLike | LogDirectory | Iterable[PathLike | LogDirectory],
        *,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Return the report that :meth:`merge` would return, without rows about open transactions.
        Nothing is written. A partition has only a row ``lost`` if its replicas have different topic
        ids, none is readable, or a segment disappears or changes meanwhile. Raise DirectoryError if
        a path holds no log, or several directories of one LogDirectory hold the same partition and
        its ``replicas`` is None or ``error`` (with ``keep`` all of them are merged).

        Args:
            others: As in :meth:`merge`.
            advance: As in :meth:`merge`.

        Example:
            >>> LogDirectory("/mnt/broker-1").merge_plan("/mnt/broker-2").to_pylist()
        """
        from kafka_log.inspect.merge.merging import group_replicas, list_plan

        sides = self._with_others(others)
        return list_plan(group_replicas(self._partitions_of(side) for side in sides), advance)

    def cut(
        self,
        out: PathLike,
        offsets: Range | None = None,
        timestamps: Times | None = None,
        *,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Write the whole batches that may have an offset in ``offsets`` by their headers, and have
        a record, perhaps another, with a timestamp in ``timestamps`` (None: any) below ``out``, in
        partition directories that a broker loads. Return the report, which has rows for damage and
        unreadable files. Raise OutputError or OutputLockedError if ``out`` must not be written to;
        DirectoryError if several directories hold one partition and ``replicas`` is None; OSError
        if a file cannot be written; ValueError if a range is not a range, or ``out`` is the URL of
        a store.

        The table has a row per metadata snapshot, which is not written.

        Args:
            out: As in :meth:`salvage`.
            offsets: Offset range. None: all. Negative offsets count from the end of each partition.
            timestamps: Timestamp range. None: all.
            advance: As in :meth:`salvage`.

        Raises:
            OutputError: As in :meth:`salvage`.
            DirectoryError: If several directories hold one partition and ``replicas`` is None.
            OSError: If a file cannot be written.
            ValueError: If a range is not a range, or ``out`` is the URL of a store.

        Example:
            >>> LogDirectory("/var/lib/kafka/data", topics="orders").cut("sample", offsets=(1000, 2000))
        """
        from kafka_log.segment.ranges import checked_offsets
        from kafka_log.segment.times import checked_times
        from kafka_log.write.rewrite import commands as jobs
        from kafka_log.write.rewrite.selection import RewriteSelection

        wanted = RewriteSelection(
            checked_offsets("offsets", offsets), checked_times("timestamps", timestamps)
        )
        partitions = self.refuse_duplicates(self.all_partitions)
        return jobs.cut(partitions, local_path(out), self._paths, wanted, advance)

    def convert(
        self,
        out: PathLike,
        *,
        codec: str | None = None,
        level: int | None = None,
        magic: int | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Write the partitions below ``out``, legacy messages as record batches, and return one row
        per segment. ``codec``, ``level`` and ``magic`` are those of the result (None: kept). A
        damaged, unreadable or newer partition is not written, and has one row ``refused``. Raise
        OutputError or OutputLockedError if ``out`` must not be written to; DirectoryError if
        several directories hold one partition and ``replicas`` is None; OSError if a file cannot be
        written; ValueError for an impossible codec, level or version, or if ``out`` is the URL of a
        store.

        :data:`kafka_log.write.rewrite.conversion.CONVERTED` lists the columns, among them the bytes before and after. Messages of the legacy
        formats become record batches. Records and batch headers keep their values except for compression; batches that do not change
        keep their bytes. The output is read again and compared. A partition that is damaged, cannot be read, or has batches newer
        than ``magic`` is not written; a row gives the reason. Metadata snapshots are not written either. Output that the same call
        wrote before is kept.

        Args:
            out: As in :meth:`salvage`.
            codec: ``none``, ``gzip``, ``snappy``, ``lz4`` or ``zstd``. None: keep the codec of each batch.
            level: Compression level. Batches that have the codec already are compressed again. None: the default level of the codec.
            magic: Version of the message format. Batches of older versions are written in it. None: keep the version.
            advance: As in :meth:`salvage`.

        Raises:
            OutputError: As in :meth:`salvage`.
            DirectoryError: If several directories hold one partition and ``replicas`` is None.
            OSError: If a file cannot be written.
            ValueError: If the codec, level or version does not exist, or ``out`` is the URL of a store.

        Example:
            >>> LogDirectory("/var/lib/kafka/data", topics="logs").convert("out", codec="zstd", level=9)
        """
        from kafka_log.write.rewrite import commands as jobs
        from kafka_log.write.rewrite.conversion import target

        partitions = self.refuse_duplicates(self.all_partitions)
        wanted = target(codec, level, magic)
        return jobs.convert(partitions, local_path(out), self._paths, wanted, advance)

    def reindex(
        self,
        out: PathLike,
        *,
        interval_bytes: int = 4096,
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """Rebuild offset, time and transaction indexes, with an entry about every
        ``interval_bytes`` of a segment, and producer snapshots below ``out``. Return the report,
        which has rows for damage and unreadable files. Raise OutputError or OutputLockedError if
        ``out`` must not be written to; DirectoryError if several directories hold one partition and
        ``replicas`` is None; OSError if a file cannot be written; ValueError if ``interval_bytes``
        is negative or above 2^31 - 1, or ``out`` is the URL of a store.

        The table (:data:`kafka_log.write.rewrite.report.REPORT_SCHEMA`) has a row per segment, per range that could not be read and has no entry, and per
        metadata snapshot, which is not written.

        Args:
            out: As in :meth:`salvage`.
            interval_bytes: The topics' ``index.interval.bytes``.
            advance: As in :meth:`salvage`.

        Raises:
            OutputError: As in :meth:`salvage`.
            DirectoryError: If several directories hold one partition and ``replicas`` is None.
            OSError: If a file cannot be written.
            ValueError: If ``interval_bytes`` is negative or above 2^31 - 1, or ``out`` is the URL of a store.

        Example:
            >>> LogDirectory("/var/lib/kafka/data", topics="orders").reindex("indexes")
        """
        from kafka_log.write.rewrite import commands as jobs

        interval = number(0, MAX_INDEX_INTERVAL, "numbers of bytes")(
            "interval_bytes", interval_bytes
        )
        options: dict[str, Any] = {"interval_bytes": interval, "advance": advance}
        partitions = self.refuse_duplicates(self.all_partitions)
        return jobs.reindex(partitions, local_path(out), self._paths, **options)

    def _with_others(
        self, others: PathLike | LogDirectory | Iterable[PathLike | LogDirectory]
    ) -> list[LogDirectory]:
        """Return this log directory and ``others``, one or several. Paths among them are opened with
        the same ``include`` and ``replicas``, and with all topics and partitions. Raise ValueError
        if an item is neither a path nor a LogDirectory; TypeError if ``others`` is no iterable.
        """
        single = isinstance(others, (str, os.PathLike, LogDirectory))
        found: list[Any] = [others] if single else list(others)  # type: ignore[arg-type]
        return [
            self,
            *(
                one
                if isinstance(one, LogDirectory)
                else LogDirectory(one, include=self.include, replicas=self.replicas)
                for one in found
            ),
        ]

    def _partitions_of(self, other: LogDirectory) -> list[Partition]:
        """Return the partitions of another log directory that this one selects. Raise DirectoryError
        if two of its directories hold the same partition and its ``replicas`` is None.
        """
        return other.refuse_duplicates([p for p in other.all_partitions if self._selects(p.key)])

    @cached_property
    def _survey(self) -> Survey:
        """Everything that lies below the paths. Directories are listed on first access."""
        return survey(self.path, self.include, unreadable_raises=False)

    @property
    def _merged_partitions(self) -> list[Partition]:
        """The selected partitions with their segments in tiered storage, so that each record occurs once. Also unreadable ones."""
        return merge_tiered_segments(self.all_partitions)

    @property
    def _paths(self) -> list[Path]:
        return list(map(make_path, self.path))

    def _selects(self, key: tuple[str, int]) -> bool:
        """Return whether topic and partition number are selected."""
        topics, numbers = self._topic_filter, self._partition_filter
        return (topics is None or key[0] in topics) and (numbers is None or key[1] in numbers)

    @property
    def _has_selection(self) -> bool:
        """Whether topics or partition numbers were selected."""
        return self._topics is not None or self._numbers is not None

    @cached_property
    def _topic_filter(self) -> TopicFilter | None:
        """The selected topics as a set; None if all are selected."""
        return None if self._topics is None else TopicFilter(self._topics)

    @cached_property
    def _partition_filter(self) -> PartitionFilter | None:
        """The selected partition numbers as a set; None if all are selected."""
        return None if self._numbers is None else PartitionFilter(self._numbers)

    def _log_directories(self) -> list[Path]:
        """Return the log directories among and below the paths, or none if topics or partition numbers were selected."""
        return [] if self._has_selection else self._survey.directories

    def _summarize(self) -> dict[str, str]:
        """Return the path and counts of topics, partitions, bytes and excluded segments as texts
        for display, by name. If a directory cannot be listed or the selection does not exist,
        return the path and the ``problem`` instead; for a URL that was not listed yet, the path
        alone. Nothing is raised.

        Only directories are listed; no file is opened. URLs are not listed, because listing them takes requests.
        """
        summary = {"path": ", ".join(map(str, self.path))}
        known: Survey | None = vars(self).get("_survey")
        if known is None and any(map(is_url, self.path)):
            return summary
        try:
            found = known or survey(self.path, self.include, unreadable_raises=False)
            partitions = select_partitions(found.partitions, self._topics, self._numbers)
        except (DirectoryError, OSError, ValueError) as error:
            return summary | {"problem": str(error)}
        excluded = filter_segments(found.excluded_segments, self._topics)
        summary["topics"] = f"{len({p.topic for p in partitions}):,}"
        summary["partitions"] = f"{len({p.key for p in partitions}):,}"
        summary["bytes"] = f"{sum(p.size for p in partitions):,}"
        if excluded:
            states = Counter(segment.state for segment in excluded)
            summary["excluded"] = ", ".join(f"{count} {state}" for state, count in states.items())
        return summary

    def _select_partitions(
        self, partitions: Sequence[Partition], selection: Selection
    ) -> list[Partition]:
        """Return the partitions with the topics and numbers of a selection. Raise NotFoundError if
        a topic or number does not exist; ValueError if the selection has ``include`` or
        ``replicas``, which belong to LogDirectory.
        """
        from kafka_log.read.selection import Selection

        for name in ("include", "replicas"):
            if getattr(selection, name) != getattr(Selection(), name):
                raise ValueError(
                    f"{name} selects what LogDirectory opens: pass it to LogDirectory(path, {name}=...)"
                )
        return select_partitions(
            partitions, selection.topics, selection.partitions, self.excluded_segments
        )


def _only_row_filters(selection: Selection) -> Selection:
    """Return a selection without its topics and partition numbers."""
    return selection.but(topics=None, partitions=None)


def _drop_unreadable(
    partitions: Sequence[Partition], on_damage: OnDamage | None, topic: str
) -> list[Partition]:
    """Report unreadable partitions to ``on_damage``, and return all ``partitions``, without errors.
    The unreadable ones of ``topic``, from which the answer comes, are left out. Raise
    UnreadableError if a partition is unreadable and ``on_damage`` is None, or if all partitions of
    ``topic`` are unreadable.
    """
    closed = [p for p in partitions if p.error is not None and not p.segments]
    of_topic = [p for p in partitions if p.topic == topic]
    if of_topic and all(p in closed for p in of_topic):
        _report_unreadable(of_topic, None)
    _report_unreadable(partitions, on_damage)
    return [replace(p, error=None) for p in partitions if p.topic != topic or p not in closed]


def _report_unreadable(partitions: Iterable[Partition], on_damage: OnDamage | None) -> None:
    """Call ``on_damage`` with the error of each unreadable partition, as a line; do nothing for
    others. If ``on_damage`` is None, raise the first error, an UnreadableError.
    """
    for partition in partitions:
        if partition.error is None:
            continue
        if on_damage is None:
            raise partition.error
        on_damage(str(partition.error))


def _report_gaps(
    partitions: Iterable[Partition], on_damage: OnDamage | None, selection: Selection
) -> None:
    """Call ``on_damage`` with a line for each range of selected offsets that no segment has
    although tiered storage or the files of the broker say that it was written. If ``on_damage`` is None, issue a Python warning in its place,
    because compaction may have removed the offsets before their segments were copied.
    """
    from kafka_log.logs.incomplete_tails import find_losses
    from kafka_log.logs.log_start import LogStarts
    from kafka_log.segment.model import describe_lost

    starts, read_broker = LogStarts(), cache(read_broker_files)
    for partition in partitions:
        offsets = selection.resolve_offsets(partition.segments).offsets
        for path, lost in find_losses(partition, offsets, starts, read_broker):
            line = describe_lost(path, lost)
            if on_damage is None:
                warnings.warn(f"kafka-log: {line}", stacklevel=3)
            else:
                on_damage(line)


def _add_internal_topics(topics: Iterable[str] | None) -> list[str] | None:
    """Return ``topics`` with the internal topics from which answers about any topic come:
    ``__consumer_offsets``, ``__transaction_state`` and ``__cluster_metadata``. None (all topics)
    stays None.
    """
    from kafka_log.logs.names import CONSUMER_OFFSETS, TRANSACTION_STATE

    internal = (CONSUMER_OFFSETS, TRANSACTION_STATE, CLUSTER_METADATA)
    return None if topics is None else [*topics, *internal]


def _time_or_present(time: Time | None) -> int:
    """Return a time in milliseconds since 1970, the present for None. Raise ValueError if it is not a time."""
    given = parse_time("now", time)
    return present() if given is None else given


def _as_set(values: Iterable[Any] | None) -> frozenset[Any] | None:
    """Return selected values as a set, None for None (all)."""
    return None if values is None else frozenset(values)
