"""The two Spark data sources: Python's and the connector."""

from __future__ import annotations

from pyspark.sql import SparkSession

FORMAT = "spark.tests.format"


def format_of(spark: SparkSession) -> str:
    name = spark.conf.get(FORMAT)
    assert name is not None
    return name
