"""Infer what a schema leaves open: enums of codecs, the only version of a held layout, numbers of enum values,
cases of choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from codecgen.diagnostics import Span
from codecgen.schema.expression import Expression, Path
from codecgen.schema.lookup import choice_of, field_of, members, references_of, value_of
from codecgen.schema.model import Choice, Enum, Field, Layout
from codecgen.schema.nested_choices import first_layout
from codecgen.schema.reader import Record
from codecgen.schema.types import (
    FROM_OUTSIDE,
    ArrayType,
    BitsType,
    BytesType,
    ChoiceType,
    FieldRange,
    FieldType,
    Reference,
    ScalarType,
    Since,
    StructType,
    Versions,
)


def complete_layout(
    layout: Layout, layouts: Mapping[str, Layout], enums: Mapping[str, Enum]
) -> Layout:
    """Return the layout with numbers for constants, enums of codecs, and versions of references filled in."""
    return _with_versions(_with_codecs(_with_constants(layout, enums)), layouts)


def _with_constants(layout: Layout, enums: Mapping[str, Enum]) -> Layout:
    """Return the layout with constants that are names of enum values replaced by their numbers.
    Unknown names, and constants of fields that are no scalars, stay text.
    """
    fields = []
    for f in layout.fields:
        if isinstance(f.const, str) and isinstance(f.type, ScalarType):
            number = find_enum_number(f.const, f.type.enum, enums)
            f = f if number is None else replace(f, const=number)
        fields.append(f)
    return replace(layout, fields=tuple(fields))


def find_enum_number(word: str, enum: str | None, enums: Mapping[str, Enum]) -> int | None:
    """Return the number of the value ``word`` of an enum, or None if there is no such value, or
    ``enum`` is None or unknown.
    """
    values = enums[enum].values if enum is not None and enum in enums else ()
    return next((v.value for v in values if v.name == word), None)


def _with_codecs(layout: Layout) -> Layout:
    """Return the layout with the enum of each array compression filled in: that of the field or
    bits that select the codec, or ``""`` if there is none.
    """
    fields = []
    for f in layout.fields:
        if isinstance(f.type, ArrayType) and f.type.compression is not None:
            enum = _find_enum(f.type.compression.by, layout)
            compression = replace(f.type.compression, enum=enum)
            f = f.with_types(compression=compression)
        fields.append(f)
    return replace(layout, fields=tuple(fields))


def _with_versions(layout: Layout, layouts: Mapping[str, Layout]) -> Layout:
    """Return the layout with the version filled in for each reference, from a struct or array
    element, to a layout of a single version. References stay open if the layout has the same single
    version, or the held one has a version field.
    """

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


def _find_enum(by: Expression, layout: Layout) -> str:
    """Return the enum of the scalar field (``name``) or bit member (``name.bit``) that ``by``
    names, or ``""`` if it is no such path or has no enum.
    """
    names = by.node.names if isinstance(by.node, Path) else ()
    field = value_of(layout, names[0]) if names else None
    if field is not None and isinstance(field.type, ScalarType) and len(names) == 1:
        return field.type.enum or ""
    if field is not None and isinstance(field.type, BitsType) and len(names) == 2:
        return next((m.enum or "" for m in field.type.members if m.name == names[1]), "")
    return ""


def with_numbers(
    choice: Choice,
    layouts: Mapping[str, Layout],
    enums: Mapping[str, Enum],
    choices: Mapping[str, Choice],
) -> Choice:
    """Return the choice with names of enum values in its cases as numbers where they are known.
    Fill in the version of a case if its layout has a single version and no version field. If the
    version field decides, and the keys of a layout's cases are just its versions, the key is the
    version. A choice that is not decided by a field is returned unchanged.
    """
    if choice.by is None:
        return choice
    cases: list[tuple[int | str, Reference]] = []
    places = dict(choice.places)
    for key, ref in choice.cases:
        layout = layouts.get(first_layout(ref, choices))
        field = None if layout is None else field_of(layout, choice.by)
        name = field.type.enum if field and isinstance(field.type, ScalarType) else None
        number = find_enum_number(key, name, enums) if isinstance(key, str) else None
        if number is not None:
            places[f"cases.{number}"] = places[f"cases.{key}"]
        if layout is None or layout.name != ref.layout:  # a choice, whose cases say their versions
            cases.append((key if number is None else number, ref))
            continue
        v = layout.versions
        if v is not None and v.low == v.high and ref.version is None and not layout.version_is:
            ref = replace(ref, version=v.low)
        every = {key for key, other in choice.cases if other == ref}
        by_version = field is not None and field.is_version and ref.version is None
        if by_version and isinstance(key, int) and every == set(layout.all_versions()):
            ref = replace(ref, version=key)
        cases.append((key if number is None else number, ref))
    return replace(choice, cases=tuple(cases), named=tuple(cases), places=places)


def with_cases(layout: Layout, choices: Mapping[str, Choice], enums: Mapping[str, Enum]) -> Layout:
    """Return the layout with the cases, discriminator and enum of each choice in its fields and
    array elements filled in. Unknown choices stay without cases.
    """

    def filled(type_: FieldType, f: Field) -> FieldType:
        if isinstance(type_, ArrayType) and isinstance(type_.element, ChoiceType):
            return replace(type_, element=_fill_choice(type_.element, f, choices, enums))
        return _fill_choice(type_, f, choices, enums) if isinstance(type_, ChoiceType) else type_

    fields = []
    for f in layout.fields:
        types = tuple((versions, filled(type_, f)) for versions, type_ in f.types)
        fields.append(replace(f, type=filled(f.type, f), types=types))
    return replace(layout, fields=tuple(fields))


def _fill_choice(
    type_: ChoiceType, f: Field, choices: Mapping[str, Choice], enums: Mapping[str, Enum]
) -> ChoiceType:
    """Return the choice in the field ``f`` with its discriminator, enum and cases by number. Cases whose enum
    value is unknown are left out. Return ``type_`` unchanged if the choice is unknown.
    """
    choice = choices.get(type_.choice)
    if choice is None:
        return type_
    cases = []
    for key, ref in choice.cases:
        number = find_enum_number(key, choice.given, enums) if isinstance(key, str) else key
        if number is not None:
            cases.append((number, ref))
    decides = dict(f.gives).get(choice.decider or "")
    return replace(type_, given=decides, by=choice.by, enum=choice.given, cases=tuple(cases))


def local_layout(
    name: str, fields: tuple[Field, ...], span: Span, around: Record, accepts: frozenset[str]
) -> Layout:
    """Return the Layout of fields that are written inline in a field. It takes byte order,
    versions, release or draft, and flexible versions from ``around``, the record of the surrounding
    layout; ``accepts`` are the tolerances of the new layout.
    """
    return Layout(
        name=name,
        doc="",
        span=span,
        fields=fields,
        endian=cast(Any, around["endian"] or "big"),
        versions=cast(Versions | None, around["versions"]),
        since=cast(Since | None, around["since"]),
        draft=cast(Since | None, around["draft"]),
        accepts=accepts,
        flexible=cast(Any, around["flexible"]),
        is_local=True,
    )


def drop_needless_versions(
    layouts: Mapping[str, Layout], names: Iterable[str]
) -> dict[str, Layout]:
    """Return a copy of ``layouts`` in which each layout in ``names`` has no versions if no field of
    it differs between versions. ``names`` has inner layouts before those that hold them.
    Raise KeyError if a name is not in ``layouts``.
    """
    out = dict(layouts)
    for name in names:
        if not any(_has_versions(f, out) for f in out[name].fields):
            out[name] = replace(out[name], versions=None)
    return out


def _has_versions(f: Field, layouts: Mapping[str, Layout]) -> bool:
    """Return whether a field differs between versions: it or a bit member has a version range, its
    type differs, it holds a choice, or it holds a layout whose version the holder determines.
    """
    refs = (ref for ref in references_of(f) if ref.version is None)
    held = (layouts[ref.layout] for ref in refs if ref.layout in layouts)
    inside = any(one.versions is not None and one.version_is is None for one in held)
    inside = inside or choice_of(f) is not None  # its cases are found later, and may have versions
    told_apart = f.versions is not None or bool(f.types)
    return told_apart or inside or any(m.versions is not None for m in members(f))


def with_sizes(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the fields with each field that bytes name as their length linked to them: it gets
    ``measures`` and ``excess``, unless it measures something already. Bytes whose length names no
    field get the length ``from_outside``.
    """
    out = {f.name: f for f in fields}
    for f in fields:
        name = f.type.sized_by if isinstance(f.type, BytesType) else None
        if name is None or not isinstance(f.type, BytesType):
            continue
        size = out.get(name)
        if size is None:
            out[f.name] = out[f.name].with_types(length=FROM_OUTSIDE)
        elif size.measures is None:
            where = f.places.get("string" if f.type.text else "bytes", f.span)
            own = FieldRange(f.name, f.name, where)
            places = {**size.places, "measures": where}
            out[name] = replace(size, measures=own, excess=f.type.plus, places=places)
    return tuple(out.values())


def with_counts(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the fields with ``counted_by``, the name of the counting field, set in each array that
    a field ``counts``, and with ``counts`` in each field that an array names under ``count``. Other
    fields are unchanged. If several fields count an array, the last one is in ``counted_by``.
    """
    counted = {array: f.name for f in fields for array in f.counts}
    named = [
        (f.type.counted_by, f.name)
        for f in fields
        if isinstance(f.type, ArrayType) and f.type.counted_by is not None
    ]
    out = []
    for f in fields:
        arrays = tuple(array for count, array in named if count == f.name)
        f = replace(f, counts=f.counts + arrays) if arrays else f
        is_counted = f.name in counted and isinstance(f.type, ArrayType)
        out.append(f.with_types(counted_by=counted[f.name]) if is_counted else f)
    return tuple(out)
