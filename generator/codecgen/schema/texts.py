"""Texts in the model: files of lines, and files of properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from codecgen.diagnostics import Span
from codecgen.schema.expression import Expression
from codecgen.schema.types import Since

TEXT_TOLERANCES: Mapping[str, str] = {
    "other_newlines": "lines that end in CR or CR LF",
    "any_final_newline": "a last line that does not end in a line feed, or does where none is written",
    "invalid_utf8": "text that is not UTF-8; what is wrong in it reads as U+FFFD",
    "extra_blanks": "other and more blanks between values, and separators after the last one",
    "other_spellings": "numbers with a plus sign or zeros in front, uuids with padding or unused bits set",
    "any_label": "another word in the place of a label",
    "more_lines": "lines after the last one that has a meaning, which are passed over",
    "ends_early": "a text that ends before the line of a count, which then is 0",
    "duplicate_keys": "keys that stand twice; the last one holds",
    "loose_properties": "what else readers of Java properties take: a colon or blanks for the equals sign, blanks before keys, "
    "empty lines, lines that go on, comments after an exclamation mark, escapes that are not needed",
}
"""What lenient readers of texts take and strict ones refuse: name -> what it is. Writers never write any of it."""

LINES_ONLY = frozenset(["extra_blanks", "any_label", "more_lines", "ends_early"])
PROPERTIES_ONLY = frozenset(["duplicate_keys", "loose_properties"])

LINE_TOLERANCES = ("extra_blanks", "other_spellings", "any_label", "ends_early")
PROPERTY_TOLERANCES = ("other_spellings",)
"""Those that a line or a property may have alone."""

Kind = Literal["decimal", "string", "uuid"]


@dataclass(frozen=True, slots=True)
class TextValue:
    """A value in a text. ``of`` is the integer type of a ``decimal``, ``word`` or ``rest`` for a ``string``, or
    the spelling of a ``uuid``.
    """

    name: str
    kind: Kind
    of: str
    span: Span
    doc: str = ""
    key: str = ""
    label: str | None = None
    separator: str = ""
    const: int | None = None
    counts: str | None = None
    default: Expression | None = None
    valid: Expression | None = None
    refuse: Expression | None = None
    accepts: frozenset[str] = frozenset()
    unit: str | None = None
    since: Since | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EachLine:
    """Repeated lines with the same values. ``counted_by`` names the earlier line with their number (None: to
    the end).
    """

    name: str
    values: tuple[TextValue, ...]
    separator: str
    span: Span
    doc: str = ""
    counted_by: str | None = None
    accepts: frozenset[str] = frozenset()
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextExample:
    """A text and its meaning. A ``data`` of None stands for the text that the builder makes of ``value``."""

    name: str
    doc: str
    data: bytes | None
    value: object
    span: Span
    since: Since | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Text:
    """A text file of ``lines`` in order, or of ``properties`` (keys with values in any order)."""

    name: str
    doc: str
    span: Span
    lines: tuple[TextValue | EachLine, ...] = ()
    properties: tuple[TextValue, ...] = ()
    since: Since | None = None
    accepts: frozenset[str] = frozenset()
    may_be_empty: bool = False
    final_newline: bool = True
    keep_unknown: bool = False
    examples: tuple[TextExample, ...] = ()
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    def values(self) -> Iterator[tuple[str, TextValue]]:
        """Yield (path, value) for each value, in order; a value of repeated lines has the path
        ``line.value``.
        """
        for line in (*self.lines, *self.properties):
            if isinstance(line, EachLine):
                yield from ((f"{line.name}.{value.name}", value) for value in line.values)
            else:
                yield line.name, line
