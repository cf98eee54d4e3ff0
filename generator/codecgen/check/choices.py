"""Choices: what decides lies at one place, and every value that can come has a case."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic, once
from codecgen.plan import LayoutPlan, Plan, make_plan
from codecgen.schema.model import Choice, Enum, Layout, Model
from codecgen.schema.scalars import INTEGERS, VARINTS
from codecgen.schema.types import ScalarType, Span
from codecgen.spans import place, version_place


def check(model: Model) -> Iterator[Diagnostic]:
    plan = make_plan(model)
    for layout in model.layouts.values():
        if layout.version_is is not None:
            plans = [(p, version_place(layout)) for p in plan.versions[layout.name]]
            yield from once(_one_place(layout.version_is, plans))
    for choice in model.choices.values():
        if not choice.named:
            yield Diagnostic("C017", f'"{choice.name}" has no cases', place(choice, "cases"))
            continue
        yield from _twice(choice)
        if choice.by is not None:
            yield from once(_one_place(choice.by, list(_cases(choice, plan)), varints=True))
        elif choice.given is not None:
            yield from _complete(choice, model.enums[choice.given])


def _cases(choice: Choice, plan: Plan) -> Iterator[tuple[LayoutPlan, Span]]:
    for _, ref in choice.cases:
        for p in plan.of(ref):
            yield p, ref.span


def _twice(choice: Choice) -> Iterator[Diagnostic]:
    keys = [key for key, _ in choice.named]
    for i, (key, ref) in enumerate(choice.named):
        if key in keys[:i]:
            yield Diagnostic("C008", f"case {key} is given twice", ref.span)


def _one_place(
    by: str, plans: list[tuple[LayoutPlan, Span]], *, varints: bool = False
) -> Iterator[Diagnostic]:
    """The field lies at the same byte and has the same type in all the layouts; ``varints`` may be what decides."""
    allowed = (*INTEGERS, *VARINTS) if varints else INTEGERS
    what = "an integer" if varints else "an integer of fixed size"
    first: tuple[int, str, LayoutPlan] | None = None
    for plan, where in plans:
        name = _title(plan.layout, plan.version)
        fp = plan.field(by)
        if fp is None:
            yield Diagnostic("C020", f'"{by}" is not there in {name}', where)
            continue
        if not isinstance(fp.field.type, ScalarType) or fp.field.type.name not in allowed:
            message = f'"{by}" is not {what} in {name}: it cannot decide what the bytes are'
            yield Diagnostic("C021", message, where, help=f"see {fp.field.span}")
            continue
        if fp.offset is None or fp.field.when is not None:
            message = f'"{by}" does not lie at a fixed byte in {name}'
            yield Diagnostic("C021", message, where, help=f"see {fp.field.span}")
            continue
        type_ = f"{fp.field.type.name}, {fp.field.endian} endian"
        if first is None:
            first = (fp.offset, type_, plan)
            continue
        other = _title(first[2].layout, first[2].version)
        if fp.offset != first[0]:
            message = f'"{by}" lies at byte {fp.offset} in {name}, at byte {first[0]} in {other}'
            yield Diagnostic("C021", message, where, help=f"see {fp.field.span}")
        elif type_ != first[1]:
            message = f'"{by}" is {type_} in {name}, {first[1]} in {other}'
            yield Diagnostic("C021", message, where, help=f"see {fp.field.span}")


def _title(layout: Layout, version: int | None) -> str:
    return layout.name if version is None else f"{layout.name}@{version}"


def _complete(choice: Choice, enum: Enum) -> Iterator[Diagnostic]:
    """Values without a case are at least spoken of."""
    given = {key for key, _ in choice.named}
    doc = choice.doc.lower()
    missing = [
        value.name
        for value in enum.values
        if value.name not in given
        and value.name not in doc
        and (value.spelled is None or value.spelled.lower() not in doc)
    ]
    if missing:
        words = ", ".join(f'"{name}"' for name in missing)
        message = f'"{choice.name}" has no case for {words}'
        help = f"add the cases, or say in `doc` what becomes of them; the enum is at {enum.span}"
        yield Diagnostic("C030", message, place(choice, "cases"), help=help)
