"""Kafka log directories in Spark: ``spark.read.format("kafka-log").load(path)``.

Spark finds this package by its name; there is nothing to register. ``options`` describes every option. :func:`enable` makes it the
columnar connector, which reads less and is faster.
"""

from pyspark_kafka_log.connector import ConnectorError, enable
from pyspark_kafka_log.options import OptionError
from pyspark_kafka_log.source import DefaultSource

__all__ = ["ConnectorError", "DefaultSource", "OptionError", "enable"]
