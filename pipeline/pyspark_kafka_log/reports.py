"""Read reports about logs as data frames: ``option("view", "batches")`` and the like. ``report_rows`` makes the rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from codecgen.runtime.located_bytes import Limits
from kafka_log import Partition
from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.discovery import Survey
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.names import TRANSACTION_STATE
from kafka_log.logs.tiers import find_tier_gaps
from kafka_log.segment.model import Policy
from kafka_log.segment.ranges import EVERYTHING, Range
from pyspark_kafka_log.losses import Losses
from pyspark_kafka_log.options import Options
from pyspark_kafka_log.reader import Task
from pyspark_kafka_log.report_rows import ReportRequest, read_report, report_schema
from pyspark_kafka_log.schema import Types
from pyspark_kafka_log.splits.filters import EVERY_ROW, RowRanges
from pyspark_kafka_log.splits.logs import find_survey, has_selection, is_selected, select_logs
from pyspark_kafka_log.splits.offset_ranges import list_losses, raise_or_warn, resolve_offsets
from pyspark_kafka_log.splits.plan import pack, target_task_bytes
from pyspark_kafka_log.worker_memory import explain_memory_errors

if TYPE_CHECKING:
    import pyarrow as pa


_END_POLICIES: Mapping[str, Policy | None] = {
    "batches": None,
    "log_transactions": Policy.KAFKA,
    "producers": Policy.KAFKA,
    "stat": Policy.SALVAGE,
    "keys": Policy.SALVAGE,
}
"""Policies under which tasks of reports read the ends of logs; None: that of the options. Rows of ``stat`` and ``keys``
report an incomplete batch, as readers under ``salvage`` do. Reports that have rows about all losses are left out."""


@dataclass(frozen=True)
class ReportInput:
    """A partition with the wanted offset range, or None with log directories. ``related`` are partitions with more facts about it."""

    partition: Partition | None
    offsets: Range = EVERYTHING
    related: tuple[Partition, ...] = ()
    directories: tuple[Path, ...] = ()

    @property
    def size(self) -> int:
        """The size of all segments in bytes, 0 for log directories."""
        return 0 if self.partition is None else sum(s.size for s in self.partition.segments)


def report_types(report: str) -> Types:
    """Return the columns of a report with their Spark types."""
    return {field.name: field.dataType for field in from_arrow_schema(report_schema(report))}


class ReportReader(DataSourceReader):
    """Reader of a report. Spark sends it to every task, so it holds options only."""

    def __init__(
        self,
        options: Options,
        columns: tuple[str, ...],
        query: RowRanges = EVERY_ROW,
        parallelism: int | None = None,
    ) -> None:
        """Store the options.

        Args:
            options: Options of the read, with the name of the report.
            columns: Columns of the rows.
            query: Partitions and offsets that the filters of the query leave.
            parallelism: Number of tasks that run at once, None if unknown.
        """
        self.options = options
        self.columns = columns
        self.query = query
        self.parallelism = parallelism
        self.report = options.report or ""

    def partitions(self) -> list[InputPartition]:
        """Return the tasks, each with some of the selected partitions that may have rows; ``[]`` if
        there are none, as in an empty directory. The report ``findings`` gets a first task for log
        directories; chosen topics leave the findings about them. Raise DirectoryError for another path without logs;
        OptionError for an invalid path, a missing topic, partition, offset or time, and a partition
        in two directories; CodecError for damage before that time, and OSError for an unreadable
        directory, unless ``mode`` accepts damage; ``keys`` never accepts such a directory. Raise
        DataLossError for losses that neither rows nor tasks report; without ``failOnDataLoss`` warn.
        """
        there, wanted = self._find_partitions()
        for partition in wanted:
            self._check_readable(partition)
        related: tuple[Partition, ...] = ()
        if self.report == "log_transactions":
            related = tuple(p for p in there.partitions if p.topic == TRANSACTION_STATE)
        starts = LogStarts()
        pieces = [ReportInput(p, self._offset_range(p, starts), related) for p in wanted]
        raise_or_warn(self._list_losses(pieces, starts), self.options)
        total = sum(piece.size for piece in pieces)
        tasks = list(pack(pieces, target_task_bytes(total, self.options, self.parallelism)))
        if self.report == "findings" and there.directories:
            tasks.insert(0, (ReportInput(None, directories=tuple(there.directories)),))
        return [Task(task) for task in tasks]

    def _find_partitions(self) -> tuple[Survey, list[Partition]]:
        """Return what lies below the paths, and the selected partitions that may have rows. Raise
        the errors of :func:`find_survey` and :func:`select_logs`.

        If copies in tiered storage and live segments lack offsets, directories are listed once more: a segment may have moved between two listings.
        """
        there, wanted = self._list_partitions()
        if any(any(find_tier_gaps(partition)) for partition in wanted):
            there, wanted = self._list_partitions()
        return there, wanted

    def _list_partitions(self) -> tuple[Survey, list[Partition]]:
        """Return the result of :meth:`_find_partitions`, from one listing."""
        there = find_survey(self.options)
        selected = select_logs(there.partitions, self.options)
        return there, [p for p in selected if self.query.may_contain(*p.key)]

    def _list_losses(self, pieces: Sequence[ReportInput], starts: LogStarts) -> list[str]:
        """Return a message for each loss in the offsets of ``pieces`` that neither rows nor tasks of
        the report name; ``[]`` for segments and findings. The report log_transactions needs all offsets
        of its partitions and of the coordinators: a lost marker may end an earlier transaction.
        """
        if self.report not in _END_POLICIES:
            return []
        policy, read_broker = _END_POLICIES[self.report], cache(read_broker_files)
        needed = [(one.partition, one.offsets) for one in pieces if one.partition is not None]
        if self.report == "log_transactions":
            related = pieces[0].related if pieces else ()
            needed = [(log, EVERYTHING) for log in (*(log for log, _ in needed), *related)]
        losses = (
            list_losses(log, offsets, self.options, starts, read_broker, policy)
            for log, offsets in needed
        )
        return list(dict.fromkeys(chain.from_iterable(losses)))

    def _check_readable(self, partition: Partition) -> None:
        """Raise UnreadableError for a partition whose directory cannot be read if the report is
        ``keys``. Warn of it for segments, log_transactions and producers, which have no rows about
        it. Do nothing for a readable partition, and for other reports.
        """
        if partition.error is None:
            return
        if self.report == "keys":
            raise partition.error
        if self.report in ("segments", "log_transactions", "producers"):
            _warn(str(partition.error))

    def _offset_range(self, partition: Partition, starts: LogStarts) -> Range:
        """Return the offset range that the options select, everything for a partition without segments."""
        return (
            resolve_offsets(partition, self.options, starts, {})
            if partition.segments
            else EVERYTHING
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task, then warn of lost ranges."""
        losses = Losses()
        yield from self.read_rows(partition, losses)
        losses.warn()

    def read_rows(self, partition: InputPartition, losses: Losses) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task's report, and count lost ranges in ``losses``. Yield nothing for
        a partition that is no Task. In the reports batches, log_transactions and producers raise
        CodecError for damage and unreadable files unless the mode accepts it. Others describe
        damage in rows. Raise WorkerMemoryError if a memory limit is too low.
        """
        pieces = partition.splits if isinstance(partition, Task) else ()
        asked = ReportRequest(
            (),
            self.options.selection,
            losses.add,
            _warn,
            engine=self.options.engine,
            deep=self.options.deep,
            selects=partial(is_selected, self.options) if has_selection(self.options) else None,
            limits=Limits(decompressed=self.options.max_decompressed),
        )
        for (offsets, related, directories), same in groupby(
            pieces, lambda piece: (piece.offsets, piece.related, piece.directories)
        ):
            of = replace(
                asked,
                partitions=tuple(p.partition for p in same if p.partition is not None),
                offsets=offsets,
                related=related,
                directories=directories,
            )
            with explain_memory_errors():
                yield from read_report(self.report, of, self.columns, self.options.batch_rows)

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows: the columns of the query in order."""
        import pyarrow as pa

        every = report_schema(self.report)
        return pa.schema([every.field(name) for name in self.columns])


def _warn(line: str) -> None:
    """Warn of one line."""
    warnings.warn(f"kafka-log: {line}", stacklevel=2)
