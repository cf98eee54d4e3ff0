"""Defaults of fields: checks of their text, and their form in YAML."""

from __future__ import annotations

import base64
import binascii
import re

from codecgen.importers.kafka_definitions import INTEGERS, Field, Range
from codecgen.importers.yaml_text import quoted

_WHOLE = 1 << 53
"""Up to this number a float64 holds every whole number, which the schema language can write."""

_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def wrong_default(f: Field) -> str:
    """Return why the default of a field does not fit its type, or ``""`` if it does, is missing or
    empty, or the field is of records. Arrays, bytes and structs accept only ``null`` as default.
    For these and strings, ``null`` fits only if the field can be null in all its versions; any
    other text fits a string.
    """
    text, kind = f.default, f.type.non_array_name
    if not text or kind == "records":
        return ""
    if text == "null" and (not kind or kind in ("string", "bytes") or f.type.is_struct):
        if f.versions.is_within(f.nullable):
            return ""
        return f"null is no default where the field cannot be null: it can in {f.nullable} of {f.versions}"
    if kind == "bool":
        return "" if text.lower() in ("true", "false") else "the default is not true or false"
    if kind in INTEGERS:
        return _wrong_number(text, kind)
    if kind == "uuid":
        return "" if uuid_of(text) is not None else "the default is not a UUID in Base64"
    if kind == "float64":
        return "" if _FLOAT.fullmatch(text.strip()) else "the default is not a number"
    if kind == "string":
        return ""
    what = "an array" if f.type.is_array else "bytes" if kind == "bytes" else "a struct"
    return f"the default of {what} is empty, or null"


def number_of(text: str) -> int | None:
    """Return the number of a default, or None if the text is something else, such as one with
    blanks. Valid are up to 20 decimal digits, perhaps with a sign, and ``0x`` with up to 16
    hexadecimal digits, without a sign.
    """
    try:
        if text.startswith("0x"):
            return int(text[2:], 16) if re.fullmatch("[0-9a-fA-F]{1,16}", text[2:]) else None
        return int(text) if re.fullmatch(r"[+-]?[0-9]{1,20}", text) else None
    except ValueError:
        return None


def _wrong_number(text: str, kind: str) -> str:
    """Return why a default is no number of the integer type ``kind``, or does not fit it; ``""`` if
    it is valid.
    """
    number = number_of(text)
    if number is None:
        return "the default is not a number such as -1 or 0x7f"
    bits = int(kind.removeprefix("u").removeprefix("int"))
    low, high = (0, 1 << bits) if kind[0] == "u" else (-(1 << bits - 1), 1 << bits - 1)
    return "" if low <= number < high else f"{text} does not fit {kind}"


def uuid_of(text: str) -> bytes | None:
    """Return the 16 bytes of a uuid in URL-safe Base64, 22 characters with or without ``==`` after
    them. Return None for any other text, also with one ``=``.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]{22}(==)?", text):
        return None
    try:
        return base64.urlsafe_b64decode(text.rstrip("=") + "==")
    except binascii.Error:
        return None


def yaml_default(one: Field) -> str | None:
    """Return the default of a field as YAML (a stated empty text as two quotes). Return an empty
    string if it has none, or the schema language's own (records, zero uuid). Return None if the
    language cannot express it: other uuids, and floats that are no whole number or too large. The
    default must fit the type, as ``wrong_default`` checks.
    """
    kind = one.type.non_array_name
    text = one.default if kind == "string" else one.default.strip()
    if not text and kind in ("string", "bytes") and "default" in one.spans:
        return '""'
    if not text or kind == "records":
        return ""
    if text == "null" and (one.type.is_array or one.type.is_struct or kind in ("string", "bytes")):
        return "null"
    if kind == "string":
        return quoted(text)
    if kind == "bool":
        return text.lower()
    if kind == "uuid":
        return None if any(uuid_of(text) or b"") else ""
    if kind == "float64":
        number = float(text)
        return str(int(number)) if number.is_integer() and abs(number) <= _WHOLE else None
    return text.lower() if text.startswith("0x") else str(number_of(text))


def implied_default(one: Field, here: Range) -> str:
    """Return the default as YAML that Kafka gives a field without one: ``""`` in quotes for
    strings, bytes and records, ``false`` for bools, ``0`` for every other type, also an unknown
    one. Records that can be null in all versions ``here`` give ``null``; other fields never do.
    Return an empty string for arrays, structs and uuids, which need none.
    """
    if one.type.is_array or one.type.is_struct or one.type.name == "uuid":
        return ""
    kind = one.type.name
    if kind == "records" and here.is_within(one.nullable):
        return "null"
    return {"bool": "false", **dict.fromkeys(("string", "bytes", "records"), '""')}.get(kind, "0")
