"""What pages describe: all that YAML files declare, and views into payloads."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.plan import Plan
from codecgen.plan.payloads import is_whole
from codecgen.schema.model import Declared, View

Thing = Declared | View
"""What pages describe."""


def things(plan: Plan) -> Mapping[str, tuple[Thing, ...]]:
    """What each YAML file declares that has a place on a page, in the order of the file; files by name."""
    out: dict[str, list[Thing]] = {file: list(found) for file, found in plan.modules().items()}
    for view in plan.model.views.values():
        if view.parts and is_whole(plan, view):
            out.setdefault(view.span.file, []).append(view)
    return {
        file: tuple(sorted(out[file], key=lambda thing: (thing.span.line, thing.span.column)))
        for file in sorted(out)
    }


def anchor_of(thing: Thing) -> str:
    """Where a thing stands on its page: a view may have the name of something else."""
    return f"{thing.name}--view" if isinstance(thing, View) else thing.name
