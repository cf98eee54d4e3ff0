"""Check expressions: they use fields that are available, and their parts have matching types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codecgen.check.nulls import check_reach
from codecgen.diagnostics import Diagnostic, unique
from codecgen.plan.as_of import inherit_since, release_key
from codecgen.plan.nodes import BitValue, EndValue, FieldValue
from codecgen.plan.resolve import Resolver, as_maximum
from codecgen.plan.scope import Scope
from codecgen.plan.types import Type, bit_type, scalar_type
from codecgen.schema.expression import Expression, Node, Null, Number, Path, Truth
from codecgen.schema.lookup import (
    exists_in,
    field_of,
    field_spans,
    integer_range,
    members,
    versions_of,
)
from codecgen.schema.model import Derived, Field, Fill, Layout, Model, Rule
from codecgen.schema.types import ArrayType, BytesType, Reference, ScalarType
from codecgen.spans import expression_span, hint, place


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield diagnostics about the expressions of fields, derived values, rules and fills of all
    layouts, in each version: an unknown name, a wrong type, or a name newer than the owner of the
    expression. Each id is reported once per place.
    """
    for layout in model.layouts.values():
        found: list[Diagnostic] = []
        for i, f in enumerate(layout.fields):
            for version in versions_of(layout, f.versions):
                since = inherit_since(f.since, layout.since)
                found += _check_field(
                    f, i, Scope(model, layout, version, owner=f.name, since=since)
                )
        for d in layout.derived:
            for version in versions_of(layout, d.versions):
                since = inherit_since(d.since, layout.since)
                found += _check_derived(d, Scope(model, layout, version, owner=d.name, since=since))
        for rule in layout.rules:
            for version in versions_of(layout, rule.versions):
                since = inherit_since(rule.since, layout.since)
                scope = Scope(model, layout, version, owner=rule.name, since=since)
                found += _check_rule(rule, replace(scope, whole=True, ruled=True))
        for fill in layout.fills:
            found += _check_fill(fill, layout, model)
        yield from unique(found)


def _check_fill(fill: Fill, layout: Layout, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless a fill (a field of array elements that builders compute) names an
    array of layouts, and its target and base are integer fields that callers of the builder give.
    Also yield one if its ``otherwise`` does not fit the target, or the name of the given value is one
    of a field, given value or derived value of the elements. Yield nothing more if the array is wrong, or the layout of its elements
    has a diagnostic already.
    """
    array, base = field_of(layout, fill.array), field_of(layout, fill.base)
    if array is None or not isinstance(array.type, ArrayType):
        message = f'"{fill.array}" is not an array of "{layout.name}": only elements of an array can be given a value'
        arrays = {f.name: f.span for f in layout.fields if isinstance(f.type, ArrayType)}
        yield Diagnostic("C066", message, fill.span, help=hint(fill.array, arrays, "arrays here"))
        return
    element = array.type.element
    inner = model.layouts.get(element.layout) if isinstance(element, Reference) else None
    if isinstance(element, Reference) and inner is None and model.is_broken(element.layout):
        return
    if inner is None:
        message = f'the elements of "{fill.array}" are not layouts: they have no "{fill.target}"'
        help = "take it out of `build`, or name an array of layouts"
        yield Diagnostic("C066", message, fill.span, help=help)
        return
    for name, f, around, where in (
        (fill.target, field_of(inner, fill.target), inner, fill.span),
        (fill.base, base, layout, place(fill, "less")),
    ):
        if f is None:
            message = f'"{around.name}" has no field "{name}"'
            yield Diagnostic("C014", message, where, help=hint(name, field_spans(around)))
        elif not _is_free_number(f):
            message = f'"{name}" is not a number that a caller of the builder gives'
            help = f"name an integer without enum, `const`, `when`, `measures`, `counts` or `checksum`; it is declared at {f.span}"
            yield Diagnostic("C066", message, where, help=help)
        elif fill.otherwise is not None and f is not base and isinstance(f.type, ScalarType):
            reach = integer_range(f.type.name) or (0, 0)
            yield from check_reach(fill.otherwise, f.type.name, reach, place(fill, "otherwise"))
    taken = {
        "a field of": {f.name for f in inner.fields},
        "given to": {f.name for f in inner.given},
        "derived in": {d.name for d in inner.derived if d.array is None},
    }
    for kind, names in taken.items():
        if fill.given in names:
            message = f'"{fill.given}" is {kind} "{inner.name}" already'
            help = "take a name that no field, given value or derived value of the elements has"
            yield Diagnostic("C066", message, place(fill, "from"), help=help)


def _is_free_number(f: Field) -> bool:
    """Return whether a field is an integer without enum that callers of the builder give: it has no
    constant, ``when``, length, count, checksum or version role. False for ``bool``.
    """
    worked_out = f.measures is not None or bool(f.counts) or f.checksum is not None
    is_set = worked_out or f.const is not None or f.is_version or f.when is not None
    plain = isinstance(f.type, ScalarType) and f.type.enum is None and f.type.name != "bool"
    return plain and not is_set and integer_range(getattr(f.type, "name", "")) is not None


def _check_rule(rule: Rule, scope: Scope) -> Iterator[Diagnostic]:
    """Yield a diagnostic if ``about`` names no field of the layout. Also yield one if the condition
    is invalid, is not boolean, names something newer than the rule, or names no field at all. For a
    rule without condition, yield one if ``ascending`` names no number in the elements of an array.
    ``scope`` has the names that both can use.
    """
    if field_of(scope.layout, rule.about) is None:
        message = f'"{scope.layout.name}" has no field "{rule.about}"'
        help = hint(rule.about, field_spans(scope.layout))
        yield Diagnostic("C014", message, place(rule, "about"), help=help)
    if rule.condition is not None:
        found = list(check_kind("bool", rule.condition, scope, f'the rule "{rule.name}"'))
        yield from found
        if not found and not any(True for _ in rule.condition.paths()):
            message = f'the rule "{rule.name}" uses no field, so its result is always the same'
            where = expression_span(scope.model, rule.condition)
            help = "use a field of the layout in it, or take the rule out"
            yield Diagnostic("C065", message, where, help=help)
    elif rule.ascending is not None:
        yield from _check_ascending(rule, rule.ascending, scope)


def _check_ascending(rule: Rule, path: Expression, scope: Scope) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless ``ascending`` is a path ``array.field`` to a number that every
    element of an array of the layout has directly, and one for each name in it that is newer than
    the rule. ``scope`` has the names that the path can use.
    """
    help = "write the array and a field of its elements: `ascending: items_.number`"
    where = expression_span(scope.model, path)
    resolver = Resolver(as_maximum(path), scope)
    value = resolver.resolve()
    yield from resolver.found
    yield from check_ages(resolver)
    if value is None:
        return
    inner = value.value if isinstance(value, EndValue) else None
    if not isinstance(inner, FieldValue) or inner.holders:
        message = f'"{path}" is not a field of the elements of an array, so it cannot ascend'
        yield Diagnostic("C065", message, where, help=help)


def _check_field(f: Field, index: int, scope: Scope) -> Iterator[Diagnostic]:
    """Yield a diagnostic if ``when``, ``valid`` or ``refuse`` of a field, or ``until`` of its
    array, is no valid condition, or the codec of its array is not named by an enum field. Also
    yield one if its default, or that of a bit member, is invalid or of another type. ``scope`` is
    that of the layout version: of its fields, ``valid`` and ``refuse`` see those up to ``index``,
    its own, and the others only those before it.
    """
    before = _limit_scope(scope, index)
    itself = _limit_scope(scope, index + 1)
    if f.when is not None:
        yield from check_kind("bool", f.when, before, "`when`")
    for key, condition in (("valid", f.valid), ("refuse", f.refuse)):
        if condition is not None:
            for found in check_kind("bool", condition, itself, f"`{key}`"):
                yield _point_to_later_place(found, key, condition, f, scope.layout)
    if isinstance(f.type, ArrayType) and f.type.compression is not None:
        yield from _check_codec(f.type.compression.by, before)
    type_ = f.in_versions((scope.version,)).type
    if isinstance(type_, ArrayType) and type_.until is not None:
        yield from _check_end_condition(f, type_.until, replace(before, item=type_.element))
    if f.default is not None and (f.absent is None or "default" in f.places):
        yield from _check_default(f, f.default, _limit_scope(scope, index, built=True, whole=True))
    for m in members(f):
        if m.default is not None and exists_in(m, scope.version):
            inner = replace(
                _limit_scope(scope, index, built=True), since=inherit_since(m.since, scope.since)
            )
            yield from check_type(m.default, inner, bit_type(m), f'"{m.name}"')


def _point_to_later_place(
    found: Diagnostic, key: str, condition: Expression, f: Field, layout: Layout
) -> Diagnostic:
    """Return a diagnostic about ``valid`` or ``refuse`` (``key``) of a field with other help if the
    condition uses something too early: to write it at the last field that it names, or, for a
    length or checksum in ``valid``, as a rule. Return all other diagnostics unchanged.
    """
    if found.code != "C016":
        return found
    names = [other.name for other in layout.fields]
    later = max(
        (names.index(p.names[0]) for p in condition.paths() if p.names[0] in names), default=0
    )
    last = layout.fields[later]
    if later > names.index(f.name):
        help = f'write it as `{key}` of "{last.name}" ({last.span}): the fields before it are known there'
        return replace(found, help=help)
    if key == "valid":
        rule = f"{{about: {f.name}, is: {condition.text}}}"
        return replace(
            found, help=f"write a rule of the layout: `rules: {{{f.name}_agrees: {rule}}}`"
        )
    return found


def _check_end_condition(f: Field, until: Expression, scope: Scope) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless ``until``, the condition that ends an array, is valid, boolean and
    names the element (``item``). ``scope`` has the fields before the array, and the element.
    """
    found = list(check_kind("bool", until, scope, "`until`"))
    yield from found
    if not found and not any(path.names[0] == "item" for path in until.paths()):
        message = f'`until` must test the elements of "{f.name}"'
        help = "`item` is the element: `until: item.size == 0`"
        yield Diagnostic("C064", message, expression_span(scope.model, until), help=help)


def _check_codec(by: Expression, scope: Scope) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless ``by``, the expression that selects the codec of an array, is valid
    and names a field of the layout, or bits of one, of an enum type. ``scope`` has the fields
    before the array.
    """
    found = list(check_kind("enum", by, scope, "`by` of `compressed`"))
    yield from found
    value = Resolver(by, scope).resolve()
    held = value.word if isinstance(value, BitValue) else value
    if not found and (not isinstance(held, FieldValue) or held.holders):
        message = "`by` of `compressed` needs a field of the layout, or bits of one"
        yield Diagnostic("C022", message, expression_span(scope.model, by))


def _limit_scope(scope: Scope, before: int, *, built: bool = False, whole: bool = False) -> Scope:
    """Return the scope in which only the fields with an index below ``before`` can be used.
    ``built`` marks it as for builders, which have all arrays; with ``whole`` arrays have a largest
    element.
    """
    return replace(scope, before=before, built=built, whole=whole)


def check_ages(resolver: Resolver) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each name in a resolved expression that exists since a later release
    than the owner of the expression, or since any release if the owner exists since the first. The
    owner's release is its own or that of its layout version, whichever is later. Yield nothing for
    draft layouts.
    """
    scope = resolver.scope
    noted, _ = scope.layout.version_notes.get(scope.version or 0, (None, None))
    releases = [s.release for s in (scope.since, noted) if s is not None and s.release is not None]
    own = max(releases, key=release_key, default=None)
    if scope.layout.draft is not None:
        return
    for name, since, path in resolver.uses:
        if own is None or release_key(since.release or "0") > release_key(own):
            first = "the first release" if own is None else own
            message = f'"{scope.owner}" exists since {first}, but uses "{name}", which exists since {since.release}'
            yield Diagnostic("C028", message, resolver.span_of(path), help=f"see {since.span}")


def check_kind(kind: str, expression: Expression, scope: Scope, what: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics of an expression that does not resolve (none if another diagnostic
    covers the cause), one for each name newer than its owner, and one if its value is not of
    ``kind`` (``bool`` or ``enum``). ``scope`` has the names that it can use; ``what`` names it in
    messages.
    """
    resolver = Resolver(expression, scope)
    value = resolver.resolve()
    found = None if value is None else value.type
    yield from resolver.found
    yield from check_ages(resolver)
    if found is not None and found.kind != kind:
        wanted = {"bool": "true or false", "enum": "a value of an enum"}[kind]
        message = f"{what} needs {wanted}, but its value is {found}"
        help = (
            "compare it with something: `x != 0`" if kind == "bool" and found.kind == "int" else ""
        )
        place = expression_span(scope.model, expression)
        yield Diagnostic("C022", message, place, help=help)


def _check_default(f: Field, default: Expression, scope: Scope) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless the default of a scalar, bytes or text field resolves to the
    field's type, or to null if bytes or text can be null, and one for each name newer than the
    field. Defaults of other types are not checked here. ``scope`` has the names that it can use.
    """
    if isinstance(f.type, ScalarType):
        wanted = scalar_type(f.type)
        yield from check_type(default, scope, wanted, f'"{f.name}"')
    elif isinstance(f.type, BytesType):
        wanted = Type("text" if f.type.text else "bytes", nullable=f.type.null is not None)
        yield from check_type(default, scope, wanted, f'"{f.name}"')
    elif isinstance(default.node, Null):
        pass  # whether it can be null is said where nulls are looked at


def check_type(
    expression: Expression, scope: Scope, wanted: Type, what: str
) -> Iterator[Diagnostic]:
    """Yield the diagnostics of an expression that does not resolve (none if another diagnostic
    covers the cause), one for each name newer than its owner, and one if its value is not of type
    ``wanted``. An integer passes for a float, and null for a nullable type. Whether a value of the
    right type may be null is not checked. ``scope`` has the names that it can use; ``what`` names
    the owner in messages.
    """
    resolver = Resolver(expression, scope)
    value = resolver.resolve(wanted.enum)
    found = None if value is None else value.type
    for d in resolver.found:
        quoted = _suggest_quotes(expression.node, wanted) if d.code == "C014" else ""
        if quoted and d.help.startswith("did you mean"):
            quoted = f"{d.help}; {quoted}"
        yield replace(d, help=quoted or d.help)
    yield from check_ages(resolver)
    if found is None:
        return
    place = expression_span(scope.model, expression)
    if found.kind == "null" and not wanted.nullable:
        yield Diagnostic("C022", f"{what} cannot be null", place, help="write another value")
    elif found.kind != "null":
        widened = wanted.kind == "float" and found.kind == "int"
        if (found.kind, found.enum) != (wanted.kind, wanted.enum) and not widened:
            help = _suggest_literal(expression.node, wanted)
            message = f"{what} needs {wanted}, but its value is {found}"
            yield Diagnostic("C022", message, place, help=help)


def _suggest_quotes(node: Node, wanted: Type) -> str:
    """Return help to put a word into quotes if it stands where text or bytes are wanted, and ``""``
    otherwise.
    """
    if isinstance(node, Path) and wanted.kind in ("text", "bytes"):
        return f'if the text {node} is meant, write it in quotes: default: "{node}"'
    return ""


def _suggest_literal(node: Node, wanted: Type) -> str:
    """Return the help ``write 1`` or ``write 0`` if true or false stands where an integer is
    wanted, ``write true`` or ``write false`` if 1 or 0 stands where a boolean is, and ``""``
    otherwise.
    """
    if isinstance(node, Truth) and wanted.kind == "int":
        return f"write {int(node.value)}, or `type: bool` for a byte that is true or false"
    if isinstance(node, Number) and wanted.kind == "bool" and node.value in (0, 1):
        return "write true" if node.value else "write false"
    return ""


def _check_derived(d: Derived, scope: Scope) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless a derived value resolves to null or to a value of its type (a
    number, text or bytes), and one for each name newer than it. Yield nothing if its ``array`` is
    not an array of the layout. ``scope`` is that of the layout version; for a value of elements,
    the element is added.
    """
    item = None
    if d.array is not None:
        array = field_of(scope.layout, d.array)
        if array is None or not isinstance(array.type, ArrayType):
            return
        item = array.type.element
    scope = replace(scope, item=item, array=d.array, looks_up=True)
    resolver = Resolver(d.value, scope)
    value = resolver.resolve()
    found = None if value is None else value.type
    yield from resolver.found
    yield from check_ages(resolver)
    wanted = {"string": "text", "bytes": "bytes"}.get(d.type, "int")
    if found is not None and found.kind not in (wanted, "null"):
        place = expression_span(scope.model, d.value)
        message = f'"{d.name}" needs {Type(wanted)} or null, but its value is {found}'
        help = {"text": "write `type: string`", "bytes": "write `type: bytes`"}.get(found.kind, "")
        yield Diagnostic("C022", message, place, help=help)
