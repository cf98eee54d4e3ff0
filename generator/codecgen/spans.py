"""Places in the YAML, and hints that refer to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol, TypeVar

from codecgen.diagnostics import Span, did_you_mean, lines_of
from codecgen.schema import other_words
from codecgen.schema.declarations import is_used, used_of
from codecgen.schema.expression import Expression
from codecgen.schema.model import Choice, Enum, Layout, Model

Declared = TypeVar("Declared", Layout, Enum, Choice)


class Placed(Protocol):
    """A part of the model that keeps the places of its keys."""

    @property
    def span(self) -> Span:
        """Return the place in YAML of the declaration."""

    @property
    def places(self) -> Mapping[str, Span]:
        """Return the place in YAML of each key of the declaration, by the name of the key."""


def hint(word: str, declared: Mapping[str, Span], what: str = "known here") -> str:
    """Return ``did you mean "x"? (file:line)`` for the closest declared name. If none is close,
    return help for another spelling of true, false or null, ``none is declared``, or ``known here:
    ..`` with the first 8 names and how many more there are. ``what`` replaces ``known here``.
    """
    guess = did_you_mean(word, declared)
    if guess:
        name = guess.split('"')[1]
        return f"{guess} ({declared[name]})"
    if constant := other_words.constant_help(word):
        return constant
    if not declared:
        return "none is declared"
    names = [*declared]
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"{what}: {', '.join(names[:8])}{more}"


def unknown(word: str, declared: Mapping[str, Declared]) -> str:
    """Return the hint for an undeclared name: the closest among the directory's own declarations
    or, if the name has a prefix, among those of used directories. Say that the prefix must be under
    ``uses`` if no directory is used.
    """
    spans = {name: thing.span for name, thing in declared.items()}
    if is_used(word):
        spans = {name: thing.span for name, thing in used_of(declared).items()}
    if is_used(word) and not spans:
        return "what stands before the dot is a name under `uses` in the manifest"
    return hint(word, spans)


def place(thing: Placed, key: str) -> Span:
    """Return the place of the value of a key, or of the thing itself if the key is missing."""
    return thing.places.get(key, thing.span)


def version_place(layout: Layout) -> Span:
    """Return the place that names the version field of a layout, or the layout's own place."""
    return next((place(f, "is") for f in layout.fields if f.is_version), layout.span)


_INDICATOR = re.compile(r"[|>][-+0-9]*[ \t]*(#[^\n]*)?\n|[\"']")


def expression_span(
    model: Model, expression: Expression, column: int | None = None, width: int = 1
) -> Span:
    """Return the place in the YAML of ``width`` characters of an expression from ``column`` on
    (from 0, in its text), or of the whole expression if it is None. Return the first character of
    the expression if the file does not match its text.

    Blocks and folded lines are followed as far as the text agrees.
    """
    whole = column is None
    text = expression.text
    if column is None:
        stripped = text.strip()
        column = text.index(stripped) if stripped else 0
        width = max(len(stripped), 1)
    file = model.files.get(expression.file, "")
    lines = lines_of(file)
    start = Span(expression.file, expression.line, expression.column, expression.column + 1)
    if not 0 < expression.line <= len(lines):
        return start
    rest = "\n".join(lines[expression.line - 1 :])[expression.column - 1 :]
    found = _INDICATOR.match(rest)
    at = found.end() if found else 0
    for character in text[:column]:
        if character.isspace():
            continue
        while at < len(rest) and rest[at].isspace():
            at += 1
        if at >= len(rest) or rest[at] != character:
            return start
        at += 1
    while at < len(rest) and rest[at].isspace():
        at += 1
    if rest[at : at + 1] != text[column : column + 1]:
        return start
    before = rest[:at]
    line = expression.line + before.count("\n")
    newline = before.rfind("\n")
    first = expression.column + at if newline < 0 else at - newline
    if whole:
        same = 0
        while same < width and rest[at + same : at + same + 1] == text[column + same]:
            same += 1
        width = max(same, 1)
    return Span(expression.file, line, first, first + width)
