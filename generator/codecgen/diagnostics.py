"""What codecgen has to say about a schema: values that are collected, never raised, and shown all at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from codecgen.schema.model import Span

CODES: Mapping[str, str] = {
    "C001": "the file is not YAML",
    "C002": "YAML feature that schemas do not use (tags, anchors, aliases, merge keys)",
    "C003": "a key is given twice",
    "C004": "unknown key",
    "C005": "a required key is missing",
    "C006": "a value is of the wrong kind",
    "C007": "not a name",
    "C008": "a name is declared twice",
    "C009": "not a valid expression",
    "C010": "not a version range",
    "C011": "keys that exclude each other",
    "C012": "unknown enum, layout or enum value",
    "C013": "unknown type",
    "C014": "unknown field",
    "C015": "bits overlap or do not fit",
    "C016": "a relation points the wrong way",
    "C017": "a value does not fit its type",
    "C018": "a release that the manifest does not list",
    "C019": "layouts hold each other without end",
    "C020": "a version does not exist",
    "C021": "a field that must lie at a fixed place does not",
    "C022": "two parts of an expression do not fit together",
    "C023": "a target cannot express a feature",
    "C024": "an example does not say what its bytes say",
    "C025": "the schema directory has no manifest, or nothing in it",
    "C026": "a file is too large or too deep",
    "C027": "a name that generated code cannot have",
}
"""Every number codecgen can print, and what it is about. Numbers are never used again for something else."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a number from :data:`CODES`, what is wrong, where, and what to do about it."""

    code: str
    message: str
    span: Span
    label: str = ""
    help: str = ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean "x"?`` or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f'did you mean "{close[0]}"?' if close else ""


def render(diagnostics: Iterable[Diagnostic], files: Mapping[str, str]) -> str:
    """All diagnostics as text, in the order of the files, each with its line and a caret under it."""
    ordered = sorted(
        diagnostics, key=lambda d: (d.span.file, d.span.line, d.span.column, d.code, d.message)
    )
    return "\n".join(_render(d, files.get(d.span.file, "")) for d in ordered)


def _render(d: Diagnostic, text: str) -> str:
    lines = text.splitlines()
    number = str(d.span.line)
    gutter = " " * len(number)
    out = [f"error[{d.code}]: {d.message}", f"{gutter}--> {d.span.file}:{d.span.line}:{d.span.column}"]
    if 0 < d.span.line <= len(lines):
        source = lines[d.span.line - 1].replace("\t", " ")
        width = max(1, min(d.span.end_column, len(source) + 1) - d.span.column)
        caret = " " * (d.span.column - 1) + "^" * width
        out += [f"{gutter} |", f"{number} | {source}", f"{gutter} | {caret} {d.label}".rstrip()]
    if d.help:
        out.append(f"{gutter} = help: {d.help}")
    return "\n".join(out) + "\n"
