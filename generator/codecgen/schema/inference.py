"""What a schema leaves to be found out: the enum of a codec, the only version of a layout that is held, the numbers of an
enum's values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codecgen.schema.expression import Expression, Path
from codecgen.schema.model import Enum, Layout
from codecgen.schema.types import ArrayType, BitsType, Reference, ScalarType, StructType


def complete(layout: Layout, layouts: Mapping[str, Layout], enums: Mapping[str, Enum]) -> Layout:
    """The layout with that filled in; ``layouts`` and ``enums`` are all of the directory."""
    return _with_versions(_with_codecs(_with_constants(layout, enums)), layouts)


def _with_constants(layout: Layout, enums: Mapping[str, Enum]) -> Layout:
    """The layout with numbers for constants that are values of an enum."""
    fields = []
    for f in layout.fields:
        if isinstance(f.const, str) and isinstance(f.type, ScalarType):
            number = number_of(f.const, f.type.enum, enums)
            f = f if number is None else replace(f, const=number)
        fields.append(f)
    return replace(layout, fields=tuple(fields))


def number_of(word: str, enum: str | None, enums: Mapping[str, Enum]) -> int | None:
    """The number of a value of an enum; None for what is none."""
    values = enums[enum].values if enum is not None and enum in enums else ()
    return next((v.value for v in values if v.name == word), None)


def _with_codecs(layout: Layout) -> Layout:
    """The layout with the enum of its codecs filled in: that of the field that names the codec."""
    fields = []
    for f in layout.fields:
        if isinstance(f.type, ArrayType) and f.type.compression is not None:
            enum = _enum_at(f.type.compression.by, layout)
            compression = replace(f.type.compression, enum=enum)
            f = f.with_types(compression=compression)
        fields.append(f)
    return replace(layout, fields=tuple(fields))


def _with_versions(layout: Layout, layouts: Mapping[str, Layout]) -> Layout:
    """The layout with the versions of references filled in where there is one only, and the layout has others."""

    def named(ref: Reference) -> Reference:
        held = layouts.get(ref.layout)
        v = held.versions if held is not None else None
        single = v is not None and v.low == v.high and v != layout.versions
        if held is None or v is None or ref.version is not None or not single or held.version_is:
            return ref
        return replace(ref, version=v.low)

    fields = []
    for f in layout.fields:
        if isinstance(f.type, StructType):
            f = f.with_types(layout=named(f.type.layout))
        elif isinstance(f.type, ArrayType) and isinstance(f.type.element, Reference):
            f = f.with_types(element=named(f.type.element))
        fields.append(f)
    return replace(layout, fields=tuple(fields))


def _enum_at(by: Expression, layout: Layout) -> str:
    names = by.node.names if isinstance(by.node, Path) else ()
    field = next((f for f in layout.fields if names and f.name == names[0]), None)
    if field is not None and isinstance(field.type, ScalarType) and len(names) == 1:
        return field.type.enum or ""
    if field is not None and isinstance(field.type, BitsType) and len(names) == 2:
        return next((m.enum or "" for m in field.type.members if m.name == names[1]), "")
    return ""
