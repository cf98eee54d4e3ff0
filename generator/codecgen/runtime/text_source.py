"""Lines of a text file with their places, and the base of the codecs of text files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from codecgen.runtime.entry_points import EntryPoint, P
from codecgen.runtime.errors import (
    BuildError,
    LimitError,
    ParseError,
    ValueRefused,
    Where,
    prefix_path,
)
from codecgen.runtime.fields import Rule
from codecgen.runtime.located_bytes import Limits, Session
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.parsed import Parsed, make_class
from codecgen.runtime.text_values import TextValue, Unreadable

E = TypeVar("E", ParseError, BuildError)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a text: its number, first byte, text, and its line break (``""`` at the end of the text)."""

    number: int
    start: int
    text: str
    newline: str


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line; ``column`` counts the characters before it."""

    line: Line
    column: int
    text: str

    @property
    def start(self) -> int:
        """Return the position of its first byte in the text."""
        return self.line.start + len(self.line.text[: self.column].encode("utf-8"))


class TextSource:
    """The bytes of a text file.

    ``accepts`` are the tolerances of a lenient reader, ``schema`` is the YAML file. Raise LimitError for a text above
    the limit.
    """

    def __init__(
        self,
        data: Any,
        session: Session,
        *,
        origin: int = 0,
        accepts: Collection[str] = (),
        schema: str = "",
    ) -> None:
        limit = session.limits.text
        if len(data) > limit:
            reason = f"a text of {count_noun(len(data), 'byte')}: at most {limit} are read"
            raise LimitError(reason, Where(position=origin, file=session.file, line=1))
        self.data = bytes(data)
        self.session = session
        self.origin = origin
        self.accepts = accepts
        self.schema = schema

    @property
    def end(self) -> int:
        """Return the number of bytes."""
        return len(self.data)

    def where(self, at: int, line: int) -> Where:
        """Return the place of byte ``at`` of the text: its position in the file, the file, and the
        line number ``line``.
        """
        return Where(position=self.origin + at, file=self.session.file, line=line)

    def locate(self, error: E, at: Span | Line, path: str = "", yaml_line: int = 0) -> E:
        """Add the position, file and line of ``at``, the path and the YAML line of a value to an
        error, where they are unknown; ``path`` is put before its path. Change the error in place,
        and return it.
        """
        line = at if isinstance(at, Line) else at.line
        where = self.where(at.start, line.number)
        error.located(position=where.position, file=where.file, line=where.line)
        return self.add_path(error, path, yaml_line)

    def add_path(self, error: E, path: str, yaml_line: int = 0) -> E:
        """Put ``path`` (if not empty) before the path of an error, and add the YAML file, with the
        line if ``yaml_line`` is not 0, unless it has one. Change the error in place, and return it.
        """
        if path:
            prefix_path(error, path)
        schema = f"{self.schema}:{yaml_line}" if yaml_line else self.schema
        return error.located(schema=schema or None)

    def tolerate_form(self, tolerance: str, error: ParseError, more: Collection[str] = ()) -> None:
        """Take an error as a finding if the session is lenient, and the text or ``more`` (the
        tolerances of a line or value) accepts ``tolerance``, such as ``other_newlines``;
        raise it otherwise.
        """
        if tolerance not in self.accepts and tolerance not in more:
            raise error
        self.session.tolerate(error)

    def lines(self) -> Iterator[Line]:
        """Yield the lines in order, none for an empty text; no line begins after a line break at
        the end. LF ends a line; CR and CR LF do too, but raise ValueRefused unless the text accepts
        ``other_newlines`` and the session is lenient. Raise ValueRefused for invalid UTF-8 that is
        not accepted (``invalid_utf8``); LimitError if a line is too long or there are too many.
        """
        limits: Limits = self.session.limits
        start, number = 0, 0
        feed, carriage = self.data.find(b"\n"), self.data.find(b"\r")
        while start < self.end:
            number += 1
            if number > limits.elements:
                reason = f"more than {count_noun(limits.elements, 'line')}"
                raise LimitError(reason, self.where(start, number))
            ends = [at for at in (feed, carriage) if at >= 0]
            stop = min(ends, default=self.end)
            newline = self.data[stop : stop + 1].decode("ascii")
            if newline == "\r" and feed == stop + 1:
                newline = "\r\n"
            if stop - start > limits.line:
                reason = (
                    f"a line of {count_noun(stop - start, 'byte')}: at most {limits.line} are read"
                )
                raise LimitError(reason, self.where(start, number))
            line = Line(number, start, self.decoded(start, stop, number), newline)
            if newline not in ("", "\n"):
                reason = f"the line ends in {newline!r}, where '\\n' is written"
                error = ValueRefused(reason, self.where(stop, number))
                self.tolerate_form("other_newlines", self.add_path(error, ""))
            yield line
            start = stop + len(newline)
            if 0 <= feed < start:
                feed = self.data.find(b"\n", start)
            if 0 <= carriage < start:
                carriage = self.data.find(b"\r", start)

    def decoded(self, start: int, stop: int, number: int) -> str:
        """Return the text of the bytes ``start`` to ``stop`` (excluded). Raise ValueRefused for
        invalid UTF-8; if the text accepts ``invalid_utf8``, a lenient session adds a finding and
        gets U+FFFD for invalid bytes.
        """
        data = self.data[start:stop]
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            refused = ValueRefused("not UTF-8", self.where(start + error.start, number))
            self.tolerate_form("invalid_utf8", self.add_path(refused, ""))
            return data.decode("utf-8", "replace")

    def last_newline(self, line: Line, expected: bool) -> None:
        """Check that a line break ends the last line if ``expected`` is True, and that none does if
        it is False. Raise ValueRefused otherwise; if the text accepts ``any_final_newline``, a
        lenient session adds a finding instead.
        """
        if bool(line.newline) == expected:
            return
        reason = "the last line does not end in a line feed"
        if not expected:
            reason = "a line feed ends the last line, where none is written"
        at = line.start + len(line.text.encode("utf-8"))
        error = ValueRefused(reason, self.where(at, line.number))
        self.tolerate_form("any_final_newline", self.add_path(error, ""))

    def value(
        self,
        kind: TextValue,
        at: Span,
        path: str,
        yaml_line: int,
        accepts: Collection[str],
        raw: str | None = None,
    ) -> Any:
        """Return the value of a piece of a line, and add its place to the session's trace, if there
        is one (of the size of ``raw``, the text before unescaping, if given). Raise ValueRefused if
        the text is no such value, or not spelled as it would be written; with ``other_spellings``,
        a lenient session takes the latter as a finding.
        """
        try:
            found = kind.read(at.text)
        except Unreadable as unreadable:
            raise self.locate(ValueRefused(str(unreadable)), at, path, yaml_line) from None
        if not found.usual:
            reason = f"{at.text!r} is written {kind.write(found.value)!r}"
            error = self.locate(ValueRefused(reason), at, path, yaml_line)
            self.tolerate_form("other_spellings", error, accepts)
        if self.session.trace is not None:
            start = self.origin + at.start
            size = len((at.text if raw is None else raw).encode("utf-8"))
            self.session.trace.append(
                (path, start, min(start + size, self.origin + self.end), False)
            )
        return found.value


def write_text(kind: TextValue, value: Any) -> str:
    """Return the text of a value. Raise BuildError if ``kind`` cannot write it, because of its
    type, range or characters.
    """
    try:
        text = kind.write(value)
    except Unreadable as error:
        raise BuildError(str(error)) from None
    return text


def judge(
    value: Any, this: Any, refuse: Rule | None, valid: Rule | None
) -> tuple[ParseError | None, bool]:
    """Return (error, tolerable): a ValueRefused, not raised, if the ``refuse`` rule, which is
    looked at first, holds (False) or the ``valid`` rule does not (True: lenient readers tolerate
    it); (None, True) if no rule is broken. ``this`` has the fields that rules look at.
    """
    if refuse is not None and refuse.holds(this):
        return ValueRefused(refuse.broken(value)), False
    if valid is not None and not valid.holds(this):
        return ValueRefused(valid.missed(value)), True
    return None, True


class TextFile(EntryPoint[P, P]):
    """Base of codecs of text files. ``accepts`` are the tolerances of lenient readers."""

    def __init__(self, name: str, source: str, accepts: Collection[str]) -> None:
        super().__init__()
        self.text_name = name
        self.source_file = source
        self.accepts = frozenset(accepts)
        self.parsed_class = make_class(name, self.__module__)

    def parse_whole(self, data: Any, position: int, session: Session) -> Parsed:
        """Return the values of the text ``data``, which begins at ``position`` of its file. Raise
        ParseError if it does not parse; LimitError if it has more bytes than the session allows.
        """
        source = TextSource(
            data, session, origin=position, accepts=self.accepts, schema=self.source_file
        )
        return self.read(source)

    def read(self, source: TextSource) -> Parsed:
        """Return the values of a whole text. Subclasses implement it, and raise CodecError if the
        text does not parse.
        """
        raise NotImplementedError


__all__ = ["TextFile"]
