"""Answers about logs as data frames: ``option("view", "batches")`` and the like. Rows are made in ``report_tables``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from codecgen.runtime.located_bytes import Limits
from kafka_log import Partition
from kafka_log.logs.discovery import Survey
from kafka_log.logs.log_start import LogStarts
from kafka_log.read.internal_topics import TRANSACTION_STATE
from kafka_log.segment.ranges import EVERYTHING, Range
from pyspark_kafka_log.bounds import offsets_of
from pyspark_kafka_log.filters import EVERY_ROW, Pushed
from pyspark_kafka_log.logs import chosen, find_survey
from pyspark_kafka_log.losses import Losses
from pyspark_kafka_log.options import Options
from pyspark_kafka_log.plan import packed, task_bytes
from pyspark_kafka_log.report_tables import Asked, rows_of, schema_of
from pyspark_kafka_log.schema import Types
from pyspark_kafka_log.source import Task
from pyspark_kafka_log.worker_memory import memory_told

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Piece:
    """A partition with the offsets that are wanted of it, or (None) log directories of brokers. ``beside`` are partitions that say more of it."""

    partition: Partition | None
    offsets: Range = EVERYTHING
    beside: tuple[Partition, ...] = ()
    directories: tuple[Path, ...] = ()

    @property
    def size(self) -> int:
        """Bytes to read, at most."""
        return 0 if self.partition is None else sum(s.size for s in self.partition.segments)


def report_types(report: str) -> Types:
    """The columns of an answer with their types in Spark."""
    return {field.name: field.dataType for field in from_arrow_schema(schema_of(report))}


class ReportReader(DataSourceReader):
    """Answers a question about logs. It is sent to every task, so it holds options only."""

    def __init__(
        self,
        options: Options,
        columns: tuple[str, ...],
        query: Pushed = EVERY_ROW,
        parallelism: int | None = None,
    ) -> None:
        self.options = options
        self.columns = columns
        self.query = query
        self.parallelism = parallelism
        self.report = options.report or ""

    def partitions(self) -> list[InputPartition]:
        there = find_survey(self.options)
        found = there.partitions
        wanted = [p for p in chosen(found, self.options) if self.query.takes(*p.key)]
        for partition in wanted:
            self._check(partition)
        beside: tuple[Partition, ...] = ()
        if self.report == "log_transactions":
            beside = tuple(p for p in found if p.topic == TRANSACTION_STATE)
        starts = LogStarts()
        pieces = [Piece(p, self._offsets(p, starts), beside) for p in wanted]
        total = sum(piece.size for piece in pieces)
        tasks = list(packed(pieces, task_bytes(total, self.options, self.parallelism)))
        directories = self._directories(there) if self.report == "findings" else ()
        if directories:
            tasks.insert(0, (Piece(None, directories=directories),))
        return [Task(task) for task in tasks]

    def _check(self, partition: Partition) -> None:
        """Of a partition that cannot be read the rows say so, or the task that reads it, but for these."""
        if partition.error is None:
            return
        if self.report == "keys":
            raise partition.error
        if self.report in ("segments", "log_transactions", "producers"):
            _warn(str(partition.error))

    def _offsets(self, partition: Partition, starts: LogStarts) -> Range:
        return offsets_of(partition, self.options, starts) if partition.segments else EVERYTHING

    def _directories(self, found: Survey) -> tuple[Path, ...]:
        """Return the log directories among and below the paths; none if topics are chosen."""
        options = self.options
        if (options.subscribe, options.subscribe_pattern, options.assign) != (None, None, None):
            return ()
        return tuple(found.directories)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        losses = Losses()
        yield from self.rows(partition, losses)
        losses.warn()

    def rows(self, partition: InputPartition, losses: Losses) -> Iterator[pa.RecordBatch]:
        """The rows of a task; what is passed over is counted."""
        pieces = partition.splits if isinstance(partition, Task) else ()
        asked = Asked(
            (),
            self.options.selection,
            losses.add,
            _warn,
            engine=self.options.engine,
            deep=self.options.deep,
            limits=Limits(decompressed=self.options.max_decompressed),
        )
        for (offsets, beside, directories), same in groupby(
            pieces, lambda piece: (piece.offsets, piece.beside, piece.directories)
        ):
            of = replace(
                asked,
                partitions=tuple(p.partition for p in same if p.partition is not None),
                offsets=offsets,
                beside=beside,
                directories=directories,
            )
            with memory_told():
                yield from rows_of(self.report, of, self.columns, self.options.batch_rows)

    @cached_property
    def schema(self) -> pa.Schema:
        """What the rows have."""
        import pyarrow as pa

        every = schema_of(self.report)
        return pa.schema([every.field(name) for name in self.columns])


def _warn(line: str) -> None:
    warnings.warn(f"kafka-log: {line}", stacklevel=2)
