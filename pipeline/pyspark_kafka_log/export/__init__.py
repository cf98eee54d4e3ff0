"""Export records of log directories to tables of Parquet, Delta or Iceberg. Spark's tasks read segments and write the files themselves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from kafka_log.read.parquet import Compression
from kafka_log.segment.paths import make_path
from pyspark_kafka_log.export.job import Exported, Target, run_export
from pyspark_kafka_log.export.locations import table_location
from pyspark_kafka_log.export.spark import Progress, SparkRunner
from pyspark_kafka_log.export.state import DataLossError, ExportError, TaskError
from pyspark_kafka_log.options import Paths, Session, parse_paths

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "FORMATS",
    "DataLossError",
    "ExportError",
    "Exported",
    "TaskError",
    "export",
    "target_of",
]

Format = Literal["parquet", "delta", "iceberg"]
FORMATS: tuple[Format, ...] = ("parquet", "delta", "iceberg")


def export(
    spark: SparkSession,
    path: Paths,
    to: str | os.PathLike[str],
    kind: Format = "parquet",
    *,
    partition_by: Sequence[str] = ("topic", "date"),
    options: Mapping[str, str] | None = None,
    catalog: str | Mapping[str, str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    fail_on_data_loss: bool = True,
    compression: Compression = "zstd",
    progress: Progress = lambda done, tasks: None,
) -> Exported:
    """Add to a table the records that logs have gained since the last export, or all records at the
    first one; commit nothing if there are none. Raise ExportError if the export is not possible;
    its subclass DataLossError for records that are gone, TaskError for a failed task; OptionError
    for an invalid option; DirectoryError if there is no log, or as its subclass OutputError if
    ``to`` lies in a log, or OutputLockedError while another process writes into a directory of
    Parquet files; CodecError for damage that planning meets; ModuleNotFoundError without the
    package for the format.

    The export is added as a whole or not at all. The table keeps the next offset of each partition, and the next export continues there. It must ask for the same
    columns, filters and partition columns. Tasks write with pyarrow and need no Spark package for Delta or Iceberg; this process needs the package
    deltalake or pyiceberg. All machines must see the directory, or have s3fs for a bucket.

    Args:
        spark: The session whose tasks read and write.
        path: The path or paths of the logs, as for ``load``.
        to: A directory; for Delta also a URL ``s3://BUCKET/...``; for Iceberg a table ``NAMESPACE.TABLE``.
        kind: The format of the table.
        partition_by: Any of ``topic``, ``partition`` and ``date`` (of the timestamp, in UTC).
        options: The options of ``spark.read.format("kafka-log")``: which records and columns.
        catalog: The Iceberg catalog: a name in PyIceberg's configuration, or its properties.
        storage_options: The options of s3fs for a Delta table in a bucket; by default those of its environment.
        fail_on_data_loss: Raise if records were deleted or truncated before they were exported. Otherwise the remaining records are exported, and
            ``missed`` of the result describes the others.
        compression: The codec of Parquet pages: ``zstd`` is smallest, ``lz4`` fastest, ``snappy`` that of Spark's writer. It may change between exports.
        progress: Called with the numbers of finished tasks and of all tasks.

    Returns:
        What was added.

    Raises:
        ExportError: If the export is not possible; DataLossError and TaskError are subclasses.
        OptionError: For an invalid option.
        OutputError: If the directory ``to`` is one of the logs, or lies inside one.
        OutputLockedError: While another process writes into a directory of Parquet files.
    """
    wanted = parse_paths(path, options, Session(Session.from_conf(spark.conf.get).time_zone))
    runner = SparkRunner(spark, progress)
    target = target_of(to, kind, catalog, storage_options)
    return run_export(
        runner,
        wanted,
        target,
        partition_by,
        parallelism=runner.parallelism,
        fail_on_data_loss=fail_on_data_loss,
        compression=compression,
    )


def target_of(
    to: str | os.PathLike[str],
    kind: str,
    catalog: str | Mapping[str, str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Target:
    """Return the ParquetTarget, DeltaTarget or IcebergTarget for the format ``kind``; nothing is
    written. Only ``delta`` uses ``storage_options``, only ``iceberg`` ``catalog``. Raise
    ExportError for an unknown format, an object store with ``parquet``, a store other than
    ``s3://`` or an invalid ``file:`` URL, a storage option that Delta's writer lacks, or an Iceberg
    table without a namespace or configured catalog; ModuleNotFoundError if the package that writes
    the format is missing. An Iceberg catalog is loaded at once; ExportError too if it cannot be used.
    """
    if kind == "parquet":
        from pyspark_kafka_log.export.parquet import ParquetTarget

        place = table_location(os.fspath(to), to)
        if place.is_store:
            raise ExportError(
                os.fspath(to),
                "object stores cannot rename, so readers of plain Parquet files would see a part of an export: use the format delta or iceberg",
            )
        return ParquetTarget(make_path(to))
    if kind == "delta":
        from pyspark_kafka_log.export.delta import DeltaTarget

        return DeltaTarget(os.fspath(to), table_location(os.fspath(to), to, storage_options))
    if kind == "iceberg":
        from pyspark_kafka_log.export.iceberg import IcebergTarget

        return IcebergTarget(os.fspath(to), catalog)
    raise ExportError(
        os.fspath(to), f"unknown format {kind!r}: give one of {', '.join(FORMATS)} as the format"
    )
