"""What is in a model: fields and their parts by name, ranges of types, versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codecgen.schema.expression import Path
from codecgen.schema.model import Enum, Field, Layout, Model
from codecgen.schema.scalars import SCALARS, find_scalar, fixed_size, is_float, is_integer
from codecgen.schema.types import (
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    ChoiceType,
    FieldRange,
    Reference,
    ScalarType,
    Span,
    StructType,
    TagsType,
    Versions,
    held_layouts,
)

MAX_VERSIONS = 100


def integer_range(name: str) -> tuple[int, int] | None:
    """The numbers that an integer type holds; None for a type that holds no integers."""
    scalar = find_scalar(name)
    if scalar is None or scalar.python != "int":
        return None
    bits = scalar.bits
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if scalar.signed else (0, (1 << bits) - 1)


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
    """The one layout that a field holds."""
    if isinstance(f.type, StructType):
        return f.type.layout
    if isinstance(f.type, ArrayType) and isinstance(f.type.element, Reference):
        return f.type.element
    return None


def references_of(f: Field) -> tuple[Reference, ...]:
    """The layouts that a field can hold."""
    return held_layouts(f.type)


def choice_of(f: Field) -> ChoiceType | None:
    """The choice that a field is, or that its elements are."""
    found = f.type.element if isinstance(f.type, ArrayType) else f.type
    return found if isinstance(found, ChoiceType) else None


def bytes_of(f: Field) -> BytesType | None:
    """The bytes or the text that a field is, or that its elements are."""
    found = f.type.element if isinstance(f.type, ArrayType) else f.type
    return found if isinstance(found, BytesType) else None


def number_types(f: Field) -> list[str]:
    """The types of the numbers in a field: its own, those of lengths, counts and elements."""
    match f.type:
        case ScalarType(name) | BitsType(name):
            return [name]
        case BytesType(prefix=prefix):
            return [prefix] if prefix is not None else []
        case ArrayType(element, count, _, length):
            inner = element.prefix if isinstance(element, BytesType) else None
            inner = element.length if isinstance(element, ChoiceType) else inner
            inner = element.name if isinstance(element, ScalarType) else inner
            return [name for name in (count, length, inner) if name is not None]
        case StructType(_, str(present)) | ChoiceType(length=str(present)):
            return [present]
        case TagsType():
            return ["uvarint"]
        case _:
            return []


def index_of(layout: Layout, name: str) -> int | None:
    return next((i for i, f in enumerate(layout.fields) if f.name == name), None)


def bounds(layout: Layout, f: Field, field_range: FieldRange) -> tuple[int, int] | None:
    """The first and the last index of a field range in the layout's fields; None when a name is unknown."""
    first = (
        index_of(layout, field_range.first)
        if field_range.first
        else (index_of(layout, f.name) or 0) + 1
    )
    last = (
        index_of(layout, field_range.last)
        if field_range.last is not None
        else len(layout.fields) - 1
    )
    return None if first is None or last is None else (first, last)


def covered_parts(f: Field) -> Iterator[tuple[str, FieldRange]]:
    """The ranges that a checksum covers, with the keys of their places."""
    several = len(f.covers) > 1 or "covers.0" in f.places
    for i, part in enumerate(f.covers):
        yield f"covers.{i}" if several else "covers", part


def has_fixed_size(f: Field) -> bool:
    """Whether a number, bits, bytes or text always take as many bytes."""
    match f.type:
        case ScalarType(name):
            return fixed_size(name) is not None
        case BytesType(length):
            return isinstance(length, int)
        case _:
            return isinstance(f.type, BitsType)


def has_order(f: Field) -> bool:
    """Whether there are numbers of several bytes in a field, which come in one order or the other."""
    names = number_types(f)
    return any(is_float(name) or (is_integer(name) and SCALARS[name].width > 1) for name in names)


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
    width = SCALARS[base].bits
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


def enum_uses(
    layout: Layout,
) -> Iterator[tuple[Field | BitMember, str, tuple[str, ...] | None]]:
    """The fields and bits that stand for values of an enum: (which, enum, the values that may stand there)."""
    for f in layout.fields:
        if isinstance(f.type, ScalarType) and f.type.enum is not None:
            yield f, f.type.enum, f.type.only
        for m in members(f):
            if m.enum is not None:
                yield m, m.enum, m.only


def enum_values(enum: Enum, only: tuple[str, ...] | None) -> Iterator[tuple[str, int]]:
    """The values that may stand in a place: all, or those that are listed."""
    for value in enum.values:
        if only is None or value.name in only:
            yield value.name, value.value


def enum_of(path: Path, layout: Layout, model: Model, item: Layout | None = None) -> str | None:
    """The enum whose values a path can have. ``item`` is the layout of the elements that ``item`` stands for."""
    names = path.names
    if names[0] == "item" and item is not None and len(names) > 1:
        return enum_of(Path(names[1:]), item, model)
    field = next((f for f in layout.fields if f.name == names[0]), None)
    if field is None:
        return None
    if isinstance(field.type, ScalarType) and len(names) == 1:
        return field.type.enum
    if isinstance(field.type, BitsType) and len(names) == 2:
        return next((m.enum for m in field.type.members if m.name == names[1]), None)
    return None


def element_layout(layout: Layout, array: str | None, model: Model) -> Layout | None:
    """The layout of the elements of an array."""
    field = next((f for f in layout.fields if f.name == array), None)
    if field is None or not isinstance(field.type, ArrayType):
        return None
    element = field.type.element
    return model.layouts.get(element.layout) if isinstance(element, Reference) else None


def null_as_read(type_: ArrayType | BytesType) -> int | None:
    """Return the length or the count that means null, as it is once it is read; None where null is not allowed."""
    if type_.null is None:
        return None
    prefix = type_.count if isinstance(type_, ArrayType) else type_.length
    return type_.null - 1 if prefix == "compact" else type_.null
