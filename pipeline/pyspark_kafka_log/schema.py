"""Map Arrow columns to Spark types, and check schemas that users give."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

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

from pyspark_kafka_log.columns import COLUMNS, HEADERS_TYPE, view_schema
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
"""Spark types by Arrow types."""

TYPES: dict[str, DataType] = {
    name: HEADERS if column.type == HEADERS_TYPE else _SPARK[str(column.type)]
    for name, column in COLUMNS.items()
}
"""All columns. The first seven, and headers, are those of Spark's own Kafka source."""


class SchemaError(ValueError):
    """A schema asks for columns that do not exist, or for other types."""


Types = Mapping[str, DataType]
"""Spark types by column names."""


def column_types(view: str | None, corrupt_record: str | None = None) -> Types:
    """Return the Spark types by name of all columns that can be asked for: those of records, or of
    the view ``view`` with the columns of its records. ``corrupt_record`` adds another name for the
    column ``problem``, and has no effect with a view. Raise ValueError for an unknown view.
    """
    if view is None:
        return TYPES if corrupt_record is None else {**TYPES, corrupt_record: StringType()}
    from pyspark.sql.pandas.types import from_arrow_schema

    from kafka_log.read.topic_views import RECORD_COLUMNS, topic_view  # codecs of all that it has

    of = topic_view(view, None).view
    every = topic_view(view, (*(column.name for column in of.columns), *RECORD_COLUMNS))
    return {field.name: field.dataType for field in from_arrow_schema(view_schema(every, "us"))}


def spark_schema(columns: Iterable[str], types: Types = TYPES) -> StructType:
    """Return the Spark schema of ``columns`` in order, all nullable. Raise :class:`OptionError` for
    a column that is not in ``types``.
    """
    fields = []
    for name in columns:
        if name not in types:
            raise OptionError("columns", _describe_unknown(name, types))
        fields.append(StructField(name, types[name]))
    return StructType(fields)


def projected_columns(schema: StructType, types: Types = TYPES) -> tuple[str, ...]:
    """Return the column names of a schema in its order. Raise :class:`SchemaError` if the schema is
    empty, names a column twice, or has a column that is not in ``types``, has another type there,
    or is NOT NULL.
    """
    names = schema.fieldNames()
    if not names:
        raise SchemaError("kafka-log: the schema has no columns: name at least one")
    for field in schema.fields:
        if field.name not in types:
            raise SchemaError(f"kafka-log: {_describe_unknown(field.name, types)}")
        wanted, there = field.dataType, types[field.name]
        if wanted != there:
            raise SchemaError(
                f"kafka-log: column {field.name} is {there.simpleString()},"
                f" the schema asks for {wanted.simpleString()}: read it with its type, then cast"
                + (" (all nested fields are nullable)" if _has_same_text(wanted, there) else "")
            )
        if not field.nullable:
            raise SchemaError(
                f"kafka-log: column {field.name} cannot be NOT NULL: all columns are nullable"
            )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(f"kafka-log: the schema names {', '.join(twice)} twice")
    return tuple(names)


def _has_same_text(wanted: DataType, there: DataType) -> bool:
    """Return whether two types print alike, so that they differ in nullability only."""
    return wanted.simpleString() == there.simpleString()


def _describe_unknown(name: str, types: Types) -> str:
    """Return a message for an unknown column: the most similar name as a hint, if one is similar,
    and all known names.
    """
    near = [n for n in types if n.lower() == name.lower()]
    near = near or difflib.get_close_matches(name, types, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"there is no column {name!r}; {hint}known: {', '.join(types)}"
