"""JSON with comments as a tree with places: what definitions of messages are written in."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import NoReturn

from codecgen.diagnostics import Diagnostic
from codecgen.schema.types import Span

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
    """Text in quotes, a number, true, false or null. ``text`` is what it says, without the quotes."""

    text: str
    quoted: bool
    span: Span

    @property
    def is_null(self) -> bool:
        return not self.quoted and self.text == "null"


@dataclass(frozen=True, slots=True)
class Array:
    items: tuple[Node, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Member:
    """A key of an object with its value. ``comments`` are the lines of those before it, of one behind it, and of those
    after the last one."""

    key: str
    span: Span
    value: Node
    comments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Object:
    members: tuple[Member, ...]
    span: Span
    comments: tuple[str, ...] = ()


Node = Scalar | Array | Object


def parse(file: str, data: bytes) -> Node | Diagnostic:
    """The value that a file holds, or what is wrong with it. Objects in arrays have the comments before them."""
    if len(data) > MAX_BYTES:
        return Diagnostic("", f"the file is larger than {MAX_BYTES >> 20} MiB", Span(file, 1, 1, 1))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Diagnostic("", "the file is not UTF-8", Span(file, line, 1, 1))
    try:
        return _Parser(file, text).whole()
    except _Stop as stop:
        return stop.diagnostic


class _Stop(Exception):
    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


class _Parser:
    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.at = 0
        self.end_of_last = 0
        self.depth = 0
        self.starts = [0, *(m.end() for m in re.finditer("\r\n|\r|\n", text))]

    def whole(self) -> Node:
        self.comments()
        node = self.value()
        self.comments()
        if self.at < len(self.text):
            self.stop("there is something after the end of the definition", self.at)
        return node

    # ------------------------------------------------------------ places

    def span(self, start: int, end: int) -> Span:
        line = bisect_right(self.starts, start)
        begin = self.starts[line - 1]
        last = self.starts[line] if line < len(self.starts) else len(self.text)
        return Span(self.file, line, start - begin + 1, min(end, last) - begin + 1)

    def line(self, at: int) -> int:
        return bisect_right(self.starts, at)

    def stop(self, message: str, at: int, help: str = "") -> NoReturn:
        raise _Stop(Diagnostic("", message, self.span(at, at + 1), help=help))

    # ------------------------------------------------------------ pieces

    def comments(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Passes blanks and comments: the lines of a comment on the line of what was last, and those of the others."""
        behind: list[str] = []
        before: list[str] = []
        last = self.line(max(self.end_of_last - 1, 0))
        while True:
            blanks = _BLANKS.match(self.text, self.at)
            self.at = self.at if blanks is None else blanks.end()
            found = _COMMENT.match(self.text, self.at)
            if found is None:
                if self.text.startswith("/*", self.at):
                    self.stop("the comment does not end", self.at)
                return _trimmed(behind), _trimmed(before)
            on_that_line = self.end_of_last > 0 and self.line(found.start()) == last
            (behind if on_that_line else before).extend(_lines(found[0]))
            self.at = found.end()

    def take(self, character: str) -> bool:
        if not self.text.startswith(character, self.at):
            return False
        self.at += 1
        self.end_of_last = self.at
        return True

    def value(self) -> Node:
        start = self.at
        if self.take("{"):
            return self.object(start)
        if self.take("["):
            return self.array(start)
        if self.text.startswith('"', self.at):
            return self.string()
        bare = _BARE.match(self.text, self.at)
        if bare is None:
            what = "the file ends" if start >= len(self.text) else f'"{self.text[start]}" stands'
            self.stop(f"{what} where a value is expected", start)
        if bare[0] not in ("true", "false", "null") and not _NUMBER.match(bare[0]):
            shown = bare[0][:_LONGEST_SHOWN]
            self.stop(f"{shown} is no value", start, help="text stands in double quotes")
        self.at = self.end_of_last = bare.end()
        return Scalar(bare[0], False, self.span(start, self.at))

    def string(self) -> Scalar:
        start = self.at
        found = _STRING.match(self.text, start)
        if found is None:
            self.stop("the text does not end, or has what must be escaped in it", start)
        self.at = self.end_of_last = found.end()
        text: str = json.loads(found[0])
        if any("\ud800" <= c <= "\udfff" for c in text):
            self.stop("the text has half a character in it", start)
        return Scalar(text, True, self.span(start, self.at))

    def deeper(self, start: int) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            self.stop(f"more than {DEEPEST} levels in each other", start)

    def object(self, start: int) -> Object:
        self.deeper(start)
        members: list[Member] = []
        _, before = self.comments()
        while not self.take("}"):
            if not self.text.startswith('"', self.at):
                self.stop("a key in double quotes is expected", self.at)
            key = self.string()
            self.comments()
            if not self.take(":"):
                self.stop("a colon is expected after the key", self.at)
            self.comments()
            value = self.value()
            behind, after = self.comments()
            ended = not self.take(",")
            if not ended:
                more, after_comma = self.comments()
                behind, after = behind + more, after + after_comma
                if self.text.startswith("}", self.at):
                    self.stop("a key is expected after the comma", self.at)
            elif not self.text.startswith("}", self.at):
                self.stop("a comma or a brace is expected after the value", self.at)
            members.append(Member(key.text, key.span, value, before + behind))
            before = after
        self.depth -= 1
        if before and members:
            members[-1] = replace(members[-1], comments=members[-1].comments + before)
        return Object(tuple(members), self.span(start, start + 1))

    def array(self, start: int) -> Array:
        self.deeper(start)
        items: list[Node] = []
        _, before = self.comments()
        while not self.take("]"):
            value = self.value()
            behind, after = self.comments()
            if self.take(","):
                more, after_comma = self.comments()
                behind, after = behind + more, after + after_comma
                if self.text.startswith("]", self.at):
                    self.stop("a value is expected after the comma", self.at)
            elif not self.text.startswith("]", self.at):
                self.stop("a comma or a bracket is expected after the value", self.at)
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
    if comment.startswith("//"):
        return [comment[2:].removeprefix(" ").rstrip()]
    inside = [line.strip() for line in re.split("\r\n|\r|\n", comment[2:-2])]
    return [line.removeprefix("*").removeprefix(" ").rstrip() for line in inside]


def _trimmed(lines: list[str]) -> tuple[str, ...]:
    """The lines without empty ones at the ends."""
    filled = [i for i, line in enumerate(lines) if line]
    return tuple(lines[filled[0] : filled[-1] + 1]) if filled else ()
