"""The data source ``kafka-log``: creates the readers and writers that Spark asks for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from pyspark_kafka_log.options import Options, default_columns, parse
from pyspark_kafka_log.options.table import LIMITS
from pyspark_kafka_log.reader import KafkaLogReader
from pyspark_kafka_log.schema import Types, column_types, projected_columns, spark_schema
from pyspark_kafka_log.splits.filters import EVERY_ROW, RowRanges
from pyspark_kafka_log.write import KafkaLogStreamWriter, KafkaLogWriter, make_job

if TYPE_CHECKING:
    from pyspark_kafka_log.reports import ReportReader


class DefaultSource(DataSource):
    """The data source: ``spark.read.format("kafka-log").load(path)``, ``df.write.format("kafka-log").save(path)``.

    :mod:`pyspark_kafka_log.options` describes the options of reads, :mod:`pyspark_kafka_log.options.write` those of writes.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "kafka-log"

    def schema(self) -> StructType:
        """Return the schema that is used if the query gives none, and warn of options without
        effect except limits of micro-batches. Raise OptionError for an invalid option, or an
        unknown name in the option columns.
        """
        options = self._row_options()
        # Whether this is a stream nobody knows yet.
        _warn_of_ignored(
            [name for name in options.ignored if name not in LIMITS], "no broker is contacted"
        )
        return spark_schema(default_columns(options), _column_types(options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of a batch query for the columns of ``schema``: a ReportReader if the
        option view names a report, else a KafkaLogReader. Warn of limits of micro-batches, and of
        times without a time zone. Raise OptionError for an invalid option; SchemaError for a schema
        without columns, or with one that is unknown, repeated, of another type, or NOT NULL.
        """
        options = parse(self.options)
        _warn_of_ignored(
            [name for name in options.ignored if name in LIMITS],
            "a batch query has no limits of micro-batches",
        )
        _warn_of_local_zone(options)
        if options.report is not None:
            return make_reader(options, self.projected_columns(schema))
        return KafkaLogReader(options, self.projected_columns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader of micro-batches for the columns of ``schema``, and warn of times without
        a time zone. Raise OptionError for an option that is invalid for streams; SchemaError for a
        schema without columns, or with one that is unknown, repeated, of another type, or NOT NULL.
        """
        from pyspark_kafka_log.stream.reader import KafkaLogStreamReader

        reader = KafkaLogStreamReader(self.options, self.projected_columns(schema))
        _warn_of_local_zone(reader.reading)
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> KafkaLogWriter:
        """Return a writer of a batch query. Raise OptionError or SinkError if the rows cannot be written."""
        return KafkaLogWriter(make_job(self.options, schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaLogStreamWriter:
        """Return a writer of micro-batches. Raise OptionError or SinkError if the rows cannot be written."""
        return KafkaLogStreamWriter(make_job(self.options, schema, overwrite))

    def projected_columns(self, schema: StructType) -> tuple[str, ...]:
        """Return the columns of ``schema``. Raise SchemaError for unknown columns or other types."""
        options = self._row_options()
        return projected_columns(schema, _column_types(options))

    def _row_options(self) -> Options:
        """Return the options that decide the columns, which batch queries and streams have in common."""
        return parse(self.options, batch=False)


def _column_types(options: Options) -> Types:
    """Return the Spark types by name of all columns that a query with these options may ask for:
    those of the report, of the view, or of records with the corrupt-record column.
    """
    if options.report is None:
        return column_types(options.view, options.corrupt_record)
    from pyspark_kafka_log.reports import report_types

    return report_types(options.report)


def make_reader(
    options: Options,
    columns: tuple[str, ...],
    query: RowRanges = EVERY_ROW,
    parallelism: int | None = None,
) -> KafkaLogReader | ReportReader:
    """Return a reader of records or a view; a ReportReader if the options name a report. ``query``
    are ranges that filters leave; ``parallelism`` is the number of tasks to aim at, None for one
    for each processor. Raise ValueError for a column that records or the view lack; a ReportReader
    does not check its columns here.
    """
    if options.report is None:
        return KafkaLogReader(options, columns, query, parallelism)
    from pyspark_kafka_log.reports import ReportReader

    return ReportReader(options, columns, query, parallelism)


def _warn_of_ignored(ignored: Sequence[str], why: str) -> None:
    """Warn of options without effect, if there are any."""
    if ignored:
        listed = ", ".join(ignored)
        warnings.warn(f"kafka-log: {why}, so these options have no effect: {listed}", stacklevel=3)


def _warn_of_local_zone(options: Options) -> None:
    """Warn if modifiedAfter or modifiedBefore is given, and neither its value nor the option
    timeZone nor the session has a time zone, so that this machine's is used. Do nothing otherwise.
    """
    if options.without_zone:
        warnings.warn(
            f"kafka-log: {', '.join(options.without_zone)} has no time zone and is taken in that of this machine: a Python source is not told"
            " spark.sql.session.timeZone; the option timeZone says it, or the time itself, as in 2026-11-22T10:15:00+01:00",
            stacklevel=3,
        )
