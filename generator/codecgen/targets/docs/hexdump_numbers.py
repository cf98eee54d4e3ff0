"""Numbers as they stand in bytes, for dumps."""

from __future__ import annotations

from typing import Literal

from codecgen.schema.scalars import find_scalar, fixed_size

Endian = Literal["big", "little"]
Bytes = bytes | memoryview
"""What a stream is made of: a file may be mapped."""


def uvarint_at(data: Bytes, start: int) -> tuple[int, int]:
    """The unsigned varint at a place, and the byte after it."""
    after = start + scalar_size("uvarint", data, start)
    return scalar_value("uvarint", bytes(data[start:after]), "big"), after


def scalar_size(name: str | int, data: Bytes, start: int) -> int:
    """Bytes of the number that stands at a place."""
    if isinstance(name, int):
        return name
    fixed = fixed_size(name)
    if fixed is not None:
        return fixed
    size = 1
    while start + size <= len(data) and data[start + size - 1] >= 0x80:
        size += 1
    return size


def scalar_value(name: str, data: Bytes, endian: Endian) -> int:
    """The number that bytes are as a length or a count."""
    scalar = find_scalar(name)
    assert scalar is not None
    if scalar.kind == "integer":
        return int.from_bytes(data, endian, signed=scalar.signed)
    number = sum((byte & 0x7F) << 7 * i for i, byte in enumerate(data)) & (1 << scalar.bits) - 1
    if scalar.signed:
        return (number >> 1) ^ -(number & 1)
    return number - 1 if name == "compact" else number
