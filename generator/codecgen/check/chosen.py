"""Choices inside layouts: what decides is known by then, and is what the choice asks for; versions are those of something."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.check.expressions import newer
from codecgen.diagnostics import Diagnostic, once
from codecgen.plan.resolve import Resolver
from codecgen.plan.scope import Scope
from codecgen.plan.types import Type
from codecgen.schema.expression import Expression
from codecgen.schema.lookup import choice_of, versions_of
from codecgen.schema.model import Field, Layout, Model
from codecgen.schema.types import ChoiceType, Reference, Span, choosing, held_layouts
from codecgen.spans import expression_span


def check(model: Model) -> Iterator[Diagnostic]:
    for layout in model.layouts.values():
        found: list[Diagnostic] = []
        for i, f in enumerate(layout.fields):
            for version in versions_of(layout, f.versions):
                one = f.in_versions((version,))
                since = f.since or layout.since
                scope = Scope(model, layout, version, before=i, owner=f.name, since=since)
                choice = choice_of(one)
                if choice is not None and choice.choice in model.choices:
                    found += _given(one, choice, scope)
                if choosing(one.type)[1] is not None:
                    found += _version(one, layout, scope)
        yield from once(found)


def _given(f: Field, type_: ChoiceType, scope: Scope) -> Iterator[Diagnostic]:
    choice = scope.model.choices[type_.choice]
    where = type_.span
    if choice.by is not None:
        if type_.given is not None:
            message = f'the field "{choice.by}" of its cases says which of "{choice.name}" it is'
            place = expression_span(scope.model, type_.given)
            yield Diagnostic("C054", message, place, help='take out "given"')
        return
    wanted = f'a value of the enum "{choice.given}"' if choice.given else "a number"
    if type_.given is None:
        message = f'nothing says which case of "{choice.name}" it is'
        help = f"write `given:` and a field before that is {wanted}; the choice is at {choice.span}"
        yield Diagnostic("C054", message, where, help=help)
        return
    found: list[Diagnostic] = []
    given = _value(type_.given, scope, found)
    yield from found
    if given is None:
        return
    fits = given.enum == choice.given if choice.given else given.kind in ("int", "enum")
    if not fits:
        message = f'"{choice.name}" is chosen by {wanted}, not by {given}'
        place = expression_span(scope.model, type_.given)
        yield Diagnostic("C054", message, place, help=f"the choice is at {choice.span}")


def _version(f: Field, layout: Layout, scope: Scope) -> Iterator[Diagnostic]:
    expression = choosing(f.type)[1]
    assert expression is not None
    found: list[Diagnostic] = []
    value = _value(expression, scope, found)
    yield from found
    where = expression_span(scope.model, expression)
    if value is not None and value.kind != "int":
        yield Diagnostic("C055", f"a version is a number, not {value}", where)
    held = [ref for ref in held_layouts(f.type) if ref.layout in scope.model.layouts]
    told = [ref for ref in held if scope.model.layouts[ref.layout].versions is not None]
    if held and not told:
        message = f'nothing that "{f.name}" holds has versions'
        yield Diagnostic("C055", message, where, help=_take_out(held, scope.model))
    for ref in told:
        if ref.version is not None and scope.model.layouts[ref.layout].version_is is None:
            message = f'"{ref}" is one version: "{f.name}" cannot say which'
            yield Diagnostic("C055", message, _at(ref, f), help=f'write "{ref.layout}"')


def _at(ref: Reference, f: Field) -> Span:
    return ref.span if choice_of(f) is None else f.span


def _take_out(held: list[Reference], model: Model) -> str:
    layout = model.layouts[held[0].layout]
    return f'take out "version", or give "{layout.name}" `versions` ({layout.span})'


def _value(expression: Expression, scope: Scope, found: list[Diagnostic]) -> Type | None:
    resolver = Resolver(expression, scope)
    value = resolver.value()
    found += resolver.found
    found += newer(resolver)
    return None if value is None else value.type
