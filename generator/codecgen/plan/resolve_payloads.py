"""What expressions of views into payloads mean: fields of the parts, and whether a part is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from codecgen.plan import nodes
from codecgen.plan.constant_folding import fold
from codecgen.plan.narrowing import Facts
from codecgen.plan.nodes import Value, owner_of_part
from codecgen.plan.resolve import Stop
from codecgen.plan.resolve_rows import RowsResolver
from codecgen.plan.scope import Scope
from codecgen.plan.types import BOOL, INT
from codecgen.schema.expression import Expression, Node, Null, Path
from codecgen.schema.lookup import exists_in, field_of, versions_of
from codecgen.schema.model import Field, Layout, Model, Rows, View
from codecgen.schema.types import ArrayType
from codecgen.spans import hint


@dataclass(frozen=True, slots=True)
class PartScope:
    """A part as expressions see it: its layout (None: the rows name none) in a version, or ``null``. The version of what is
    null stands for all of them."""

    layout: Layout | None
    version: int | None
    null: bool


Parts = Mapping[str, PartScope]


def payload_scope(model: Model, view: View, rows: Rows, parts: Parts) -> Scope:
    """What the columns of some rows may name beside the parts: the element at hand."""
    empty = Layout(view.name, "", view.span, ())
    part, array = array_of(rows, parts)
    item = array.type.element if array is not None and isinstance(array.type, ArrayType) else None
    version = None if part is None else part.version
    return Scope(model, empty, version, owner=view.name, item=item)


def condition_of(rows: Rows, scope: Scope, parts: Parts) -> Value | None:
    """The condition of some rows without what is settled: a literal where nothing is left of it."""
    if rows.when is None:
        return nodes.Literal(1, BOOL)
    value = PayloadResolver(rows.when, scope, parts).value()
    return None if value is None else fold(value, lambda one: null_parts(one, parts))


def scope_of_rows(scope: Scope, rows: Rows, parts: Parts) -> Scope:
    """What the columns may name where the condition of the rows holds."""
    if rows.when is None:
        return scope
    holds = PayloadResolver(rows.when, scope, parts).value()
    return scope if holds is None else replace(scope, holds=(holds,))


def array_of(rows: Rows, parts: Parts) -> tuple[PartScope | None, Field | None]:
    """The part that ``each`` names, and the field in it where this version has it."""
    part, _, name = (rows.each or "").partition(".")
    scope = parts.get(part)
    if scope is None or scope.layout is None:
        return scope, None
    f = field_of(scope.layout, name)
    there = f is not None and (scope.null or exists_in(f, scope.version))
    return scope, f if there else None


class PayloadResolver(RowsResolver):
    """What a path names in a view into payloads. Whether a part is null is known: expressions are settled for each of the two.
    What is null keeps the type that it has elsewhere, so that it goes where that goes."""

    def __init__(self, expression: Expression, scope: Scope, parts: Parts) -> None:
        super().__init__(expression, scope)
        self.parts = parts

    def path(self, path: Path) -> Value:
        name, *rest = path.names
        if name == "item":
            return self.item(path)
        if path.names == ("row",):
            return nodes.PlaceValue("row")
        part = self.parts.get(name)
        if part is None:
            spans = {n: p.layout.span for n, p in self.parts.items() if p.layout is not None}
            known = " or ".join(self.parts)
            message = f'"{name}" is no part of the payload: fields are those of {known}'
            raise self.fail("C014", message, path, hint(name, spans))
        if part.layout is None:
            raise self.unnamed(path)
        if not rest:
            message = f'"{name}" is a whole part: name a field of it, or compare it with null'
            raise self.fail("C022", message, path)
        return self.of_part(name, part, part.layout, path)

    def unnamed(self, path: Path) -> Stop:
        message = f'these rows do not look at "{path.names[0]}"'
        help = f"give `of` its layout: `of: {{{path.names[0]}: ..}}`"
        return self.fail("C032", message, path, help)

    def of_part(self, name: str, part: PartScope, layout: Layout, path: Path) -> Value:
        """A field of a part. Of one that is null: as it is in the last version that has it."""
        inner = Path(path.names[1:], path.column + len(name) + 1)
        versions = [part.version] if not part.null else [*reversed(versions_of(layout, None))]
        found = self.found
        for version in versions:
            resolver = RowsResolver(
                self.expression,
                replace(self.scope, layout=layout, version=version, item=None, holds=()),
            )
            resolver.facts = self.facts_of(name)
            try:
                value = resolver.path(inner)
            except Stop:
                found = resolver.found
                continue
            self.uses += resolver.uses
            if isinstance(value, nodes.VersionValue) and part.null:
                f = field_of(layout, value.field)
                assert f is not None
                return nodes.FieldValue(f, INT.or_null(), owner_of_part(name))
            return _owned(value, name, part.null)
        self.found += found
        raise Stop

    def facts_of(self, name: str) -> Facts:
        """What is known of the fields of a part."""
        owner = owner_of_part(name)
        present = frozenset(("own", names) for own, names in self.facts.present if own == owner)
        return Facts(present)

    def comparison(self, operator: str, left: Node, right: Node) -> Value:
        if (
            isinstance(right, Null)
            and operator in ("==", "!=")
            and isinstance(left, Path)
            and len(left.names) == 1
            and left.names[0] in self.parts
        ):
            if self.parts[left.names[0]].layout is None:
                raise self.unnamed(left)
            null = self.parts[left.names[0]].null
            return nodes.Literal(int(null is (operator == "==")), BOOL)
        return super().comparison(operator, left, right)


def _owned(value: Value, part: str, null: bool) -> Value:
    """A value of a part's layout, as one of the part."""
    owner = owner_of_part(part)

    def field(value: nodes.FieldValue) -> nodes.FieldValue:
        return replace(value, owner=owner, type=value.type.or_null(value.type.nullable or null))

    match value:
        case nodes.FieldValue(owner="own"):
            return field(value)
        case nodes.BitValue(word) if word.owner == "own":
            return replace(value, word=field(word), type=value.type.or_null(null))
        case nodes.EndValue(array=array):
            return replace(value, array=field(array), type=value.type.or_null(null))
        case nodes.DerivedValue():
            inner = _owned(value.value, part, null)
            return replace(value, value=inner)
        case nodes.Sum(type=type_):
            sides = _owned(value.left, part, null), _owned(value.right, part, null)
            return nodes.Sum(value.operator, *sides, type_.or_null(null))
        case nodes.Membership(of, allowed):
            inner = _owned(of, part, null)
            assert isinstance(inner, nodes.FieldValue | nodes.BitValue)
            return nodes.Membership(inner, allowed)
    return nodes.rebuilt(value, lambda one: _owned(one, part, null))


def null_parts(value: Value, parts: Parts) -> Value | None:
    """Null for what a part that is null would have: for :func:`~codecgen.plan.constant_folding.fold`."""
    owners = {owner_of_part(name) for name, part in parts.items() if part.null}
    match value:
        case nodes.FieldValue(owner=owner) if owner in owners:
            return nodes.NullValue()
        case nodes.BitValue(word) if word.owner in owners:
            return nodes.NullValue()
        case nodes.EndValue(array=array) if array.owner in owners:
            return nodes.NullValue()
        case nodes.VersionValue(int() as version):
            return nodes.Literal(version, INT)
    return None
