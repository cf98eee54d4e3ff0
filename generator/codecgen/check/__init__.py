"""Checks of a model, as passes that collect all diagnostics of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from codecgen.check import (
    bits,
    choices,
    examples,
    expressions,
    given,
    manifest,
    messages,
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
    """A check of the whole model. It is skipped if a pass in ``after`` has reported something."""

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
    "given",
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
    Pass("given", given.check),
    Pass("nested", choices.check_nested),
    Pass("chosen", choices.check_uses),
    Pass("texts", texts.check),
    Pass("messages", messages.check, _SOUND),
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
    """Run ``PASSES`` in order and return all diagnostics. Skip a pass if one of the passes in its
    ``after`` reported something. Skip the passes that need a sound model (messages, examples,
    choices, views, and others) if ``model.broken`` names a declaration. AssertionError, an internal
    error of codecgen, passes if a fast parser disagrees with the field-by-field parser about an
    example.
    """
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
