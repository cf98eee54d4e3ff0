"""Plan views of payloads: for each discriminator and each version of the parts, the rows and the values of
their columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from codecgen.diagnostics import Span
from codecgen.plan.columns import Leaf, leaves_of
from codecgen.plan.constant_folding import as_truth, fold, is_known
from codecgen.plan.generated_names import identifier
from codecgen.plan.layouts import FieldPlan, LayoutPlan, Plan
from codecgen.plan.nodes import Value
from codecgen.plan.resolve_views import (
    Parts,
    PartScope,
    ViewResolver,
    null_of_part,
    payload_scope,
    resolve_condition_of_rows,
    scope_under_condition,
)
from codecgen.schema.expression import Expression
from codecgen.schema.model import Choice, Model, Rows, View
from codecgen.schema.types import ArrayType, Reference


@dataclass(frozen=True, slots=True)
class PartKind:
    """A part of a payload: a layout, or a choice with its cases by number.

    A choice ``by`` a field decides its own layout and that of later parts that are ``given`` the same number.
    """

    name: str
    of: str
    choice: Choice | None
    cases: Mapping[int, Reference] = field(default_factory=dict)

    @property
    def decides(self) -> bool:
        """Return whether the part is a choice by one of its own fields."""
        return self.choice is not None and self.choice.by is not None

    def reference(self, number: int | None) -> Reference | None:
        """Return the layout of the part for the discriminator ``number``: always the same for a
        part that is a layout. For a choice, return None if it has no case for ``number``, or that
        is None.
        """
        if self.choice is None:
            return Reference(self.of, None, Span("", 1, 1, 1))
        return None if number is None else self.cases.get(number)


def has_all_parts(plan: Plan, view: View) -> bool:
    """Return whether the model contains every layout and choice that the parts of a payload view
    name, and every layout that its rows name. An earlier release can lack some.
    """
    model = plan.model
    if not all(of in model.choices or of in model.layouts for of in view.parts.values()):
        return False
    rows = [layout for one in view.rows for layout in one.parts.values()]
    return all(layout in model.layouts for layout in rows)


def part_kinds(model: Model, view: View) -> tuple[PartKind, ...]:
    """Return the parts of a payload view in the order of the view, each with its choice (None for a
    layout) and the cases by number.
    """
    out = []
    for name, of in view.parts.items():
        choice = model.choices.get(of)
        out.append(
            PartKind(name, of, choice, {} if choice is None else cases_by_number(choice, model))
        )
    return tuple(out)


def cases_by_number(choice: Choice, model: Model) -> Mapping[int, Reference]:
    """Return the cases of a choice by number. Names become numbers of the enum that the choice is
    given; names that it does not have, and all names of choices by a field, are left out. The last
    case of a number counts.
    """
    enum = None if choice.given is None else model.enums.get(choice.given)
    names = {} if enum is None else {v.name: v.value for v in enum.values}
    out = {}
    for key, ref in choice.cases:
        number = key if isinstance(key, int) else names.get(key)
        if number is not None:
            out[number] = ref
    return out


@dataclass(frozen=True, slots=True)
class PayloadCase:
    """Rows of a payload whose parts are known: the elements of ``array`` in the part ``of``, or one row if
    ``array`` is None.

    ``values`` has the value of each column, ``when`` the condition of the rows. Both are folded: null parts and
    versions are known. A case that is ``empty`` has no rows: the part is null, or its version lacks the array.
    """

    number: int
    rows: Rows
    of: str = ""
    array: FieldPlan | None = None
    element: LayoutPlan | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    when: Value | None = None
    empty: bool = False


@dataclass(frozen=True, slots=True)
class Combination:
    """One combination of part layouts that a payload can have.

    ``number`` is the discriminator (None without one). A layout of None stands for a null part. The first case
    whose ``when`` holds gives the rows.
    """

    number: int | None
    layouts: Mapping[str, LayoutPlan | None]
    cases: tuple[PayloadCase, ...]

    @property
    def name(self) -> str:
        """Return the name in generated code, with the discriminator if there is one, and layout and
        version or ``null`` for each part: ``of_0_offset_key_v1_offset_value_v3``.
        """
        words = [] if self.number is None else [str(self.number).replace("-", "minus_")]
        for part, plan in self.layouts.items():
            if plan is None:
                words.append(f"{part}_null")
            else:
                version = "" if plan.version is None else f"_v{plan.version}"
                words.append(f"{identifier(plan.name)}{version}")
        return "_".join(["of", *words])


@dataclass(frozen=True, slots=True)
class PayloadPlan:
    """Plan of a view of payloads. Readers skip payloads whose discriminator has no combination."""

    view: View
    parts: tuple[PartKind, ...]
    combinations: tuple[Combination, ...]
    leaves: tuple[Leaf, ...]

    @property
    def decider(self) -> PartKind | None:
        """Return the part that decides the layouts of all parts, or None if there is none."""
        return next((part for part in self.parts if part.decides), None)

    def inside(self, leaf: Leaf) -> tuple[Leaf, ...]:
        """Return the columns directly inside a column of structs or lists; ``()`` for any other
        column.
        """
        return tuple(other for other in self.leaves if other.inside is leaf)

    def files(self) -> list[str]:
        """Return the schema files of the layouts that the view reads, sorted."""
        plans = [p for c in self.combinations for p in c.layouts.values() if p is not None]
        return sorted({plan.layout.span.file for plan in plans})


def plan_payloads(plan: Plan, view: View) -> PayloadPlan:
    """Return the plan of a payload view: its combinations of part layouts, each with cases for the
    rows whose condition can hold. A combination can have no cases. Raise KeyError if the model
    lacks a layout of a part, which :func:`has_all_parts` tells; AssertionError or ValueError if an
    expression is invalid, which the checks exclude.
    """
    combinations: list[Combination] = []
    count = 0
    for number, layouts, rows in iterate_combinations(plan, view):
        cases = []
        for one in rows:
            case = _plan_case(plan, view, one, layouts, count)
            if case is not None:
                cases.append(case)
                count += 1
        combinations.append(Combination(number, layouts, tuple(cases)))
    kinds = part_kinds(plan.model, view)
    return PayloadPlan(view, kinds, tuple(combinations), tuple(leaves_of(view)))


Combined = tuple[int | None, Mapping[str, LayoutPlan | None], list[Rows]]


def iterate_combinations(plan: Plan, view: View) -> Iterator[Combined]:
    """Yield, for each discriminator that has rows, each combination of layout versions of the parts
    that these rows name, as (discriminator, layout plan by part, rows). Named parts that do not
    decide also have None (null) as a layout. The discriminators are the case numbers of the part
    that decides, or None alone if no part does. Raise KeyError if the model lacks a layout of a
    part, which :func:`has_all_parts` tells.
    """
    kinds = part_kinds(plan.model, view)
    decider = next((kind for kind in kinds if kind.decides), None)
    numbers: list[int | None] = [None] if decider is None else [*decider.cases]
    for number in numbers:
        found = {kind.name: kind.reference(number) for kind in kinds}
        rows = [one for one in view.rows if matches_parts(one, found)]
        named = {name for one in rows for name in one.parts}
        options: list[list[tuple[str, LayoutPlan | None]]] = []
        for kind in kinds if rows else ():
            plans = _versions_of_part(plan, kind, found[kind.name], number)
            nulls: list[LayoutPlan | None] = [] if kind.decides else [None]
            if kind.name in named:
                options.append([(kind.name, one) for one in [*plans, *nulls]])
        for chosen in product(*options) if rows else ():
            yield number, dict(chosen), rows


def matches_parts(rows: Rows, found: Mapping[str, Reference | None]) -> bool:
    """Return whether each part that ``rows`` name has, in ``found``, a layout of the name that the
    rows give it. Parts that they do not name may have any.
    """
    return all(
        (ref := found.get(name)) is not None and ref.layout == layout
        for name, layout in rows.parts.items()
    )


def _versions_of_part(
    plan: Plan, kind: PartKind, ref: Reference | None, number: int | None
) -> tuple[LayoutPlan, ...]:
    """Return the layout plans that a part can have: all versions of ``ref``, or only version
    ``number`` if the part's choice is decided by the layout's version field. Return ``()`` if
    ``ref`` is None.
    """
    if ref is None:
        return ()
    plans = plan.of(ref)
    version = plan.model.layouts[ref.layout].version_is
    if kind.choice is not None and version is not None and kind.choice.by == version:
        return tuple(one for one in plans if one.version == number)
    return plans


def part_scopes(
    model: Model, view: View, rows: Rows, layouts: Mapping[str, LayoutPlan | None]
) -> Parts:
    """Return each part of a view as the expressions of ``rows`` see it: its layout (None if the
    rows do not name the part), its version, and whether it is null in ``layouts``.
    """
    out = {}
    for name in view.parts:
        layout = model.layouts.get(rows.parts.get(name, ""))
        known = layouts.get(name)
        version = None if known is None else known.version
        out[name] = PartScope(layout, version, layout is not None and known is None)
    return out


def _plan_case(
    plan: Plan, view: View, rows: Rows, layouts: Mapping[str, LayoutPlan | None], number: int
) -> PayloadCase | None:
    """Return the plan of ``rows`` for one combination of parts, whose layouts are ``layouts``, or
    None if their condition never holds there. If the part with the array of ``each`` is null or its
    version lacks the array, return a case that is marked empty. ``number`` becomes the number of
    the case. Raise AssertionError or ValueError if an expression is invalid.
    """
    parts = part_scopes(plan.model, view, rows, layouts)
    scope = payload_scope(plan.model, view, rows, parts)

    when = resolve_condition_of_rows(rows, scope, parts)
    assert when is not None
    if is_known(when) and not as_truth(when):
        return None
    when = None if is_known(when) else when
    scope = scope_under_condition(scope, rows, parts)
    of, _, name = (rows.each or "").partition(".")
    around = layouts.get(of)
    array = None if around is None else around.field(name)
    if rows.each is not None and array is None:
        return PayloadCase(number, rows, when=when, empty=True)
    element = None
    if array is not None and around is not None and isinstance(array.field.type, ArrayType):
        inner = array.field.type.element
        element = plan.expected(inner, around) if isinstance(inner, Reference) else None

    def value(expression: Expression) -> Value:
        found = ViewResolver(expression, scope, parts).resolve()
        assert found is not None, str(expression)
        return fold(found, lambda one: null_of_part(one, parts))

    values = {name: value(expression) for name, expression in rows.values.items()}
    return PayloadCase(number, rows, of, array, element, values, when)
