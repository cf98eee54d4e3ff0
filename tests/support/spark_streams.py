"""Streaming queries that are started, and their offsets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery


def started(
    spark: SparkSession,
    path: Path | str,
    scratch: Path,
    trigger: dict[str, Any] | None = None,
    **options: Any,
) -> StreamingQuery:
    """A query that appends to Parquet files."""
    reader = spark.readStream.format(spark.conf.get("spark.tests.format") or "")
    given = {"startingOffsets": "earliest", **options}
    for name, value in given.items():
        reader = reader.option(name, value)
    return (
        reader.load(str(path))
        .selectExpr("topic", "partition", "offset", "cast(value as string) value")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(scratch / "checkpoint"))
        .option("path", str(scratch / "out"))
        .trigger(**(trigger or {"availableNow": True}))
        .start()
    )


def ran(
    spark: SparkSession, path: Path | str, scratch: Path, **options: Any
) -> list[dict[str, Any]]:
    """The progress of a query that reads what is there."""
    query = started(spark, path, scratch, **options)
    try:
        assert query.awaitTermination(120)
        error = query.exception()
        if error is not None:
            raise error
        return [json.loads(one.json) for one in query.recentProgress]
    finally:
        query.stop()


def offsets(spark: SparkSession, scratch: Path, topic: str = "t") -> list[int]:
    rows = spark.read.parquet(str(scratch / "out")).where(f"topic = '{topic}'").collect()
    return sorted(row.offset for row in rows)
