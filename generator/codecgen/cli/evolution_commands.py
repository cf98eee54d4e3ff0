"""The commands breaking, and diff with ``--against``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from codecgen import directories
from codecgen.cli.common import (
    FINDINGS,
    GOOD,
    UsageError,
    load,
    print_diagnostics,
    print_message,
    print_result,
    sound,
)
from codecgen.diagnostics import Diagnostic, Span
from codecgen.evolution import Change, compare_models
from codecgen.evolution.changes import GROUPS
from codecgen.evolution.git_source import GitError, checkout_schemas
from codecgen.evolution.rules import RULES
from codecgen.runtime.nouns import count_noun
from codecgen.schema.model import Model


def diff_against(arguments: argparse.Namespace) -> int:
    """Run ``codecgen diff --against``: print all changes by group. Return 0, also if there are
    changes. Raise UsageError if the schemas or the other state cannot be loaded or have diagnostics.
    """
    new = _load_new(arguments.schemas)
    with _load_old(arguments.schemas, arguments.against) as old:
        changes = compare_models(old, new)
    print_result(f"{arguments.against} -> {arguments.schemas}")
    for group in GROUPS:
        lines = [_line(change) for change in changes if change.group == group]
        print_result("", group)
        for line in lines or ["nothing changed"]:
            print_result(f"  {line}")
    return GOOD


def _line(change: Change) -> str:
    """Return a change on one line, with the rule that it breaks."""
    rule = f" [{change.rule}]" if change.is_breaking else ""
    may = "" if change.is_certain else " (may break)"
    return f"{change.subject}: {change.message}{may}{rule}"


def breaking(arguments: argparse.Namespace) -> int:
    """Run ``codecgen breaking``: print accepted breaks and report the others. Return 1 if a
    breaking change is not accepted in the manifest; else 0, also if an accepted break does not
    occur, which is only noted. Raise UsageError if the schemas or the other state cannot be loaded
    or have diagnostics.
    """
    new = _load_new(arguments.schemas)
    with _load_old(arguments.schemas, arguments.against) as old:
        changes = compare_models(old, new)
    breaks = [change for change in changes if change.is_breaking]
    accepted = {(one.rule, one.at): one for one in new.manifest.accepted_breaks}
    for change in breaks:
        if (reason := accepted.get((change.rule, change.path))) is not None:
            line = f"accepted [{change.rule}]: {change.subject}: {change.message} ({reason.reason})"
            print_result(line)
    met = {(change.rule, change.path) for change in breaks}
    for key, one in accepted.items():
        if key not in met:
            print_message(f"codecgen: note: {one.span}: no change breaks {one.rule} at {one.at}")
    breaks = [change for change in breaks if (change.rule, change.path) not in accepted]
    if not breaks:
        what = "only accepted ones are breaking" if met else "none is breaking"
        print_result(f"{arguments.schemas}: {count_noun(len(changes), 'change')}, {what}")
        return GOOD
    before = f"{arguments.against}:"
    texts = {
        **directories.texts_of(new),
        **{before + name: text for name, text in directories.texts_of(old).items()},
    }
    print_diagnostics((_diagnostic(change, before) for change in breaks), texts)
    print_message(
        f"codecgen: {count_noun(len(breaks), 'breaking change')} since {arguments.against}"
    )
    return FINDINGS


def _diagnostic(change: Change, before: str) -> Diagnostic:
    """Return a breaking change as a diagnostic with the remedy of its rule. ``before`` precedes the
    file name if the place is in the old state. A change without place points to the manifest.
    """
    span = change.span or Span("codecgen.yaml", 1, 1, 1)
    if change.side == "old":
        span = replace(span, file=before + span.file)
    may = "" if change.is_certain else "; the bytes may differ"
    message = f"{change.subject}: {change.message}{may}"
    return Diagnostic(change.rule, message, span, help=RULES[change.rule].remedy)


def _load_new(schemas: Path) -> Model:
    """Return the model of the schemas that are compared. Raise UsageError if the directory is
    missing, or has diagnostics, after printing them.
    """
    new = sound(schemas)
    if new is None:
        raise UsageError(
            f"could not compare: the schemas of {schemas} have the findings above; correct them first"
        )
    return new


@contextmanager
def _load_old(schemas: Path, against: str) -> Iterator[Model]:
    """Yield the model of ``against``: a directory if it exists, else a revision of the git
    repository that contains ``schemas``. Raise UsageError if it cannot be loaded or has
    diagnostics.
    """
    if Path(against).is_dir():
        yield _usable(Path(against), against)
        return
    try:
        with checkout_schemas(schemas, against) as directory:
            model = _usable(directory, against)
    except GitError as error:
        raise UsageError(str(error)) from None
    yield model


def _usable(directory: Path, against: str) -> Model:
    """Return the model of a directory. Raise UsageError if it is missing or has diagnostics;
    ``against`` names it in the message.
    """
    model, diagnostics, _ = load(directory)
    if diagnostics or model is None:
        first = diagnostics[0]
        raise UsageError(
            f"the schemas of {against} have {count_noun(len(diagnostics), 'finding')} in this release of codecgen, the first"
            f" in {first.span}: {first.message}; name a later state, or a directory with corrected schemas"
        )
    return model
