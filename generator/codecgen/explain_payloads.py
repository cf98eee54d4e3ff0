"""What readers of payloads do: what the parts can be, and what the rows of each are made of, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from codecgen.explain_values import said
from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.payloads import Combination, PayloadCase, plan_payloads
from codecgen.schema.model import View

_WIDTH = 100
_NAME = 24


def payload_program(plan: Plan, view: View) -> Iterator[str]:
    """The rows of a view into payloads: for each kind of payload what it is read as, and the value of each column."""
    made = plan_payloads(plan, view)
    yield f"{view.name}, read ({view.span})"
    decider = made.decider
    if decider is not None and decider.choice is not None:
        numbers = {c.number for c in made.combinations}
        passed = [str(n) for n in decider.cases if n not in numbers]
        yield f"  decided by {decider.name}.{decider.choice.by}"
        if passed:
            yield _filled(f"  no rows for {', '.join(passed)}", 6)
    for combinations in _alike(made.combinations):
        yield ""
        for combination in combinations:
            yield _title(combination)
        for case in combinations[0].cases:
            yield from _case(case)
        if not combinations[0].cases:
            yield "  no row"


def _alike(combinations: tuple[Combination, ...]) -> list[list[Combination]]:
    """Kinds of payloads whose rows are made of the same values."""
    out: list[tuple[list[str], list[Combination]]] = []
    for combination in combinations:
        text = [line for case in combination.cases for line in _case(case)]
        known = next((found for lines, found in out if lines == text), None)
        if known is None:
            out.append((text, [combination]))
        else:
            known.append(combination)
    return [found for _, found in out]


def _title(combination: Combination) -> str:
    parts = [f"{name} {_layout(plan)}" for name, plan in combination.layouts.items()]
    number = "" if combination.number is None else f"{combination.number}: "
    line = number + ", ".join(parts)
    return line if len(line) <= _WIDTH else number + f",\n{' ' * len(number)}".join(parts)


def _layout(plan: LayoutPlan | None) -> str:
    if plan is None:
        return "null"
    return plan.name if plan.version is None else f"{plan.name}@{plan.version}"


def _case(case: PayloadCase) -> Iterator[str]:
    if case.empty:
        rows = "no row"
    else:
        rows = "a row" if case.array is None else f"each of {case.of}.{case.array.name} a row"
    yield _filled(f"  {rows}" + ("" if case.when is None else f", if {said(case.when)}"), 6)
    for name, value in case.values.items():
        yield _filled(f"    {name:<{_NAME - 1}} {said(value)}", _NAME + 4)


def _filled(line: str, indent: int) -> str:
    return textwrap.fill(line, _WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)
