"""Text as bytes in memory: numbers, times, strings of JSON, Base64.

Like all that writes here, these check no bounds: there has to be room. They give the place behind what they wrote.
"""

from __future__ import annotations

from codecgen.runtime.arrow.primitives.compiling import inner
from codecgen.runtime.arrow.primitives.memory import (
    load_i64_le,
    load_u8,
    store_8,
    store_16,
    store_32,
    store_64,
)
from codecgen.runtime.arrow.primitives.utf8 import is_utf8_within

_ONES = 0x0101010101010101
_HIGHS = 0x8080808080808080 - (1 << 64)
_QUOTES = 0x2222222222222222
_SLASHES = 0x5C5C5C5C5C5C5C5C
_SPACES = 0x2020202020202020
_FIRST_MS, _LAST_MS = -62135596800000, 253402300799999
"""The years 1 to 9999, as a datetime has them."""


@inner
def is_plain(word: int) -> bool:
    """Whether 8 bytes are ASCII that a JSON string holds as it is."""
    quotes, slashes, deletes = word ^ _QUOTES, word ^ _SLASHES, word ^ ~_HIGHS
    found = (word - _SPACES) | (quotes - _ONES) | (slashes - _ONES) | (deletes - _ONES) | word
    return found & _HIGHS == 0


@inner
def copy_bytes(to: int, start: int, size: int) -> int:
    """Copy bytes without reading around them. The place behind them."""
    i = 0
    while size - i >= 8:
        store_64(to + i, load_i64_le(start + i))
        i += 8
    if size >= 8:
        store_64(to + size - 8, load_i64_le(start + size - 8))
        return to + size
    while i < size:
        store_8(to + i, load_u8(start + i))
        i += 1
    return to + size


@inner
def is_text(start: int, size: int, end: int) -> bool:
    """Whether bytes are UTF-8 without control characters, but for tabs and ends of lines."""
    i = 0
    is_checked = False
    while i < size:
        if size - i >= 8 and is_plain(load_i64_le(start + i)):
            i += 8
            continue
        stop = min(i + 8, size)
        while i < stop:
            byte = load_u8(start + i)
            if byte == 127 or (byte < 32 and byte != 9 and byte != 10 and byte != 13):
                return False
            if byte >= 128 and not is_checked:
                if not is_utf8_within(start + i, size - i, end):
                    return False
                is_checked = True
            i += 1
    return True


@inner
def put_hex(to: int, value: int, digits: int) -> int:
    for i in range(digits):
        nibble = value >> 4 * (digits - 1 - i) & 15
        store_8(to + i, nibble + (48 if nibble < 10 else 87))
    return to + digits


@inner
def put_code(to: int, code: int) -> int:
    """A character as ``\\uXXXX``, or as two of them."""
    if code >= 0x10000:
        store_16(to, 0x755C)
        to = put_hex(to + 2, 0xD800 + (code - 0x10000 >> 10), 4)
        code = 0xDC00 + (code & 0x3FF)
    store_16(to, 0x755C)
    return put_hex(to + 2, code, 4)


@inner
def put_string(to: int, start: int, size: int, table: int) -> int:
    """UTF-8 as a JSON string. 0 when it takes the table of printable characters and there is none."""
    store_8(to, 34)
    to += 1
    i = 0
    while i < size:
        if size - i >= 8:
            word = load_i64_le(start + i)
            if is_plain(word):
                store_64(to, word)
                to += 8
                i += 8
                continue
        stop = min(i + 8, size)
        while i < stop:
            byte = load_u8(start + i)
            if byte >= 128:
                if table == 0:
                    return 0
                more = 1 + int(byte >= 0xE0) + int(byte >= 0xF0)
                code = byte & (0x3F >> more)
                for k in range(more):
                    code = code << 6 | load_u8(start + i + 1 + k) & 63
                if load_u8(table + (code >> 3)) >> (code & 7) & 1:
                    to = copy_bytes(to, start + i, more + 1)
                else:
                    to = put_code(to, code)
                i += more + 1
                continue
            i += 1
            if byte == 34 or byte == 92:
                store_16(to, byte << 8 | 92)
                to += 2
            elif 32 <= byte < 127:
                store_8(to, byte)
                to += 1
            else:
                short = 0
                if byte == 10:
                    short = 110
                elif byte == 13:
                    short = 114
                elif byte == 9:
                    short = 116
                elif byte == 8:
                    short = 98
                elif byte == 12:
                    short = 102
                if short:
                    store_16(to, short << 8 | 92)
                    to += 2
                else:
                    to = put_code(to, byte)
    store_8(to, 34)
    return to + 1


@inner
def put_base64(to: int, start: int, size: int, alphabet: int) -> int:
    """Bytes as ``{"base64": "..."}``."""
    store_64(to, 0x343665736162227B)
    store_32(to + 8, 0x22203A22)
    to += 12
    i = 0
    while i < size:
        left = size - i
        bits = load_u8(start + i) << 16
        if left > 1:
            bits |= load_u8(start + i + 1) << 8
        if left > 2:
            bits |= load_u8(start + i + 2)
        store_8(to, load_u8(alphabet + (bits >> 18)))
        store_8(to + 1, load_u8(alphabet + (bits >> 12 & 63)))
        store_8(to + 2, load_u8(alphabet + (bits >> 6 & 63)) if left > 1 else 61)
        store_8(to + 3, load_u8(alphabet + (bits & 63)) if left > 2 else 61)
        to += 4
        i += 3
    store_16(to, 0x7D22)
    return to + 2


@inner
def put_number(to: int, value: int, pad: int) -> int:
    """A number, with blanks before it up to ``pad`` characters."""
    is_negative, is_least = value < 0, value == -(1 << 63)
    value = 922337203685477580 if is_least else -value if is_negative else value
    digits, power = 1, 10
    while digits < 19 and value >= power:
        digits += 1
        power *= 10
    for _ in range(pad - digits - int(is_negative) - int(is_least)):
        store_8(to, 32)
        to += 1
    if is_negative:
        store_8(to, 45)
        to += 1
    for i in range(digits):
        store_8(to + digits - 1 - i, 48 + value % 10)
        value //= 10
    if is_least:
        store_8(to + digits, 56)
        digits += 1
    return to + digits


@inner
def put_two(to: int, value: int) -> int:
    store_16(to, 0x3030 + value // 10 + (value % 10 << 8))
    return to + 2


@inner
def put_time(to: int, value: int) -> int:
    """Milliseconds since 1970 as ISO 8601, or the number where a calendar has none."""
    if value < _FIRST_MS or value > _LAST_MS:
        return put_number(to, value, 0)
    days, rest = value // 86400000, value % 86400000
    # Years that begin in March, from the year 0: their leap days are their last ones.
    shifted = days + 719468
    era, day = shifted // 146097, shifted % 146097
    year_of_era = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year_of_era + year_of_era // 4 - year_of_era // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    month = month + 3 if month < 10 else month - 9
    year = year_of_era + era * 400 + int(month <= 2)
    to = put_two(put_two(to, year // 100), year % 100)
    store_8(to, 45)
    to = put_two(to + 1, month)
    store_8(to, 45)
    to = put_two(to + 1, day)
    store_8(to, 84)
    to = put_two(to + 1, rest // 3600000)
    store_8(to, 58)
    to = put_two(to + 1, rest // 60000 % 60)
    store_8(to, 58)
    to = put_two(to + 1, rest // 1000 % 60)
    store_8(to, 46)
    store_8(to + 1, 48 + rest // 100 % 10)
    to = put_two(to + 2, rest % 100)
    store_8(to, 90)
    return to + 1


@inner
def put_shown(to: int, start: int, size: int, end: int, most: int, table: int) -> int:
    """At most so many bytes for people: as a JSON string where they are text, else in hex. 0 as in put_string."""
    cut = size
    if size > most:
        cut = most
        while cut > 0 and cut > most - 3 and load_u8(start + cut) & 0xC0 == 0x80:
            cut -= 1
    if is_text(start, cut, end):
        to = put_string(to, start, cut, table)
        if to == 0:
            return 0
    else:
        store_16(to, 0x7830)
        to += 2
        for i in range(cut):
            to = put_hex(to, load_u8(start + i), 2)
    if cut < size:
        store_32(to, 0x282E2E2E)
        to = put_number(to + 4, size - cut, 0)
        store_64(to, 0x6D20736574796220)
        store_32(to + 8, 0x2965726F)
        to += 12
    return to
