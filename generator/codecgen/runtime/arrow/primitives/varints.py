"""Varints that are read."""

from __future__ import annotations

from codecgen.runtime.arrow.primitives.compiling import inner
from codecgen.runtime.arrow.primitives.memory import load_u8


@inner
def _long_uvarint(p: int) -> tuple[int, int, bool]:
    """Decode an unsigned 32-bit varint of three to five bytes at address ``p``. Return (value, next
    address, True if it is in its shortest form and has at most 32 bits); (0, ``p``, False) if it
    has more than five bytes.
    """
    value = load_u8(p) & 0x7F | (load_u8(p + 1) & 0x7F) << 7
    for i in range(2, 5):
        byte = load_u8(p + i)
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, p + i + 1, byte != 0 and value <= 0xFFFFFFFF
    return 0, p, False


@inner
def uvarint(p: int) -> tuple[int, int, bool]:
    """Decode an unsigned 32-bit varint at address ``p``. Return (value, next address, True if it is
    in its shortest form and has at most 32 bits); (0, ``p``, False) if it has more than five bytes.
    """
    byte = load_u8(p)
    if byte < 0x80:
        return byte, p + 1, True
    more = load_u8(p + 1)
    if more < 0x80:
        return byte & 0x7F | more << 7, p + 2, more != 0
    return _long_uvarint(p)


@inner
def varint(p: int) -> tuple[int, int, bool]:
    """Decode a zigzag 32-bit varint at address ``p``. Return (value, next address, True if it is in
    its shortest form and has at most 32 bits); (0, ``p``, False) if it has more than five bytes.
    """
    value, after, shortest = uvarint(p)
    return (value >> 1) ^ -(value & 1), after, shortest


@inner
def _long_varlong(p: int) -> tuple[int, int, bool]:
    """Decode a zigzag 64-bit varint of two to ten bytes at address ``p``. Return (value, next
    address, True if it is in its shortest form and has at most 64 bits); (0, ``p``, False) if it
    has more than ten bytes.
    """
    byte = load_u8(p)
    sign = -(byte & 1)
    value = (byte & 0x7F) >> 1  # all but the sign, which is the lowest bit
    for i in range(1, 10):
        byte = load_u8(p + i)
        value |= (byte & 0x7F) << 7 * i - 1
        if byte < 0x80:
            return value ^ sign, p + i + 1, byte != 0 and (i < 9 or byte == 1)
    return 0, p, False


@inner
def varlong(p: int) -> tuple[int, int, bool]:
    """Decode a zigzag 64-bit varint at address ``p``. Return (value, next address, True if it is in
    its shortest form and has at most 64 bits); (0, ``p``, False) if it has more than ten bytes.
    """
    byte = load_u8(p)
    sign = -(byte & 1)
    if byte < 0x80:
        return (byte >> 1) ^ sign, p + 1, True
    more = load_u8(p + 1)
    if more < 0x80:
        return ((byte & 0x7F) >> 1 | more << 6) ^ sign, p + 2, more != 0
    return _long_varlong(p)
