"""What the bytes of a field say, in a few words."""

from __future__ import annotations

import json
from typing import Any

from codecgen.runtime.construct import Bits, Field
from kafka_log.text.printing import iso_time, printable

LONGEST = 60
"""Characters of a text that are shown at most."""

TIME_BYTES = 8
"""Milliseconds in so many bytes are counted from 1970: fewer have no room for them, and are durations or differences."""


def words(field: Field, value: Any) -> str:
    """What a field says that is no bytes and has no parts of its own."""
    if field.checksum is not None and isinstance(value, int):
        return f"0x{value:08x}"
    if isinstance(field.codec, Bits):
        return _bits(field.codec, value)
    if field.absent is not None and value == field.absent:
        return f"{value} (none)"
    if field.unit == "ms" and field.codec.size == TIME_BYTES:
        return f"{value}, {iso_time(value)}"
    return shown(value)


def kind_of(codec: Any) -> str:
    """What kind of value a codec reads: ``int64``, ``varint``, ``bytes``, ``uuid``, ..."""
    label = getattr(codec, "label", None)
    if isinstance(label, str):
        return label
    base = getattr(codec, "base", None)
    return type(codec).__name__.lower() if base is None else kind_of(base)


def shown(value: Any) -> str:
    """A value; text is in quotes, and bytes that cannot be printed are a number of bytes."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if not text.isprintable():
            return f"{len(value)} bytes"
        value = text
    if isinstance(value, str):
        cut = value if len(value) <= LONGEST else value[: LONGEST - 3] + "..."
        return printable(json.dumps(cut, ensure_ascii=False))
    label = getattr(value, "label", None)
    return str(value) if label is None else f"{int(value)} {label}"


def _bits(bits: Bits, value: Any) -> str:
    """The bits that are set, and the values of enums; ``0`` when there is nothing to tell."""
    parts = []
    for bit in sorted(bits.bits, key=lambda bit: bit.low):
        part = value[bit.name]
        if bit.enum is not None:
            parts.append(f"{bit.name} {shown(part)}")
        elif bit.flag:
            parts += [bit.name] if part else []
        elif part:
            parts.append(f"{bit.name} {part}")
    return ", ".join(parts) or "0"
