"""Kafka log directories in Spark: ``spark.read.format("kafka-log").load(path)``.

Spark finds this package by its name; there is nothing to register. ``options`` describes every option. :func:`enable` makes it the
columnar connector, which reads less and is faster.
"""

from pyspark_kafka_log.worker_memory import apply_memory_limit

apply_memory_limit()  # a worker does so before it loads what takes most

try:
    from pyspark_kafka_log.connector import ConnectorError, enable
    from pyspark_kafka_log.decode import decode_values
    from pyspark_kafka_log.options import OptionError
    from pyspark_kafka_log.source import DefaultSource
    from pyspark_kafka_log.splits.offset_ranges import ending_offsets
except ModuleNotFoundError as error:
    from codecgen.runtime.extras import missing

    advice = missing("pyspark_kafka_log", error)
    if advice is None:
        raise
    raise ModuleNotFoundError(advice, name=error.name) from None

__all__ = [
    "ConnectorError",
    "DefaultSource",
    "OptionError",
    "decode_values",
    "enable",
    "ending_offsets",
]
