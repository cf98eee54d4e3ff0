"""Worked examples: the bytes of an example field by field, and the values derived from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from codecgen.diagnostics import Diagnostic
from codecgen.examples.text_trial import try_text
from codecgen.examples.trial import try_example
from codecgen.plan import LayoutPlan, Plan
from codecgen.schema.model import Example, Layout
from codecgen.schema.texts import Text, TextExample
from codecgen.targets.docs.hexdump import Stream, streams
from codecgen.targets.live_codecs import Codecs


@dataclass(frozen=True, slots=True)
class Worked:
    """A correct example: its bytes stream by stream, and the derived values."""

    example: Example
    streams: tuple[Stream, ...]
    derived: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class WorkedText:
    """A correct example of a text file: its bytes, and the places of values as (path, first byte, end)."""

    example: TextExample
    data: bytes
    places: tuple[tuple[str, int, int], ...]


def work_text(codecs: Codecs, text: Text, example: TextExample) -> WorkedText | Diagnostic:
    """Return the example of a text file with its bytes and the places of its values, or a C024
    finding if it does not match what the codec of the text parses and builds.
    """
    tried = try_text(codecs, text, example)
    if isinstance(tried, Diagnostic):
        return tried
    places = tuple((path, first, end) for path, first, end, _ in tried.trace)
    return WorkedText(example, tried.data, places)


def work(plan: Plan, codecs: Codecs, layout: Layout, example: Example) -> Worked | Diagnostic:
    """Return the example of a layout with its bytes split into fields, and its derived values, or a
    C024 finding if it does not match what the codec of the layout parses and builds.
    """
    tried = try_example(plan, codecs, layout, example)
    if isinstance(tried, Diagnostic):
        return tried
    found = streams(plan, tried.plan, tried.data, tried.value, tried.trace)
    return Worked(example, tuple(found), tuple(_derived(codecs, tried.plan, tried.value)))


def _derived(codecs: Codecs, plan: LayoutPlan, parsed: Any) -> Iterator[tuple[str, object]]:
    """Yield the name and value of each derived value of a layout version in ``parsed``; for
    elements of an array as ``array[0].name``. The value is None if a field that it needs is null.
    Skip values of other versions; a null array gives none.
    """
    file = plan.layout.span.file
    for d in plan.layout.derived:
        if d.versions is not None and plan.version not in d.versions:
            continue
        if d.array is None:
            yield d.name, codecs.derived(file, d.name)(parsed)
            continue
        function = codecs.derived(file, f"{d.array}_{d.name}")
        for i, item in enumerate(parsed[d.array] or ()):
            yield f"{d.array}[{i}].{d.name}", function(parsed, item)
