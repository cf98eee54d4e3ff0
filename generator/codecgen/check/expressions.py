"""Expressions: they name fields that are there by then, and their parts fit together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codecgen.diagnostics import Diagnostic, once
from codecgen.plan.as_of import release_key
from codecgen.plan.nodes import BitValue, FieldValue
from codecgen.plan.resolve import Resolver
from codecgen.plan.scope import Scope
from codecgen.plan.types import Type, bit_type, scalar_type
from codecgen.schema.expression import Expression, Node, Null, Number, Truth
from codecgen.schema.lookup import exists_in, field_of, members, versions_of
from codecgen.schema.model import Derived, Field, Model
from codecgen.schema.types import ArrayType, BytesType, ScalarType
from codecgen.spans import expression_span


def check(model: Model) -> Iterator[Diagnostic]:
    for layout in model.layouts.values():
        found: list[Diagnostic] = []
        for i, f in enumerate(layout.fields):
            for version in versions_of(layout, f.versions):
                since = f.since or layout.since
                found += _field(f, i, Scope(model, layout, version, owner=f.name, since=since))
        for d in layout.derived:
            for version in versions_of(layout, d.versions):
                since = d.since or layout.since
                found += _derived(d, Scope(model, layout, version, owner=d.name, since=since))
        yield from once(found)


def _field(f: Field, index: int, scope: Scope) -> Iterator[Diagnostic]:
    before = _until(scope, index)
    itself = _until(scope, index + 1)
    if f.when is not None:
        yield from must_be("bool", f.when, before, "`when`")
    for key, condition in (("valid", f.valid), ("refuse", f.refuse)):
        if condition is not None:
            yield from must_be("bool", condition, itself, f"`{key}`")
    if isinstance(f.type, ArrayType) and f.type.compression is not None:
        yield from _codec(f.type.compression.by, before)
    type_ = f.in_versions((scope.version,)).type
    if isinstance(type_, ArrayType) and type_.until is not None:
        yield from _last(f, type_.until, replace(before, item=type_.element))
    if f.default is not None and f.absent is None:
        yield from _default(f, f.default, _until(scope, index, built=True))
    for m in members(f):
        if m.default is not None and exists_in(m, scope.version):
            inner = replace(_until(scope, index, built=True), since=m.since or scope.since)
            yield from value_fits(m.default, inner, bit_type(m), f'"{m.name}"')


def _last(f: Field, until: Expression, scope: Scope) -> Iterator[Diagnostic]:
    """The condition for the last element is one about elements."""
    found = list(must_be("bool", until, scope, "`until`"))
    yield from found
    if not found and not any(path.names[0] == "item" for path in until.paths()):
        message = f'`until` does not ask for anything of the elements of "{f.name}"'
        help = "`item` is the element: `until: item.size == 0`"
        yield Diagnostic("C064", message, expression_span(scope.model, until), help=help)


def _codec(by: Expression, scope: Scope) -> Iterator[Diagnostic]:
    found = list(must_be("enum", by, scope, "what names a codec"))
    yield from found
    value = Resolver(by, scope).value()
    if not found and not isinstance(value, FieldValue | BitValue):
        message = "what names a codec is a field, or bits of one"
        yield Diagnostic("C022", message, expression_span(scope.model, by))


def _until(scope: Scope, before: int, *, built: bool = False) -> Scope:
    return replace(scope, before=before, built=built)


def newer(resolver: Resolver) -> Iterator[Diagnostic]:
    """What an expression names is as old as what it belongs to: as of any release both are there, or neither."""
    scope = resolver.scope
    noted, _ = scope.layout.version_notes.get(scope.version or 0, (None, None))
    releases = [s.release for s in (scope.since, noted) if s is not None and s.release is not None]
    own = max(releases, key=release_key, default=None)
    if scope.layout.draft is not None:
        return
    for name, since, path in resolver.uses:
        if own is None or release_key(since.release or "0") > release_key(own):
            first = "the first release" if own is None else own
            message = f'"{name}" exists since {since.release}, but "{scope.owner}" since {first}'
            yield Diagnostic("C028", message, resolver.span(path), help=f"see {since.span}")


def must_be(kind: str, expression: Expression, scope: Scope, what: str) -> Iterator[Diagnostic]:
    """What is wrong with an expression that has to give a value of a kind."""
    resolver = Resolver(expression, scope)
    value = resolver.value()
    found = None if value is None else value.type
    yield from resolver.found
    yield from newer(resolver)
    if found is not None and found.kind != kind:
        wanted = {"bool": "true or false", "enum": "a value of an enum"}[kind]
        message = f"{what} is {wanted}, not {found}"
        help = (
            "compare it with something: `x != 0`" if kind == "bool" and found.kind == "int" else ""
        )
        place = expression_span(scope.model, expression)
        yield Diagnostic("C022", message, place, help=help)


def _default(f: Field, default: Expression, scope: Scope) -> Iterator[Diagnostic]:
    if isinstance(f.type, ScalarType):
        wanted = scalar_type(f.type)
        yield from value_fits(default, scope, wanted, f'"{f.name}"')
    elif isinstance(f.type, BytesType):
        wanted = Type("text" if f.type.text else "bytes", nullable=f.type.null is not None)
        yield from value_fits(default, scope, wanted, f'"{f.name}"')
    elif isinstance(default.node, Null):
        pass  # whether it can be null is said where nulls are looked at


def value_fits(
    expression: Expression, scope: Scope, wanted: Type, what: str
) -> Iterator[Diagnostic]:
    """What is wrong with an expression that has to give a value of a type."""
    resolver = Resolver(expression, scope)
    value = resolver.value(wanted.enum)
    found = None if value is None else value.type
    yield from resolver.found
    yield from newer(resolver)
    if found is None:
        return
    place = expression_span(scope.model, expression)
    if found.kind == "null" and not wanted.nullable:
        yield Diagnostic("C022", f"{what} cannot be null", place)
    elif found.kind != "null":
        widened = wanted.kind == "float" and found.kind == "int"
        if (found.kind, found.enum) != (wanted.kind, wanted.enum) and not widened:
            help = _instead(expression.node, wanted)
            yield Diagnostic("C022", f"{what} is {wanted}, not {found}", place, help=help)


def _instead(node: Node, wanted: Type) -> str:
    """What to write for true and false where a number is meant, and for 0 and 1 where it is the other way round."""
    if isinstance(node, Truth) and wanted.kind == "int":
        return f"write {int(node.value)}, or `type: bool` for a byte that is true or false"
    if isinstance(node, Number) and wanted.kind == "bool" and node.value in (0, 1):
        return "write true" if node.value else "write false"
    return ""


def _derived(d: Derived, scope: Scope) -> Iterator[Diagnostic]:
    item = None
    if d.array is not None:
        array = field_of(scope.layout, d.array)
        if array is None or not isinstance(array.type, ArrayType):
            return
        item = array.type.element
    scope = replace(scope, item=item, array=d.array)
    resolver = Resolver(d.value, scope)
    value = resolver.value()
    found = None if value is None else value.type
    yield from resolver.found
    yield from newer(resolver)
    if found is not None and found.kind not in ("int", "null"):
        place = expression_span(scope.model, d.value)
        yield Diagnostic("C022", f'"{d.name}" is a number or null, not {found}', place)
