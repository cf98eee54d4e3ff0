"""Whether bytes are text in UTF-8."""

from __future__ import annotations

from codecgen.runtime.arrow.primitives.compiling import inner
from codecgen.runtime.arrow.primitives.memory import load_i64_le, load_u8

_HIGH_BITS = 0x8080808080808080 - (1 << 64)
"""The bits that are set in bytes that are not ASCII, as a signed number."""


@inner
def is_utf8(start: int, size: int) -> bool:
    """Return True if the ``size`` bytes at address ``start`` are UTF-8 as Unicode defines it:
    shortest forms, no surrogates, at most U+10FFFF; also if ``size`` is 0. Up to 8 bytes after them
    may be read.
    """
    i = 0
    while size - i >= 8 and load_i64_le(start + i) & _HIGH_BITS == 0:
        i += 8
    left = size - i
    if left < 8 and load_i64_le(start + i) & _HIGH_BITS & (1 << 8 * left) - 1 == 0:
        return True
    while i < size:
        byte = load_u8(start + i)
        if byte < 0x80:
            i += 1
            continue
        if 0xC2 <= byte <= 0xDF:
            more, low, high = 1, 0x80, 0xBF
        elif 0xE0 <= byte <= 0xEF:
            more = 2
            low = 0xA0 if byte == 0xE0 else 0x80
            high = 0x9F if byte == 0xED else 0xBF
        elif 0xF0 <= byte <= 0xF4:
            more = 3
            low = 0x90 if byte == 0xF0 else 0x80
            high = 0x8F if byte == 0xF4 else 0xBF
        else:
            return False
        if size - i <= more:
            return False
        second = load_u8(start + i + 1)
        if second < low or second > high:
            return False
        for k in range(2, more + 1):
            if load_u8(start + i + k) & 0xC0 != 0x80:
                return False
        i += more + 1
    return True


@inner
def is_utf8_within(start: int, size: int, end: int) -> bool:
    """Return True if the ``size`` bytes at address ``start`` are UTF-8, as :func:`is_utf8` does,
    but read no byte at or after the address ``end``.
    """
    if start + size + 8 <= end:
        return is_utf8(start, size)
    left = 0
    low, high = 0x80, 0xBF
    for i in range(size):
        byte = load_u8(start + i)
        if left:
            if byte < low or byte > high:
                return False
            left -= 1
            low, high = 0x80, 0xBF
        elif byte >= 0x80:
            if byte < 0xC2 or byte > 0xF4:
                return False
            left = 1 + int(byte >= 0xE0) + int(byte >= 0xF0)
            if byte == 0xE0 or byte == 0xF0:  # longer than they need be
                low = 0xA0 if byte == 0xE0 else 0x90
            if byte == 0xED or byte == 0xF4:  # surrogates, and what is above U+10FFFF
                high = 0x9F if byte == 0xED else 0x8F
    return left == 0
