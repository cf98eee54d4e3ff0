"""The bytes that a tagged field has when it holds its default: with them it is not written."""

from __future__ import annotations

import struct
import uuid

from codecgen.plan import nodes
from codecgen.plan.constant_folding import fold
from codecgen.plan.layouts import FieldPlan
from codecgen.schema.lookup import integer_range
from codecgen.schema.scalars import SCALARS, is_float
from codecgen.schema.types import BitsType, BytesType, ScalarType


def default_number(fp: FieldPlan) -> int | None:
    """The default of a field that is a whole number, or a word of bits; None for others."""
    f = fp.field
    if f.absent is not None:
        return f.absent
    if isinstance(f.type, BitsType):
        word = 0
        for m in f.type.members:
            found = fold(fp.bit_defaults[m.name]) if m.name in fp.bit_defaults else None
            word |= _number(found) << m.low
        return word
    if isinstance(f.type, ScalarType) and integer_range(f.type.name) is not None:
        return _number(None if fp.default is None else fold(fp.default))
    return None


def default_data(fp: FieldPlan) -> bytes | None:
    """The default of a field of bytes or text; None for null."""
    found = None if fp.default is None else fold(fp.default)
    if isinstance(found, nodes.NullValue):
        return None
    if isinstance(found, nodes.Data):
        return found.value.encode() if isinstance(found.value, str) else found.value
    type_ = fp.field.type
    return (
        bytes(type_.length)
        if isinstance(type_, BytesType) and isinstance(type_.length, int)
        else b""
    )


def holds_default(fp: FieldPlan, value: object) -> bool:
    """Whether the value of a tagged field is its default; of bits ``value`` is the word, of enums the number."""
    type_ = fp.field.type
    found = None if fp.default is None else fold(fp.default)
    if value is None or isinstance(found, nodes.NullValue):
        return value is None and (isinstance(found, nodes.NullValue) or hasattr(type_, "present"))
    number = default_number(fp)
    if number is not None:
        return value == number
    if isinstance(type_, BytesType):
        data = default_data(fp)
        return (value.encode() if isinstance(value, str) else value) == data
    if isinstance(type_, ScalarType) and type_.name == "uuid":
        return value == uuid.UUID(int=0)
    if isinstance(type_, ScalarType):
        return value == _number(found)
    return value == []


def default_bytes(fp: FieldPlan) -> bytes:
    """How the default of a tagged field is written."""
    f = fp.field
    little = f.endian == "little"
    match f.type:
        case ScalarType(name) | BitsType(name) if integer_range(name) is not None:
            return number_bytes(name, default_number(fp) or 0, little)
        case ScalarType(name) if is_float(name):
            found = None if fp.default is None else fold(fp.default)
            return struct.pack(
                ("<" if little else ">") + "fd"[SCALARS[name].width == 8], _number(found)
            )
        case ScalarType("uuid"):
            return bytes(16)
        case ScalarType():
            return bytes([_number(None if fp.default is None else fold(fp.default))])
        case BytesType(length, _, null):
            data = default_data(fp)
            if isinstance(length, int):
                return data or b""
            return _prefix(length, null if data is None else len(data), data, little)
    prefix = getattr(f.type, "count", None) or getattr(f.type, "present", None) or "uvarint"
    empty = fp.default is None and not hasattr(f.type, "present")
    return _prefix(
        prefix, 0 if empty else getattr(f.type, "null", 0), b"" if empty else None, little
    )


def _prefix(name: str, number: int | None, data: bytes | None, little: bool) -> bytes:
    """A length or a count (of null where there is no ``data``), and the data."""
    if name == "compact":
        return number_bytes("uvarint", (number or 0) + (data is not None), False) + (data or b"")
    return number_bytes(name, number or 0, little) + (data or b"")


def _number(found: nodes.Value | None) -> int:
    return int(getattr(found, "value", 0) or 0)


def number_bytes(name: str, value: int, little: bool) -> bytes:
    """A whole number as it is written."""
    scalar = SCALARS[name]
    if scalar.kind == "integer":
        return value.to_bytes(scalar.width, "little" if little else "big", signed=scalar.signed)
    mask = (1 << scalar.bits) - 1
    raw = ((value << 1) ^ (value >> scalar.bits - 1)) & mask if scalar.signed else value
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])


__all__ = ["default_bytes", "default_data", "default_number", "holds_default", "number_bytes"]
