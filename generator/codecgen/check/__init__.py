"""Checks of a model: one pass a module, all findings of a run at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from codecgen.check import (
    bits,
    choices,
    examples,
    expressions,
    manifest,
    names,
    nulls,
    open_ended,
    payloads,
    recursion,
    references,
    relations,
    releases,
    sensitive,
    tagged,
    texts,
    tolerances,
    values,
    versions,
    views,
    writes,
)
from codecgen.diagnostics import Diagnostic
from codecgen.schema.model import Model


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass, and the passes that it relies on: it does not run when they have found something."""

    name: str
    run: Callable[[Model], Iterable[Diagnostic]]
    after: tuple[str, ...] = ()


_SOUND = (
    "references",
    "versions",
    "bits",
    "relations",
    "recursion",
    "tagged",
    "expressions",
    "chosen",
    "texts",
)

PASSES: tuple[Pass, ...] = (
    Pass("manifest", manifest.check),
    Pass("names", names.check),
    Pass("references", references.check),
    Pass("versions", versions.check),
    Pass("releases", releases.check),
    Pass("bits", bits.check),
    Pass("relations", relations.check),
    Pass("sensitive", sensitive.check),
    Pass("values", values.check),
    Pass("nulls", nulls.check),
    Pass("tagged", tagged.check),
    Pass("recursion", recursion.check),
    Pass("expressions", expressions.check),
    Pass("nested", choices.check_nested),
    Pass("chosen", choices.check_uses),
    Pass("texts", texts.check),
    Pass("tolerances", tolerances.check, _SOUND),
    Pass("open_ended", open_ended.check, _SOUND),
    Pass("choices", choices.check, _SOUND),
    Pass("views", views.check, _SOUND),
    Pass("payloads", payloads.check, (*_SOUND, "choices")),
    Pass("writes", writes.check, (*_SOUND, "views")),
    Pass("examples", examples.check, (*_SOUND, "values", "nulls")),
)
PASSES += (Pass("example_trials", examples.check_trials, tuple(check.name for check in PASSES)),)
"""All passes, in the order in which they run. Those without ``after`` pass over what an earlier one reports."""


def run(model: Model) -> list[Diagnostic]:
    """What all passes find. A model with names that are ``broken`` is not sound enough for those that plan."""
    found: list[Diagnostic] = []
    failed = set(_SOUND) if model.broken else set()
    for check in PASSES:
        if failed & set(check.after):
            continue
        before = len(found)
        found += check.run(model)
        if len(found) > before:
            failed.add(check.name)
    return found


__all__ = ["PASSES", "Pass", "run"]
