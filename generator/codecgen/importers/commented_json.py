"""Parser of JSON with comments, as Kafka's message definitions are written, with the place of each value."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import NoReturn

from codecgen.diagnostics import Diagnostic, Span

MAX_BYTES = 4 << 20
DEEPEST = 64

_BLANKS = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_BARE = re.compile(r"[A-Za-z0-9_.+-]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Scalar:
    """Quoted text, a number, true, false or null. ``text`` is its text without quotes."""

    text: str
    quoted: bool
    span: Span

    @property
    def is_null(self) -> bool:
        """Return whether the value is ``null`` without quotes."""
        return not self.quoted and self.text == "null"


@dataclass(frozen=True, slots=True)
class Array:
    """An array with its elements."""

    items: tuple[Node, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Member:
    """A key of an object with its value. ``comments`` has the lines before the key, after the value, and after the
    last member.
    """

    key: str
    span: Span
    value: Node
    comments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Object:
    """An object with its members. ``comments`` has the lines before it, for objects in arrays."""

    members: tuple[Member, ...]
    span: Span
    comments: tuple[str, ...] = ()


Node = Scalar | Array | Object


def parse(file: str, data: bytes) -> Node | Diagnostic:
    """Return the JSON value of a file with its comments (``//`` and ``/* */``), or a Diagnostic
    about the first error: larger than ``MAX_BYTES``, not UTF-8, empty, not JSON, or nested deeper
    than ``DEEPEST`` levels. A byte order mark is skipped; keys that are given twice are kept.
    Comments go to members and to objects in arrays.
    """
    if len(data) > MAX_BYTES:
        return Diagnostic("", f"the file is larger than {MAX_BYTES >> 20} MiB", Span(file, 1, 1, 1))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Diagnostic("", "the file is not UTF-8", Span(file, line, 1, 1))
    try:
        return _Parser(file, text).read_document()
    except _Stop as stop:
        return stop.diagnostic


class _Stop(Exception):
    """Raised at the first error; ``diagnostic`` describes it."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


class _Parser:
    """Parser of one JSON text with comments, which go to the members and objects beside them."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.at = 0
        self.end_of_last = 0
        self.depth = 0
        self.starts = [0, *(m.end() for m in re.finditer("\r\n|\r|\n", text))]

    def read_document(self) -> Node:
        """Return the value of the whole text. Raise _Stop at the first syntax error, or if text
        other than comments follows the value.
        """
        self.comments()
        node = self.value()
        self.comments()
        if self.at < len(self.text):
            self.raise_error("there is something after the end of the definition", self.at)
        return node

    # ------------------------------------------------------------ places

    def span(self, start: int, end: int) -> Span:
        """Return the place of the characters from index ``start`` to ``end`` (not included), cut at
        the end of the line of ``start``.
        """
        line = bisect_right(self.starts, start)
        begin = self.starts[line - 1]
        last = self.starts[line] if line < len(self.starts) else len(self.text)
        return Span(self.file, line, start - begin + 1, min(end, last) - begin + 1)

    def line(self, at: int) -> int:
        """Return the line number, from 1, of the character with index ``at``."""
        return bisect_right(self.starts, at)

    def raise_error(self, message: str, at: int, help: str = "") -> NoReturn:
        """Raise :class:`_Stop` with a diagnostic at the character with index ``at``."""
        raise _Stop(Diagnostic("", message, self.span(at, at + 1), help=help))

    # ------------------------------------------------------------ pieces

    def comments(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Skip white space and comments. Return two tuples of comment lines, without empty lines at
        both ends: those that begin on the line of the last value, bracket or comma, and all others.
        Raise _Stop if a comment does not end.
        """
        behind: list[str] = []
        before: list[str] = []
        last = self.line(max(self.end_of_last - 1, 0))
        while True:
            blanks = _BLANKS.match(self.text, self.at)
            self.at = self.at if blanks is None else blanks.end()
            found = _COMMENT.match(self.text, self.at)
            if found is None:
                if self.text.startswith("/*", self.at):
                    self.raise_error("the comment does not end", self.at)
                return _trimmed(behind), _trimmed(before)
            on_that_line = self.end_of_last > 0 and self.line(found.start()) == last
            (behind if on_that_line else before).extend(_lines(found[0]))
            self.at = found.end()

    def skip(self, character: str) -> bool:
        """Skip ``character`` if it is the next one, without white space before it, and return
        whether it was.
        """
        if not self.text.startswith(character, self.at):
            return False
        self.at += 1
        self.end_of_last = self.at
        return True

    def value(self) -> Node:
        """Return the value that begins here: white space before it must be skipped. Raise _Stop if
        none does, or at the first syntax error in it. Numbers, true, false and null become a Scalar
        with their text.
        """
        start = self.at
        if self.skip("{"):
            return self.object(start)
        if self.skip("["):
            return self.array(start)
        if self.text.startswith('"', self.at):
            return self.string()
        bare = _BARE.match(self.text, self.at)
        if bare is None:
            what = "the file ends" if start >= len(self.text) else f'"{self.text[start]}" stands'
            self.raise_error(f"{what} where a value is expected", start)
        if bare[0] not in ("true", "false", "null") and not _NUMBER.match(bare[0]):
            shown = bare[0][:_LONGEST_SHOWN]
            self.raise_error(
                f"{shown} is not a JSON value", start, help="text stands in double quotes"
            )
        self.at = self.end_of_last = bare.end()
        return Scalar(bare[0], False, self.span(start, self.at))

    def string(self) -> Scalar:
        """Return the quoted text that begins here as a Scalar. Raise _Stop if none does, or if it
        does not end, has an unescaped control character or an invalid escape, or contains half of a
        surrogate pair.
        """
        start = self.at
        found = _STRING.match(self.text, start)
        if found is None:
            self.raise_error("the text does not end, or has what must be escaped in it", start)
        self.at = self.end_of_last = found.end()
        text: str = json.loads(found[0])
        if any("\ud800" <= c <= "\udfff" for c in text):
            self.raise_error("the text has half a character in it", start)
        return Scalar(text, True, self.span(start, self.at))

    def deeper(self, start: int) -> None:
        """Count a level of nesting that begins at index ``start``. Raise _Stop there if it is
        deeper than ``DEEPEST``. The caller counts the level back.
        """
        self.depth += 1
        if self.depth > DEEPEST:
            self.raise_error(f"more than {DEEPEST} levels in each other", start)

    def object(self, start: int) -> Object:
        """Return the rest of an object after its brace, which is at ``start``, with comments at its
        members. Keys that are given twice are kept. Raise _Stop at a syntax error, such as a comma
        before the brace, or if it nests too deep.
        """
        self.deeper(start)
        members: list[Member] = []
        _, before = self.comments()
        while not self.skip("}"):
            if not self.text.startswith('"', self.at):
                self.raise_error("a key in double quotes is expected", self.at)
            key = self.string()
            self.comments()
            if not self.skip(":"):
                self.raise_error("a colon is expected after the key", self.at)
            self.comments()
            value = self.value()
            behind, after = self.comments()
            ended = not self.skip(",")
            if not ended:
                more, after_comma = self.comments()
                behind, after = behind + more, after + after_comma
                if self.text.startswith("}", self.at):
                    self.raise_error("a key is expected after the comma", self.at)
            elif not self.text.startswith("}", self.at):
                self.raise_error("a comma or a brace is expected after the value", self.at)
            members.append(Member(key.text, key.span, value, before + behind))
            before = after
        self.depth -= 1
        if before and members:
            members[-1] = replace(members[-1], comments=members[-1].comments + before)
        return Object(tuple(members), self.span(start, start + 1))

    def array(self, start: int) -> Array:
        """Return the rest of an array after its bracket, which is at ``start``, with comments at
        items that are objects. Raise _Stop at a syntax error, such as a comma before the bracket,
        or if it nests too deep.
        """
        self.deeper(start)
        items: list[Node] = []
        _, before = self.comments()
        while not self.skip("]"):
            value = self.value()
            behind, after = self.comments()
            if self.skip(","):
                more, after_comma = self.comments()
                behind, after = behind + more, after + after_comma
                if self.text.startswith("]", self.at):
                    self.raise_error("a value is expected after the comma", self.at)
            elif not self.text.startswith("]", self.at):
                self.raise_error("a comma or a bracket is expected after the value", self.at)
            if isinstance(value, Object):
                value = replace(value, comments=before + behind)
            items.append(value)
            before = after
        self.depth -= 1
        last = items[-1] if items else None
        if before and isinstance(last, Object):
            items[-1] = replace(last, comments=last.comments + before)
        return Array(tuple(items), self.span(start, start + 1))


def _lines(comment: str) -> list[str]:
    """Return the lines of a comment without its marks (``//``, ``/* */``, ``*``) and one blank
    after them. Empty lines are kept.
    """
    if comment.startswith("//"):
        return [comment[2:].removeprefix(" ").rstrip()]
    inside = [line.strip() for line in re.split("\r\n|\r|\n", comment[2:-2])]
    return [line.removeprefix("*").removeprefix(" ").rstrip() for line in inside]


def _trimmed(lines: list[str]) -> tuple[str, ...]:
    """Return the lines without empty ones at both ends."""
    filled = [i for i, line in enumerate(lines) if line]
    return tuple(lines[filled[0] : filled[-1] + 1]) if filled else ()
