"""What a word of the schema language may be changed to: types, lengths, checksums, versions, releases."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from codecgen.runtime.checksums import CHECKSUMS as _CHECKSUMS

TYPES: Mapping[str, Sequence[str]] = {
    "i8": ("u8", "i16"),
    "i16": ("u16", "i32"),
    "i32": ("u32", "i16", "i64"),
    "i64": ("u64", "i32"),
    "u8": ("i8", "u16"),
    "u16": ("i16", "u32"),
    "u32": ("i32", "u64"),
    "u64": ("i64", "u32"),
    "varint": ("uvarint", "varlong", "i32"),
    "varlong": ("uvarlong", "varint", "i64"),
    "uvarint": ("varint", "uvarlong", "i32"),
    "uvarlong": ("varlong", "uvarint", "i64"),
    "uuid": ("i64",),
    "bool": ("u8",),
    "f64": ("i64",),
    "string": ("bytes",),
    "bytes": ("string",),
}
LENGTHS: Mapping[str, Sequence[str]] = {
    **TYPES,
    "uvarint": ("varint", "compact"),
    "compact": ("uvarint", "varint"),
}
COLUMN_TYPES: Mapping[str, Sequence[str]] = {
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("int32", "timestamp_ms"),
    "bool": ("int8",),
    "timestamp_ms": ("int64",),
    "binary": ("string",),
    "string": ("binary",),
}
_WIDTHS = {name: kind.width for name, kind in _CHECKSUMS.items()}
CHECKSUMS: Mapping[str, Sequence[str]] = {
    name: [other for other in _WIDTHS if other != name and _WIDTHS[other] == width][:2]
    for name, width in _WIDTHS.items()
} | {"crc32": ["crc32c"], "crc32c": ["crc32"]}
NULLS = {"varint": "-1", "i16": "-1", "i32": "-1", "compact": "0"}
"""What null could be, where it is not allowed."""

LAYOUT_TOLERANCES = (
    *("overlong_varints", "negative_null", "any_present"),
    *("invalid_utf8", "trailing_bytes", "loose_tags"),
)
ARRAY_TOLERANCES = ("bytes_after_none", "truncated_tail", "mixed_versions", "unchecked_elements")


def numbers(text: str) -> list[str]:
    """Numbers near a number."""
    if re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", text) is None:
        return []
    number = int(text, 16 if text.startswith("0x") else 10)
    return [str(number + 1), str(number - 1)]


def versions(text: str) -> list[str]:
    """Ranges of versions near one."""
    low, sign, high = re.fullmatch(r"(\d+)([-+]?)(\d*)", text).groups()
    first = int(low)
    last = int(high) if high else first
    if sign == "+":
        return [f"{first + 1}+", str(first)] + ([f"{first - 1}+"] if first else [])
    wider = [f"{first}-{last + 1}"] + ([f"{first - 1}-{last}"] if first else [])
    narrower = [] if first == last else [_range(first + 1, last), _range(first, last - 1)]
    return [*narrower, *wider]


def flexible(text: str) -> list[str]:
    """Other versions from which on a layout is flexible, or none."""
    if text == "never":
        return ["0+"]
    first = int(text.rstrip("+"))
    return [f"{first + 1}+", "never"] + ([f"{first - 1}+"] if first else [])


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def bits(text: str) -> list[str]:
    """Places of bits near one: one bit further up, one bit less, one bit more."""
    low, _, high = text.partition("-")
    first, last = int(low), int(high or low)
    moved = [_bits(first + 1, last + 1)] + ([_bits(first - 1, last - 1)] if first else [])
    shorter = [_bits(first, last - 1)] if last > first else []
    return [*moved, *shorter, _bits(first, last + 1)]


def _bits(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def neighbours(value: str, values: Sequence[str]) -> list[str]:
    """The values before and after one in a list."""
    if value not in values:
        return []
    at = values.index(value)
    return [*values[max(at - 1, 0) : at], *values[at + 1 : at + 2]]
