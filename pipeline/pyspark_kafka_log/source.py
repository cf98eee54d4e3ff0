"""The data source: what Spark asks of it. Planning is in ``plan``, reading in ``task_reader``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from codecgen.runtime.arrow.memory_limit import fitting
from codecgen.runtime.located_bytes import Limits
from kafka_log.read.plan import Split
from pyspark_kafka_log.collecting import quick_collections
from pyspark_kafka_log.filters import EVERY_ROW, Pushed
from pyspark_kafka_log.losses import Losses
from pyspark_kafka_log.options import Options, default_columns, parse
from pyspark_kafka_log.options.table import LIMITS
from pyspark_kafka_log.plan import plan
from pyspark_kafka_log.schema import Types, projection, spark_schema, types_of
from pyspark_kafka_log.task_reader import Scan, read_splits
from pyspark_kafka_log.worker_memory import memory_told
from pyspark_kafka_log.writing import KafkaLogStreamWriter, KafkaLogWriter, job_of

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafka_log.query_logs import QueryLogs
    from pyspark_kafka_log.reports import ReportReader

PROBLEM = "problem"
"""The column that says what is wrong."""


class DefaultSource(DataSource):
    """``spark.read.format("kafka-log").load(path)``, ``df.write.format("kafka-log").save(path)``. ``pyspark_kafka_log.options`` describes
    the options of the one, ``pyspark_kafka_log.write_options`` those of the other."""

    @classmethod
    def name(cls) -> str:
        return "kafka-log"

    def schema(self) -> StructType:
        options = self._shown()
        # Whether this is a stream nobody knows yet.
        _warn_of([name for name in options.ignored if name not in LIMITS], "no broker is asked")
        return spark_schema(default_columns(options), _types(options))

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse(self.options)
        _warn_of([name for name in options.ignored if name in LIMITS], "this is no stream")
        _warn_of_zone(options)
        if options.report is not None:
            return reader_of(options, self.projection(schema))
        return KafkaLogReader(options, self.projection(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from pyspark_kafka_log.stream.reader import KafkaLogStreamReader  # stands on this module

        reader = KafkaLogStreamReader(self.options, self.projection(schema))
        _warn_of_zone(reader.reading)
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> KafkaLogWriter:
        return KafkaLogWriter(job_of(self.options, schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaLogStreamWriter:
        return KafkaLogStreamWriter(job_of(self.options, schema, overwrite))

    def projection(self, schema: StructType) -> tuple[str, ...]:
        """The columns that a schema asks for. Raises SchemaError when they cannot be had."""
        options = self._shown()
        return projection(schema, _types(options))

    def _shown(self) -> Options:
        """What says how rows look, in a batch query and in a stream."""
        return parse(self.options, batch=False)


def _types(options: Options) -> Types:
    """The columns that there are, with their types."""
    if options.report is None:
        return types_of(options.view, options.corrupt_record)
    from pyspark_kafka_log.reports import report_types  # stands on this module

    return report_types(options.report)


def reader_of(
    options: Options,
    columns: tuple[str, ...],
    query: Pushed = EVERY_ROW,
    parallelism: int | None = None,
) -> KafkaLogReader | ReportReader:
    """What reads these columns."""
    if options.report is None:
        return KafkaLogReader(options, columns, query, parallelism)
    from pyspark_kafka_log.reports import ReportReader  # stands on this module

    return ReportReader(options, columns, query, parallelism)


def _warn_of(ignored: Sequence[str], why: str) -> None:
    if ignored:
        told = ", ".join(ignored)
        warnings.warn(f"kafka-log: {why}, these options mean nothing: {told}", stacklevel=3)


def _warn_of_zone(options: Options) -> None:
    if options.without_zone:
        warnings.warn(
            f"kafka-log: {', '.join(options.without_zone)} has no time zone and is taken in that of this machine: a Python source is not told"
            " spark.sql.session.timeZone; the option timeZone says it, or the time itself, as in 2026-11-22T10:15:00+01:00",
            stacklevel=3,
        )


class Task(InputPartition):
    """What one task reads."""

    def __init__(self, splits: tuple[Any, ...]) -> None:
        super().__init__(splits)
        self.splits = splits


class KafkaLogReader(DataSourceReader):
    """Reads splits of segments. It is sent to every task, so it holds options only."""

    def __init__(
        self,
        options: Options,
        columns: tuple[str, ...],
        query: Pushed = EVERY_ROW,
        parallelism: int | None = None,
    ) -> None:
        self.options = options
        self.query = query
        self.parallelism = parallelism
        self.columns = columns
        self.scan = Scan(
            columns=tuple(dict.fromkeys(map(self._source, columns))),
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
        """The tasks. ``seen`` is what other scans of the same query have found."""
        planned = plan(self.options, self.query, self.parallelism, seen)
        return [Task(splits) for splits in planned]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        losses = Losses()
        with quick_collections():
            yield from self.rows(partition, losses)
        losses.warn()

    def rows(self, partition: InputPartition, losses: Losses) -> Iterator[pa.RecordBatch]:
        """The rows of a task; what is passed over is counted."""
        # Spark makes one partition of its own when there is nothing to read.
        splits = partition.splits if isinstance(partition, Task) else ()
        from pyspark_kafka_log.moved_files import located  # not needed to plan

        scan = replace(self.scan, batch_bytes=fitting(self.scan.batch_bytes))
        with memory_told():
            batches = read_splits(splits, scan, losses.add, losses.read, located(self.options))
            yield from map(self._named, batches) if self._renames else batches

    def there(self, splits: tuple[Split, ...]) -> tuple[Split, ...]:
        """The splits where their files are by now. What is gone is left out if that is asked for."""
        if not splits:
            return splits
        from pyspark_kafka_log.moved_files import there_still  # not needed to plan

        return there_still(splits, self.options, fails=not self.options.files.ignore_missing)

    @cached_property
    def schema(self) -> pa.Schema:
        """What the rows have."""
        import pyarrow as pa

        return pa.schema(
            [self.scan.schema.field(self._source(n)).with_name(n) for n in self.columns]
        )

    @property
    def _renames(self) -> bool:
        return self.options.view is None and self.options.corrupt_record in self.columns

    def _source(self, name: str) -> str:
        """The column that one is another name of, or itself."""
        is_other = self.options.view is None and name == self.options.corrupt_record
        return PROBLEM if is_other else name

    def _named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        arrays = [batch.column(self._source(name)) for name in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
