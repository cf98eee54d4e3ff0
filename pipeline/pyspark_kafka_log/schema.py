"""The columns as Spark types, and what a schema of the user's own may ask for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafka_log.columns import COLUMNS, HEADERS_TYPE
from pyspark_kafka_log.options import OptionError

HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)

_SPARK: dict[str, DataType] = {
    "binary": BinaryType(),
    "string": StringType(),
    "bool": BooleanType(),
    "int32": IntegerType(),
    "int64": LongType(),
    "timestamp[us, tz=UTC]": TimestampType(),
}
"""Types of Arrow as Spark's."""

TYPES: dict[str, DataType] = {
    name: HEADERS if column.type == HEADERS_TYPE else _SPARK[str(column.type)]
    for name, column in COLUMNS.items()
}
"""All columns. The first seven, and headers, are those of Spark's own Kafka source."""


class SchemaError(ValueError):
    """A schema asks for columns that there are not."""


def spark_schema(columns: Iterable[str]) -> StructType:
    """The schema of these columns. Raises :class:`OptionError` for a column that is not there."""
    fields = []
    for name in columns:
        if name not in TYPES:
            raise OptionError("columns", _unknown(name))
        fields.append(StructField(name, TYPES[name]))
    return StructType(fields)


def projection(schema: StructType) -> tuple[str, ...]:
    """The columns that a schema asks for. Raises :class:`SchemaError` when it asks for others, or for other types."""
    names = schema.fieldNames()
    if not names:
        raise SchemaError("kafka-log: the schema has no columns")
    for field in schema.fields:
        if field.name not in TYPES:
            raise SchemaError(f"kafka-log: {_unknown(field.name)}")
        wanted, there = field.dataType, TYPES[field.name]
        if wanted != there:
            raise SchemaError(
                f"kafka-log: column {field.name} is {there.simpleString()},"
                f" the schema asks for {wanted.simpleString()}: read it as it is, then cast"
                + (" (all of it is nullable)" if _looks_like(wanted, there) else "")
            )
        if not field.nullable:
            raise SchemaError(
                f"kafka-log: column {field.name} cannot be NOT NULL: all are nullable"
            )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(f"kafka-log: the schema has {', '.join(twice)} twice")
    return tuple(names)


def _looks_like(wanted: DataType, there: DataType) -> bool:
    return wanted.simpleString() == there.simpleString()


def _unknown(name: str) -> str:
    near = [n for n in TYPES if n.lower() == name.lower()]
    near = near or difflib.get_close_matches(name, TYPES, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"there is no column {name!r}; {hint}known: {', '.join(COLUMNS)}"
