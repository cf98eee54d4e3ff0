"""Schemas with mistakes, and what codecgen says about them.

``diagnostics/C012-unknown.yaml`` (or a directory of that name) is a schema directory, ``C012-unknown.txt`` the text
expected. A single file stands beside the manifest below. Templates of a case are in ``templates/TARGET`` of its directory,
``programs`` has what ``explain --program`` says of our own schemas. ``python -m tests.codecgen.goldens`` writes the texts
and docs/diagnostics.md anew: read what changed before you keep it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from codecgen import directories
from codecgen.check import run
from codecgen.diagnostic_catalog import CATALOG
from codecgen.diagnostics import render
from codecgen.explain.programs import explain_program
from codecgen.plan import make_plan
from codecgen.schema import loader
from codecgen.schema.model import Model
from codecgen.targets.registry import TARGETS, TEMPLATED
from codecgen.targets.target_output import Emitted
from codecgen.template_files import read_templates
from tests.paths import ROOT, SCHEMAS

HERE = Path(__file__).parent / "diagnostics"
PROGRAMS = Path(__file__).parent / "programs"
PAGE = ROOT / "docs" / "diagnostics.md"
MANIFEST = """\
language: 1
package: example_codecs
title: Example
release_line: app
releases: [1.0, 1.1, 2.0]
links: {rfc: "https://example.org/rfc/{}"}
"""
HEAD = """\
# Diagnostics

<!-- Written by `python -m tests.codecgen.goldens`; a test compares. -->

This page lists every diagnostic of `codecgen check` and `codecgen generate`. A run reports all findings at once, each with
its line of YAML and a caret under the cause. `codecgen explain C012` prints an entry of this page in a terminal.

The id of a diagnostic never changes its meaning. [tests/codecgen/diagnostics](../tests/codecgen/diagnostics) contains the
schemas of these examples and many more.
"""


def cases() -> Iterator[Path]:
    """The schema files and directories, by name."""
    yield from sorted(p for p in HERE.iterdir() if p.is_dir() or p.suffix == ".yaml")


def files_of(case: Path) -> dict[str, str]:
    """The files of a case, as a schema directory would have them."""
    if case.is_dir():
        return loader.read_files(case)
    return {loader.MANIFEST: MANIFEST, "case.yaml": case.read_text(encoding="utf-8")}


def templates_of(case: Path) -> dict[str, dict[str, str]]:
    """The templates of a case, by target."""
    folders = sorted((case / "templates").iterdir()) if (case / "templates").is_dir() else []
    return {folder.name: read_templates(folder) for folder in folders}


def emit(model: Model, templates: dict[str, dict[str, str]]) -> list[Emitted]:
    """Run the targets, and those of ``templates`` with these."""
    plan = make_plan(model)
    found = [target(plan) for target in TARGETS.values()]
    return found + [TEMPLATED[target](plan, texts) for target, texts in templates.items()]


def text_of(case: Path) -> str:
    """Return what a run of ``codecgen generate`` says: errors, or notes."""
    files = files_of(case)
    templates = templates_of(case)
    texts = {name: text for found in templates.values() for name, text in found.items()}
    if "\nuses:" in files.get(loader.MANIFEST, ""):
        model, found, _ = directories.load(case)
        assert model is not None
        files = {**directories.texts_of(model)}
    else:
        model, found = loader.load(files)
        if model is not None:
            found += run(model)
    emitted = [] if model is None or found else emit(model, templates)
    errors = found + [d for result in emitted for d in result.diagnostics]
    if errors:
        return render(errors, {**files, **texts})
    return render([d for result in emitted for d in result.notes], files, "note")


def expected(case: Path) -> Path:
    return case.with_name(f"{case.stem}.txt")


def page() -> str:
    """Return the text of docs/diagnostics.md: each entry of the catalog with the first golden text that shows it."""
    parts = [HEAD]
    for code, entry in CATALOG.items():
        blocks = [
            block
            for path in sorted(HERE.glob(f"{code}-*.txt"))
            for block in path.read_text(encoding="utf-8").split("\n\n")
            if block.startswith(f"error[{code}]")
        ]
        explanation = textwrap.fill(entry.explanation, 120)
        remedy = textwrap.fill(f"**Remedy:** {entry.remedy}", 120)
        severity = (
            "" if entry.severities == ("error",) else "Reported as an error or as a note.\n\n"
        )
        parts.append(
            f"## {code}: {entry.title}\n\n{severity}{explanation}\n\n{remedy}\n\n"
            f"```text\n{blocks[0].rstrip()}\n```\n"
        )
    return "\n".join(parts)


def main() -> None:
    for case in cases():
        _write(expected(case), text_of(case))
    model, _ = loader.load(loader.read_files(SCHEMAS))
    assert model is not None
    for path in sorted(PROGRAMS.glob("*.txt")):
        _write(path, explain_program(model, path.stem) + "\n")
    _write(PAGE, page())


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        print(f"writing {path.name}")
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
