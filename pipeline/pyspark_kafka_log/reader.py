"""The reader of records: plans tasks, and reads the rows of each as Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from codecgen.runtime.arrow.memory_limit import limit_size
from codecgen.runtime.located_bytes import Limits
from kafka_log.read.plan import Split
from pyspark_kafka_log.losses import Losses
from pyspark_kafka_log.options import Options
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.filters import EVERY_ROW, RowRanges
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.task_reader import read_splits
from pyspark_kafka_log.worker_memory import explain_memory_errors, freeze_loaded_objects

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafka_log.splits.query_logs import QueryLogs

PROBLEM = "problem"
"""The column that describes damage."""


class Task(InputPartition):
    """The splits that one task reads."""

    def __init__(self, splits: tuple[Any, ...]) -> None:
        """Store the splits, which Spark pickles to send the task."""
        super().__init__(splits)
        self.splits = splits


class KafkaLogReader(DataSourceReader):
    """Reader of records, split by split. Spark sends it to every task, so it holds options only."""

    def __init__(
        self,
        options: Options,
        columns: tuple[str, ...],
        query: RowRanges = EVERY_ROW,
        parallelism: int | None = None,
    ) -> None:
        """Derive the scan of the tasks from the options.

        Args:
            options: Options of the read.
            columns: Columns of the rows.
            query: Offsets, timestamps and partitions that the filters of the query leave.
            parallelism: Number of tasks that run at once, None if unknown.
        """
        self.options = options
        self.query = query
        self.parallelism = parallelism
        self.columns = columns
        self.scan = Scan(
            columns=tuple(dict.fromkeys(map(self._source_column, columns))),
            policy=options.selection.policy,
            on_damage=options.selection.damage,
            batch_rows=options.batch_rows,
            limits=Limits(decompressed=options.max_decompressed),
            engine=options.engine,
            view=options.view,
            show_secrets=options.show_secrets,
            ends_corrupt_files=options.ends_corrupt_files,
        )

    def partitions(self, seen: QueryLogs | None = None) -> list[InputPartition]:
        """Return the tasks. ``seen`` holds what other scans of the same query have found."""
        planned = plan(self.options, self.query, self.parallelism, seen)
        return [Task(splits) for splits in planned]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task, then warn of lost ranges, if any. Yield nothing if Spark passes
        a partition of its own, as it does if there are no splits. Raise CodecError for damage and
        unreadable files unless the mode accepts both, ``ignoreCorruptFiles`` the damage, or
        ``ignoreMissingFiles`` a missing file. Raise WorkerMemoryError if a memory limit is too low.
        """
        losses = Losses()
        with freeze_loaded_objects():
            yield from self.read_rows(partition, losses)
        losses.warn()

    def read_rows(self, partition: InputPartition, losses: Losses) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task in the columns of the query, and count lost ranges in
        ``losses``. Yield nothing for a partition that is no Task. Raise CodecError for damage and
        unreadable files unless the mode accepts both, ``ignoreCorruptFiles`` the damage, or
        ``ignoreMissingFiles`` a missing file. Raise WorkerMemoryError if a memory limit is too low.
        """
        # Spark makes one partition of its own when there is nothing to read.
        splits = partition.splits if isinstance(partition, Task) else ()
        from pyspark_kafka_log.moved_files import make_locator  # not needed to plan

        scan = replace(self.scan, batch_bytes=limit_size(self.scan.batch_bytes))
        with explain_memory_errors():
            batches = read_splits(
                splits, scan, losses.add, losses.add_read, make_locator(self.options)
            )
            yield from (
                map(self._rename_columns, batches) if self._has_corrupt_record_column else batches
            )

    def locate(self, splits: tuple[Split, ...]) -> tuple[Split, ...]:
        """Return splits with the present paths of their files, which may have been renamed or moved
        to tiered storage. If a file is found nowhere, drop its split with a warning if
        ``ignoreMissingFiles`` is set, or else keep it unchanged, so that its reader reports it.
        Raise OSError if a store cannot be asked.
        """
        if not splits:
            return splits
        from pyspark_kafka_log.moved_files import locate_splits  # not needed to plan

        return locate_splits(splits, self.options, fails=not self.options.files.ignore_missing)

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows: the columns of the query in order. The column
        ``problem`` has the name that the option columnNameOfCorruptRecord gives it, if the query
        uses that name.
        """
        import pyarrow as pa

        return pa.schema(
            [self.scan.schema.field(self._source_column(n)).with_name(n) for n in self.columns]
        )

    @property
    def _has_corrupt_record_column(self) -> bool:
        """Whether ``problem`` is asked for under the name of the corrupt-record column."""
        return self.options.view is None and self.options.corrupt_record in self.columns

    def _source_column(self, name: str) -> str:
        """Return ``problem`` for the name of the corrupt-record column, else ``name`` itself."""
        is_other = self.options.view is None and name == self.options.corrupt_record
        return PROBLEM if is_other else name

    def _rename_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the columns of the query, in order and under the query's names: the
        option columnNameOfCorruptRecord gives ``problem`` another one.
        """
        import pyarrow as pa

        arrays = [batch.column(self._source_column(name)) for name in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
