"""What the use of a choice leaves to be found out: the numbers and the layouts of its cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codecgen.schema.inference import number_of
from codecgen.schema.lookup import field_of
from codecgen.schema.model import Choice, Enum, Layout
from codecgen.schema.nested_choices import first_layout
from codecgen.schema.types import ArrayType, ChoiceType, FieldType, Reference, ScalarType


def with_numbers(
    choice: Choice,
    layouts: Mapping[str, Layout],
    enums: Mapping[str, Enum],
    choices: Mapping[str, Choice],
) -> Choice:
    """The choice with numbers for the values of an enum that the field has which decides, and with the versions of layouts that
    have one only, or of which each version is a case."""
    if choice.by is None:
        return choice
    cases: list[tuple[int | str, Reference]] = []
    places = dict(choice.places)
    for key, ref in choice.cases:
        layout = layouts.get(first_layout(ref, choices))
        field = None if layout is None else field_of(layout, choice.by)
        name = field.type.enum if field and isinstance(field.type, ScalarType) else None
        number = number_of(key, name, enums) if isinstance(key, str) else None
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
    """The layout with the cases of the choices in it filled in."""

    def filled(type_: FieldType) -> FieldType:
        if isinstance(type_, ArrayType) and isinstance(type_.element, ChoiceType):
            return replace(type_, element=_filled(type_.element, choices, enums))
        return _filled(type_, choices, enums) if isinstance(type_, ChoiceType) else type_

    fields = []
    for f in layout.fields:
        types = tuple((versions, filled(type_)) for versions, type_ in f.types)
        fields.append(replace(f, type=filled(f.type), types=types))
    return replace(layout, fields=tuple(fields))


def _filled(
    type_: ChoiceType, choices: Mapping[str, Choice], enums: Mapping[str, Enum]
) -> ChoiceType:
    choice = choices.get(type_.choice)
    if choice is None:
        return type_
    cases = []
    for key, ref in choice.cases:
        number = number_of(key, choice.given, enums) if isinstance(key, str) else key
        if number is not None:
            cases.append((number, ref))
    return replace(type_, by=choice.by, enum=choice.given, cases=tuple(cases))
