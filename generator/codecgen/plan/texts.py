"""Plan texts: resolve the rules and defaults of their values."""

from __future__ import annotations

from collections.abc import Mapping
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
    values = {}
    for path, value in text.values():
        ruled, built = value_scopes(text, path, model)
        values[path] = ValuePlan(
            value,
            None if value.valid is None else resolve_expression(value.valid, ruled),
            None if value.refuse is None else resolve_expression(value.refuse, ruled),
            None if value.default is None else resolve_expression(value.default, built),
        )
    return TextPlan(text, values)


def value_scopes(text: Text, path: str, model: Model) -> tuple[Scope, Scope]:
    """Return two scopes (the names that an expression may use) for the value at ``path`` of a text:
    one for its rules and one for its default. Both contain the values before it, in earlier lines
    or in the same repeated line; rules also see the value itself. With properties, rules see all of
    them. Raise StopIteration if the text has no such path.
    """
    name, _, inner = path.partition(".")
    fields = _as_fields(text, name if inner else None)
    at = next(i for i, f in enumerate(fields) if f.name == (inner or name))
    since = inherit_since(fields[at].since, text.since)
    layout = Layout(text.name, text.doc, text.span, fields, since=text.since)
    values_of = name if inner else text.name
    scope = Scope(model, layout, None, owner=inner or name, since=since, values_of=values_of)
    everything = len(fields) if text.properties else at + 1
    return replace(scope, before=everything), replace(scope, before=at, built=True)


def _as_fields(text: Text, line: str | None) -> tuple[Field, ...]:
    """Return the values of a text as fields of a layout: for properties all as optional, for lines
    in order with repeated lines as arrays. If ``line`` is given, return the values of these
    repeated lines instead.
    """
    if line is not None:
        each = next(x for x in text.lines if isinstance(x, EachLine) and x.name == line)
        return tuple(_as_field(value) for value in each.values)
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
