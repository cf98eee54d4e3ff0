"""Targets of templates, over this repository's schemas."""

from __future__ import annotations

from functools import cache

from codecgen.plan import Plan, make_plan
from codecgen.targets.target_output import Emitted
from codecgen.targets.template import emit
from tests.codecgen.schemas import our_model


@cache
def our_plan() -> Plan:
    return make_plan(our_model())


def ours(templates: dict[str, str]) -> Emitted:
    return emit(our_plan(), templates)


def text(template: str, name: str = "out.c.j2") -> str:
    """What a template gives for our schemas."""
    emitted = ours({name: template})
    assert not emitted.diagnostics
    (found,) = emitted.files.values()
    return found


def refused(templates: dict[str, str]) -> tuple[str, str, int, str]:
    emitted = ours(templates)
    assert not emitted.files
    (found,) = emitted.diagnostics
    return found.code, found.span.file, found.span.line, found.message
