"""Findings about types of numbers that a target cannot express."""

from __future__ import annotations

from collections.abc import Callable

from codecgen.diagnostics import Diagnostic
from codecgen.plan import Plan
from codecgen.schema.lookup import number_types
from codecgen.schema.scalars import Scalar, find_scalar


def find_unsupported_scalars(
    plan: Plan, target: str, can_express: Callable[[Scalar], bool]
) -> tuple[Diagnostic, ...]:
    """Return a C023 finding for each field and each of its scalar types, also of its lengths and
    counts, that is unknown or for which ``can_express`` returns False; ``()`` if there are none.
    Derived values, and values that a layout gets from outside, are not checked. ``target`` is the
    target's name for the message.
    """
    found = []
    for layout in plan.model.layouts.values():
        for f in layout.fields:
            for name in dict.fromkeys(n for one in f.variants() for n in number_types(one)):
                scalar = find_scalar(name)
                if scalar is None or not can_express(scalar):
                    message = (
                        f'"{f.name}" is of the type {name}, which target {target} cannot express'
                    )
                    found.append(Diagnostic("C023", message, f.span))
    return tuple(found)
