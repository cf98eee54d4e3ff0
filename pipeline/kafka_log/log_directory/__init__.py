"""A log directory that answers questions, each with an Arrow table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_log.log_directory.broker_state import BrokerState
from kafka_log.log_directory.contents import Contents
from kafka_log.log_directory.opened import Place, tell
from kafka_log.log_directory.writing import Writing

if TYPE_CHECKING:
    from kafka_log.inspect.partition_headers import OnDamage
    from kafka_log.segment.kernels import Engine
    from kafka_log.segment.ranges import Range


class LogDirectory(Writing, BrokerState, Contents):
    """The partitions below a path: a segment, a partition's directory, a broker's log directory, a directory above log directories, or
    several of these.

    ``topics`` and ``partitions`` choose among what is there, ``include`` adds segments that are not live: states (see
    :data:`~kafka_log.logs.names.State`), one text with commas between, or ``all``. ``replicas`` says what is read if several directories hold a partition: all of them
    (``keep``), the one whose log goes furthest (``newest``), or none (``error``, a DirectoryError). Without it an answer whose rows name the directory
    or the file has rows of each (:meth:`ls`, :meth:`stat` by partition, :meth:`check`, :meth:`keys`, :meth:`txn`, :meth:`producers`); any other that would
    count a record twice is a DirectoryError. Each method answers one question with an Arrow table, and reads the
    files anew. Raises :class:`~kafka_log.logs.partitions.DirectoryError` when there is no log, NotFoundError (a ValueError) for a topic or a
    partition that is not there, ValueError for arguments that mean nothing. A time is in milliseconds since 1970, a datetime, or a text as the
    command line takes it (``2026-11-22T10:15``, ``-2h``).
    """

    def check(
        self,
        *,
        deep: bool = False,
        offsets: Range | None = None,
        timestamps: Range | None = None,
        producers: int | Iterable[int] | None = None,
        engine: Engine = "auto",
        advance: Callable[[int], None] = lambda _: None,
        judged: Callable[[int], None] | None = None,
    ) -> pa.Table:
        """What is wrong: a row for each finding, the worst first. Nothing is changed.

        Columns: ``severity`` (error, warning, note), ``code``, ``topic``, ``partition``, ``file``, ``byte`` (position in the
        file), ``first_offset`` and ``last_offset`` that are concerned, ``records`` (lost or at risk at most), ``meaning`` and
        ``remedy``. Numbers are null where unknown. Headers, checksums and the files beside the segments are checked; with
        ``deep`` every record is decoded too. ``offsets``, ``timestamps`` and ``producers`` choose findings: those of batches that may
        have such records, as their headers say, and those of which nobody knows the batches. ``advance`` is told of bytes of segments that are done, ``judged`` of batches
        that were checked and chosen; without it a warning says if the filters choose none. Memory holds the batch headers of one segment. A file that cannot be read
        is a finding; nothing is raised for damage. See :data:`kafka_log.inspect.check.finding.FINDINGS`.
        """
        from kafka_log.inspect.check.table import check_table
        from kafka_log.read.arguments import flag
        from kafka_log.read.selection import Selection
        from kafka_log.segment.ranges import checked_plain_offsets

        wanted = Selection(
            offsets=checked_plain_offsets("offsets", offsets),
            timestamps=timestamps,
            producers=producers,
        )
        counts: list[int] = []
        table = check_table(
            self.found,
            self._broker_directories(),
            deep=flag("deep", deep),
            wanted=wanted,
            engine=engine,
            advance=advance,
            judged=counts.append if judged is None else judged,
        )
        filters = wanted.plain()
        if judged is None and filters and not any(counts):
            names = ", ".join(filters)
            warnings.warn(f"kafka-log: no batch was checked: none matches {names}", stacklevel=2)
        return table

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
        :data:`kafka_log.inspect.diff.table.DIFFERENCES`. Segments that are not live count where ``include`` (of
        this one, where ``other`` is a path) has taken them in, for what lies before the live ones. Partitions are paired by their
        names; a path of one partition with another such path whatever their names are. ``advance`` is told of bytes that are done. Memory: a chunk of each log, and
        a few hundred bytes for each key of records that one side has not. Partitions of which a side cannot be read have no row, and ``on_damage`` is told of
        them; None: the error is raised. Raises OSError.
        """
        from kafka_log.inspect.diff.side import logs_of
        from kafka_log.inspect.diff.table import diff_table, pairs_of

        there = other
        if not isinstance(there, LogDirectory):
            there = LogDirectory(there, include=self.include, replicas=self.replicas)
        by_path = not self._broker_directories() and not there._broker_directories()
        theirs = [p for p in there.found if self._chooses(p)]
        sides = (self.refuse_copies(self.found), there.refuse_copies(theirs))
        tell((p for side in sides for p in side), on_damage)
        closed = {p.key for side in sides for p in side if p.error and p.state == "live" and not p.segments}  # fmt: skip
        a, b = (logs_of(p for p in side if p.key not in closed) for side in sides)
        pairs = pairs_of(a, b, whatever_their_names=by_path)
        return diff_table(pairs, advance)
