"""Kinds of values that keys of the schema language take, and forms made of keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from codecgen.schema.other_words import NAME


@dataclass(frozen=True, slots=True)
class Text:
    """Any text.

    Attributes:
        is_prose: Text for people, which has no control characters but tabs and line ends.
    """

    is_prose: bool = False


PROSE = Text(is_prose=True)


@dataclass(frozen=True, slots=True)
class Name:
    """A snake_case name."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The name of a declaration, perhaps of a directory that is used: ``weather.sky``."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A schema directory: the name of an installed package, or a path that begins with ``./`` or ``../``."""


@dataclass(frozen=True, slots=True)
class Word:
    """Text without blanks: a spelling that the format's own documents use."""


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number."""


@dataclass(frozen=True, slots=True)
class Boolean:
    """``true`` or ``false``."""


def _no_help(text: str) -> str:
    """Return ``""``."""
    return ""


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words. ``title`` says what they are: ``a checksum``. ``help`` returns the help for
    a text that is none of them, or ``""`` if it has none. ``flexible`` are those that only flexible
    layouts use.
    """

    words: tuple[str, ...]
    title: str = ""
    help: Callable[[str], str] = field(default=_no_help, compare=False)
    flexible: tuple[str, ...] = ()

    @property
    def is_short(self) -> bool:
        """Return whether messages list the words: six at most, and no title."""
        return not self.title and len(self.words) <= 6


@dataclass(frozen=True, slots=True)
class Amount:
    """A number that stands elsewhere, plus or minus a number: ``size - 4``; or a value from outside."""


@dataclass(frozen=True, slots=True)
class Code:
    """An expression."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, true or false, text, ``{hex: ..}``, or the name of an enum's value."""


@dataclass(frozen=True, slots=True)
class Default:
    """An expression; for bytes and text also text in quotes or ``{hex: ..}``; for arrays ``[]``, for tagged layouts ``{}``."""


@dataclass(frozen=True, slots=True)
class Range:
    """A version range: ``1``, ``0-2``, ``1+``."""


@dataclass(frozen=True, slots=True)
class Bits:
    """A range of bits: ``3``, ``0-2``."""


@dataclass(frozen=True, slots=True)
class LayoutName:
    """A layout, perhaps in one version: ``message@0``."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release: ``0.11.0``."""


@dataclass(frozen=True, slots=True)
class Hex:
    """Bytes in hexadecimal digits, with blanks where one likes."""


@dataclass(frozen=True, slots=True)
class Anything:
    """Any YAML (the values of an example)."""


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; a single value stands for a list of one."""

    item: Kind


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping from names (or ``numbers``, or ``ranges`` of these) to values of one kind, in order."""

    value: Kind
    numbers: bool = False
    ranges: bool = False


@dataclass(frozen=True, slots=True)
class ByVersion:
    """A mapping from version ranges to values of one kind: ``{0-3: i16, 4+: compact}``."""

    value: Kind


@dataclass(frozen=True, slots=True)
class Either:
    """The first kind that fits: text or number, mapping, list."""

    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """A form (a mapping with known keys)."""

    form: str


Kind = (
    Text
    | Name
    | Declared
    | Directory
    | Word
    | Integer
    | Boolean
    | OneOf
    | Amount
    | Code
    | Constant
    | Default
    | Range
    | Bits
    | LayoutName
    | Release
    | Hex
    | Anything
    | ListOf
    | MapOf
    | ByVersion
    | Either
    | Use
)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a form. ``write`` is the line to add where a required key is missing."""

    kind: Kind
    doc: str
    required: bool = False
    write: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """A mapping with known keys. ``one_of``: groups of keys of which exactly one must be there."""

    doc: str
    keys: Mapping[str, Key]
    one_of: tuple[tuple[str, ...], ...] = ()
    together: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def kind_words(kind: Kind) -> str:
    """Return words for a kind of value, for diagnostics: ``a number``, ``one of a, b``. Words with
    a title give the title (``a checksum``), else more than six give ``a type``, and one alone gives
    itself in backticks. Return ``text`` for kinds that are not listed.
    """
    match kind:
        case OneOf(words, title):
            if not kind.is_short:
                return title or "a type"
            return f"one of {', '.join(words)}" if len(words) > 1 else f"`{words[0]}`"
        case Integer():
            return "a number"
        case Boolean():
            return "true or false"
        case Name() | Declared():
            return "a name"
        case Directory():
            return "a schema directory"
        case Word():
            return "a word"
        case Amount():
            return "a field, or a field plus or minus a number,"
        case Range():
            return "a version range"
        case Bits():
            return "a range of bits"
        case LayoutName():
            return "a layout"
        case Release():
            return "a release"
        case Text(is_prose=True):
            return "text without control characters"
        case Hex():
            return "an even number of hexadecimal digits"
        case _:
            return "text"


FLEXIBLE = ("string", "bytes")
"""Types whose lengths a flexible layout settles; elsewhere they say nothing."""
DOC = Key(PROSE, "What it is, in a sentence. Plain text.")
SINCE = Key(Use("since"), "From which release on it exists, and which documents brought it.")


MAX_CASES = 1000
"""The most cases of a choice, and so the most numbers of one range: each is a case by itself."""

INTEGER = re.compile(r"-?([0-9]{1,20}|0x[0-9a-fA-F]{1,16})\Z", re.ASCII)
_NUMBERS = re.compile(
    r"([0-9]{1,9}|0x[0-9a-fA-F]{1,8})-([0-9]{1,9}|0x[0-9a-fA-F]{1,8})\Z", re.ASCII
)


def is_key(text: str, kind: MapOf) -> bool:
    """Return whether ``text`` is a valid key of a mapping of this kind: a snake_case name, or, if
    the kind has them, an integer or a range such as ``0-3``. The order of a range is not checked.
    """
    number = kind.numbers and INTEGER.match(text)
    return bool(number or NAME.match(text) or (kind.ranges and _NUMBERS.match(text)))


def parse_number_range(text: str) -> range | None:
    """Return the numbers of a range such as ``0-3`` or ``0x90-0x9f``, both ends included. Return
    None if ``text`` is no range, descends, or has more than ``MAX_CASES`` numbers.
    """
    found = _NUMBERS.match(text)
    if found is None:
        return None
    low, high = (int(one, 16 if one.startswith("0x") else 10) for one in found.groups())
    numbers = range(low, high + 1)
    return numbers if 0 < len(numbers) <= MAX_CASES else None
