"""Values of a hex dump in a few words."""

from __future__ import annotations

from typing import Any

from codecgen.diagnostics import printable
from codecgen.schema.model import Field
from codecgen.schema.types import BitsType


def shown(value: Any) -> str:
    """A value in a few words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            return f"{len(value)} bytes"
        if not value.isprintable():
            return f"{len(value.encode('utf-8'))} bytes"
    if isinstance(value, str):
        return '"' + printable(value if len(value) <= 60 else value[:57] + "...") + '"'
    label = getattr(value, "label", None)
    return str(value) if label is None else f"{int(value)} {label}"


def scalar_words(f: Field, value: Any) -> str:
    words = shown(value)
    if f.checksum is not None:
        words = f"0x{value:08x}"
    if f.unit is not None:
        words += f" {f.unit}"
    if f.absent is not None and value == f.absent:
        words += " (none)"
    return words


def bits_words(bits: BitsType, value: Any) -> str:
    """The bits that are set, and the values of enums; ``0`` when there is nothing to tell."""
    parts = []
    for m in sorted(bits.members, key=lambda m: m.low):
        part = value[m.name]
        if m.enum is not None:
            parts.append(f"{m.name} {shown(part)}")
        elif m.width == 1 and not m.reserved:
            parts += [m.name] if part else []
        elif part:
            parts.append(f"{m.name} {part}")
    return ", ".join(parts) or "0"
