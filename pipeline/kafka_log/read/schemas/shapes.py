"""Columns of decoded values: an Arrow type, and the conversion of Python values to what Arrow takes for it."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from kafka_log.read.schemas.logical_values import (
    LogicalBytes,
    LogicalNumber,
    format_value,
    merge_types,
    to_decimal,
    to_unit,
)
from kafka_log.read.schemas.registry import SchemaError

MAX_FIELDS = 10_000
"""Maximum number of fields of a schema, nested ones and repetitions included."""

MAX_PARTS = 20_000_000
"""Maximum number of parts that a value could have by its schema and its length: fields, elements and values in them."""

MAX_JSON = 64 << 20
"""Maximum characters of the JSON texts of the rows that are decoded at once."""

MAX_DEPTH = 60
"""Maximum depth of nested types. Files of Parquet and Arrow refuse much deeper ones."""

Convert = Callable[[Any], Any]
Decode = Callable[[bytes], Any]

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
        """Arrow type of the column: a struct, a list, a map with text keys, string for JSON text,
        or the scalar type.
        """
        if self.fields is not None:
            return pa.struct([field_of(name, shape) for name, shape in self.fields])
        if self.item is not None:
            item = field_of("value" if self.is_map else "element", self.item)
            return pa.map_(pa.string(), item) if self.is_map else pa.list_(item)
        return pa.string() if self.is_json else self.type

    @cached_property
    def members(self) -> dict[str, Shape]:
        """The fields by name; empty unless it is a struct."""
        return dict(self.fields or ())

    @cached_property
    def width(self) -> int:
        """Number of columns of Arrow: 1, and those of the members of structs. Columns of elements do
        not count.
        """
        return 1 + sum(shape.width for _, shape in self.fields or ())

    @cached_property
    def count(self) -> int:
        """Number of columns of Arrow, those of elements included."""
        items = 0 if self.item is None else self.item.count
        return 1 + items + sum(shape.count for _, shape in self.fields or ())

    def converter(self, texts: JsonTexts) -> Convert | None:
        """Return a function that converts a decoded value for :func:`pyarrow.array`, also inside
        structs and lists: to JSON texts by ``texts``, maps to lists of pairs, bytes to decimals,
        times to the unit of the column; times of day are checked. It raises ValueError for a value that the type cannot hold. Return
        None if values need no conversion.
        """
        if self.is_json:
            return texts.format
        if self.fields is not None:
            inner = [(n, c) for n, s in self.fields if (c := s.converter(texts)) is not None]
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
            of_item = self.item.converter(texts)
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
            return lambda value: None if value is None else to_decimal(value, self.type)
        if pa.types.is_time(self.type) or pa.types.is_timestamp(self.type):
            return lambda value: None if value is None else to_unit(value, self.type)
        return None


JSON = Shape(is_json=True)
NULL = Shape(pa.null())


def name_field(path: str) -> str:
    """Return a place in a value as words: ``field PATH``, or ``the value`` for all of it (``""``)."""
    return f"field {path}" if path else "the value"


def check_name(name: Any) -> None:
    """Raise SchemaError if a name cannot be that of a column: it is no text, has a zero character,
    or is no UTF-8. Return nothing otherwise.
    """
    try:
        is_valid = isinstance(name, str) and b"\0" not in name.encode()
    except UnicodeEncodeError:
        is_valid = False
    if not is_valid:
        raise SchemaError(
            f"{name!a} is the name of a field, but cannot be the name of a column: values of this schema are not decoded"
        )


def field_of(name: str, shape: Shape) -> Any:
    """Return the nullable Arrow field of a name and a shape."""
    return pa.field(name, shape.arrow, True, TEXT if shape.is_json else None)


def merge(shapes: Sequence[Shape]) -> Shape | None:
    """Return the shape that holds values of all ``shapes`` (at least one): structs have the fields
    of each, in the order in which they come first; numbers are widened, times get the finer unit;
    JSON texts hold what differs otherwise. Return None if several shapes together have more than
    10,000 columns, those of elements included.
    """
    merged = shapes[0]
    for shape in shapes[1:]:
        merged = _merge_two(merged, shape)
        if merged.count > MAX_FIELDS:
            return None
    return merged


def _merge_two(a: Shape, b: Shape) -> Shape:
    """Return the shape that holds values of both. If they are equal, or one is null, it is the
    other one. Two structs have the fields of both, two lists or two maps merged items. Two types of
    integers become int64, other numbers float64; timestamps, times of day and decimals the type of
    :func:`merge_types`. All else becomes JSON text.
    """
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
    if a.type is not None and b.type is not None:
        found = merge_types(a.type, b.type)
        return JSON if found is None else Shape(found)
    return JSON


class JsonTexts:
    """Makes JSON texts of decoded values. ``left`` is the number of characters that they may still have."""

    def __init__(self) -> None:
        self.left = MAX_JSON

    def format(self, value: Any) -> str | None:
        """Return a decoded value as JSON; None for null. Bytes are ``{"base64": ...}``, numbers that
        are not finite are texts, and so are times, dates and decimals (:func:`format_value`). Raise
        ValueError if it has more characters than are left, or a value is none of its logical type.
        """
        return None if value is None else json.dumps(self._convert(value), ensure_ascii=False)

    def _take(self, count: int) -> None:
        """Count characters. Raise ValueError if fewer are left, and take none."""
        if count > self.left:
            raise ValueError(
                f"the JSON texts of the rows that are decoded together have more than {MAX_JSON:,} characters: read fewer rows at once"
            )
        self.left -= count

    def _convert(self, value: Any) -> Any:
        """Return a decoded value as a JSON value: values of logical types as texts, other bytes as an
        object with ``base64``, NaN and infinities as texts. Subtract about its characters from
        ``left``, and raise ValueError if fewer are left, or for a value that is none of its logical
        type.
        """
        if isinstance(value, LogicalNumber | LogicalBytes):
            value = format_value(value)
        if isinstance(value, dict):
            found = {}
            for name, item in value.items():
                self._take(len(name) + 6)
                found[name] = self._convert(item)
            return found
        if isinstance(value, list | tuple):
            self._take(len(value) + 2)
            return [self._convert(item) for item in value]
        if isinstance(value, bytes):
            self._take(len(value))
            return {"base64": base64.b64encode(value).decode("ascii")}
        self._take(len(value) if isinstance(value, str) else 4)
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return value


@dataclass(frozen=True, slots=True)
class Size:
    """Bounds of the parts of values: at most ``parts``, and ``per_byte`` more for each byte. A value has ``min_bytes`` at least."""

    parts: int
    per_byte: float
    min_bytes: int

    @staticmethod
    def largest(sizes: Sequence[Size]) -> Size:
        """Return bounds that hold for values of any of ``sizes``: the largest parts and per_byte,
        the smallest min_bytes; zeros if there are none.
        """
        return Size(
            max((s.parts for s in sizes), default=0),
            max((s.per_byte for s in sizes), default=0),
            min((s.min_bytes for s in sizes), default=0),
        )

    @staticmethod
    def sum(sizes: Sequence[Size]) -> Size:
        """Return bounds for values that consist of one value of each of ``sizes``: the sums of
        parts and min_bytes, the largest per_byte.
        """
        return Size(
            sum(s.parts for s in sizes),
            max((s.per_byte for s in sizes), default=0),
            sum(s.min_bytes for s in sizes),
        )

    def add(self, parts: int, min_bytes: int) -> Size:
        """Return the size with more parts and bytes."""
        return Size(self.parts + parts, self.per_byte, self.min_bytes + min_bytes)

    def repeat(self, key_bytes: int) -> Size:
        """Return the size of any number of such values, each with a key of ``key_bytes`` or more."""
        least = max(self.min_bytes + key_bytes, 1)
        return Size(1, (self.parts + bool(key_bytes)) / least + self.per_byte, 1)

    def estimate(self, length: Any) -> Any:
        """Return the maximum number of parts of values of a length, or of each length of an array."""
        return self.parts + self.per_byte * length


class Budget:
    """Counts the fields of a schema. Named types that refer to each other twice double at each level."""

    def __init__(self) -> None:
        self.left = MAX_FIELDS

    def take(self, depth: int) -> None:
        """Count one more field, at the level ``depth`` of the schema. Raise SchemaError if there
        are more than 10,000 (:data:`MAX_FIELDS`), or the level is above 60 (:data:`MAX_DEPTH`).
        """
        self.left -= 1
        if self.left < 0:
            raise SchemaError(
                f"the schema has more than {MAX_FIELDS:,} fields, the most that kafka-log decodes: read the values as bytes"
            )
        if depth > MAX_DEPTH:
            raise SchemaError(
                f"the schema is nested more than {MAX_DEPTH} levels deep, the most that kafka-log decodes: read the values as bytes"
            )
