"""Shared parts of the commands: load a schema directory, print findings, exit codes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from codecgen import directories, output
from codecgen.check.releases import is_known_release
from codecgen.diagnostics import Diagnostic, did_you_mean, printable, render
from codecgen.plan.as_of import release_key
from codecgen.runtime.nouns import count_noun
from codecgen.schema import loader
from codecgen.schema.model import Model
from codecgen.template_files import TemplateFilesError

GOOD, FINDINGS, COULD_NOT_RUN = 0, 1, 2
EXIT_CODES = "exit codes: 0 success; 1 a finding was reported; 2 could not run"
"""Last line of the help of every command."""


class UsageError(Exception):
    """The command cannot run. The text is one line that says what to do."""


def print_result(*lines: str) -> None:
    """Print lines to stdout, with unprintable characters escaped, line feeds included."""
    _print_lines(lines, sys.stdout)


def print_message(*lines: str) -> None:
    """Print lines to stderr, with unprintable characters escaped, line feeds included."""
    _print_lines(lines, sys.stderr)


def _print_lines(lines: Iterable[str], stream: TextIO) -> None:
    """Print lines to ``stream``. Paths and texts of files may be hostile: no character of them
    controls a terminal.
    """
    for line in lines:
        print(printable(line), file=stream)


def report_errors(command: Callable[[], int]) -> int:
    """Return the exit code of ``command``, or 2 after printing why it could not run: a UsageError,
    TemplateFilesError, OutputError or OSError. Raise BrokenPipeError if nobody reads the output;
    all other exceptions pass too.
    """
    try:
        return command()
    except BrokenPipeError:
        raise
    except (UsageError, TemplateFilesError, output.OutputError) as error:
        print_message(f"codecgen: {error}")
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print_message(f"codecgen: {what}")
    return COULD_NOT_RUN


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Turn the garbage collector off inside the ``with`` block, and on again after it, also after
    an exception, if it was on. Models and plans have next to no cyclic garbage, and searching them
    for it takes a sixth of a run.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def load(directory: Path) -> tuple[Model | None, list[Diagnostic], Mapping[str, str]]:
    """Return the model of a schema directory (None without a usable manifest), the diagnostics of
    reading and checking it, and the text of its files by name. Raise UsageError if ``directory`` is
    missing or no directory.
    """
    if not directory.is_dir():
        what = "is not a directory" if directory.exists() else "does not exist"
        raise UsageError(f"{directory} {what}; name the directory that holds {loader.MANIFEST}")
    return directories.load(directory)


def sound(directory: Path) -> Model | None:
    """Return the model of a schema directory. If it has diagnostics, print them and return None.
    Raise UsageError if ``directory`` is missing or no directory.
    """
    model, diagnostics, files = load(directory)
    if diagnostics or model is None:
        report(diagnostics, files)
        return None
    return model


def print_diagnostics(
    diagnostics: Iterable[Diagnostic], files: Mapping[str, str], severity: str = "error"
) -> None:
    """Print diagnostics to stderr, with an empty line after each. ``severity`` is ``error`` or ``note``."""
    print_message(*render(diagnostics, files, severity).split("\n"))


def report(diagnostics: list[Diagnostic], files: Mapping[str, str]) -> None:
    """Print diagnostics and their number to stderr."""
    print_diagnostics(diagnostics, files)
    print_message(f"codecgen: {count_noun(len(diagnostics), 'finding')}")


def release_of(wanted: str | None, model: Model) -> str | None:
    """Return the release that equals ``wanted`` as the manifest spells it (``2.1`` equals
    ``2.1.0``), or None if ``wanted`` is None. Raise UsageError if the manifest does not list it, or
    it is no release.
    """
    if wanted is None:
        return None
    known = model.manifest.releases
    if all(part.isdecimal() and part.isascii() for part in wanted.split(".")) and is_known_release(
        wanted, model.manifest
    ):
        return next(r for r in known if release_key(r) == release_key(wanted))
    hint = did_you_mean(wanted, known) or f"the manifest lists {', '.join(known) or 'none'}"
    raise UsageError(f"{wanted} is not a release of {model.manifest.title}; {hint}")
