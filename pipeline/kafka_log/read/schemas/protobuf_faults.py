"""Faults of Protobuf messages: which field does not fit the schema, and why. Protobuf's parser does not say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codecgen.runtime.nouns import count_noun
from kafka_log.read.schemas.shapes import name_field

MAX_BYTES = 1 << 16
"""Maximum size of a message that is searched for its fault."""
_MAX_VARINT = 10
_MAX_DEPTH = 32
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_TYPES_ON_WIRE = {
    **dict.fromkeys(("double", "fixed64", "sfixed64"), _FIXED64),
    **dict.fromkeys(("float", "fixed32", "sfixed32"), _FIXED32),
    **dict.fromkeys(("string", "bytes", "message"), _LENGTH),
}
"""Types on the wire of types of fields; all others are varints."""


def find_fault(descriptor: Any, data: bytes) -> str | None:
    """Return which field of a message does not fit its schema and why, such as ``field card.number is
    text that is not UTF-8``. Return None if every field fits, the message has more than 64 KiB, or
    it has a group.

    Args:
        descriptor: Descriptor of the message.
        data: Bytes of the message, without its path.
    """
    if len(data) > MAX_BYTES:
        return None
    return next(_find_faults(descriptor, data, "", 0), None)


def _find_faults(descriptor: Any, data: bytes, path: str, depth: int) -> Iterator[str]:
    """Yield the faults of a message up to the first one after which its fields cannot be told apart."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        if tag is None:
            yield f"{name_field(path)} ends within the number of a field"
            return
        number, kind = tag >> 3, tag & 7
        field = descriptor.fields_by_number.get(number)
        own = f"number {number}" if field is None else field.name
        inner = f"{path}.{own}" if path else own
        start = at
        size: int | None
        if kind == _LENGTH:
            size, start = _read_varint(data, at)
        elif kind == _VARINT:
            value, start = _read_varint(data, at)
            size = None if value is None else 0
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            if kind > _FIXED32 or number == 0:
                yield f"{name_field(inner)} has the type {kind} on the wire, which Protobuf lacks"
            return
        if size is None:
            yield f"the value ends in field {inner}"
            return
        left = len(data) - start
        if size > left:
            yield f"{name_field(inner)} needs {size} bytes, but {count_noun(left, 'byte is', 'bytes are')} left"
            return
        at = start + size
        if field is None:
            yield f"it has the field number {number}{f' in {path}' if path else ''}, which the schema lacks"
        else:
            yield from _find_fault_of(field, kind, data[start:at], inner, depth)


def _find_fault_of(field: Any, kind: int, data: bytes, path: str, depth: int) -> Iterator[str]:
    """Yield the faults of one field, which has the type ``kind`` on the wire and the bytes ``data``."""
    expected = _TYPES_ON_WIRE.get(_type_of(field), _VARINT)
    is_packed = kind == _LENGTH and field.is_repeated and expected != _LENGTH
    if kind != expected and not is_packed:
        yield f"{name_field(path)} is not of the type {_type_of(field)}, which the schema says"
    elif kind == _LENGTH and field.message_type is not None and depth < _MAX_DEPTH:
        yield from _find_faults(field.message_type, data, path, depth + 1)
    elif _type_of(field) == "string":
        try:
            data.decode()
        except UnicodeDecodeError:
            yield f"{name_field(path)} is text that is not UTF-8"


def _type_of(field: Any) -> str:
    """Return the name of the type of a field, such as ``string``."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    name: str = FieldDescriptorProto.Type.Name(field.type)
    return name.removeprefix("TYPE_").lower()


def _read_varint(data: bytes, at: int) -> tuple[int | None, int]:
    """Return the varint at a position, and the position after it; None if it is cut off or too long."""
    number = 0
    for i, byte in enumerate(data[at : at + _MAX_VARINT]):
        number |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return number, at + i + 1
    return None, len(data)
