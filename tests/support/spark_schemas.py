"""Spark's schemas of the columns of Kafka's source and of record headers."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

# Spark 4.3, KafkaRecordToRowConverter: names, order, types; all nullable.
KAFKA = StructType(
    [
        StructField("key", BinaryType(), True),
        StructField("value", BinaryType(), True),
        StructField("topic", StringType(), True),
        StructField("partition", IntegerType(), True),
        StructField("offset", LongType(), True),
        StructField("timestamp", TimestampType(), True),
        StructField("timestampType", IntegerType(), True),
    ]
)


HEADERS = StructField(
    "headers",
    ArrayType(
        StructType(
            [StructField("key", StringType(), True), StructField("value", BinaryType(), True)]
        ),
        True,
    ),
    True,
)
