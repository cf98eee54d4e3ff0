"""Rows that Spark reads from an object store."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession


def load(spark: SparkSession, path: str, **options: str) -> DataFrame:
    """With ``__`` in the place of dots in the names of options."""
    given = {name.replace("__", "."): value for name, value in options.items()}
    return spark.read.format(str(spark.conf.get("spark.tests.format"))).options(**given).load(path)


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(
        map(tuple, frame.select("topic", "partition", "offset", "key", "value").collect())
    )
