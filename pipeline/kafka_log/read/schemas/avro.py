"""Decoders of Avro values, by fastavro. Each result is encoded again, because fastavro accepts some invalid bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from kafka_log.read.schemas.registry import (
    AVRO,
    SchemaError,
    SchemaRegistry,
    SchemaVersion,
    parse_json,
)
from kafka_log.read.schemas.shapes import JSON, NULL, Budget, Shape

_LOGICAL = "logicalType"
_KEPT = "x-logical-type"
"""Name of the logical type in the schemas for fastavro, which shall return numbers and bytes: Arrow has a wider range of times than
Python."""

_PRIMITIVES = {
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
Decode = Callable[[bytes], Any]


class AvroSchema:
    """Parsed schema of Avro.

    Args:
        version: The schema.
        registry: Has the schemas to which it refers.

    Raises:
        SchemaError: If the schema is invalid, or so are those to which it refers.
    """

    def __init__(self, version: SchemaVersion, registry: SchemaRegistry) -> None:
        self._named: dict[str, Any] = {}
        try:
            for _, other in registry.resolve_references(version):
                if other.type != AVRO:
                    raise SchemaError(f"it refers to a schema of type {other.type}")
                self._parse(other.text)
            self.parsed = self._parse(version.text)
            self.shape = self._shape_of(self.parsed, (), Budget())
        except ModuleNotFoundError:
            raise
        except Exception as error:  # fastavro raises many classes, also of its own
            raise SchemaError(f"schema {version.id} is invalid: {_describe(error)}") from None

    def decoder(self, reader: AvroSchema | None = None) -> Decode:
        """Return a function that decodes the bytes of one value, resolved to the schema ``reader``
        if it is given. It raises ValueError for bytes that are no value of the schema.
        """
        from fastavro import schemaless_reader, schemaless_writer

        schema, resolved = self.parsed, None if reader is None else reader.parsed
        # Several records in one union are told apart by their names.
        options: Any = {"return_record_name": True, "return_record_name_override": True}

        def decode(data: bytes) -> Any:
            source, again = io.BytesIO(data), io.BytesIO()
            try:
                value = schemaless_reader(source, schema, None, **options)
                left = len(data) - source.tell()
                if left:
                    raise ValueError(f"{left} bytes follow the value")
                schemaless_writer(again, schema, value)
                if again.getvalue() != data:
                    raise ValueError("its bytes are not those that the decoded value has")
                if resolved is not None:
                    value = schemaless_reader(io.BytesIO(data), schema, resolved, **options)
            except Exception as error:  # fastavro raises many classes, also of its own
                raise ValueError(_describe(error)) from None
            return value

        return decode

    def _parse(self, text: str) -> Any:
        """Return fastavro's form of a schema, and add its named types to the known ones."""
        from fastavro import parse_schema

        return parse_schema(_keep_logical_types(parse_json(text)), self._named)

    def _shape_of(self, schema: Any, names: tuple[str, ...], budget: Budget) -> Shape:
        """Return the shape of a type. ``names`` are the records around it. Raise SchemaError for
        types without a shape.
        """
        budget.take(len(names))
        if isinstance(schema, list):
            others = [self._shape_of(s, names, budget) for s in schema if s != "null"]
            if not others:
                return NULL
            return others[0] if len(others) == 1 else JSON
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return Shape(_PRIMITIVES[schema])
            if (
                schema in names
            ):  # fastavro exhausts the stack at deep values, which ends the process
                raise SchemaError(f"{schema} has itself as a part, which is not decoded")
            return self._shape_of(self._named[schema], names, budget)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self._shape_of(kind, names, budget)
        if kind in ("record", "error"):
            fields = schema["fields"]
            if len({f["name"] for f in fields}) < len(fields):
                raise SchemaError(f"record {schema['name']} has two fields with one name")
            inner = (*names, schema["name"])
            return Shape(
                fields=tuple((f["name"], self._shape_of(f["type"], inner, budget)) for f in fields)
            )
        if kind == "enum":
            return Shape(pa.string())
        if kind in ("array", "map"):
            item = schema["items" if kind == "array" else "values"]
            if kind == "array" and self._is_empty(item, ()):
                raise SchemaError("elements of an array take no bytes, so any number may follow")
            of_item = self._shape_of(item, (*names, ""), budget)
            return Shape(item=of_item, is_map=kind == "map")
        return _scalar_shape(kind, schema)

    def _is_empty(self, schema: Any, names: tuple[str, ...]) -> bool:
        """Return whether values of a type take no bytes."""
        if isinstance(schema, str):
            if schema in _PRIMITIVES or schema in names:
                return schema == "null"
            return self._is_empty(self._named[schema], (*names, schema))
        if isinstance(schema, list):
            return False
        if isinstance(schema["type"], dict | list):
            return self._is_empty(schema["type"], names)
        if schema["type"] == "fixed":
            return int(schema["size"]) == 0
        if schema["type"] in ("record", "error"):
            inner = (*names, schema["name"])
            return all(self._is_empty(f["type"], inner) for f in schema["fields"])
        return bool(schema["type"] == "null")


def _scalar_shape(kind: str, schema: Mapping[str, Any]) -> Shape:
    """Return the shape of a primitive or fixed type with its logical type. Unknown logical types
    and impossible decimals count as none, as Avro demands.
    """
    logical = schema.get(_KEPT)
    if logical == "decimal" and kind in ("bytes", "fixed"):
        precision: Any = schema.get("precision")
        scale: Any = schema.get("scale", 0)
        is_known = type(precision) is int and type(scale) is int
        if is_known and 1 <= precision <= _MAX_PRECISION and 0 <= scale <= precision:
            small = precision <= 38
            return Shape((pa.decimal128 if small else pa.decimal256)(precision, scale))
    if kind == "fixed":
        if type(schema.get("size")) is not int or schema["size"] < 0:
            raise SchemaError("the size of a fixed type is not a number of bytes")
        return Shape(pa.binary())
    return Shape(_LOGICAL_TYPES.get((kind, str(logical)), _PRIMITIVES[kind]))


def _keep_logical_types(schema: Any) -> Any:
    """Return a schema whose logical types have the name :data:`_KEPT`."""
    if isinstance(schema, list):
        return [_keep_logical_types(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    found = {_KEPT if name == _LOGICAL else name: value for name, value in schema.items()}
    for name in ("type", "items", "values"):
        if name in found:
            found[name] = _keep_logical_types(found[name])
    if isinstance(found.get("fields"), list):
        found["fields"] = [_keep_logical_types(f) for f in found["fields"]]
    return found


def _describe(error: BaseException) -> str:
    """Return the message of an error, or its class if it has none."""
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return f"{error}" if type(error) in (ValueError, SchemaError) else f"{type(error).__name__} {error}".rstrip()  # fmt: skip
