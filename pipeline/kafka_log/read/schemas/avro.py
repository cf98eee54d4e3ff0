"""Decoders of Avro values, by fastavro. Each result is encoded again, because fastavro accepts some invalid bytes."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from kafka_log.read.schemas.registry import (
    AVRO,
    SchemaError,
    SchemaRegistry,
    SchemaVersion,
    parse_json,
)
from kafka_log.read.schemas.shapes import JSON, NULL, Budget, Decode, Shape, Size, check_name

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
_MIN_BYTES = {"null": 0, "float": 4, "double": 8}
"""Minimum bytes of primitive types; 1 for the others."""

_MAX_PRECISION = 76
MAX_DEFAULTS = 4_096
"""Maximum characters of the defaults of a schema to which values are resolved. Each value may get all of them."""


class AvroSchema:
    """Parsed schema of Avro.

    Args:
        version: The schema.
        registry: Has the schemas to which it refers.
        is_reader: Values are resolved to it, so its defaults count. Otherwise they are ignored, also if they are invalid.

    Raises:
        SchemaError: If the schema is invalid, or so are those to which it refers; for a reader also if its defaults exceed
            :data:`MAX_DEFAULTS`.
    """

    def __init__(
        self, version: SchemaVersion, registry: SchemaRegistry, is_reader: bool = False
    ) -> None:
        self._named: dict[str, Any] = {}
        self._default_size = 0
        self._is_reader = is_reader
        try:
            for _, other in registry.resolve_references(version):
                if other.type != AVRO:
                    raise SchemaError(
                        f"it refers to a schema of type {other.type} (schema {other.id})"
                    )
                self._parse(other.text)
            self._parsed = self._parse(version.text)
            self.shape = self._shape_of(self._parsed, (), Budget())
        except ModuleNotFoundError:
            raise
        except Exception as error:  # fastavro raises many classes, also of its own
            raise SchemaError(f"schema {version.id} is invalid: {_describe(error)}") from None

    def decoder(self, reader: AvroSchema | None = None) -> Decode:
        """Return a function that decodes the bytes of one value, resolved to the schema ``reader``
        if it is given. It raises ValueError for bytes that are no value of the schema.
        """
        from fastavro import schemaless_reader, schemaless_writer

        schema, resolved = self._complete(), None if reader is None else reader._complete()
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

        schema = _keep_logical_types(parse_json(text), self._is_reader)
        self._default_size += _measure_defaults(schema)
        if self._default_size > MAX_DEFAULTS:
            raise SchemaError(f"its defaults have more than {MAX_DEFAULTS:,} characters")
        return parse_schema(schema, self._named)

    def _complete(self) -> Any:
        """Return the schema with the named types that it refers to, as fastavro looks for them."""
        hints = {"__fastavro_parsed": True, "__named_schemas": self._named}

        def complete(schema: Any) -> Any:
            """Return a type with its named types."""
            if isinstance(schema, list):
                return [complete(s) for s in schema]
            if isinstance(schema, str):
                return {**self._named[schema], **hints} if schema in self._named else schema
            return {**schema, **hints}

        return complete(self._parsed)

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
            for field in fields:
                check_name(field["name"])
            if not fields:
                return JSON  # files of Parquet cannot have a struct without fields
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

    def measure(self, shape: Shape) -> Size:
        """Return how many parts values can have in columns of ``shape``, which holds them."""
        return self._measure(self._parsed, shape)

    def _measure(self, schema: Any, shape: Shape) -> Size:
        """Return the size of values of a type in columns of a shape. Every element of an array takes
        a byte or more.
        """
        if isinstance(schema, list):
            others = [s for s in schema if s != "null"]
            of_branch = shape if len(others) == 1 else JSON
            return Size.largest([self._measure(s, of_branch) for s in schema]).add(1, 1)
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return Size(shape.width, 0, _MIN_BYTES.get(schema, 1))
            return self._measure(self._named[schema], shape)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self._measure(kind, shape)
        if kind in ("record", "error"):
            known = dict(shape.fields or ())
            own = [self._measure(f["type"], known.pop(f["name"], JSON)) for f in schema["fields"]]
            return Size.sum(own).add(1 + sum(s.width for s in known.values()), 0)
        if kind in ("array", "map"):
            item = schema["items" if kind == "array" else "values"]
            of_item = self._measure(item, shape.item or JSON)
            return of_item.repeat(0 if kind == "array" else 1)
        return Size(shape.width, 0, int(schema.get("size", 1)) if kind == "fixed" else 1)

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


def _keep_logical_types(schema: Any, with_defaults: bool) -> Any:
    """Return a schema whose logical types have the name :data:`_KEPT`, and without defaults unless
    ``with_defaults``.
    """
    if isinstance(schema, list):
        return [_keep_logical_types(s, with_defaults) for s in schema]
    if not isinstance(schema, dict):
        return schema
    found = {_KEPT if name == _LOGICAL else name: value for name, value in schema.items()}
    if not with_defaults:
        found.pop("default", None)
    for name in ("type", "items", "values"):
        if name in found:
            found[name] = _keep_logical_types(found[name], with_defaults)
    if isinstance(found.get("fields"), list):
        found["fields"] = [_keep_logical_types(f, with_defaults) for f in found["fields"]]
    return found


def _measure_defaults(schema: Any) -> int:
    """Return the number of characters of all defaults in a schema, as JSON."""
    if isinstance(schema, list):
        return sum(map(_measure_defaults, schema))
    if not isinstance(schema, dict):
        return 0
    own = len(json.dumps(schema["default"])) if "default" in schema else 0
    inner = (schema.get(name) for name in ("type", "items", "values", "fields"))
    return own + sum(map(_measure_defaults, inner))


def _describe(error: BaseException) -> str:
    """Return the message of an error, or its class if it has none."""
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if isinstance(error, EOFError):
        return "its bytes end too early"
    if isinstance(error, IndexError):
        return "the number of a branch or of a symbol is out of range"
    return f"{error}" if type(error) in (ValueError, SchemaError) else f"{type(error).__name__} {error}".rstrip()  # fmt: skip
