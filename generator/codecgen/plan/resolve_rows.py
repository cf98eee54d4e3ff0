"""What expressions of views mean: what columns are read from, and what fields are written from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from codecgen.plan import nodes
from codecgen.plan.nodes import Value
from codecgen.plan.resolve import Resolver, settled
from codecgen.plan.resolve_cases import CaseResolver
from codecgen.plan.scope import Scope
from codecgen.plan.types import INT, Type
from codecgen.schema.expression import EndOf, Expression, Node, Null, Path
from codecgen.schema.lookup import field_of, field_spans
from codecgen.schema.model import Column, Derived, Layout, Model, Rows, View
from codecgen.schema.scalars import SCALARS
from codecgen.schema.types import ArrayType
from codecgen.spans import hint

PLACES = ("position", "size")
"""What an expression of a view may name beside the fields: where the entry lies in its file, and how long it is."""

NUMBERS = ("int", "enum", "bool")
"""Kinds of values that columns hold as numbers."""

_KINDS = {
    "bool": "bool",
    "binary": "bytes",
    "string": "text",
    "list": "array",
    "struct": "layout",
    "uuid": "uuid",
    "float": "float",
    "double": "float",
}


def rows_scope(model: Model, layout: Layout, version: int | None, rows: Rows) -> Scope:
    """What the columns of some rows may name."""
    array = None if rows.each is None else field_of(layout, rows.each)
    item = array.type.element if array is not None and isinstance(array.type, ArrayType) else None
    scope = Scope(model, layout, version, owner=rows.layout, item=item, array=rows.each)
    if rows.when is None:
        return scope
    holds = RowsResolver(rows.when, scope).value()
    return scope if holds is None else replace(scope, holds=(holds,))


def column_type(column: Column) -> Type:
    """The type of the values of a column."""
    return Type(_KINDS.get(column.type, "int"), nullable=column.nullable)


class RowsResolver(CaseResolver):
    """What a path names in the rows of a view: also derived values, the position and the size of an entry, the bits of a
    field as one number, and the cases of choices."""

    def path(self, path: Path) -> Value:
        layout, each = self.scope.layout, self.scope.array
        names = path.names
        if len(names) == 2 and names[0] == each:
            return self.derived(names[1], each, path)
        if len(names) == 1 and field_of(layout, names[0]) is None:
            if names[0] in PLACES:
                return nodes.PlaceValue(names[0])  # type: ignore[arg-type]
            if any(d.name == names[0] and d.array is None for d in layout.derived):
                return self.derived(names[0], None, path)
        value = super().path(path)
        if isinstance(value, nodes.FieldValue) and value.type.kind == "bits":
            return replace(value, type=INT.or_null(value.type.nullable))
        return value

    def derived(self, name: str, array: str | None, path: Path) -> Value:
        spans = {d.name: d.span for d in self.scope.layout.derived if d.array == array}
        if name not in spans:
            message = f'nothing called "{name}" is derived for "{array}"'
            raise self.fail("C014", message, path, hint(name, spans))
        derived = (d for d in self.scope.layout.derived if d.name == name and d.array == array)
        return derived_value(next(derived), self.scope)


def derived_value(derived: Derived, scope: Scope) -> nodes.DerivedValue:
    """A derived value with what it is made of."""
    inner = replace(scope, before=None, owner=derived.name, holds=())
    return nodes.DerivedValue(derived, settled(derived.value, inner), SCALARS[derived.type].bits)


class WriteResolver(Resolver):
    """What a path names where rows are written: columns, ``version``, ``entry.field``.

    ``layout`` is that of the entry. ``part`` is what is written: the ``entry`` around the rows, an ``item`` of its array,
    or a ``row`` that is an entry itself. ``named`` are the fields of the entry that have values by then, ``running``
    those that change with the rows.
    """

    def __init__(
        self,
        expression: Expression,
        scope: Scope,
        view: View,
        layout: Layout,
        part: str,
        named: Iterable[str],
        running: Iterable[str] = (),
    ) -> None:
        super().__init__(expression, scope)
        self.view = view
        self.layout = layout
        self.part = part
        self.named = frozenset(named)
        self.running = frozenset(running)

    def path(self, path: Path) -> Value:
        names = path.names
        if names == ("version",) and self.layout.version_is is not None:
            version = self.scope.version
            return nodes.VersionValue(version, self.layout.version_is)
        if names[0] == "entry" and len(names) > 1:
            return self.entry(path)
        if len(names) > 1:
            raise self.fail("C014", f'the column "{names[0]}" has no parts', path)
        column = self.column(path)
        if self.part == "entry":
            message = f'"{path}" is that of a row, of which an entry has many'
            help = f"say first({path}), last({path}) or max({path})"
            raise self.fail("C032", message, path, help)
        return self.of_column(column, "row")

    def of_column(self, column: Column, which: nodes.Which) -> nodes.ColumnValue:
        value = nodes.ColumnValue(column, which, column_type(column))
        nullable = value.type.nullable and not self.facts.column_there(value)
        return replace(value, type=value.type if nullable else value.type.not_null())

    def column(self, path: Path) -> Column:
        for column in self.view.columns:
            if column.name == path.names[0]:
                return column
        spans = {c.name: c.span for c in self.view.columns}
        message = f'the view has no column "{path}"'
        raise self.fail("C014", message, path, hint(path.names[0], spans))

    def entry(self, path: Path) -> Value:
        name = path.names[1]
        f = field_of(self.layout, name)
        if f is None:
            spans = field_spans(self.layout)
            message = f'"{self.layout.name}" has no field "{name}"'
            raise self.fail("C014", message, path, hint(name, spans))
        if name not in self.named:
            raise self.fail("C032", f'"{name}" is not written before this', path)
        if self.part == "item" and name in self.running:
            message = f'"{name}" is known when all rows are: their elements cannot depend on it'
            raise self.fail("C032", message, path)
        versions = {self.scope.version}
        return self.inside(f, path.names[2:], "entry", (), versions, path)

    def end_of(self, node: EndOf) -> Value:
        where = node.array
        if node.path is not None or len(where.names) != 1:
            raise self.fail("C022", f'"{node.end}" is about a column here', where)
        column = self.column(where)
        if self.part == "row":
            message = f"the row is the entry itself: say {where}"
            raise self.fail("C032", message, where)
        if self.part == "item" and node.end != "first":
            message = (
                f"{node.end}({where}) is known when all rows are: an element cannot depend on it"
            )
            raise self.fail("C032", message, where)
        type_ = column_type(column)
        if type_.kind not in NUMBERS:
            raise self.fail("C032", f'"{node.end}" needs numbers, not {type_}', where)
        if node.end != "first" and column.nullable:
            raise self.fail("C032", f'"{where}" may be null: it has no {node.end}', where)
        return self.of_column(column, node.end)  # type: ignore[arg-type]

    def comparison(self, operator: str, left: Node, right: Node) -> Value:
        # Columns hold the numbers of enums, and true as 1.
        words = any(isinstance(side, Path) and self.enum_of(side) for side in (left, right))
        if not isinstance(right, Null) and not words:
            one, other = self.node(left), self.node(right)
            if {one.type.kind, other.type.kind} == {"bool", "int"}:
                return nodes.Comparison(operator, one, other)  # type: ignore[arg-type]
        return super().comparison(operator, left, right)


__all__ = [
    "NUMBERS",
    "RowsResolver",
    "WriteResolver",
    "column_type",
    "derived_value",
    "rows_scope",
]
