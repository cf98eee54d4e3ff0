"""Read the reports of the Spark package without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from pyspark_kafka_log.options import default_columns, parse
from pyspark_kafka_log.reports import ReportReader
from pyspark_kafka_log.splits.filters import EVERY_ROW, RowRanges


def read_here(
    path: Path, view: str, query: RowRanges = EVERY_ROW, **given: str
) -> list[pa.RecordBatch]:
    """The batches of all tasks, read without Spark."""
    options = parse({"path": str(path), "view": view, **given})
    reader = ReportReader(options, default_columns(options), query)
    return [batch for task in reader.partitions() for batch in reader.read(task)]
