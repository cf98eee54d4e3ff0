"""Faults of Avro values: which field of a value does not fit its schema, and why.

fastavro says neither. Only values that it has rejected are read again here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codecgen.runtime.nouns import count_noun
from kafka_log.read.schemas.avro_types import PRIMITIVES, RECORDS
from kafka_log.read.schemas.shapes import name_field

MAX_BYTES = 1 << 16
"""Maximum size of a value that is searched for its fault."""
_MAX_VARINT = 10
_SIZES = {"float": 4, "double": 8}


def find_fault(schema: Any, named: Mapping[str, Any], data: bytes) -> str | None:
    """Return which field of a value does not fit its schema and why, such as ``the value ends in field
    lines[1].sku``. Return None if every field fits, or the value has more than 64 KiB.

    Args:
        schema: The schema as fastavro parses it.
        named: The named types, by full name.
        data: Bytes of the value.
    """
    if len(data) > MAX_BYTES:
        return None
    walk = _Walk(named, data)
    try:
        walk.read(schema, "")
    except _Fault as fault:
        return str(fault)
    left = len(data) - walk.at
    if not left:
        return None
    return f"{count_noun(left, 'byte follows', 'bytes follow')} its last field"


class _Fault(Exception):
    """Raised at the first field that does not fit."""


class _Walk:
    """Reader of a value that notes only where it is."""

    def __init__(self, named: Mapping[str, Any], data: bytes) -> None:
        self._named = named
        self._data = data
        self.at = 0

    def read(self, schema: Any, path: str) -> None:
        """Read one value of a type. ``path`` is its place in the value, "" for all of it. Raise _Fault
        if the bytes are no value of the type.
        """
        if isinstance(schema, list):
            branch = self._read_long(path)
            if not 0 <= branch < len(schema):
                raise _Fault(
                    f"{name_field(path)} has branch {branch} of a union of {len(schema)} types"
                )
            self.read(schema[branch], path)
            return
        if isinstance(schema, str) and schema not in PRIMITIVES:
            schema = self._named[schema]
        kind = schema if isinstance(schema, str) else schema["type"]
        if isinstance(kind, dict | list):
            self.read(kind, path)
        elif kind in RECORDS:
            for field in schema["fields"]:
                self.read(field["type"], f"{path}.{field['name']}" if path else field["name"])
        elif kind == "enum":
            symbol, count = self._read_long(path), len(schema["symbols"])
            if not 0 <= symbol < count:
                raise _Fault(
                    f"{name_field(path)} has symbol {symbol} of an enum of {count} symbols"
                )
        elif kind in ("array", "map"):
            self._read_blocks(schema, kind == "map", path)
        elif kind == "fixed":
            self._take(int(schema["size"]), path)
        elif kind in ("int", "long"):
            self._read_long(path)
        elif kind in ("bytes", "string"):
            self._read_text(path, is_text=kind == "string")
        elif kind == "boolean":
            if (byte := self._take(1, path)[0]) > 1:
                raise _Fault(f"{name_field(path)} has the byte {byte}, which is no boolean")
        else:
            self._take(_SIZES.get(kind, 0), path)

    def _read_blocks(self, schema: Any, is_map: bool, path: str) -> None:
        """Read the elements of an array or map."""
        index = 0
        while count := self._read_long(path):
            if count < 0:  # the size of the block in bytes follows
                count = -count
                self._read_long(path)
            if count > len(self._data) - self.at:
                left = len(self._data) - self.at
                raise _Fault(
                    f"{name_field(path)} has {count} elements by its count, but {count_noun(left, 'byte follows', 'bytes follow')}"
                )
            for _ in range(count):
                if is_map:
                    key = self._read_text(f"{path} (a key)" if path else path, is_text=True)
                    self.read(schema["values"], f"{path}[{key.decode()!a}]")
                else:
                    self.read(schema["items"], f"{path}[{index}]")
                index += 1

    def _read_text(self, path: str, *, is_text: bool) -> bytes:
        """Return the bytes of a text or of bytes."""
        length = self._read_long(path)
        if length < 0:
            raise _Fault(f"{name_field(path)} has the length {length}")
        found = self._take(length, path)
        if is_text:
            try:
                found.decode()
            except UnicodeDecodeError:
                raise _Fault(f"{name_field(path)} is text that is not UTF-8") from None
        return found

    def _read_long(self, path: str) -> int:
        """Return a number in the encoding of int and long."""
        number = 0
        for i in range(_MAX_VARINT):
            byte = self._take(1, path)[0]
            number |= (byte & 0x7F) << (7 * i)
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
        raise _Fault(f"{name_field(path)} has a number of more than 64 bits")

    def _take(self, size: int, path: str) -> bytes:
        """Return the next bytes."""
        left = len(self._data) - self.at
        if size > left:
            if size == 1:
                raise _Fault(
                    f"the value ends in {name_field(path)}" if path else "the value is too short"
                )
            raise _Fault(
                f"{name_field(path)} needs {size} bytes, but {count_noun(left, 'byte is', 'bytes are')} left"
            )
        self.at += size
        return self._data[self.at - size : self.at]
