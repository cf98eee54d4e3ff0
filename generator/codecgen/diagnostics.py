"""What codecgen has to say about a schema: values that are collected, never raised, and shown all at once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from codecgen.schema.types import Span

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
    "C028": "releases in an order that cannot be",
    "C029": "a freedom with nothing to free",
    "C030": "a choice that leaves values out",
    "C031": "nothing says where something ends",
    "C032": "a view does not fit its layouts",
    "C033": "a template cannot be rendered",
    "C034": "a template that takes nobody's place",
    "C040": "a schema directory that cannot be used",
    "C050": "a version in which a field has no type, or two",
    "C051": "lengths that a layout does not settle",
    "C052": "a tagged field that cannot be",
    "C054": "what decides between the cases of a choice does not",
    "C055": "a version that is told of what has none",
    "C062": "a size in the schema that nothing can have",
    "C063": "a checksum that does not cover what it says",
    "C064": "an array whose elements do not say which one is the last",
    "C065": "a rule that asks for nothing",
    "C066": "a value that builders cannot put into elements",
    "C059": "nothing, or too much, says what the parts of a payload are",
    "C060": "rows of parts that never come together",
}
"""Every number codecgen can print, and what it is about. Numbers are never used again for something else."""


_WIDEST = 160
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a number from :data:`CODES`, what is wrong, where, and what to do about it. What is not about schemas
    has no number."""

    code: str
    message: str
    span: Span
    label: str = ""
    help: str = ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean "x"?`` or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f'did you mean "{close[0]}"?' if close else ""


def render(
    diagnostics: Iterable[Diagnostic], files: Mapping[str, str], severity: str = "error"
) -> str:
    """All diagnostics as text, in the order of the files, each with its line and a caret under it. ``severity`` is error,
    or note."""
    ordered = sorted(
        diagnostics, key=lambda d: (d.span.file, d.span.line, d.span.column, d.code, d.message)
    )
    return "\n".join(_render(d, files.get(d.span.file, ""), severity) for d in ordered)


def _render(d: Diagnostic, text: str, severity: str) -> str:
    lines = lines_of(text)
    number = str(d.span.line)
    gutter = " " * len(number)
    place = f"{printable(d.span.file)}:{d.span.line}:{d.span.column}"
    code = f"[{d.code}]" if d.code else ""
    out = [f"{severity}{code}: {printable(d.message)}", f"{gutter}--> {place}"]
    if 0 < d.span.line <= len(lines):
        source = printable(lines[d.span.line - 1].replace("\t", " "), "\N{REPLACEMENT CHARACTER}")
        shown, column = _window(source, d.span.column)
        width = max(1, min(d.span.end_column - d.span.column, len(shown) + 1 - column))
        caret = " " * (column - 1) + "^" * width
        out += [f"{gutter} |", f"{number} | {shown}", f"{gutter} | {caret} {d.label}".rstrip()]
    if d.help:
        out.append(f"{gutter} = help: {printable(d.help)}")
    return "\n".join(out) + "\n"


def lines_of(text: str) -> list[str]:
    """The lines of a YAML file, counted as YAML counts them."""
    return _BREAK.split(text)


def printable(text: str, instead: str | None = None) -> str:
    """Text that cannot play tricks on a terminal: what is not printable is escaped, or replaced."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else instead if instead is not None else ascii(c)[1:-1] for c in text
    )


def _window(line: str, column: int) -> tuple[str, int]:
    """A long line around a column, and where the column is in what is left of it."""
    if len(line) <= _WIDEST:
        return line, column
    start = max(0, min(column - 1 - _WIDEST // 2, len(line) - _WIDEST))
    head, tail = "..." if start else "", "..." if start + _WIDEST < len(line) else ""
    return head + line[start : start + _WIDEST] + tail, column - start + len(head)


def once(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Without repetitions: at most one of a number for a place."""
    seen = set()
    for d in diagnostics:
        if (d.code, d.span) not in seen:
            seen.add((d.code, d.span))
            yield d
