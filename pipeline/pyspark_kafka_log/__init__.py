"""Kafka log directories in Spark: ``spark.read.format("kafka-log").load(path)``.

Spark finds this package by its name; there is nothing to register. ``options`` describes every option.
"""

from pyspark_kafka_log.options import OptionError
from pyspark_kafka_log.source import DefaultSource

__all__ = ["DefaultSource", "OptionError"]
