"""What the passes share: names with hints, places in expressions, ranges of types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from codecgen.diagnostics import Diagnostic, did_you_mean, lines_of
from codecgen.schema.expression import Expression
from codecgen.schema.model import (
    INTEGERS,
    VARINTS,
    ArrayType,
    BitMember,
    BitsType,
    Enum,
    Field,
    Layout,
    Model,
    Reference,
    ScalarType,
    Span,
    StructType,
    Versions,
)

MAX_VERSIONS = 100


def integer_range(name: str) -> tuple[int, int] | None:
    """The numbers that an integer type holds; None for a type that holds no integers."""
    if name in INTEGERS:
        size, signed = INTEGERS[name]
        bits = 8 * size
    elif name in VARINTS:
        bits, signed = VARINTS[name]
    elif name == "compact":
        bits, signed = 32, False
    else:
        return None
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def is_signed(name: str) -> bool:
    """Whether an integer type holds negative numbers."""
    low, _ = integer_range(name) or (0, 0)
    return low < 0


def hint(word: str, declared: Mapping[str, Span]) -> str:
    """``did you mean "x"? (file:line)``, or what there is."""
    guess = did_you_mean(word, declared)
    if guess:
        name = guess.split('"')[1]
        return f"{guess} ({declared[name]})"
    if not declared:
        return "none is declared"
    if len(declared) <= 8:
        return f"known here: {', '.join(declared)}"
    return ""


class Placed(Protocol):
    """Anything of the model that keeps the places of its keys."""

    @property
    def span(self) -> Span: ...
    @property
    def places(self) -> Mapping[str, Span]: ...


def place(thing: Placed, key: str) -> Span:
    """Where the value of a key stands; the thing itself when the key is not given."""
    return thing.places.get(key, thing.span)


def field_spans(layout: Layout) -> dict[str, Span]:
    return {f.name: f.span for f in layout.fields}


def field_of(layout: Layout, name: str) -> Field | None:
    return next((f for f in layout.fields if f.name == name), None)


def members(f: Field) -> tuple[BitMember, ...]:
    return f.type.members if isinstance(f.type, BitsType) else ()


def reference_of(f: Field) -> Reference | None:
    """The layout that a field holds."""
    if isinstance(f.type, StructType):
        return f.type.layout
    if isinstance(f.type, ArrayType) and isinstance(f.type.element, Reference):
        return f.type.element
    return None


def enum_uses(
    layout: Layout,
) -> Iterator[tuple[Field | BitMember, str, tuple[str, ...] | None]]:
    """The fields and bits that stand for values of an enum: (which, enum, the values that may stand there)."""
    for f in layout.fields:
        if isinstance(f.type, ScalarType) and f.type.enum is not None:
            yield f, f.type.enum, f.type.only
        for m in members(f):
            if m.enum is not None:
                yield m, m.enum, m.only


def enum_values(enum: Enum, only: tuple[str, ...] | None) -> Iterator[tuple[str, int]]:
    """The values that may stand in a place: all, or those that are listed."""
    for value in enum.values:
        if only is None or value.name in only:
            yield value.name, value.value


def all_versions(layout: Layout) -> tuple[int | None, ...]:
    """The versions of a layout, never more than can be looked at one by one."""
    v = layout.versions
    if v is None or v.high is None or v.high - v.low >= MAX_VERSIONS:
        return (None,)
    return layout.all_versions()


def versions_of(layout: Layout, thing: Versions | None) -> tuple[int | None, ...]:
    """The versions of a layout in which a thing with a range exists."""
    return tuple(v for v in all_versions(layout) if thing is None or v is None or v in thing)


def exists_in(f: Field | BitMember, version: int | None) -> bool:
    return f.versions is None or version is None or version in f.versions


def once(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Without repetitions: at most one of a number for a place."""
    seen = set()
    for d in diagnostics:
        if (d.code, d.span) not in seen:
            seen.add((d.code, d.span))
            yield d


_INDICATOR = re.compile(r"[|>][-+0-9]*[ \t]*(#[^\n]*)?\n|[\"']")


def expression_span(
    model: Model, expression: Expression, column: int | None = None, width: int = 1
) -> Span:
    """Where a word of an expression stands in the YAML: ``column`` counts in the expression's text.

    Without a column the whole expression is meant. Blocks and folded lines are followed as far as the text agrees;
    where it does not, the place is that where the expression begins.
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
