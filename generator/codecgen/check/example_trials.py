"""Codecs: the generated ones read and write every example as the example says."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic
from codecgen.plan import make_plan
from codecgen.schema.model import Model


def check(model: Model) -> Iterator[Diagnostic]:
    if model.has_examples:
        from codecgen.examples.trial import findings  # needed where there are examples

        yield from findings(make_plan(model))
