"""Views into payloads with everything told apart: for each number that decides what the parts are, and each version of them,
where the rows are and what their columns hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from codecgen.plan.columns import Leaf, leaves_of
from codecgen.plan.constant_folding import fold, is_known, truth
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
from codecgen.schema.types import ArrayType, Reference, Span


@dataclass(frozen=True, slots=True)
class PartKind:
    """What a part of a payload is. A ``choice`` by a field decides what itself is and, by the same number, those after it that
    are ``given`` it; a layout is what it is."""

    name: str
    of: str
    choice: Choice | None
    cases: Mapping[int, Reference] = field(default_factory=dict)

    @property
    def decides(self) -> bool:
        """Whether a field of it says what it is."""
        return self.choice is not None and self.choice.by is not None

    def reference(self, number: int | None) -> Reference | None:
        """The layout for a number; None when there is no case for it."""
        if self.choice is None:
            return Reference(self.of, None, Span("", 1, 1, 1))
        return None if number is None else self.cases.get(number)


def is_whole(plan: Plan, view: View) -> bool:
    """Whether there is all that the payloads of a view are: in the formats as they were there may be less."""
    model = plan.model
    if not all(of in model.choices or of in model.layouts for of in view.parts.values()):
        return False
    rows = [layout for one in view.rows for layout in one.parts.values()]
    return all(layout in model.layouts for layout in rows)


def part_kinds(model: Model, view: View) -> tuple[PartKind, ...]:
    """The parts of a view whose choices and layouts are there."""
    out = []
    for name, of in view.parts.items():
        choice = model.choices.get(of)
        out.append(PartKind(name, of, choice, {} if choice is None else numbers_of(choice, model)))
    return tuple(out)


def numbers_of(choice: Choice, model: Model) -> Mapping[int, Reference]:
    """The cases of a choice by their numbers, names being those of its enum."""
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
    """Rows of a payload whose parts are all known: the elements of ``array``, which lies in the part ``of``, or (None) one row.

    ``values`` is what the columns are made of, ``when`` the condition of the rows: what is known of null parts and of versions
    is settled in them. ``empty`` ones have no rows: there is no such array.
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
    """What the parts of a payload are: for a ``number`` that decides (None: nothing does), the layouts in their versions of the
    parts that are looked at; None is for a part that is null. ``cases`` has the rows that it may give, the first one whose
    ``when`` holds."""

    number: int | None
    layouts: Mapping[str, LayoutPlan | None]
    cases: tuple[PayloadCase, ...]

    @property
    def name(self) -> str:
        """``of_0_offset_key_v1_offset_value_v3``."""
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
    """A view into payloads. ``combinations`` has all that the parts can be of which rows are made; a number of the part that
    decides without any is passed over."""

    view: View
    parts: tuple[PartKind, ...]
    combinations: tuple[Combination, ...]
    leaves: tuple[Leaf, ...]

    @property
    def decider(self) -> PartKind | None:
        """The part that decides what all are."""
        return next((part for part in self.parts if part.decides), None)

    def inside(self, leaf: Leaf) -> tuple[Leaf, ...]:
        """What a column of structs or lists is made of."""
        return tuple(other for other in self.leaves if other.inside is leaf)

    def files(self) -> list[str]:
        """The files of the layouts that are read."""
        plans = [p for c in self.combinations for p in c.layouts.values() if p is not None]
        return sorted({plan.layout.span.file for plan in plans})


def plan_payloads(plan: Plan, view: View) -> PayloadPlan:
    """The plan of a view into payloads without faults."""
    combinations: list[Combination] = []
    count = 0
    for number, layouts, rows in combined(plan, view):
        cases = []
        for one in rows:
            case = _case(plan, view, one, layouts, count)
            if case is not None:
                cases.append(case)
                count += 1
        combinations.append(Combination(number, layouts, tuple(cases)))
    kinds = part_kinds(plan.model, view)
    return PayloadPlan(view, kinds, tuple(combinations), tuple(leaves_of(view)))


Combined = tuple[int | None, Mapping[str, LayoutPlan | None], list[Rows]]


def combined(plan: Plan, view: View) -> Iterator[Combined]:
    """All that the parts can be, with the rows that are of it."""
    kinds = part_kinds(plan.model, view)
    decider = next((kind for kind in kinds if kind.decides), None)
    numbers: list[int | None] = [None] if decider is None else [*decider.cases]
    for number in numbers:
        found = {kind.name: kind.reference(number) for kind in kinds}
        rows = [one for one in view.rows if fits(one, found)]
        named = {name for one in rows for name in one.parts}
        options: list[list[tuple[str, LayoutPlan | None]]] = []
        for kind in kinds if rows else ():
            plans = _plans(plan, kind, found[kind.name], number)
            nulls: list[LayoutPlan | None] = [] if kind.decides else [None]
            if kind.name in named:
                options.append([(kind.name, one) for one in [*plans, *nulls]])
        for chosen in product(*options) if rows else ():
            yield number, dict(chosen), rows


def fits(rows: Rows, found: Mapping[str, Reference | None]) -> bool:
    """Whether rows are of payloads whose parts have these layouts."""
    return all(
        (ref := found.get(name)) is not None and ref.layout == layout
        for name, layout in rows.parts.items()
    )


def _plans(
    plan: Plan, kind: PartKind, ref: Reference | None, number: int | None
) -> tuple[LayoutPlan, ...]:
    """The versions of a part. Where the number that decides is the version, that is the one."""
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
    """The parts as expressions of some rows see them."""
    out = {}
    for name in view.parts:
        layout = model.layouts.get(rows.parts.get(name, ""))
        known = layouts.get(name)
        version = None if known is None else known.version
        out[name] = PartScope(layout, version, layout is not None and known is None)
    return out


def _case(
    plan: Plan, view: View, rows: Rows, layouts: Mapping[str, LayoutPlan | None], number: int
) -> PayloadCase | None:
    """What some rows are of a payload; None where their condition never holds."""
    parts = part_scopes(plan.model, view, rows, layouts)
    scope = payload_scope(plan.model, view, rows, parts)

    when = resolve_condition_of_rows(rows, scope, parts)
    assert when is not None
    if is_known(when) and not truth(when):
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
