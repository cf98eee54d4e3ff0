"""Write YAML as a person lays it out: short mappings on one line, long text folded, comments kept."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

WIDTH = 120
_FOLDED = 112
_PLAIN = re.compile(r"[A-Za-z(](?:[A-Za-z0-9 .;()'/_<>=+*$%^@!?-]|,(?= )|:(?=[^ ]))*\Z")
_OTHER_SCALARS = frozenset(
    ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "~", ".inf", ".nan"]
)


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


@dataclass(frozen=True, slots=True)
class Word:
    """A name, a number or a range, which is written unchanged."""

    text: str


@dataclass(slots=True)
class Mapped:
    """An ordered mapping with comments above its keys. ``short``: write it on one line if it fits."""

    entries: dict[str, Value] = field(default_factory=dict)
    comments: dict[str, Sequence[str]] = field(default_factory=dict)
    short: bool = False


Value = Word | str | Mapped | Sequence[Word]


def documents(parts: Sequence[Mapped], head: Sequence[str] = ()) -> str:
    """Return the text of a file with the documents ``parts``, separated by ``---``, after the lines
    ``head`` as comments.
    """
    texts = ["".join(f"{line}\n" for line in _mapping(part, 0)) for part in parts]
    return "".join(f"{_comment(line, 0)}\n" for line in head) + "\n---\n".join(texts)


def _mapping(mapped: Mapped, depth: int) -> Iterator[str]:
    """Yield the lines of a mapping at nesting ``depth``, with comments above keys. Values go on the
    line of their key if they fit into ``WIDTH`` columns, else into nested or folded lines. Lists,
    and text that cannot be folded, make a long line. At depth 0 an empty line stands before
    ``fields``, ``tagged`` and ``enums``, unless it is the only key.
    """
    blanks = "  " * depth
    for key, value in mapped.entries.items():
        for line in mapped.comments.get(key, ()):
            yield _comment(line, depth)
        if key in ("fields", "tagged", "enums") and depth == 0 and len(mapped.entries) > 1:
            yield ""
        short = _short(value, in_flow=False)
        whole = None if short is None else f"{blanks}{key}: {short}"
        if whole is not None and len(whole) <= WIDTH:
            yield whole
        elif isinstance(value, Mapped):
            yield f"{blanks}{key}:"
            yield from _mapping(value, depth + 1)
        elif isinstance(value, str) and _folds(value):
            yield f"{blanks}{key}: >"
            yield from textwrap.wrap(
                value,
                _FOLDED,
                initial_indent=blanks + "  ",
                subsequent_indent=blanks + "  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        else:
            yield whole or f"{blanks}{key}: {quoted(str(value))}"


def _comment(line: str, depth: int) -> str:
    """Return a comment line, indented for nesting ``depth``; only ``#`` if ``line`` is empty."""
    return f"{'  ' * depth}# {_printable(line)}".rstrip()


def _printable(line: str) -> str:
    """Return ``line`` with a space for each character that cannot be printed."""
    return "".join(c if c.isprintable() else " " for c in line)


def _short(value: Value, *, in_flow: bool) -> str | None:
    """Return a value as YAML on one line, or None if it is a mapping that is not ``short`` or has
    comments, or contains such a mapping. Empty mappings without comments always give ``{}``. If
    ``in_flow``, text with a comma is quoted, as inside braces.
    """
    if isinstance(value, Word):
        return value.text
    if isinstance(value, str):
        return value if _is_plain(value, in_flow=in_flow) else quoted(value)
    if not isinstance(value, Mapped):
        return f"[{', '.join(word.text for word in value)}]"
    if value.comments or not (value.short or not value.entries):
        return None
    pieces = {key: _short(inner, in_flow=True) for key, inner in value.entries.items()}
    if any(piece is None for piece in pieces.values()):
        return None
    return "{" + ", ".join(f"{key}: {piece}" for key, piece in pieces.items()) + "}"


def _is_plain(text: str, *, in_flow: bool) -> bool:
    """Return whether text is written without quotes: it begins with a letter or ``(``, is no other
    scalar such as ``null``, has only plain characters, and, ``in_flow`` (inside brackets), no
    comma. False for some text that YAML would read back without quotes, and for ``""``.
    """
    if text.lower() in _OTHER_SCALARS or not _PLAIN.match(text) or text.endswith((" ", ":")):
        return False
    return not (in_flow and "," in text)


def _folds(text: str) -> bool:
    """Return whether folded text reads back unchanged: words separated by single spaces."""
    return text.isprintable() and text == " ".join(text.split()) and not text.startswith("#")


def quoted(text: str) -> str:
    """Return text in double quotes."""
    return '"' + "".join(_ESCAPES.get(c) or _character(c) for c in text) + '"'


def _character(c: str) -> str:
    """Return a character as it stands in double quotes: unchanged if printable, else as an escape
    with 2, 4 or 8 hexadecimal digits.
    """
    number = ord(c)
    if c.isprintable():
        return c
    return (
        f"\\x{number:02x}"
        if number < 256
        else f"\\u{number:04x}"
        if number < 65536
        else f"\\U{number:08x}"
    )


def words(names: Sequence[str]) -> tuple[Word, ...]:
    """Return names as words."""
    return tuple(Word(name) for name in names)
