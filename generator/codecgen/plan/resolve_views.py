"""Resolve the expressions of views: where columns are read from, and what fields are written from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from codecgen.plan import nodes
from codecgen.plan.constant_folding import fold
from codecgen.plan.narrowing import Facts
from codecgen.plan.nodes import Value, owner_of_part
from codecgen.plan.resolve import Resolver, Stop, settled
from codecgen.plan.scope import Scope, layout_with
from codecgen.plan.types import BOOL, INT, Type
from codecgen.schema.expression import EndOf, Expression, Node, Null, Path
from codecgen.schema.lookup import exists_in, field_of, field_spans, versions_of
from codecgen.schema.model import Column, Derived, Field, Layout, Model, Rows, View
from codecgen.schema.scalars import SCALARS
from codecgen.schema.types import ArrayType, BitsType, ChoiceType, Reference, StructType
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


@dataclass(frozen=True, slots=True)
class PartScope:
    """A part as expressions see it: its layout (None: the rows name none) in a version, or ``null``. The version of what is
    null stands for all of them."""

    layout: Layout | None
    version: int | None
    null: bool


Parts = Mapping[str, PartScope]


def rows_scope(model: Model, layout: Layout, version: int | None, rows: Rows) -> Scope:
    """What the columns of some rows may name."""
    array = None if rows.each is None else field_of(layout, rows.each)
    item = array.type.element if array is not None and isinstance(array.type, ArrayType) else None
    scope = Scope(model, layout, version, owner=rows.layout, item=item, array=rows.each)
    if rows.when is None:
        return scope
    holds = ViewResolver(rows.when, scope).value()
    return scope if holds is None else replace(scope, holds=(holds,))


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
    value = ViewResolver(rows.when, scope, parts).value()
    return None if value is None else fold(value, lambda one: null_parts(one, parts))


def scope_of_rows(scope: Scope, rows: Rows, parts: Parts) -> Scope:
    """What the columns may name where the condition of the rows holds."""
    if rows.when is None:
        return scope
    holds = ViewResolver(rows.when, scope, parts).value()
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


def column_type(column: Column) -> Type:
    """The type of the values of a column."""
    return Type(_KINDS.get(column.type, "int"), nullable=column.nullable)


class ViewResolver(Resolver):
    """Resolves paths in the rows of a view: fields, bits, cases of choices, derived values, and where an entry lies.

    The rows are those of a layout, or of a payload if ``parts`` is given. A path into a payload begins with the name of a
    part. Whether a part is null is known: callers resolve an expression once for each of the two.
    """

    def __init__(self, expression: Expression, scope: Scope, parts: Parts | None = None) -> None:
        super().__init__(expression, scope)
        self.parts: Parts = parts or {}
        self.of_payload = parts is not None

    def path(self, path: Path) -> Value:
        if self.of_payload:
            return self.part_path(path)
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

    # ------------------------------------------------------------ cases of choices

    def inside(
        self,
        f: Field,
        names: tuple[str, ...],
        owner: nodes.Owner,
        holders: tuple[Field, ...],
        versions: Iterable[int | None],
        path: Path,
        nullable: bool = False,
    ) -> nodes.FieldValue | nodes.BitValue:
        versions = tuple(versions)
        choice = f.in_versions(versions)
        type_ = choice.type
        if not names or not isinstance(type_, ChoiceType) or layout_with(type_, names[0]):
            value = super().inside(f, names, owner, holders, versions, path, nullable)
            self.see_value(value, path)
            return value
        refs = _cases_called(type_, names[0])
        if not refs:
            message = f'"{names[0]}" is no case of "{f.name}"'
            raise self.fail("C014", message, path, f"its cases are {_cases(type_)}")
        if holders:
            message = f'the cases of "{f.name}" are out of reach: a layout in "{holders[0].name}" holds it'
            raise self.fail(
                "C022", message, path, "name cases of what is a field of the row itself"
            )
        self.use(f.name, f.since, path)
        case = Field(names[0], StructType(refs[0]), f.span)
        there = nodes.FieldValue(case, Type("layout"), owner, (choice,))
        known = self.facts.there(there)
        if len(names) == 1:
            return replace(there, type=there.type.or_null(not known))
        ref = refs[0] if len(refs) == 1 else replace(refs[0], version=None)
        inner = self.field_in(ref, names[1:], path, owner)
        held = {v for one in refs for v in self.scope.versions_in(type_, one)}
        there_in = [v for v in sorted(held, key=lambda v: v or 0) if exists_in(inner, v)]
        nullable = not known or len(there_in) < len(held)
        around = (choice, case)
        return self.inside(inner, names[2:], owner, around, there_in, path, nullable)

    def see_value(self, value: nodes.FieldValue | nodes.BitValue, path: Path) -> None:
        """A finding for bits of a case that are to be one number: nothing says where they were read from."""
        type_ = value.field.type if isinstance(value, nodes.FieldValue) else None
        if isinstance(type_, BitsType) and nodes.case_in(value) is not None:
            message = f'"{path}" is a set of bits in a case'
            help = f"name one of them: {', '.join(m.name for m in type_.members)}"
            raise self.fail("C022", message, path, help)

    # ------------------------------------------------------------ parts of payloads

    def part_path(self, path: Path) -> Value:
        """Resolve a path into a payload."""
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
            resolver = ViewResolver(
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


def derived_value(derived: Derived, scope: Scope) -> nodes.DerivedValue:
    """A derived value with what it is made of."""
    inner = replace(scope, before=None, owner=derived.name, holds=())
    return nodes.DerivedValue(derived, settled(derived.value, inner), SCALARS[derived.type].bits)


def _cases_called(type_: ChoiceType, name: str) -> list[Reference]:
    """The versions of the layout of that name; one of another package is called as it is there."""
    own = [ref for ref in type_.layouts if ref.layout == name]
    others = [ref for ref in type_.layouts if _short(ref) == name]
    return own or [ref for ref in others if ref.layout == others[0].layout]


def _short(ref: Reference) -> str:
    return ref.layout.rpartition(".")[2]


def _cases(type_: ChoiceType) -> str:
    """The names of the cases, each once."""
    return ", ".join({_short(ref): None for ref in type_.layouts})


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
