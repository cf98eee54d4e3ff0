"""What becomes of one mutant: check, generate into a directory of its own, then the tests against what was generated."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from codecgen import cli
from tests.mutants.edits import Mutant
from tests.mutants.outcome import FirstFailure, Outcome, register_profile
from tests.mutants.selection import Selection
from tests.mutants.subjects import Subject
from tests.paths import ROOT
from tests.tiers import EVERY_PARAMETER

TARGETS = "construct,arrow"
NOT_SLOW = "not slow and not broker and not soak"
"""Tests that are slow by themselves are left out; parameters that only `share` makes slow are not."""
PLACE = re.compile(r"^ *--> ([^:]+):(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Task:
    """A mutant, or None for the schemas as they are, its schema directory, and the tests that it gets."""

    mutant: Mutant | None
    subject: Subject
    selection: Selection


def run_task(task: Task, slot: int) -> Outcome:
    """Return the outcome of a task, as :func:`run` does."""
    return run(task.subject, task.subject.apply(task.mutant), task.selection)


def run(subject: Subject, files: Mapping[str, str], selection: Selection) -> Outcome:
    """Return the outcome for the files of a schema directory. The process cannot be used for another one after this."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        root = Path(folder)
        place = subject.write(root, files)
        refused = _generate(root, subject.directory, files)  # which checks first
        if refused is not None:
            return refused
        return _tests(root, subject.variable, place, selection)


def _generate(root: Path, directory: str, files: Mapping[str, str]) -> Outcome | None:
    """None when the generator finds nothing."""
    command = ["generate", str(root / directory), "--out", str(root / "generated")]
    shown = io.StringIO()
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            code = cli.main([*command, "--targets", TARGETS])
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome("crashed", f"{type(error).__name__} in {Path(last.filename).name}")
    if code == cli.GOOD:
        return None
    text = shown.getvalue()
    codes = sorted(set(re.findall(r"\[(C\d+)\]", text)))
    if codes == ["C024"]:
        return Outcome("examples", "C024")
    places = [(path, int(line)) for path, line in PLACE.findall(text)]
    texts = {str(root / directory / path): text for path, text in files.items()}
    of_examples = bool(places) and all(_in_examples(texts.get(p, ""), n) for p, n in places)
    return Outcome("examples" if of_examples else "rejected", " ".join(codes) or text.strip())


def _in_examples(text: str, line: int) -> bool:
    """Whether a line of a schema file lies below the key ``examples``."""
    before = text.splitlines()[:line]
    keys = [row for row in before if row[:1].isalpha()]
    return bool(keys) and keys[-1].startswith("examples:")


def _tests(root: Path, variable: str, place: Path, selection: Selection) -> Outcome:
    """The tests, in this process, with a name of `tests.paths` that leads to the mutant, and with its codecs if they are ours."""
    import tests.paths

    setattr(tests.paths, variable, place)
    generated = (root if variable == "SCHEMAS" else ROOT) / "generated"
    sys.path[:0] = [str(generated), str(ROOT / "generator"), str(ROOT / "pipeline")]
    os.chdir(ROOT)
    register_profile()
    os.environ[EVERY_PARAMETER] = "1"
    first = FirstFailure()
    options = ["-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-o", "pythonpath="]
    options += ["-m", NOT_SLOW, f"--rootdir={ROOT}", f"--basetemp={root / 'tmp'}"]
    if selection.keyword:
        options += ["-k", selection.keyword]
    shown = io.StringIO()
    code = 0
    for path in selection.paths:  # one by one: what the first ones kill need not collect the others
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            code = pytest.main([*options, path], plugins=[first])
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            break
    import kafka_codecs

    assert str(kafka_codecs.__file__).startswith(str(generated)), kafka_codecs.__file__
    if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return Outcome("survived")
    return Outcome("killed", first.name or shown.getvalue()[-500:])
