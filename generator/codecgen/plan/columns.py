"""Plan views: for each layout and version, where the rows lie and how their columns are computed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from codecgen.plan import nodes
from codecgen.plan.generated_names import identifier
from codecgen.plan.given_values import replace_given
from codecgen.plan.layouts import FieldPlan, LayoutPlan, Plan
from codecgen.plan.nodes import Value
from codecgen.plan.resolve_views import ViewResolver, WriteResolver, rows_scope
from codecgen.plan.scope import Scope
from codecgen.schema.expression import Binary, EndOf, Expression, If, Node, Not, Path
from codecgen.schema.model import Column, Rows, View
from codecgen.schema.types import ArrayType, Reference


@dataclass(frozen=True, slots=True)
class CodecPlan:
    """Codec of a compressed section: its name, the variants to read and to write, and the maximum decompressed
    size.
    """

    name: str
    variant: str | None
    limit: int
    written: str | None = None


@dataclass(frozen=True, slots=True)
class CasePlan:
    """Rows from one layout in one version: the elements of ``array``, or (None) the layout itself.

    ``other_arrays`` has the arrays, each with the layout of its elements, of which a row has an element too. ``codecs`` has the
    codec for each number that may name one; None is for no compression. ``values`` is what the columns
    are made of, ``when`` and ``full_check`` the conditions of the rows, all settled in this version; ``write_entry`` and
    ``write_item`` what fields (and bits, as ``attributes.codec``) are written from.
    """

    number: int
    rows: Rows
    entry: LayoutPlan
    array: FieldPlan | None
    element: LayoutPlan
    codecs: dict[int, CodecPlan | None]
    other_arrays: Mapping[str, LayoutPlan] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)
    when: Value | None = None
    full_check: Value | None = None
    write_entry: Mapping[str, Value] = field(default_factory=dict)
    write_item: Mapping[str, Value] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the name of the case in generated code: ``message_v1_messages`` for the array
        ``messages`` of version 1. The version and the array are left out if there are none.
        """
        version = "" if self.entry.version is None else f"_v{self.entry.version}"
        return f"{identifier(self.entry.name)}{version}" + (
            f"_{self.array.name}" if self.array else ""
        )


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column with buffers of its own: a column of the view, or a part of a column of structs or lists."""

    index: int
    column: Column
    inside: Leaf | None = None

    @property
    def name(self) -> str:
        """Return the names from the column of the view to this one, joined with ``_``."""
        return self.column.name if self.inside is None else f"{self.inside.name}_{self.column.name}"

    @property
    def root(self) -> Leaf:
        """Return the column of the view that contains this column, or the column itself."""
        return self if self.inside is None else self.inside.root

    @property
    def list(self) -> Leaf | None:
        """Return the innermost list around this column, or None if the column has one value per row."""
        if self.inside is None or self.inside.column.type == "list":
            return self.inside
        return self.inside.list


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """Plan of a view over entries. ``entries`` pairs each layout plan with the number of the field
    ``by`` that selects it; ``by`` is None for one layout in one version.
    """

    view: View
    by: str | None
    entries: tuple[tuple[int, LayoutPlan], ...]
    cases: tuple[CasePlan, ...]
    leaves: tuple[Leaf, ...]

    def layouts(self) -> list[tuple[LayoutPlan, list[int]]]:
        """Return the distinct layouts of entries, in the order of ``entries`` (cases of a choice as
        in the file, versions ascending), each with the numbers of all entries that have it. Without
        ``by`` a number selects nothing: it is then that of a case, the only version, or 0.
        """
        out: list[tuple[LayoutPlan, list[int]]] = []
        for key, entry in self.entries:
            same = next((keys for p, keys in out if p is entry), None)
            if same is None:
                out.append((entry, [key]))
            else:
                same.append(key)
        return out

    def inside(self, leaf: Leaf) -> tuple[Leaf, ...]:
        """Return the columns directly inside a column of structs or lists; ``()`` for any other
        column.
        """
        return tuple(other for other in self.leaves if other.inside is leaf)

    def cases_of(self, entry: LayoutPlan) -> tuple[CasePlan, ...]:
        """Return the cases whose rows lie in ``entry``."""
        return tuple(case for case in self.cases if case.entry is entry)


def plan_view(plan: Plan, view: View) -> ViewPlan:
    """Return the plan of a view over entries, with one case per entry layout, version and matching
    section of rows, in the order of :meth:`ViewPlan.layouts`. The checks must have accepted the
    view; otherwise errors such as AssertionError or KeyError are possible.
    """
    by, entries = _list_entries(plan, view)
    planned = ViewPlan(view, by, entries, (), tuple(leaves_of(view)))
    cases: list[CasePlan] = []
    for entry, _ in planned.layouts():
        for rows in view.rows:
            if rows.layout == entry.name:
                cases.append(_plan_case(plan, view, len(cases), rows, entry))
    return replace(planned, cases=tuple(cases))


def _list_entries(plan: Plan, view: View) -> tuple[str | None, tuple[tuple[int, LayoutPlan], ...]]:
    """Return the name of the discriminator of a view's entries, and (number, layout plan) for each
    of them. For a choice the number is that of the case, else the version, or 0 without versions.
    The name is None for a layout of one version or without a version field, and for a choice that
    no field decides. Raise KeyError if the model lacks the layout, and ValueError if a case is a
    name without a number.
    """
    choice = plan.model.choices.get(view.of)
    if choice is not None:
        cases = ((int(key), p) for key, ref in choice.cases for p in plan.of(ref))
        return choice.by, tuple(cases)
    plans = plan.versions[view.of]
    by = plans[0].layout.version_is if len(plans) > 1 else None
    return by, tuple((p.version or 0, p) for p in plans)


def has_layouts(plan: Plan, view: View) -> bool:
    """Return whether the model contains the layout or choice of a view. False for releases before
    it existed, and for views of payloads.
    """
    return view.of in plan.model.choices or view.of in plan.model.layouts


def leaves_of(view: View) -> Iterator[Leaf]:
    """Yield the columns of a view depth first, numbered from 0: each struct or list before its
    parts, which refer to it.
    """
    numbers = itertools.count()

    def leaves(columns: tuple[Column, ...], inside: Leaf | None) -> Iterator[Leaf]:
        for column in columns:
            leaf = Leaf(next(numbers), column, inside)
            yield leaf
            yield from leaves(column.parts, leaf)

    yield from leaves(view.columns, None)


def _plan_case(plan: Plan, view: View, number: int, rows: Rows, entry: LayoutPlan) -> CasePlan:
    """Return the plan of one section of rows for an entry layout in one version: array, element
    layout, codecs, resolved column values, conditions and written values. ``number`` becomes the
    number of the case. Raise AssertionError or ValueError if an expression is invalid, which the
    checks exclude.
    """
    array = None if rows.each is None else entry.field(rows.each)
    element = entry
    other_arrays = {}
    for name in rows.other_arrays:
        other = entry.field(name)
        if other is not None and isinstance(other.field.type, ArrayType):
            held = other.field.type.element
            other_arrays[name] = (
                plan.expected(held, entry) if isinstance(held, Reference) else entry
            )
    codecs: dict[int, CodecPlan | None] = {0: None}
    if array is not None and isinstance(array.field.type, ArrayType):
        type_ = array.field.type
        if isinstance(type_.element, Reference):
            element = plan.expected(type_.element, entry)
        codecs = _plan_codecs(plan, entry, type_)
    scope = rows_scope(plan.model, entry.layout, entry.version, rows)
    bare = replace(scope, looks_up=False, holds=())

    def value(expression: Expression, holds: bool = True) -> Value:
        found = ViewResolver(expression, scope if holds else bare).resolve()
        assert found is not None, str(expression)
        return replace_given(found, {} if array is None else array.gives, ("item",), "own")

    return CasePlan(
        number,
        rows,
        entry,
        array,
        element,
        codecs,
        other_arrays,
        {name: value(expression) for name, expression in rows.values.items()},
        None if rows.when is None else value(rows.when, False),
        None if rows.full_check is None else value(rows.full_check, False),
        *_plan_writes(plan, view, rows, entry, element),
    )


def written_paths(case: CasePlan) -> Iterator[str]:
    """Yield the paths of the fields that ``write`` makes of columns, each after the array of its
    elements: ``flags.codec``, ``items.key``, ``items.headers.key``. Yield nothing if the rows have
    no ``write``.
    """
    array = "" if case.array is None else f"{case.array.name}."
    for before, written in (("", case.write_entry), (array, case.write_item)):
        for name, value in written.items():
            yield f"{before}{name}"
            if isinstance(value, nodes.ColumnValue):
                yield from (f"{before}{name}.{part.name}" for part in value.column.parts)


def running_fields(rows: Rows) -> set[str]:
    """Return the names of the entry fields that change with each row, because their ``write``
    expression uses the last, largest or smallest row, directly or through an entry field written
    before. Raise AssertionError if the rows have no ``write``.
    """
    assert rows.write is not None
    out: set[str] = set()
    for name, expression in rows.write.entry.items():
        if _is_running(expression.node, out):
            out.add(name.partition(".")[0])
    return out


def _is_running(node: Node, running: set[str]) -> bool:
    """Return whether an expression uses ``last``, ``max``, ``min`` or an entry field named in
    ``running``, anywhere in its operands and branches.
    """
    match node:
        case EndOf(end):
            return end in ("last", "max", "min")
        case Path(("entry", name, *_)):
            return name in running
        case Binary(_, left, right):
            return _is_running(left, running) or _is_running(right, running)
        case Not(operand):
            return _is_running(operand, running)
        case If(condition, then, otherwise):
            return any(_is_running(part, running) for part in (condition, then, otherwise))
    return False


def _plan_writes(
    plan: Plan, view: View, rows: Rows, entry: LayoutPlan, element: LayoutPlan
) -> tuple[Mapping[str, Value], Mapping[str, Value]]:
    """Return the values that ``write`` gives to the fields of an entry and of its elements: two
    mappings by field name or ``field.bit``. Both are empty if the rows have no ``write``. Fields
    that the version lacks are left out. Raise AssertionError if an expression is invalid, which the
    checks exclude.
    """
    if rows.write is None:
        return {}, {}
    scope = Scope(plan.model, entry.layout, entry.version, owner=entry.name)
    own = "row" if rows.each is None else "entry"
    running = running_fields(rows)
    named: list[str] = []
    entries: dict[str, Value] = {}
    for name, expression in rows.write.entry.items():
        resolver = WriteResolver(expression, scope, view, entry.layout, own, named, running)
        _resolve_write(entries, name, resolver, entry)
        named.append(name.partition(".")[0])
    items: dict[str, Value] = {}
    for name, expression in rows.write.item.items():
        resolver = WriteResolver(expression, scope, view, entry.layout, "item", named, running)
        _resolve_write(items, name, resolver, element)
    return entries, items


def _resolve_write(
    out: dict[str, Value], name: str, resolver: WriteResolver, layout: LayoutPlan
) -> None:
    """Store in ``out`` what ``resolver`` gives for the written field ``name`` (or ``field.bit``),
    unless this version of the layout lacks the field. Raise AssertionError if the expression is
    invalid.
    """
    fp = layout.field(name.partition(".")[0])
    if fp is None:
        return
    value = resolver.resolve()
    assert value is not None, name
    out[name] = value


def _plan_codecs(plan: Plan, entry: LayoutPlan, type_: ArrayType) -> dict[int, CodecPlan | None]:
    """Return the codec plan for each number of the enum that selects it, without excluded values.
    None stands for no compression; an array that is not compressed gives ``{0: None}``.
    """
    compression = type_.compression
    if compression is None:
        return {0: None}
    variants = {
        name: (read, written)
        for name, versions, written, read in compression.variants
        if versions is None or entry.version in versions
    }
    return {
        value.value: None
        if value.name == "none"
        else _plan_codec(value.name, variants, compression.limit)
        for value in plan.model.enums[compression.enum].values
        if value.name not in compression.excluded
    }


def _plan_codec(name: str, variants: dict[str, tuple[str, str]], limit: int) -> CodecPlan:
    """Return the plan of the codec ``name`` with its variants. ``variants`` has the pair (read,
    written) by codec; both are None for a codec without a pair. ``limit`` is the most bytes that a
    section may decompress to.
    """
    read, written = variants.get(name, (None, None))
    return CodecPlan(name, read, limit, written)
