"""The command fmt."""

from __future__ import annotations

import argparse
import difflib
import stat
from collections.abc import Mapping
from pathlib import Path

from codecgen import output
from codecgen.cli.common import (
    FINDINGS,
    GOOD,
    UsageError,
    load,
    print_message,
    print_result,
    report,
)
from codecgen.diagnostics import printable
from codecgen.formatting.canonical_text import FormatError, format_text
from codecgen.runtime.nouns import count_noun
from codecgen.schema.loader import MANIFEST


def fmt(arguments: argparse.Namespace) -> int:
    """Run ``codecgen fmt``: rewrite the files that are not in the canonical form, or only show them
    with ``--check`` or ``--diff``. Return 1 if a file is left alone, because of findings (in the
    manifest: all files) or because it cannot be reformatted without changing its meaning. Also
    return 1 if, with ``--check`` or ``--diff``, a file would change; else 0. Raise UsageError if
    the path does not exist, or is a file outside of all schema directories.
    """
    directory, only = _find_directory(arguments.path)
    _, diagnostics, texts = load(directory)
    wanted = [name for name in texts if only is None or name == only]
    found = [d for d in diagnostics if d.span.file in (*wanted, MANIFEST, "")]
    broken = {d.span.file for d in found}
    changed: dict[str, str] = {}
    refused = 0
    for name in wanted if not broken & {MANIFEST, ""} else ():
        if name in broken:
            continue
        try:
            text = format_text(texts[name])
        except FormatError as error:
            print_message(f"codecgen: {directory / name} is left as it is: {error}")
            refused += 1
            continue
        if text.encode("utf-8") != (directory / name).read_bytes():
            changed[name] = text
    if found:
        report(found, texts)
        print_message("codecgen: files with findings are left as they are")
    is_dry = arguments.check or arguments.diff
    for name, text in changed.items():
        if arguments.diff:
            print(_diff(name, texts, text), end="")
        elif arguments.check:
            print_result(f"{directory / name} would change")
        else:
            _write(directory / name, text)
    what = "would change" if is_dry else "changed"
    (print_message if arguments.diff else print_result)(
        f"{arguments.path}: {count_noun(len(changed), 'file')} {what},"
        f" {len(wanted) - len(changed) - len(broken & set(wanted)) - refused} already formatted"
    )
    return FINDINGS if found or refused or (is_dry and changed) else GOOD


def _find_directory(path: Path) -> tuple[Path, str | None]:
    """Return (schema directory of a path, name of the file in it). For a directory return the path
    itself, even without a manifest, and None. For a file return the closest directory above it with
    a manifest. Raise UsageError if the path does not exist, or no directory above the file has a
    manifest.
    """
    if not path.exists():
        raise UsageError(f"{path} does not exist; name a schema directory or a file in one")
    if path.is_dir():
        return path, None
    whole = path.resolve()
    for parent in whole.parents:
        if (parent / MANIFEST).is_file():
            return parent, whole.relative_to(parent).as_posix()
    raise UsageError(f"{path} is in no schema directory: no directory above it has {MANIFEST}")


def _diff(name: str, texts: Mapping[str, str], text: str) -> str:
    """Return the change of a file as a unified diff."""
    old, new = (one.splitlines(keepends=True) for one in (texts[name], text))
    return "".join(difflib.unified_diff(old, new, printable(name), printable(name)))


def _write(path: Path, text: str) -> None:
    """Replace the content of an existing file as a whole; its permissions stay. A symbolic link
    stays one, and the file that it names is replaced.
    """
    whole = path.resolve()
    mode = stat.S_IMODE(whole.stat().st_mode)
    output.write_whole(whole, text.encode("utf-8"))
    whole.chmod(mode)
