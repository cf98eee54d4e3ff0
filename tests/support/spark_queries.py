"""Loads a log directory in Spark and collects a column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def load(spark: SparkSession, path: Path | list[str], **options: Any) -> DataFrame:
    source = spark.read.format(str(spark.conf.get("spark.tests.format")))
    for name, value in options.items():
        source = source.option(name, value)
    return source.load(path if isinstance(path, list) else str(path))


def column(frame: DataFrame, name: str) -> list[Any]:
    found: list[Any] = frame.toArrow().column(name).to_pylist()
    return found
