"""Look up parts of a model: fields and members by name, ranges of types, versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codecgen.diagnostics import Span
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
    StructType,
    TagsType,
    Versions,
    held_layouts,
)

MAX_VERSIONS = 100


def integer_range(name: str) -> tuple[int, int] | None:
    """Return the smallest and largest number, both included, of an integer or variable-length
    integer type, ``compact`` included. Return None for other and unknown types.
    """
    scalar = find_scalar(name)
    if scalar is None or scalar.python != "int":
        return None
    bits = scalar.bits
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if scalar.signed else (0, (1 << bits) - 1)


def is_signed(name: str) -> bool:
    """Return whether an integer type holds negative numbers; False for other and unknown types."""
    low, _ = integer_range(name) or (0, 0)
    return low < 0


def field_spans(layout: Layout) -> dict[str, Span]:
    """Return the place of each field of a layout, and of each value that it is given, by name."""
    return {f.name: f.span for f in (*layout.fields, *layout.given)}


def field_of(layout: Layout, name: str) -> Field | None:
    """Return the field ``name`` of a layout, or None if there is none."""
    return next((f for f in layout.fields if f.name == name), None)


def value_of(layout: Layout, name: str) -> Field | None:
    """Return the field ``name`` of a layout or the value of this name that it is given, or None if there is neither."""
    return next((f for f in (*layout.fields, *layout.given) if f.name == name), None)


def given_of(f: Field, model: Model) -> tuple[Field, ...]:
    """Return the values that the layout or the choice which a field or its elements hold is given.
    Return ``()`` if they hold none, or one that the model does not have.
    """
    choice = choice_of(f)
    if choice is not None:
        return model.choices[choice.choice].outer if choice.choice in model.choices else ()
    ref = reference_of(f)
    held = None if ref is None else model.layouts.get(ref.layout)
    return () if held is None else held.given


def members(f: Field) -> tuple[BitMember, ...]:
    """Return the members of a field of bits, or ``()`` for other fields."""
    return f.type.members if isinstance(f.type, BitsType) else ()


def reference_of(f: Field) -> Reference | None:
    """Return the reference to the layout that a field or its elements hold, or None if they hold
    none or a choice of several.
    """
    if isinstance(f.type, StructType):
        return f.type.layout
    if isinstance(f.type, ArrayType) and isinstance(f.type.element, Reference):
        return f.type.element
    return None


def references_of(f: Field) -> tuple[Reference, ...]:
    """Return all layouts that a field can hold, directly, as elements or as cases; ``()`` if it
    holds none.
    """
    return held_layouts(f.type)


def choice_of(f: Field) -> ChoiceType | None:
    """Return the choice that a field is or that its elements are, or None."""
    found = f.type.element if isinstance(f.type, ArrayType) else f.type
    return found if isinstance(found, ChoiceType) else None


def bytes_of(f: Field) -> BytesType | None:
    """Return the type of bytes or text that a field is or that its elements are, or None."""
    found = f.type.element if isinstance(f.type, ArrayType) else f.type
    return found if isinstance(found, BytesType) else None


def number_types(f: Field) -> list[str]:
    """Return the scalar types in the encoding of a field: its own or bit base, or those of its
    count, length prefix, presence number and elements, in this order. Return ``[]`` for types
    without numbers.
    """
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
    """Return the index of a field in the layout, or None if there is none of this name."""
    return next((i for i, f in enumerate(layout.fields) if f.name == name), None)


def range_bounds(layout: Layout, f: Field, field_range: FieldRange) -> tuple[int, int] | None:
    """Return the first and last index of a field range, both included, or None if it names an
    unknown field. An empty first name stands for the field after ``f``, no last name for the last
    field. The range can be empty or reversed.
    """
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
    """Yield the ranges of a checksum, in order, each after the key of its place: ``covers`` for a
    single range, ``covers.0``, ``covers.1`` and so on for a list. Yield nothing for other fields.
    """
    several = len(f.covers) > 1 or "covers.0" in f.places
    for i, part in enumerate(f.covers):
        yield f"covers.{i}" if several else "covers", part


def has_fixed_size(f: Field) -> bool:
    """Return whether a scalar, bits, bytes or text field has the same size for all values. False
    for varints, bits of varints and for all other types, arrays and structs included.
    """
    match f.type:
        case ScalarType(name):
            return fixed_size(name) is not None
        case BytesType(length):
            return isinstance(length, int)
        case _:
            return isinstance(f.type, BitsType) and fixed_size(f.type.base) is not None


def has_byte_order(f: Field) -> bool:
    """Return whether a field contains floats or fixed-size integers of several bytes, so that the
    byte order matters. Its count, length prefix and elements count; layouts that it holds do not.
    """
    names = number_types(f)
    return any(is_float(name) or (is_integer(name) and SCALARS[name].width > 1) for name in names)


def all_versions(layout: Layout) -> tuple[int | None, ...]:
    """Return the versions of a layout in ascending order, or ``(None,)`` if it has none, has no
    upper end, or has more than ``MAX_VERSIONS``.
    """
    v = layout.versions
    if v is None or v.high is None or v.high - v.low >= MAX_VERSIONS:
        return (None,)
    return layout.all_versions()


def versions_of(layout: Layout, thing: Versions | None) -> tuple[int | None, ...]:
    """Return the versions of a layout in the range ``thing``, ascending; all if ``thing`` is None.
    Return ``(None,)`` for layouts for which :func:`all_versions` does, whatever the range, and
    ``()`` if no version is in the range.
    """
    return tuple(v for v in all_versions(layout) if thing is None or v is None or v in thing)


def exists_in(f: Field | BitMember, version: int | None) -> bool:
    """Return whether a field or member exists in a version. True if it has no version range, and
    for a version of None.
    """
    return f.versions is None or version is None or version in f.versions


def with_reserved_bits(base: str, members: list[BitMember]) -> list[BitMember]:
    """Return the members with each reserved one placed from the first to the last bit that no other
    member takes, or dropped if no bit is free. Bits between may belong to others.
    """
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
    """Yield (field or bit member, enum, names under ``only`` or None for all) for each scalar field,
    value from outside and bit member with an enum. Types of a field in several versions have the
    same enum.
    """
    for f in (*layout.fields, *layout.given):
        if isinstance(f.type, ScalarType) and f.type.enum is not None:
            yield f, f.type.enum, f.type.only
        for m in members(f):
            if m.enum is not None:
                yield m, m.enum, m.only


def enum_values(enum: Enum, only: tuple[str, ...] | None) -> Iterator[tuple[str, int]]:
    """Yield the name and number of each value of an enum that ``only`` allows. None allows all."""
    for value in enum.values:
        if only is None or value.name in only:
            yield value.name, value.value


def enum_of(path: Path, layout: Layout, model: Model, item: Layout | None = None) -> str | None:
    """Return the enum of the scalar field or bit member that a path names, or None if it names none
    or has no enum. Paths that begin with ``item`` are looked up in ``item``, the layout of the
    current element.
    """
    names = path.names
    if names[0] == "item" and item is not None and len(names) > 1:
        return enum_of(Path(names[1:]), item, model)
    field = value_of(layout, names[0])
    if field is None:
        return None
    if isinstance(field.type, ScalarType) and len(names) == 1:
        return field.type.enum
    if isinstance(field.type, BitsType) and len(names) == 2:
        return next((m.enum for m in field.type.members if m.name == names[1]), None)
    return None


def element_layout(layout: Layout, array: str | None, model: Model) -> Layout | None:
    """Return the layout of the elements of an array, or None if ``array`` names no array of the
    layout, or its elements are no known layout.
    """
    field = next((f for f in layout.fields if f.name == array), None)
    if field is None or not isinstance(field.type, ArrayType):
        return None
    element = field.type.element
    return model.layouts.get(element.layout) if isinstance(element, Reference) else None


def null_as_read(type_: ArrayType | BytesType) -> int | None:
    """Return the length or count that means null, as it is after decoding: 1 less for compact
    lengths, which store the length plus 1. Return None if null is not allowed. For arrays only the
    count is looked at.
    """
    if type_.null is None:
        return None
    prefix = type_.count if isinstance(type_, ArrayType) else type_.length
    return type_.null - 1 if prefix == "compact" else type_.null
