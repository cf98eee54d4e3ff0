"""Targets: each is one package with a function ``emit(plan) -> Emitted``, and one line in the registry below."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codecgen.plan import Plan
from codecgen.targets import arrow, construct, docs, template
from codecgen.targets.emitted import Emitted

TARGETS: Mapping[str, Callable[[Plan], Emitted]] = {
    "construct": construct.emit,
    "docs": docs.emit,
    "arrow": arrow.emit,
}
"""Name on the command line -> target. These are made unless others are named."""

ON_REQUEST: Mapping[str, Callable[[Plan, Mapping[str, str]], Emitted]] = {
    "html": docs.emit_html,
    "kaitai": template.emit_kaitai,
    "template": template.emit,
}
"""Targets that are made only when they are named."""

TEMPLATED: Mapping[str, Callable[[Plan, Mapping[str, str]], Emitted]] = {
    "docs": docs.emit,
    **ON_REQUEST,
}
"""Targets that are made of templates, and take others for them (file name -> text)."""

__all__ = ["ON_REQUEST", "TARGETS", "TEMPLATED", "Emitted"]
