"""Records of log directories as tables of other formats: Parquet, Delta, Iceberg. Spark's tasks read segments and write files themselves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kafka_log.read.parquet import Compression
from kafka_log.segment.places import is_url, place_of
from kafka_log.write.staged_output import refuse_inside
from pyspark_kafka_log.export.job import Exported, Target, run_export
from pyspark_kafka_log.export.places import table_location
from pyspark_kafka_log.export.spark import Progress, SparkRunner
from pyspark_kafka_log.export.state import DataLossError, ExportError, TaskError
from pyspark_kafka_log.options import Options, Paths, Session, parse_paths
from pyspark_kafka_log.splits.logs import find_paths

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
    """Add to a table what logs have gained since the last export, or all that they have.

    ``path`` is what ``load`` is given, ``options`` are those of ``spark.read.format("kafka-log")``: which records and columns.
    ``to`` is a directory, or for ``iceberg`` a table, ``NAMESPACE.TABLE``, of a ``catalog``: a name in PyIceberg's configuration, or its
    properties. A table of Delta may be a URL, ``s3://BUCKET/...``, with the ``storage_options`` of s3fs (or what its environment says); where files of
    Iceberg lie, and with what they are written, its catalog says. Files are parted by any of ``topic``, ``partition`` and ``date`` (of the timestamp, in UTC). The table is added to as
    a whole, or not at all: what was exported of each partition is kept with it, and the next export goes on there. It must ask for
    the same columns, filters and partitions. It is an error when records are gone, by retention or truncation, that were not exported; without
    ``fail_on_data_loss`` what is there comes, and ``missed`` says what is not. ``compression`` is that of the files'
    pages: ``zstd`` is smallest, ``lz4`` fastest, ``snappy`` what Spark's writer has; it may change from one export to the next. ``progress`` is called with the tasks that are done and those there are.

    Tasks write with pyarrow, which is faster than Spark's writer; they need no package of Spark's for Delta or Iceberg, but this process
    the package deltalake, or pyiceberg. All machines see the directory, or have s3fs for a bucket.

    Raises :class:`ExportError`, of which :class:`DataLossError` and :class:`TaskError` are, :class:`~pyspark_kafka_log.OptionError`,
    :class:`~kafka_log.write.output_lock.OutputLockedError` while another process writes into a directory of Parquet files, and errors of Spark.
    """
    wanted = parse_paths(path, options, Session(Session.from_conf(spark.conf.get).time_zone))
    runner = SparkRunner(spark, progress)
    target = target_of(to, kind, catalog, storage_options)
    _refuse_inside(to, kind, wanted)
    return run_export(
        runner,
        wanted,
        target,
        partition_by,
        parallelism=runner.parallelism,
        fail_on_data_loss=fail_on_data_loss,
        compression=compression,
    )


def _refuse_inside(to: str | os.PathLike[str], kind: str, wanted: Options) -> None:
    """Refuse a place inside of what is read: a broker does not start with it. Raises :class:`~kafka_log.write.staged_output.OutputError`."""
    if kind == "iceberg":
        return  # a table, whose catalog says where it lies
    place = table_location(os.fspath(to), to)
    if not place.is_store:
        refuse_inside(Path(place.root), [path for path in find_paths(wanted) if not is_url(path)])


def target_of(
    to: str | os.PathLike[str],
    kind: str,
    catalog: str | Mapping[str, str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Target:
    """Where an export goes. Raises :class:`ExportError`, ModuleNotFoundError without the package that writes it."""
    if kind == "parquet":
        from pyspark_kafka_log.export.parquet import ParquetTarget

        place = table_location(os.fspath(to), to)
        if place.is_store:
            raise ExportError(
                os.fspath(to),
                "a store renames nothing, so that readers of plain Parquet files would see a part of an export: give it the format delta or iceberg",
            )
        return ParquetTarget(place_of(to))
    if kind == "delta":
        from pyspark_kafka_log.export.delta import DeltaTarget

        return DeltaTarget(os.fspath(to), table_location(os.fspath(to), to, storage_options))
    if kind == "iceberg":
        from pyspark_kafka_log.export.iceberg import IcebergTarget

        return IcebergTarget(os.fspath(to), catalog)
    raise ExportError(os.fspath(to), f"no format is called {kind!r}; known: {', '.join(FORMATS)}")
