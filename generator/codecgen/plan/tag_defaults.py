"""Compute the default values of tagged fields. Builders omit a tagged field that holds its default."""

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
    """Return the default of an integer or bit field (0 if it states none), or None for fields of
    other types, such as booleans and floats. ``absent``, if given, is the default of any field.
    """
    f = fp.field
    if f.absent is not None:
        return f.absent
    if isinstance(f.type, BitsType):
        word = 0
        for m in f.type.members:
            found = fold(fp.bit_defaults[m.name]) if m.name in fp.bit_defaults else None
            word |= _default_int(found) << m.low
        return word
    if isinstance(f.type, ScalarType) and integer_range(f.type.name) is not None:
        return _default_int(None if fp.default is None else fold(fp.default))
    return None


def default_data(fp: FieldPlan) -> bytes | None:
    """Return the default of a bytes or text field as bytes, text in UTF-8, or None if it is null.
    Without a stated default return zero bytes of the fixed length, or ``b""``.
    """
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
    """Return whether ``value`` is the default of a tagged field. Bit fields are given as their
    number and enum values as numbers. None equals a null default, and the default of optional
    structs; a struct that is given is never a default. Arrays and lists of tags default to ``[]``.
    """
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
        return value == _default_int(found)
    return value == []


def default_bytes(fp: FieldPlan) -> bytes:
    """Return the encoded default of a tagged field: numbers in the field's byte order, bytes of
    fixed length or with their length prefix. An array is the prefix that means empty, or null if
    that is its default; a struct is always the prefix that means null.
    """
    f = fp.field
    little = f.endian == "little"
    match f.type:
        case ScalarType(name) | BitsType(name) if integer_range(name) is not None:
            return encode_number(name, default_number(fp) or 0, little)
        case ScalarType(name) if is_float(name):
            found = None if fp.default is None else fold(fp.default)
            return struct.pack(
                ("<" if little else ">") + "fd"[SCALARS[name].width == 8], _default_int(found)
            )
        case ScalarType("uuid"):
            return bytes(16)
        case ScalarType():
            return bytes([_default_int(None if fp.default is None else fold(fp.default))])
        case BytesType(length, _, null):
            data = default_data(fp)
            if isinstance(length, int):
                return data or b""
            return _encode_prefixed(length, null if data is None else len(data), data, little)
    prefix = getattr(f.type, "count", None) or getattr(f.type, "present", None) or "uvarint"
    empty = fp.default is None and not hasattr(f.type, "present")
    return _encode_prefixed(
        prefix, 0 if empty else getattr(f.type, "null", 0), b"" if empty else None, little
    )


def _encode_prefixed(name: str, number: int | None, data: bytes | None, little: bool) -> bytes:
    """Return ``number`` (None: 0) in the length type ``name``, followed by ``data``. A compact
    length is written as one more, unless ``data`` is None, which stands for null.
    """
    if name == "compact":
        return encode_number("uvarint", (number or 0) + (data is not None), False) + (data or b"")
    return encode_number(name, number or 0, little) + (data or b"")


def _default_int(found: nodes.Value | None) -> int:
    """Return the number of a literal; 0 for None, a null, and other nodes without a value."""
    return int(getattr(found, "value", 0) or 0)


def encode_number(name: str, value: int, little: bool) -> bytes:
    """Return an integer in the encoding of the integer type ``name``: varints in 7-bit groups in
    the order of the type (zigzag if signed), others in fixed size, little-endian if ``little``.
    Raise OverflowError if it does not fit a fixed size; varints are not checked. Raise KeyError for
    ``compact`` and unknown types.
    """
    scalar = SCALARS[name]
    if scalar.kind == "integer":
        return value.to_bytes(scalar.width, "little" if little else "big", signed=scalar.signed)
    mask = (1 << scalar.bits) - 1
    raw = ((value << 1) ^ (value >> scalar.bits - 1)) & mask if scalar.signed else value
    groups = [raw & 0x7F]
    while raw > 0x7F:
        raw = (raw >> 7) - (scalar.kind == "bijective_vlq")
        groups.append(raw & 0x7F)
    if scalar.kind != "varint":
        groups.reverse()
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


__all__ = ["default_bytes", "default_data", "default_number", "encode_number", "holds_default"]
