"""Codec of properties files as java.util.Properties reads and writes them: ``key=value`` lines and comments."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import construct

from codecgen.runtime.entry_points import P
from codecgen.runtime.errors import BuildError, LimitError, ValueRefused
from codecgen.runtime.fields import Rule, contain
from codecgen.runtime.lines_file import refuse_others
from codecgen.runtime.located_bytes import Condition
from codecgen.runtime.parsed import Parsed
from codecgen.runtime.text_source import Line, Span, TextFile, TextSource, judge, write_text
from codecgen.runtime.text_values import RestOfLine, TextValue

UNKNOWN, COMMENTS, ORDER = "unknown", "comments", "order"
"""What a parse gives beside the keys that the schema knows: keys that it does not know with their values, comments without
the character before them, and the keys in the order of the lines, None for a comment."""

_BLANKS = " \t\f"
_ESCAPED = {"\t": "t", "\n": "n", "\r": "r", "\f": "f"}
_LETTERS = {letter: character for character, letter in _ESCAPED.items()}
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_BETWEEN = re.compile(r"[ \t\f]*(?:[=:][ \t\f]*)?")
_HEX = re.compile("[0-9a-fA-F]{4}")
_TEXT = RestOfLine()


@dataclass(frozen=True, slots=True)
class Property:
    """A known key. ``key`` is its spelling in the file, ``line`` its line of YAML."""

    name: str
    key: str
    kind: TextValue
    line: int = 0
    default: Condition | None = None
    valid: Rule | None = None
    refuse: Rule | None = None
    accepts: frozenset[str] = frozenset()


class PropertiesFile(TextFile[P]):
    """A properties file. It parses to a :class:`~codecgen.runtime.parsed.Parsed` and builds from a dict.

    Absent keys are None. ``unknown``, ``comments`` and ``order`` of the parsed value keep the rest of the text, so
    that it is built as it was; each of them may be left out.
    """

    def __init__(
        self,
        name: str,
        *properties: Property,
        source: str = "",
        accepts: Collection[str] = (),
        keep_unknown: bool = False,
    ) -> None:
        super().__init__(name, source, accepts)
        self.properties = properties
        self.by_key = {p.key: p for p in properties}
        self.keep_unknown = keep_unknown

    def __repr__(self) -> str:
        return f"<PropertiesFile {self.text_name}: {', '.join(p.key for p in self.properties)}>"

    def read(self, source: TextSource) -> Parsed:
        """Return the values of a whole text by name; absent keys are None. Raise ParseError if a
        line does not parse, or a value is invalid or breaks a rule.
        """
        return _Reading(self, source).read()

    def build(self, obj: Mapping[str, Any]) -> bytes:
        """Return the UTF-8 bytes of a dict of values. A missing key takes its default; None, or no
        default, leaves it out. Lines follow ``order``, then the other keys, then comments that
        ``order`` has no place for; without ``order`` comments come first. Raise BuildError if
        ``obj`` is no dict, a name is unknown, a value cannot be written or breaks a rule, or
        ``order`` lists a key twice or too many comments.

        The other keys are those of the schema in its order, then unknown ones.
        """
        if not isinstance(obj, dict):
            raise BuildError(f"a dict with the keys of {self.text_name} is needed, not {obj!r}")
        names = [p.name for p in self.properties]
        refuse_others(obj, [*names, UNKNOWN, COMMENTS, ORDER], self.text_name)
        values = contain(obj)
        texts = self.texts(values)
        comments = list(values.get(COMMENTS) or ())
        order = values.get(ORDER)
        lines = list(self.ordered([None] * len(comments) if order is None else order, texts))
        lines += [None] * (len(comments) - lines.count(None))
        out: list[str] = []
        for key in lines:
            if key is None:
                if not comments:
                    raise BuildError("the order has more comments than were given").located(
                        path=ORDER
                    )
                out.append(_comment(comments.pop(0)))
            else:
                out.append(f"{escaped(key, key=True)}={escaped(texts[key])}")
        return "".join(f"{line}\n" for line in out).encode("utf-8")

    def texts(self, values: Any) -> dict[str, str]:
        """Return the text of each key whose value is not None: the schema's keys in its order, then
        unknown ones. Defaults are filled into ``values``. Raise BuildError if a value cannot be
        written or breaks a rule, or ``unknown`` is no mapping, has a known key, or is not allowed
        to have any.
        """
        for p in self.properties:
            if p.name not in values:
                values[p.name] = None if p.default is None else p.default(values)
        out: dict[str, str] = {}
        for p in self.properties:
            try:
                value = values[p.name]
                if value is not None:
                    out[p.key] = write_text(p.kind, value)
                error, _ = judge(value, values, p.refuse, p.valid)
                if error is not None:
                    raise BuildError(error.reason)
            except BuildError as error:
                raise error.located(path=p.name, schema=f"{self.source_file}:{p.line}") from None
        others = values.get(UNKNOWN) or {}
        if not isinstance(others, Mapping):
            raise BuildError(f"a mapping is needed, not {others!r}").located(path=UNKNOWN)
        for key, value in others.items():
            if key in self.by_key:
                reason = f"{key!r} is known: give it as {self.by_key[key].name}"
                raise BuildError(reason).located(path=UNKNOWN)
            if not self.keep_unknown:
                raise BuildError(f"{self.text_name} has no {key!r}").located(path=UNKNOWN)
            for text in (key, value):
                try:
                    write_text(_TEXT, text)
                except BuildError as error:
                    raise error.located(path=UNKNOWN) from None
            out[key] = value
        return out

    def ordered(self, order: Any, texts: Mapping[str, str]) -> Iterator[str | None]:
        """Yield the keys of the lines: those of ``order`` that are in ``texts``, with None for each
        comment, then the other keys of ``texts``. Raise BuildError if ``order`` has a key twice.
        """
        done: set[str] = set()
        for key in order:
            if key is not None and key in done:
                raise BuildError(f"{key!r} is listed twice").located(path=ORDER)
            if key is not None:
                done.add(key)
            if key is None or key in texts:
                yield key
        yield from (key for key in texts if key not in done)


class _Reading:
    """State of one parse of a properties file."""

    def __init__(self, text: PropertiesFile, source: TextSource) -> None:
        self.text = text
        self.source = source
        self.lines = source.lines()
        self.places: dict[str, Line] = {}
        self.unknown = construct.Container()
        self.comments = construct.ListContainer()
        self.order = construct.ListContainer()
        self.obj = text.parsed_class({p.name: None for p in text.properties})
        self.obj.update({UNKNOWN: self.unknown, COMMENTS: self.comments, ORDER: self.order})

    def read(self) -> Parsed:
        """Return the values of the file by name; absent keys are None. Raise ParseError if a line
        does not parse, or a value is invalid or breaks a rule. In a strict session raise it also if
        a key is unknown (unless ``keep_unknown``) or repeated, a line is spelled unusually, or no
        line feed ends the last one. A lenient session adds findings instead, but, save for an
        unknown key, only if the schema accepts the deviation.
        """
        last: Line | None = None
        for line in self.lines:
            last = line
            bare = line.text.lstrip(_BLANKS)
            if not bare or (bare == "\\" and self.passes_over(line)):
                self.note_loose_line(line, "a line without a key")
            elif bare[0] in "#!":
                if not line.text.startswith("#"):
                    self.note_loose_line(line, "a comment that does not begin with '#' at once")
                self.comments.append(bare[1:])
                self.order.append(None)
            else:
                text, last = self.join_continued_lines(line, bare)
                self.read_property(line, text)
        if last is not None:
            self.source.last_newline(last, True)
        self.judge()
        return self.obj

    def passes_over(self, line: Line) -> bool:
        """Return whether Java ignores a line with a lone backslash that continues with nothing: if
        CR LF ends the line, or text follows it. Otherwise Java reads an empty key.
        """
        end = line.start + len(line.text.encode("utf-8")) + len(line.newline)
        return line.newline == "\r\n" or end < self.source.end

    def note_loose_line(self, line: Line, reason: str) -> None:
        """Take a line with an unusual spelling, which ``reason`` describes, as a finding of a
        lenient session if the schema accepts ``loose_properties``; else raise ValueRefused.
        """
        error = self.source.locate(ValueRefused(reason), line)
        self.source.tolerate_form("loose_properties", error)

    def join_continued_lines(self, line: Line, text: str) -> tuple[str, Line]:
        """Return the text of a line joined with the lines that it continues in, and the last of
        these lines. Each line before the last ends in an odd number of backslashes; the last of
        them, and the blanks at the start of the next line, are left out. Raise LimitError if the
        lines have more characters than the session allows in one.
        """
        limit = self.source.session.limits.line
        parts: list[str] = []
        size = 0
        while _goes_on(text):
            parts.append(text[:-1])
            size += len(text)
            if size > limit:
                reason = f"lines of more than {limit} characters that go on"
                raise self.source.locate(LimitError(reason), line)
            following = next(self.lines, None)
            if following is None:
                text = ""
                break
            line, text = following, following.text.lstrip(_BLANKS)
        return "".join((*parts, text)), line

    def read_property(self, line: Line, text: str) -> None:
        """Read a line with a key and a value into the result. Raise ValueRefused if an escape or
        the value is wrong. In a strict session, also raise it for an unknown key (unless
        ``keep_unknown``), a repeated key or an unusual spelling; a lenient one adds findings
        instead, for the latter two only if the schema accepts them. A repeated key replaces the
        value.
        """
        found = _KEY.match(text)
        assert found is not None  # it takes nothing at least
        between = _BETWEEN.match(text, found.end())
        assert between is not None
        key = self.unescaped(line, found[0])
        value = self.unescaped(line, text[between.end() :])
        usual = f"{escaped(key, key=True)}={escaped(value)}"
        if usual != line.text:
            self.note_loose_line(line, f"the line is written {usual[:80]!r}")
        if key in self.places:
            reason = f"{key!r} stands in line {self.places[key].number} already"
            self.source.tolerate_form(
                "duplicate_keys", self.source.locate(ValueRefused(reason), line)
            )
        else:
            self.order.append(key)
        self.places[key] = line
        known = self.text.by_key.get(key)
        if known is None:
            if not self.text.keep_unknown:
                error = ValueRefused(f"{key!r} is not one of the known keys")
                self.source.session.tolerate(self.source.locate(error, line, UNKNOWN))
            self.unknown[key] = value
            return
        raw = text[between.end() :]
        start = len(line.text) - len(line.text.lstrip(_BLANKS)) + between.end()
        self.obj[known.name] = self.source.value(
            known.kind, Span(line, start, value), known.name, known.line, known.accepts, raw
        )

    def unescaped(self, line: Line, text: str) -> str:
        r"""Return text without backslash escapes: ``t``, ``n``, ``r`` and ``f`` after a backslash
        stand for tab, line breaks and form feed, ``u`` with four hexadecimal digits for a
        character, anything else for itself. Raise ValueRefused if the four digits are missing, or
        an escape is half of a surrogate pair.
        """
        if "\\" not in text:
            return text
        out: list[str] = []
        at = 0
        while at < len(text):
            character = text[at]
            at += 1
            if character != "\\":
                out.append(character)
                continue
            character = text[at : at + 1]
            at += 1
            if character == "u":
                digits = _HEX.match(text, at)
                if digits is None:
                    reason = f"four hexadecimal digits follow \\u, not {text[at : at + 4]!r}"
                    raise self.source.locate(ValueRefused(reason), line)
                out.append(chr(int(digits[0], 16)))
                at += 4
            else:
                out.append(_LETTERS.get(character, character))
        # Characters beyond the first 65,536 are two escapes.
        data = "".join(out).encode("utf-16", "surrogatepass")
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError:
            reason = "an escape is half of a surrogate pair"
            raise self.source.locate(ValueRefused(reason), line) from None

    def judge(self) -> None:
        """Check the ``refuse`` and ``valid`` rules of all keys, absent ones too. Raise ValueRefused
        for the first broken one; a lenient session adds a broken ``valid`` rule to its findings
        instead.
        """
        for p in self.text.properties:
            error, lenient = judge(self.obj[p.name], self.obj, p.refuse, p.valid)
            if error is None:
                continue
            line = self.places.get(p.key)
            if line is None:
                error.where = self.source.where(self.source.end, self.source.data.count(b"\n") + 1)
                error = self.source.add_path(error, p.name, p.line)
            else:
                error = self.source.locate(error, line, p.name, p.line)
            if not lenient:
                raise error
            self.source.session.tolerate(error)


def _goes_on(text: str) -> bool:
    """Return whether a line ends in a backslash that is not escaped itself."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def escaped(text: str, *, key: bool = False) -> str:
    """Return a key or a value as java.util.Properties writes it: with a backslash before
    backslashes, tabs, line breaks and form feeds (as letters such as ``t``), before ``=``, ``:``,
    ``#`` and ``!``, and before spaces: all in a key (``key`` True), else only one that is the first
    character. Other characters stay, also those that are not ASCII.
    """
    out: list[str] = []
    for i, character in enumerate(text):
        if character in _ESCAPED:
            out.append("\\" + _ESCAPED[character])
        elif character in "\\=:#!" or (character == " " and (key or i == 0)):
            out.append("\\" + character)
        else:
            out.append(character)
    return "".join(out)


def _comment(text: Any) -> str:
    """Return the line of a comment: ``#`` and the text. Raise BuildError if it is no str, has a
    line break, or has half of a surrogate pair.
    """
    if not isinstance(text, str) or "\n" in text or "\r" in text:
        raise BuildError(f"a line of text is needed, not {text!r}").located(path=COMMENTS)
    return "#" + write_text(_TEXT, text)
