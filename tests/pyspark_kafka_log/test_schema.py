"""Columns as Spark types. No Java is needed."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from pyspark_kafka_log.columns import COLUMNS, schema
from pyspark_kafka_log.options import KAFKA_COLUMNS, OptionError
from pyspark_kafka_log.schema import TYPES, SchemaError, projected_columns, spark_schema
from tests.support.spark_schemas import HEADERS, KAFKA


def test_the_schema_of_sparks_own_kafka_source() -> None:
    assert spark_schema(KAFKA_COLUMNS) == KAFKA
    assert spark_schema([*KAFKA_COLUMNS, "headers"]) == StructType([*KAFKA.fields, HEADERS])


def test_arrow_and_spark_have_the_same_types() -> None:
    assert list(TYPES) == list(COLUMNS)
    # Spark 4.1 has UTC without being told.
    zone: dict[str, Any] = (
        {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    )
    wanted = to_arrow_schema(spark_schema(TYPES), **zone)
    assert wanted.equals(schema(COLUMNS), check_metadata=True)


def test_a_schema_is_a_projection() -> None:
    assert projected_columns(StructType([KAFKA["offset"], KAFKA["key"], HEADERS])) == (
        "offset",
        "key",
        "headers",
    )
    with pytest.raises(SchemaError, match="no columns"):
        projected_columns(StructType([]))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("ofset long", "there is no column 'ofset'; did you mean offset?"),
        ("OFFSET long", "there is no column 'OFFSET'; did you mean offset?"),
        ("xyz long", "there is no column 'xyz'; known: key, value"),
        ("offset int", "column offset is bigint, the schema asks for int"),
        ("value string", "column value is binary, the schema asks for string"),
        ("timestamp timestamp_ntz", "column timestamp is timestamp, the schema asks for"),
        ("headers array<struct<key:string>>", "column headers is array<"),
        ("offset long not null", "column offset cannot be NOT NULL"),
        ("offset long, offset long", "the schema names offset twice"),
    ],
)
def test_what_a_schema_may_not_ask_for(asked: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        projected_columns(ddl(asked))
    assert message in str(caught.value)


def test_an_inner_not_null_is_refused_too() -> None:
    inner = StructType(
        [StructField("key", StringType(), False), StructField("value", BinaryType())]
    )
    with pytest.raises(SchemaError, match="all nested fields are nullable"):
        projected_columns(StructType([StructField("headers", ArrayType(inner))]))


def test_an_unknown_column_of_the_option() -> None:
    with pytest.raises(OptionError, match="no column 'magik'; did you mean magic"):
        spark_schema(["magik"])


def ddl(text: str) -> StructType:
    """A few types by their SQL names: Spark's own parser needs a JVM."""
    from pyspark.sql.types import TimestampNTZType

    types = {
        "long": LongType(),
        "int": IntegerType(),
        "string": StringType(),
        "timestamp_ntz": TimestampNTZType(),
        "array<struct<key:string>>": ArrayType(StructType([StructField("key", StringType())])),
    }
    fields = []
    for part in text.split(", "):
        name, kind, *rest = part.split(" ", 2)
        fields.append(StructField(name, types[kind], not rest))
    return StructType(fields)
