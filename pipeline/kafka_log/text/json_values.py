"""Values of Arrow columns as JSON values, and JSON as text that a terminal prints."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from kafka_log.text.values import format_uuid

_UNPRINTABLE = re.compile(r"[^ -~]")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_JSON = {b"kafka_log": b"json"}


def format_json(value: Any, *, compact: bool = False) -> str:
    """Return a JSON value as text on one line, without spaces between tokens if `compact`.
    Characters that a terminal does not print are escaped. Raise ValueError for NaN and infinities,
    TypeError for a value that JSON does not have.
    """
    separators = (",", ":") if compact else None
    line = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=separators)
    if line.isprintable():
        return line
    return _UNPRINTABLE.sub(lambda c: c[0] if c[0].isprintable() else json.dumps(c[0])[1:-1], line)


def json_converter(kind: Any) -> Callable[[Any], Any]:
    """Return the function that converts numbers and bytes of an Arrow type, as Python has them, to
    JSON values. A fixed-size binary of 16 bytes becomes a UUID in Base64, another one a string if it
    is text, else ``{"base64": ...}``; a number that is not finite becomes text (``"NaN"``). The
    function returns None for None, and values of other types as they are, also other binaries.
    """
    convert: Callable[[Any], Any]
    if pa.types.is_floating(kind):
        convert = _json_number
    elif pa.types.is_fixed_size_binary(kind):
        convert = format_uuid if kind.byte_width == 16 else convert_bytes
    else:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def make_json_field(name: str) -> pa.Field:
    """Return the field of a column whose texts are JSON already, each on one line as :func:`format_json` returns it."""
    return pa.field(name, pa.string(), metadata=_JSON)


def is_json(field: pa.Field) -> bool:
    """Return whether :func:`make_json_field` made a field."""
    return bool(field.metadata) and field.metadata.items() >= _JSON.items()


def is_text(value: bytes) -> bool:
    """Return whether bytes are UTF-8 without control characters of ASCII (DEL is one), except tabs and ends of lines."""
    if _CONTROL.search(value):
        return False
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def convert_bytes(value: bytes) -> Any:
    """Return bytes as a JSON value: a string if they are text (:func:`is_text`), else ``{"base64": ...}``."""
    if is_text(value):
        return value.decode("utf-8")
    return {"base64": b64encode(value).decode("ascii")}


def to_objects(column: Any) -> list[Any]:
    """Return the values of a column as Python objects. Times are integers in the unit of their type, as some exceed the range of datetime."""
    plain = _without_times(column.type)
    return (column if plain == column.type else column.cast(plain)).to_pylist()  # type: ignore[no-any-return]


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table as Python objects by column name. Times are integers in the unit of their type."""
    columns = [to_objects(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _json_number(value: float) -> float | str:
    """Return a number as a JSON value: the text NaN, Infinity or -Infinity if it is not finite."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _without_times(kind: Any) -> Any:
    """Return an Arrow type with 64-bit integers for timestamps and value types for dictionaries,
    also inside lists and structs; other types, also maps and large lists of timestamps, as they are.
    """
    if pa.types.is_dictionary(kind):
        return _without_times(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_times(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_times(field.type)) for field in kind])
    return kind
