"""Loads a log directory in Spark and collects its columns and values."""

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


def to_plain_value(value: Any) -> Any:
    """Return ``value`` without Spark's classes: rows as dicts, byte arrays as bytes, times as seconds since 1970."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list):
        return [to_plain_value(item) for item in value]
    if hasattr(value, "asDict"):
        return {key: to_plain_value(item) for key, item in value.asDict().items()}
    if isinstance(value, dict):
        return {key: to_plain_value(item) for key, item in value.items()}
    return value.timestamp() if hasattr(value, "timestamp") else value
