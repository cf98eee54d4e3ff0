"""HTML pages that a schema directory emits."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from codecgen.plan import make_plan
from codecgen.schema.loader import load, read_files
from codecgen.targets import docs


@cache
def emitted(directory: Path) -> dict[str, str]:
    model, _ = load(read_files(directory))
    assert model is not None
    found = docs.emit_html(make_plan(model))
    assert not found.diagnostics
    return dict(found.files)
