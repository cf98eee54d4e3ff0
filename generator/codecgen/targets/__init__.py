"""Targets: each is one package with one function ``emit(plan) -> Emitted``, and one line in the registry below."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codecgen.plan import Plan
from codecgen.targets import arrow, construct, docs
from codecgen.targets.emitted import Emitted

TARGETS: Mapping[str, Callable[[Plan], Emitted]] = {
    "construct": construct.emit,
    "docs": docs.emit,
    "arrow": arrow.emit,
}
"""Name on the command line -> target."""

TEMPLATED: Mapping[str, Callable[[Plan, Mapping[str, str]], Emitted]] = {
    "docs": docs.emit,
}
"""Targets that are made of templates, and take others for them (file name -> text)."""

__all__ = ["TARGETS", "TEMPLATED", "Emitted"]
