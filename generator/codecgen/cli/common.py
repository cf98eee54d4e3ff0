"""What all commands need: a schema directory loaded and checked, how findings are shown, how commands end."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from codecgen import directories
from codecgen.check.releases import is_known_release
from codecgen.diagnostics import Diagnostic, did_you_mean, render
from codecgen.plan.as_of import release_key
from codecgen.schema import loader
from codecgen.schema.model import Model

GOOD, FINDINGS, COULD_NOT_RUN = 0, 1, 2


class UsageError(Exception):
    """The command cannot run. One line, with what to do next."""


def say(text: str) -> None:
    print(text, file=sys.stderr)


def load(directory: Path) -> tuple[Model | None, list[Diagnostic], Mapping[str, str]]:
    """A schema directory: its model (None when it cannot be had), all findings, and the text of its files."""
    if not directory.is_dir():
        what = "is not a directory" if directory.exists() else "does not exist"
        raise UsageError(f"{directory} {what}; name the directory that holds {loader.MANIFEST}")
    return directories.load(directory)


def sound(directory: Path) -> Model | None:
    """The model of a directory without findings; None after the findings have been shown."""
    model, diagnostics, files = load(directory)
    if diagnostics or model is None:
        report(diagnostics, files)
        return None
    return model


def report(diagnostics: list[Diagnostic], files: Mapping[str, str]) -> None:
    say(render(diagnostics, files))
    say(f"codecgen: {count(len(diagnostics), 'finding')}")


def count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def release_of(wanted: str | None, model: Model) -> str | None:
    """A release as the manifest writes it."""
    if wanted is None:
        return None
    known = model.manifest.releases
    if all(part.isdecimal() and part.isascii() for part in wanted.split(".")) and is_known_release(
        wanted, model.manifest
    ):
        return next(r for r in known if release_key(r) == release_key(wanted))
    hint = did_you_mean(wanted, known) or f"the manifest lists {', '.join(known) or 'none'}"
    raise UsageError(f"{wanted} is not a release of {model.manifest.title}; {hint}")
