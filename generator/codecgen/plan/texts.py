"""Plan texts: resolve the rules and defaults of their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from codecgen.plan.as_of import inherit_since
from codecgen.plan.nodes import Value
from codecgen.plan.resolve import resolve_expression
from codecgen.plan.scope import Scope
from codecgen.schema.expression import parse
from codecgen.schema.model import Field, Layout, Model
from codecgen.schema.texts import EachLine, Text, TextValue
from codecgen.schema.types import ArrayType, BytesType, FieldType, ScalarType

_NOT_ALWAYS = parse("0 == 0", "", 1, 1)


@dataclass(frozen=True, slots=True)
class ValuePlan:
    """A value of a text with resolved rules and default."""

    value: TextValue
    valid: Value | None = None
    refuse: Value | None = None
    default: Value | None = None


@dataclass(frozen=True, slots=True)
class TextPlan:
    """A text and its values by path (``epochs.epoch`` for a value of repeated lines)."""

    text: Text
    values: Mapping[str, ValuePlan]


def text_plan(text: Text, model: Model) -> TextPlan:
    """Return the plan of a text. Raise ValueError if an expression is invalid, which the checks
    exclude.
    """
    values = {
        path: ValuePlan(
            value,
            None if value.valid is None else resolve_expression(value.valid, ruled),
            None if value.refuse is None else resolve_expression(value.refuse, ruled),
            None if value.default is None else resolve_expression(value.default, built),
        )
        for path, value, ruled, built in iterate_value_scopes(text, model)
    }
    return TextPlan(text, values)


def iterate_value_scopes(text: Text, model: Model) -> Iterator[tuple[str, TextValue, Scope, Scope]]:
    """Yield (path, value, scope of its rules, scope of its default) for each value of a text, in
    order. A scope has the names that an expression may use: the values before it, in earlier lines
    or in the same repeated line; rules also see the value itself. With properties, rules see all of
    them.
    """
    around = _layout_of(text, _as_fields(text))
    every = len(text.properties) or None
    for i, line in enumerate((*text.lines, *text.properties)):
        if isinstance(line, EachLine):
            inside = _layout_of(text, tuple(_as_field(value) for value in line.values))
            for j, value in enumerate(line.values):
                scopes = _scopes_at(model, inside, j, line.name, j + 1)
                yield f"{line.name}.{value.name}", value, *scopes
        else:
            yield line.name, line, *_scopes_at(model, around, i, text.name, every or i + 1)


def _layout_of(text: Text, fields: tuple[Field, ...]) -> Layout:
    """Return a layout with the name, place and release of a text, and with ``fields``."""
    return Layout(text.name, text.doc, text.span, fields, since=text.since)


def _scopes_at(
    model: Model, layout: Layout, index: int, values_of: str, ruled: int
) -> tuple[Scope, Scope]:
    """Return the scopes of the rules and of the default of the value at ``index`` of ``layout``.
    Rules see the first ``ruled`` values. ``values_of`` names the text or its repeated lines.
    """
    own = layout.fields[index]
    since = inherit_since(own.since, layout.since)
    scope = Scope(model, layout, None, owner=own.name, since=since, values_of=values_of)
    return replace(scope, before=ruled), replace(scope, before=index, built=True)


def _as_fields(text: Text) -> tuple[Field, ...]:
    """Return the values of a text as fields of a layout: for properties all as optional, for lines
    in order with repeated lines as arrays.
    """
    if text.properties:
        return tuple(replace(_as_field(value), when=_NOT_ALWAYS) for value in text.properties)
    return tuple(
        Field(x.name, ArrayType(ScalarType("u8")), x.span)
        if isinstance(x, EachLine)
        else _as_field(x)
        for x in text.lines
    )


def _as_field(value: TextValue) -> Field:
    """Return a value of a text as a field of a layout: decimals with their integer type, strings as
    text, or uuids. Its ``since`` is kept; its rules and default are not.
    """
    types: Mapping[str, FieldType] = {
        "decimal": ScalarType(value.of),
        "string": BytesType("rest", text=True),
        "uuid": ScalarType("uuid"),
    }
    return Field(value.name, types[value.kind], value.span, since=value.since)
