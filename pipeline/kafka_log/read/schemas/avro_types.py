"""Types of Avro schemas in fastavro's form, and the columns of those that have no parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from kafka_log.read.schemas.registry import SchemaError
from kafka_log.read.schemas.shapes import Shape

Types = Mapping[str, Any]
"""Named types of a schema."""

RECORDS = ("record", "error")
"""Types that have fields."""

LOGICAL_TYPE = "logicalType"
KEPT_LOGICAL_TYPE = "x-logical-type"
"""Name of the logical type in the schemas for fastavro, which shall return numbers and bytes: Arrow has a wider range of times than
Python."""

ARROW_TYPE = "x-arrow-type"
"""Name of the Arrow type of the logical type in the schemas for fastavro. A type without it has no logical type, or an unknown one."""

MARKED = "kafka-log"
"""Logical type in the schemas for fastavro of numbers and bytes that keep :data:`ARROW_TYPE` when they are read."""

PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL_TYPES = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
_MAX_PRECISION = 76


def unwrap(schema: Any, named: Types) -> Any:
    """Return a type as a union (list) or as an object whose ``type`` is a name of Avro. Return None
    for None. Raise KeyError for a name that is neither primitive nor in ``named``.
    """
    while schema is not None and not isinstance(schema, list):
        if isinstance(schema, str):
            schema = {"type": schema} if schema in PRIMITIVES else named[schema]
        elif isinstance(schema["type"], dict | list):
            schema = schema["type"]
        else:
            break
    return schema


def logical_type(schema: Mapping[str, Any]) -> Any:
    """Return the Arrow type of the logical type of a primitive or fixed type. Return None if it has
    none, an unknown one or an impossible decimal, which Avro demands to ignore, and for other types.
    """
    kind, logical = schema.get("type"), schema.get(KEPT_LOGICAL_TYPE)
    if not isinstance(kind, str) or not isinstance(logical, str):
        return None
    if logical == "decimal" and kind in ("bytes", "fixed"):
        precision: Any = schema.get("precision")
        scale: Any = schema.get("scale", 0)
        is_known = type(precision) is int and type(scale) is int
        if is_known and 1 <= precision <= _MAX_PRECISION and 0 <= scale <= precision:
            return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)
    return _LOGICAL_TYPES.get((kind, logical))


def scalar_shape(kind: str, schema: Mapping[str, Any]) -> Shape:
    """Return the shape of a primitive or fixed type (``kind``): that of its logical type, or of the
    type alone without one (:func:`logical_type`). Raise SchemaError if the size of a fixed type is
    missing or negative; KeyError for another type.
    """
    found = logical_type(schema)
    if kind == "fixed":
        if type(schema.get("size")) is not int or schema["size"] < 0:
            raise SchemaError(
                "the size of a fixed type is not a whole number of bytes from 0 on: values of this schema are not decoded"
            )
        return Shape(pa.binary() if found is None else found)
    return Shape(PRIMITIVES[kind] if found is None else found)
