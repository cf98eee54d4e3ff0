"""Views with versions told apart: for every layout and version, where the rows are and what their columns hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codecgen.plan.layouts import FieldPlan, LayoutPlan, Plan
from codecgen.schema.model import ArrayType, Choice, Column, Reference, Rows, View


@dataclass(frozen=True, slots=True)
class CodecPlan:
    """How a run is read: a codec, perhaps a variant of it (and the one to write), and the most bytes that it may hold."""

    name: str
    variant: str | None
    limit: int
    written: str | None = None


@dataclass(frozen=True, slots=True)
class CasePlan:
    """Rows from one layout in one version: the elements of ``array``, or (None) the layout itself.

    ``codecs`` has the codec for each number that may name one; None is for no compression.
    """

    number: int
    rows: Rows
    entry: LayoutPlan
    array: FieldPlan | None
    element: LayoutPlan
    codecs: dict[int, CodecPlan | None]

    @property
    def name(self) -> str:
        """``message_v1_messages``."""
        version = "" if self.entry.version is None else f"_v{self.entry.version}"
        return f"{self.entry.name}{version}" + (f"_{self.array.name}" if self.array else "")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column, or a member of a column of lists (``inside``), that has buffers of its own."""

    index: int
    column: Column
    inside: Column | None = None

    @property
    def name(self) -> str:
        return self.column.name if self.inside is None else f"{self.inside.name}_{self.column.name}"


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """A view, with the entries that it is made of by the number that tells them apart."""

    view: View
    choice: Choice
    entries: tuple[tuple[int, LayoutPlan], ...]
    cases: tuple[CasePlan, ...]
    leaves: tuple[Leaf, ...]

    def layouts(self) -> list[tuple[LayoutPlan, list[int]]]:
        """The layouts of entries, each with the numbers that stand for it."""
        out: list[tuple[LayoutPlan, list[int]]] = []
        for key, entry in self.entries:
            same = next((keys for p, keys in out if p is entry), None)
            if same is None:
                out.append((entry, [key]))
            else:
                same.append(key)
        return out

    def cases_of(self, entry: LayoutPlan) -> tuple[CasePlan, ...]:
        return tuple(case for case in self.cases if case.entry is entry)


def plan_view(plan: Plan, view: View) -> ViewPlan:
    """The plan of a view without faults."""
    choice = plan.model.choices[view.of]
    entries = tuple((int(key), p) for key, ref in choice.cases for p in plan.of(ref))
    cases: list[CasePlan] = []
    for _, entry in entries:
        for rows in view.rows:
            if rows.layout == entry.name:
                cases.append(_case(plan, len(cases), rows, entry))
    return ViewPlan(view, choice, entries, tuple(cases), tuple(_leaves(view)))


def _leaves(view: View) -> Iterator[Leaf]:
    """The lists come before their members."""
    index = 0
    for column in view.columns:
        yield Leaf(index, column)
        index += 1
        for member in column.members:
            yield Leaf(index, member, column)
            index += 1


def _case(plan: Plan, number: int, rows: Rows, entry: LayoutPlan) -> CasePlan:
    array = None if rows.each is None else entry.field(rows.each)
    element = entry
    codecs: dict[int, CodecPlan | None] = {0: None}
    if array is not None and isinstance(array.field.type, ArrayType):
        type_ = array.field.type
        if isinstance(type_.element, Reference):
            element = plan.expected(type_.element, entry)
        codecs = _codecs(plan, entry, type_)
    return CasePlan(number, rows, entry, array, element, codecs)


def _codecs(plan: Plan, entry: LayoutPlan, type_: ArrayType) -> dict[int, CodecPlan | None]:
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
        else _codec(value.name, variants, compression.limit)
        for value in plan.model.enums[compression.enum].values
        if value.name not in compression.refuses
    }


def _codec(name: str, variants: dict[str, tuple[str, str]], limit: int) -> CodecPlan:
    read, written = variants.get(name, (None, None))
    return CodecPlan(name, read, limit, written)
