"""Resolve the expressions of views: where columns are read from, and what fields are written from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from codecgen.plan import nodes
from codecgen.plan.constant_folding import fold
from codecgen.plan.narrowing import Facts
from codecgen.plan.nodes import Value, owner_of_part
from codecgen.plan.resolve import Resolver, Stop, resolve_expression
from codecgen.plan.scope import Scope, layout_containing
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
    """A payload part as expressions see it.

    Attributes:
        layout: Its layout, or None if the rows name none.
        version: Its version. The version of a null part stands for all versions.
        null: Whether the part is null.
    """

    layout: Layout | None
    version: int | None
    null: bool


Parts = Mapping[str, PartScope]


def rows_scope(model: Model, layout: Layout, version: int | None, rows: Rows) -> Scope:
    """Return the scope for the columns of ``rows``: the fields of the layout in ``version``, the
    element of their array, and what their condition ``when`` guarantees. A condition that does not
    resolve adds nothing.
    """
    array = None if rows.each is None else field_of(layout, rows.each)
    item = array.type.element if array is not None and isinstance(array.type, ArrayType) else None
    scope = Scope(
        model,
        layout,
        version,
        owner=rows.layout,
        item=item,
        array=rows.each,
        other_arrays=rows.other_arrays,
    )
    holds = None if rows.when is None else ViewResolver(rows.when, scope).resolve()
    return replace(scope, looks_up=True, holds=() if holds is None else (holds,))


def payload_scope(model: Model, view: View, rows: Rows, parts: Parts) -> Scope:
    """Return the scope for columns of ``rows`` in a payload: an empty layout, and the element of
    the array that ``each`` names, if there is one. Parts are resolved by the ViewResolver.
    """
    empty = Layout(view.name, "", view.span, ())
    part, array = find_rows_array(rows, parts)
    item = array.type.element if array is not None and isinstance(array.type, ArrayType) else None
    version = None if part is None else part.version
    return Scope(model, empty, version, owner=view.name, item=item)


def resolve_condition_of_rows(rows: Rows, scope: Scope, parts: Parts) -> Value | None:
    """Return the folded condition of ``rows``: a true literal if they have none, a literal or null
    if the combination of parts decides it, and None if it cannot be resolved.
    """
    if rows.when is None:
        return nodes.Literal(1, BOOL)
    value = ViewResolver(rows.when, scope, parts).resolve()
    return None if value is None else fold(value, lambda one: null_of_part(one, parts))


def scope_under_condition(scope: Scope, rows: Rows, parts: Parts) -> Scope:
    """Return ``scope`` with the condition of ``rows`` as the only one known to hold; unchanged if
    there is none or it does not resolve.
    """
    if rows.when is None:
        return scope
    holds = ViewResolver(rows.when, scope, parts).resolve()
    return scope if holds is None else replace(scope, holds=(holds,))


def find_rows_array(rows: Rows, parts: Parts) -> tuple[PartScope | None, Field | None]:
    """Return the part and the field that ``each`` (``part.array``) names; whether it is an array is
    not checked. Return (None, None) without ``each`` or such a part, and None for the field if the
    part has no layout or its version lacks the field. Any version counts if the part is null.
    """
    part, _, name = (rows.each or "").partition(".")
    scope = parts.get(part)
    if scope is None or scope.layout is None:
        return scope, None
    f = field_of(scope.layout, name)
    there = f is not None and (scope.null or exists_in(f, scope.version))
    return scope, f if there else None


def column_type(column: Column) -> Type:
    """Return the type that the values of a column have in expressions: a number unless the column
    is of another kind.
    """
    return Type(_KINDS.get(column.type, "int"), nullable=column.nullable)


class ViewResolver(Resolver):
    """Resolves paths in the rows of a view: fields, bits, cases of choices, derived values, and
    where an entry lies. The rows are those of a layout, or of a payload if ``parts`` is given.

    A path into a payload begins with the name of a part. Whether a part is null is known: callers resolve an expression once for each of the two.
    """

    def __init__(self, expression: Expression, scope: Scope, parts: Parts | None = None) -> None:
        super().__init__(expression, scope)
        self.parts: Parts = parts or {}
        self.of_payload = parts is not None

    def resolve_path(self, path: Path) -> Value:
        """Return what a path names in a row: a field, bit, element, derived value, or the position
        or size of the entry. A field wins over another value of its name; whole bit fields are
        numbers. Raise Stop after a diagnostic if there is none. For payloads, see
        :meth:`resolve_part_path`.
        """
        if self.of_payload:
            return self.resolve_part_path(path)
        layout, each = self.scope.layout, self.scope.array
        names = path.names
        if (
            len(names) > 1
            and self.scope.other_arrays
            and names[0] in (each, *self.scope.other_arrays)
        ):
            return self.resolve_in_array(names[0], path)
        if len(names) == 2 and names[0] == each:
            return self.resolve_derived(names[1], each, path)
        if len(names) == 1 and field_of(layout, names[0]) is None:
            if names[0] in PLACES:
                return nodes.PlaceValue(names[0])  # type: ignore[arg-type]
            if any(d.name == names[0] and d.array is None for d in layout.derived):
                return self.resolve_derived(names[0], None, path)
        value = super().resolve_path(path)
        if isinstance(value, nodes.FieldValue) and value.type.kind == "bits":
            return replace(value, type=INT.or_null(value.type.nullable))
        return value

    def resolve_in_array(self, array: str, path: Path) -> Value:
        """Return what ``array.name`` names in rows of several arrays: a derived value of the
        element of ``array``, or else a field of it. Raise Stop after a diagnostic if there is
        neither, or the version lacks the array.
        """
        name = path.names[1]
        if any(d.name == name and d.array == array for d in self.scope.layout.derived):
            return self.resolve_derived(name, array, path)
        held = super().resolve_path(Path(path.names[:1], path.column))
        type_ = held.field.type if isinstance(held, nodes.FieldValue) else None
        assert isinstance(type_, ArrayType), array  # the checks say so of all of them
        owner = "item" if array == self.scope.array else nodes.owner_of_other_array(array)
        value = self.resolve_element(type_.element, path.names[1:], owner, path)
        if isinstance(value, nodes.FieldValue) and value.type.kind == "bits":
            return replace(value, type=INT.or_null(value.type.nullable))
        return value

    def resolve_derived(self, name: str, array: str | None, path: Path) -> Value:
        """Return the derived value ``name`` of the layout (``array`` None) or of the elements of
        ``array``. Raise Stop after a diagnostic if there is none. Raise ValueError if its
        expression is invalid, which the checks exclude.
        """
        spans = {d.name: d.span for d in self.scope.layout.derived if d.array == array}
        if name not in spans:
            message = f'nothing called "{name}" is derived for "{array}"'
            raise self.fail("C014", message, path, hint(name, spans))
        derived = (d for d in self.scope.layout.derived if d.name == name and d.array == array)
        scope = self.scope
        if array in scope.other_arrays:
            held = field_of(scope.layout, array)
            assert held is not None and isinstance(held.type, ArrayType), array
            scope = replace(scope, item=held.type.element, array=array, other_arrays=())
        return resolve_derived_value(next(derived), scope)

    # ------------------------------------------------------------ cases of choices

    def resolve_field(
        self,
        f: Field,
        names: tuple[str, ...],
        owner: nodes.Owner,
        holders: tuple[Field, ...],
        versions: Iterable[int | None],
        path: Path,
        nullable: bool = False,
    ) -> nodes.FieldValue | nodes.BitValue:
        """Return a field, or the value inside it that ``names`` leads to, also in a case of a
        choice (``field.case.name``), which is null if the choice holds another case. Raise Stop
        after a diagnostic if nothing has this name, the choice lies inside another layout, or it is
        a whole bit field in a case.
        """
        versions = tuple(versions)
        choice = f.in_versions(versions)
        type_ = choice.type
        if not names or not isinstance(type_, ChoiceType) or layout_containing(type_, names[0]):
            value = super().resolve_field(f, names, owner, holders, versions, path, nullable)
            self.check_bits_of_case(value, path)
            return value
        refs = _find_cases(type_, names[0])
        if not refs:
            message = f'"{names[0]}" is not a case of "{f.name}"'
            raise self.fail("C014", message, path, f"its cases are {_case_names(type_)}")
        if holders:
            message = f'the cases of "{f.name}" are out of reach: a layout in "{holders[0].name}" holds it'
            raise self.fail(
                "C022", message, path, "name cases of what is a field of the row itself"
            )
        self.note_use(f.name, f.since, path)
        case = Field(names[0], StructType(refs[0]), f.span)
        there = nodes.FieldValue(case, Type("layout"), owner, (choice,))
        known = self.facts.is_present(there)
        if len(names) == 1:
            return replace(there, type=there.type.or_null(not known))
        ref = refs[0] if len(refs) == 1 else replace(refs[0], version=None)
        inner = self.find_held_field(ref, names[1:], path, owner)
        held = {v for one in refs for v in self.scope.versions_in(type_, one)}
        there_in = [v for v in sorted(held, key=lambda v: v or 0) if exists_in(inner, v)]
        nullable = not known or len(there_in) < len(held)
        around = (choice, case)
        return self.resolve_field(inner, names[2:], owner, around, there_in, path, nullable)

    def check_bits_of_case(self, value: nodes.FieldValue | nodes.BitValue, path: Path) -> None:
        """Raise Stop after a diagnostic if a path names a whole bit field in a case of a choice;
        single bits and all other values pass.
        """
        type_ = value.field.type if isinstance(value, nodes.FieldValue) else None
        if isinstance(type_, BitsType) and nodes.case_in(value) is not None:
            message = f'"{path}" is a set of bits in a case'
            help = f"name one of them: {', '.join(m.name for m in type_.members)}"
            raise self.fail("C022", message, path, help)

    # ------------------------------------------------------------ parts of payloads

    def resolve_part_path(self, path: Path) -> Value:
        """Return what a path in a payload names: the current element (``item``), the number of the
        row, or a field of a part. Raise Stop after a diagnostic if it names no part, a part without
        a layout in these rows, a whole part, or no field.
        """
        name, *rest = path.names
        if name == "item":
            return self.resolve_item(path)
        if path.names == ("row",):
            return nodes.PlaceValue("row")
        part = self.parts.get(name)
        if part is None:
            spans = {n: p.layout.span for n, p in self.parts.items() if p.layout is not None}
            message = f'"{name}" is not a part of the payload: columns name fields as PART.FIELD'
            raise self.fail("C014", message, path, hint(name, spans, "parts here"))
        if part.layout is None:
            raise self.fail_unnamed(path)
        if not rest:
            message = f'"{name}" is a whole part: name a field of it, or compare it with null'
            raise self.fail("C022", message, path)
        return self.resolve_part_field(name, part, part.layout, path)

    def fail_unnamed(self, path: Path) -> Stop:
        """Record that ``rows`` give no layout for the part that a path names. Return the exception to raise."""
        message = f'these rows do not look at "{path.names[0]}"'
        help = f"give `of` its layout: `of: {{{path.names[0]}: ..}}`"
        return self.fail("C032", message, path, help)

    def resolve_part_field(self, name: str, part: PartScope, layout: Layout, path: Path) -> Value:
        """Return what ``path`` names inside the payload part ``name``, with the part as its owner.
        If the part is null, return the field of the newest version that has it, as nullable. Raise
        Stop, with the diagnostics of the oldest version tried, if no version has it.
        """
        inner = Path(path.names[1:], path.column + len(name) + 1)
        versions = [part.version] if not part.null else [*reversed(versions_of(layout, None))]
        found = self.found
        for version in versions:
            resolver = ViewResolver(
                self.expression,
                replace(self.scope, layout=layout, version=version, item=None, holds=()),
            )
            resolver.facts = self.facts_about(name)
            try:
                value = resolver.resolve_path(inner)
            except Stop:
                found = resolver.found
                continue
            self.uses += resolver.uses
            if isinstance(value, nodes.VersionValue) and part.null:
                f = field_of(layout, value.field)
                assert f is not None
                return nodes.FieldValue(f, INT.or_null(), owner_of_part(name))
            return _with_owner(value, name, part.null)
        self.found += found
        raise Stop

    def facts_about(self, name: str) -> Facts:
        """Return the facts about which fields of the payload part ``name`` are not null, as facts
        about a layout of its own.
        """
        owner = owner_of_part(name)
        present = frozenset(("own", names) for own, names in self.facts.present if own == owner)
        return Facts(present)

    def resolve_comparison(self, operator: str, left: Node, right: Node) -> Value:
        """Return a comparison with resolved sides. ``part == null`` and ``part != null`` become
        true or false, as the combination knows whether the part is null. Raise Stop after a
        diagnostic if the sides cannot be compared or the rows do not name the part.
        """
        if (
            isinstance(right, Null)
            and operator in ("==", "!=")
            and isinstance(left, Path)
            and len(left.names) == 1
            and left.names[0] in self.parts
        ):
            if self.parts[left.names[0]].layout is None:
                raise self.fail_unnamed(left)
            null = self.parts[left.names[0]].null
            return nodes.Literal(int(null is (operator == "==")), BOOL)
        return super().resolve_comparison(operator, left, right)


def resolve_derived_value(derived: Derived, scope: Scope) -> nodes.DerivedValue:
    """Return a derived value with its resolved expression, for the version of ``scope``. Raise
    ValueError if the expression is invalid, which the checks exclude.
    """
    inner = replace(scope, before=None, owner=derived.name, looks_up=True, holds=())
    bits = SCALARS[derived.type].bits if derived.type in SCALARS else 64
    return nodes.DerivedValue(derived, resolve_expression(derived.value, inner), bits)


def _find_cases(type_: ChoiceType, name: str) -> list[Reference]:
    """Return the references (several for several versions) of the case ``name`` of a choice, or
    ``[]`` if it has none. A layout of a used directory can be named without its prefix if no own
    layout has that name; of several such layouts the first counts.
    """
    own = [ref for ref in type_.layouts if ref.layout == name]
    others = [ref for ref in type_.layouts if _short_name(ref) == name]
    return own or [ref for ref in others if ref.layout == others[0].layout]


def _short_name(ref: Reference) -> str:
    """Return the name of a layout without the prefix of its directory."""
    return ref.layout.rpartition(".")[2]


def _case_names(type_: ChoiceType) -> str:
    """Return the names of the cases of a choice, each once, for a message."""
    return ", ".join({_short_name(ref): None for ref in type_.layouts})


def _with_owner(value: Value, part: str, null: bool) -> Value:
    """Return a value of a part's layout with the part as the owner of each own field, bit and array
    end in it, at any depth, nullable if ``null``. Literals, versions and fields with another owner
    stay unchanged.
    """
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
            inner = _with_owner(value.value, part, null)
            return replace(value, value=inner)
        case nodes.Sum(type=type_):
            sides = _with_owner(value.left, part, null), _with_owner(value.right, part, null)
            return nodes.Sum(value.operator, *sides, type_.or_null(null))
        case nodes.Membership(of, allowed):
            inner = _with_owner(of, part, null)
            assert isinstance(inner, nodes.FieldValue | nodes.BitValue)
            return nodes.Membership(inner, allowed)
    return nodes.map_children(value, lambda one: _with_owner(one, part, null))


def null_of_part(value: Value, parts: Parts) -> Value | None:
    """Return null for a field, bit or array end of a part that is null, and the literal of a known
    version; None for other values. It is the ``known`` argument of ``fold``.
    """
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
    """Resolves a path where rows are written: columns, ``version`` and ``entry.field``. ``part`` is
    what is written: the ``entry`` around the rows, an ``item`` of its array, or a ``row`` that is
    an entry itself.

    ``layout`` is that of the entry. ``named`` are the fields of the entry that have values by then, ``running``
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

    def resolve_path(self, path: Path) -> Value:
        """Return the version (for ``version``, if the layout has a version field), the entry field
        that ``entry.field`` names, or else a column of the row. Raise Stop after a diagnostic if it
        does not exist, the entry field is not written before or (for an element) depends on all
        rows, or a column has parts or stands alone in an entry of many rows.
        """
        names = path.names
        if names == ("version",) and self.layout.version_is is not None:
            version = self.scope.version
            return nodes.VersionValue(version, self.layout.version_is)
        if names[0] == "entry" and len(names) > 1:
            return self.resolve_entry_field(path)
        if len(names) > 1:
            raise self.fail("C014", f'the column "{names[0]}" has no parts', path)
        column = self.find_column(path)
        if self.part == "entry":
            message = f'an entry has many rows, and each has its own "{path}"'
            help = f"say first({path}), last({path}) or max({path})"
            raise self.fail("C032", message, path, help)
        return self.resolve_column(column, "row")

    def resolve_column(self, column: Column, which: nodes.Which) -> nodes.ColumnValue:
        """Return a column of the row or rows that ``which`` says, nullable unless a condition excludes null."""
        value = nodes.ColumnValue(column, which, column_type(column))
        nullable = value.type.nullable and not self.facts.is_column_present(value)
        return replace(value, type=value.type if nullable else value.type.not_null())

    def find_column(self, path: Path) -> Column:
        """Return the column of the view that the first name of a path names. Raise Stop after a
        diagnostic if there is none.
        """
        for column in self.view.columns:
            if column.name == path.names[0]:
                return column
        spans = {c.name: c.span for c in self.view.columns}
        message = f'the view has no column "{path}"'
        raise self.fail("C014", message, path, hint(path.names[0], spans))

    def resolve_entry_field(self, path: Path) -> Value:
        """Return the field, or bit of it, of the entry that ``entry.field`` names. Raise Stop after
        a diagnostic if it does not exist, is not written before this expression, or, for elements,
        depends on all rows.
        """
        name = path.names[1]
        f = field_of(self.layout, name)
        if f is None:
            spans = field_spans(self.layout)
            message = f'"{self.layout.name}" has no field "{name}"'
            raise self.fail("C014", message, path, hint(name, spans))
        if name not in self.named:
            message = f'"{name}" of the entry has no value yet where this field is written'
            help = f'use a field that stands earlier in "{self.layout.name}" and is written under `entry`'
            raise self.fail("C032", message, path, help)
        if self.part == "item" and name in self.running:
            message = f'"{name}" depends on all rows, so an element cannot depend on it'
            help = "use a column of the row, or a field of the entry that depends on no more than the first row"
            raise self.fail("C032", message, path, help)
        versions = {self.scope.version}
        return self.resolve_field(f, path.names[2:], "entry", (), versions, path)

    def resolve_end(self, node: EndOf) -> Value:
        """Return the first, last, largest or smallest value of a column over the rows of an entry.
        Raise Stop after a diagnostic if no column is named, the row is the entry itself, the column
        holds no numbers or (except ``first``) may be null, or an element asks for other than
        ``first``.
        """
        where = node.array
        if node.path is not None or len(where.names) != 1:
            raise self.fail("C022", f'"{node.end}" needs the name of one column here', where)
        column = self.find_column(where)
        if self.part == "row":
            message = f"each row is an entry: write `{where}`, not `{node.end}({where})`"
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
            raise self.fail(
                "C032",
                f'"{where}" may be null: it has no {node.end}',
                where,
                "name a column that is never null",
            )
        return self.resolve_column(column, node.end)  # type: ignore[arg-type]

    def resolve_comparison(self, operator: str, left: Node, right: Node) -> Value:
        # Columns hold the numbers of enums, and true as 1.
        """Return a comparison with resolved sides. Columns hold enum values as numbers and true as
        1, so booleans compare with integers. Raise Stop after a diagnostic if a side is invalid or
        the sides cannot be compared.
        """
        words = any(isinstance(side, Path) and self.find_enum(side) for side in (left, right))
        if not isinstance(right, Null) and not words:
            one, other = self.resolve_node(left), self.resolve_node(right)
            if {one.type.kind, other.type.kind} == {"bool", "int"}:
                return nodes.Comparison(operator, one, other)  # type: ignore[arg-type]
        return super().resolve_comparison(operator, left, right)
