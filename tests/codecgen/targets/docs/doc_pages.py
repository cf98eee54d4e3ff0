"""Pages of documentation for tests: those of a directory of mail, and those of this repository's schemas.

``python -m tests.codecgen.targets.docs.doc_pages`` writes the golden pages anew: read what changed before you keep it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from codecgen.diagnostics import Diagnostic
from codecgen.plan import make_plan
from codecgen.schema.loader import load, read_files
from codecgen.schema.model import Model
from codecgen.targets import docs
from tests.paths import ROOT, SCHEMAS

DATA = ROOT / "tests" / "data" / "docs"
MAIL = DATA / "schemas"
EXPECTED = DATA / "expected"
BOTH = pytest.mark.parametrize(
    "directory",
    [pytest.param(MAIL, id="mail"), pytest.param(SCHEMAS, id="schemas", marks=pytest.mark.slow)],
)
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


@cache
def model_of(directory: Path) -> Model:
    model, diagnostics = load(read_files(directory))
    assert model is not None and not diagnostics
    return model


@cache
def emitted(directory: Path) -> dict[str, str]:
    found = docs.emit(make_plan(model_of(directory)))
    assert not found.diagnostics
    return dict(found.files)


def findings(text: str, name: str = "case.yaml") -> list[Diagnostic]:
    manifest = "language: 1\npackage: case_codecs\ntitle: Case\n"
    model, diagnostics = load({"codecgen.yaml": manifest, name: text})
    assert model is not None and not diagnostics
    return list(docs.emit(make_plan(model)).diagnostics)


def page(directory: Path, name: str) -> str:
    return emitted(directory)[f"docs/{name}.md"]


if __name__ == "__main__":
    for old in [p for p in EXPECTED.rglob("*") if p.is_file()]:
        old.unlink()
    for name, content in emitted(MAIL).items():
        place = EXPECTED / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8", newline="\n")
