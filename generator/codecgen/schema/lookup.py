"""What is in a model: fields and their parts by name, ranges of types, versions."""

from __future__ import annotations

from dataclasses import replace

from codecgen.schema.model import Field, Layout
from codecgen.schema.types import (
    INTEGERS,
    VARINTS,
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    Reference,
    Span,
    StructType,
    Versions,
)

MAX_VERSIONS = 100


def integer_range(name: str) -> tuple[int, int] | None:
    """The numbers that an integer type holds; None for a type that holds no integers."""
    if name in INTEGERS:
        size, signed = INTEGERS[name]
        bits = 8 * size
    elif name in VARINTS:
        bits, signed = VARINTS[name]
    elif name == "compact":
        bits, signed = 32, False
    else:
        return None
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def is_signed(name: str) -> bool:
    """Whether an integer type holds negative numbers."""
    low, _ = integer_range(name) or (0, 0)
    return low < 0


def field_spans(layout: Layout) -> dict[str, Span]:
    return {f.name: f.span for f in layout.fields}


def field_of(layout: Layout, name: str) -> Field | None:
    return next((f for f in layout.fields if f.name == name), None)


def members(f: Field) -> tuple[BitMember, ...]:
    return f.type.members if isinstance(f.type, BitsType) else ()


def reference_of(f: Field) -> Reference | None:
    """The layout that a field holds."""
    if isinstance(f.type, StructType):
        return f.type.layout
    if isinstance(f.type, ArrayType) and isinstance(f.type.element, Reference):
        return f.type.element
    return None


def bytes_of(f: Field) -> BytesType | None:
    """The bytes or the text that a field is, or that its elements are."""
    found = f.type.element if isinstance(f.type, ArrayType) else f.type
    return found if isinstance(found, BytesType) else None


def all_versions(layout: Layout) -> tuple[int | None, ...]:
    """The versions of a layout, never more than can be looked at one by one."""
    v = layout.versions
    if v is None or v.high is None or v.high - v.low >= MAX_VERSIONS:
        return (None,)
    return layout.all_versions()


def versions_of(layout: Layout, thing: Versions | None) -> tuple[int | None, ...]:
    """The versions of a layout in which a thing with a range exists."""
    return tuple(v for v in all_versions(layout) if thing is None or v is None or v in thing)


def exists_in(f: Field | BitMember, version: int | None) -> bool:
    return f.versions is None or version is None or version in f.versions


def spread(base: str, members: list[BitMember]) -> list[BitMember]:
    """The members with the reserved one over the bits that are left (the lowest of the longest stretches)."""
    width = INTEGERS[base][0] * 8
    taken = {bit for m in members if not m.reserved for bit in range(m.low, m.high + 1)}
    out = []
    for m in members:
        if not m.reserved:
            out.append(m)
            continue
        free = [bit for bit in range(width) if bit not in taken]
        if free:
            out.append(replace(m, low=free[0], high=free[-1]))
    return out
