"""Diagnostics: values about mistakes in schemas, with their places, which are collected and printed together."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

_WIDEST = 160
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a YAML file. ``file`` is relative to the schema directory; lines and columns count from 1."""

    file: str
    line: int
    column: int
    end_column: int

    def __str__(self) -> str:
        """Return ``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: an id of the catalog, what is wrong, where, and what to do about it.

    ``code`` is a key of :data:`codecgen.diagnostic_catalog.CATALOG`, or ``""`` if the finding is not about a schema.
    """

    code: str
    message: str
    span: Span
    label: str = ""
    help: str = ""


_MAX_SUGGESTED = 10
"""Number of known words to list if none is close."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean "x"?`` with the closest known word, or ``""`` if none is close."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f'did you mean "{close[0]}"?' if close else ""


def suggest(word: str, known: Sequence[str], what: str) -> str:
    """Return ``did you mean "x"?`` with the closest known word. If none is close, return the first
    10 in the given order, ``what: a, b, c and 9 more``, or ``what: none`` if ``known`` is empty.
    """
    more = f" and {len(known) - _MAX_SUGGESTED} more" if len(known) > _MAX_SUGGESTED else ""
    listed = f"{what}: {', '.join(known[:_MAX_SUGGESTED]) or 'none'}{more}"
    return did_you_mean(word, known) or listed


def render(
    diagnostics: Iterable[Diagnostic], files: Mapping[str, str], severity: str = "error"
) -> str:
    """Return all diagnostics as text, sorted by file, line and column, each with its source line
    and a caret under the cause, separated by blank lines; ``""`` if there are none. ``files`` has
    the text by name; without the file or the line in it, the source line and the caret are left
    out. A longer line is cut to 160 characters around the cause. ``severity`` is the first word of
    each: ``error`` or ``note``.
    """
    ordered = sorted(
        diagnostics, key=lambda d: (d.span.file, d.span.line, d.span.column, d.code, d.message)
    )
    # Thousands of findings may be about one file, or one long line: both are looked at once.
    lines = lru_cache(maxsize=1)(lambda file: lines_of(files.get(file, "")))
    source = lru_cache(maxsize=1)(lambda file, line: _source_line(lines(file), line))
    return "\n".join(_render_one(d, source(d.span.file, d.span.line), severity) for d in ordered)


def _source_line(lines: Sequence[str], number: int) -> str | None:
    """Return a line of a file, counted from 1, with tabs as blanks and other unprintable characters
    replaced. Return None if there is no such line.
    """
    if not 0 < number <= len(lines):
        return None
    return printable(lines[number - 1].replace("\t", " "), "\N{REPLACEMENT CHARACTER}")


def _render_one(d: Diagnostic, source: str | None, severity: str) -> str:
    """Return one diagnostic as text of several lines with a line feed at the end. ``source`` is its
    printable source line, which is left out if it is None, and the help if it is empty.
    """
    number = str(d.span.line)
    gutter = " " * len(number)
    place = f"{printable(d.span.file)}:{d.span.line}:{d.span.column}"
    code = f"[{d.code}]" if d.code else ""
    out = [f"{severity}{code}: {printable(d.message)}", f"{gutter}--> {place}"]
    if source is not None:
        shown, column = _cut_around(source, d.span.column)
        width = max(1, min(d.span.end_column - d.span.column, len(shown) + 1 - column))
        caret = " " * (column - 1) + "^" * width
        out += [f"{gutter} |", f"{number} | {shown}", f"{gutter} | {caret} {d.label}".rstrip()]
    if d.help:
        out.append(f"{gutter} = help: {printable(d.help)}")
    return "\n".join(out) + "\n"


def lines_of(text: str) -> list[str]:
    """Return the lines of a YAML file, split where YAML breaks lines."""
    return _BREAK.split(text)


def printable(text: str, instead: str | None = None) -> str:
    """Return ``text`` with each unprintable character (line feeds included) replaced by its Python
    escape, or by ``instead`` if that is given.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else instead if instead is not None else ascii(c)[1:-1] for c in text
    )


def format_value(value: object) -> str:
    """Return a value of an example, or one that was parsed, as one line of YAML for a message. Text
    is quoted as Python quotes it. Bytes become ``{hex: ..}``, or quoted text if they are printable
    ASCII. Values of other types, such as uuids, are printed by ``str``, without quotes.
    """
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case bytes():
            text = value.decode("latin-1")
            return (
                repr(text) if text.isascii() and text.isprintable() else f"{{hex: {value.hex()}}}"
            )
        case Mapping():
            return f"{{{', '.join(f'{name}: {format_value(v)}' for name, v in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(format_value, value))}]"
        case str():
            return repr(str(value))
        case _:
            return str(value)


def _cut_around(line: str, column: int) -> tuple[str, int]:
    """Return (line, column) with a line longer than ``_WIDEST`` cut to the part around ``column``
    (from 1), ``...`` at each cut, and the column in the result. A shorter line is returned
    unchanged.
    """
    if len(line) <= _WIDEST:
        return line, column
    start = max(0, min(column - 1 - _WIDEST // 2, len(line) - _WIDEST))
    head, tail = "..." if start else "", "..." if start + _WIDEST < len(line) else ""
    return head + line[start : start + _WIDEST] + tail, column - start + len(head)


def unique(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield diagnostics in order, without those whose id and place an earlier one has, even if the
    messages differ.
    """
    seen = set()
    for d in diagnostics:
        if (d.code, d.span) not in seen:
            seen.add((d.code, d.span))
            yield d
