"""Columns of decoded values: an Arrow type, and the conversion of Python values to what Arrow takes for it."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from kafka_log.read.schemas.registry import SchemaError

MAX_FIELDS = 10_000
"""Maximum number of fields of a schema, nested ones and repetitions included."""

MAX_DEPTH = 60
"""Maximum depth of nested types. Files of Parquet and Arrow refuse much deeper ones."""

Convert = Callable[[Any], Any]

_FLOATS = (pa.float32(), pa.float64())
_INTEGERS = (pa.int32(), pa.int64())
TEXT = {b"kafka_log": b"json"}
"""Metadata of a field whose texts are JSON: of unions, recursive types, and types that differ between versions."""


@dataclass(frozen=True)
class Shape:
    """Type of a column of values.

    ``fields`` are the members of a struct in order; ``item`` is the shape of the elements of a list, or of the values of a map with
    text keys (``is_map``). ``is_json`` stands for a column of JSON texts.
    """

    type: Any = None
    fields: tuple[tuple[str, Shape], ...] | None = None
    item: Shape | None = None
    is_map: bool = False
    is_json: bool = False

    @property
    def arrow(self) -> Any:
        """The Arrow type."""
        if self.fields is not None:
            return pa.struct([field_of(name, shape) for name, shape in self.fields])
        if self.item is not None:
            item = field_of("value" if self.is_map else "element", self.item)
            return pa.map_(pa.string(), item) if self.is_map else pa.list_(item)
        return pa.string() if self.is_json else self.type

    def converter(self) -> Convert | None:
        """Return a function that converts decoded values for :func:`pyarrow.array`; None if they
        need no conversion. It raises ValueError for a value that the type cannot hold.
        """
        if self.is_json:
            return to_json_text
        if self.fields is not None:
            inner = [(n, c) for n, s in self.fields if (c := s.converter()) is not None]
            if not inner:
                return None

            def convert_struct(value: Any) -> Any:
                if value is None:
                    return None
                changed = dict(value)
                for name, convert in inner:
                    if name in changed:
                        changed[name] = convert(changed[name])
                return changed

            return convert_struct
        if self.item is not None:
            of_item = self.item.converter()
            if self.is_map:

                def convert_map(value: Any) -> Any:
                    if value is None:
                        return None
                    return [(k, v if of_item is None else of_item(v)) for k, v in value.items()]

                return convert_map
            if of_item is None:
                return None
            return lambda value: None if value is None else [of_item(v) for v in value]
        if pa.types.is_decimal(self.type):
            scale = self.type.scale
            return lambda value: None if value is None else _to_decimal(value, scale)
        return None


JSON = Shape(is_json=True)
NULL = Shape(pa.null())


def field_of(name: str, shape: Shape) -> Any:
    """Return the nullable Arrow field of a name and a shape."""
    return pa.field(name, shape.arrow, True, TEXT if shape.is_json else None)


def _to_decimal(value: Any, scale: int) -> Decimal:
    """Return the decimal of big-endian bytes with a sign."""
    number = int.from_bytes(value, "big", signed=True)
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def merge(shapes: Sequence[Shape]) -> Shape:
    """Return the shape that holds values of all shapes: structs have the fields of each, in the
    order in which they come first; numbers are widened; JSON texts hold what differs otherwise.
    """
    merged = shapes[0]
    for shape in shapes[1:]:
        merged = _merge_two(merged, shape)
    return merged


def _merge_two(a: Shape, b: Shape) -> Shape:
    """Return the shape that holds values of both."""
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    if a.fields is not None and b.fields is not None:
        later = dict(b.fields)
        fields = [(n, _merge_two(s, later.pop(n)) if n in later else s) for n, s in a.fields]
        return Shape(fields=(*fields, *((n, s) for n, s in b.fields if n in later)))
    if a.item is not None and b.item is not None and a.is_map == b.is_map:
        return Shape(item=_merge_two(a.item, b.item), is_map=a.is_map)
    if a.type in _INTEGERS and b.type in _INTEGERS:
        return Shape(pa.int64())
    if a.type in (*_INTEGERS, *_FLOATS) and b.type in (*_INTEGERS, *_FLOATS):
        return Shape(pa.float64())
    return JSON


def to_json_text(value: Any) -> str | None:
    """Return a decoded value as JSON; None for null. Bytes are ``{"base64": ...}``, numbers that are
    not finite are texts.
    """
    return None if value is None else json.dumps(_to_json(value), ensure_ascii=False)


def _to_json(value: Any) -> Any:
    """Return a decoded value as a JSON value."""
    if isinstance(value, dict):
        return {name: _to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


class Budget:
    """Counts the fields of a schema. Named types that refer to each other twice double at each level."""

    def __init__(self) -> None:
        self.left = MAX_FIELDS

    def take(self, depth: int) -> None:
        """Count a field. Raise SchemaError above :data:`MAX_FIELDS` or :data:`MAX_DEPTH`."""
        self.left -= 1
        if self.left < 0:
            raise SchemaError(f"the schema has more than {MAX_FIELDS:,} fields")
        if depth > MAX_DEPTH:
            raise SchemaError(f"the schema is nested more than {MAX_DEPTH} levels deep")
