"""Codec of text files of lines: one value a line, a count of the lines after it, or several values a line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import construct

from codecgen.runtime.entry_points import P
from codecgen.runtime.errors import (
    BuildError,
    LengthError,
    ParseError,
    TrailingError,
    TruncatedError,
    ValueRefused,
)
from codecgen.runtime.fields import Rule, contain
from codecgen.runtime.located_bytes import Condition
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.parsed import Parsed
from codecgen.runtime.text_source import Line, Span, TextFile, TextSource, judge, write_text
from codecgen.runtime.text_values import BLANKS, RestOfLine, TextValue


@dataclass(frozen=True, slots=True)
class LineValue:
    """One value of a line with several values. ``line`` is its line of YAML."""

    name: str
    kind: TextValue
    line: int = 0
    default: Condition | None = None
    valid: Rule | None = None
    refuse: Rule | None = None


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line with one value, after a ``label`` and a ``separator`` if there are any.

    ``counts`` names the lines whose number the value is. ``line`` is the line of YAML.
    """

    name: str
    kind: TextValue
    line: int = 0
    label: str | None = None
    separator: str = ""
    const: int | None = None
    counts: str | None = None
    default: Condition | None = None
    valid: Rule | None = None
    refuse: Rule | None = None
    accepts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class EachLine:
    """Lines with the same values: as many as the value ``counted_by`` says, or all that are left."""

    name: str
    values: Sequence[LineValue]
    line: int = 0
    separator: str = ""
    counted_by: str | None = None
    accepts: frozenset[str] = field(default=frozenset())


class LinesFile(TextFile[P]):
    """A text file of lines. It parses to a :class:`~codecgen.runtime.parsed.Parsed` and builds from a dict.

    Attributes:
        accepts: Tolerances of lenient readers.
        may_be_empty: The file may have no byte; every value is None then.
        final_newline: A line feed ends the last line too.
    """

    def __init__(
        self,
        name: str,
        *lines: TextLine | EachLine,
        source: str = "",
        accepts: Collection[str] = (),
        may_be_empty: bool = False,
        final_newline: bool = True,
    ) -> None:
        super().__init__(name, source, accepts)
        self.lines = lines
        self.may_be_empty = may_be_empty
        self.final_newline = final_newline

    def __repr__(self) -> str:
        return f"<LinesFile {self.text_name}: {', '.join(line.name for line in self.lines)}>"

    def read(self, source: TextSource) -> Parsed:
        """Return the values of a whole text by line name. Raise CodecError if a line or its value
        does not parse, or lines are missing or left over.
        """
        return _Reading(self, source).read()

    def build(self, obj: Mapping[str, Any]) -> bytes:
        """Return the UTF-8 bytes of the file for a dict with a value for each line. Counts,
        constants and defaults are filled in, missing lists are empty. Return ``b""`` if the file
        may be empty and every value is given as None. Raise BuildError if ``obj`` is no dict, a
        name is unknown, or a value is missing, does not fit or breaks a rule. Raise it also if the
        last line is empty and no line feed would end it.
        """
        if not isinstance(obj, dict):
            raise BuildError(f"a dict with the lines of {self.text_name} is needed, not {obj!r}")
        names = [line.name for line in self.lines]
        refuse_others(obj, names, self.text_name)
        if self.may_be_empty and all(obj.get(name, "") is None for name in names):
            return b""
        values = contain(obj)
        for line in self.lines:
            if isinstance(line, EachLine) and line.name not in values:
                values[line.name] = construct.ListContainer()
        out: list[str] = []
        for line in self.lines:
            try:
                if isinstance(line, TextLine):
                    out.append(_built_line(line, values))
                else:
                    out += _built_lines(line, values)
            except BuildError as error:
                raise _with_path(error, line.name, line.line, self.source_file) from None
        if not self.final_newline and out and not out[-1]:
            raise BuildError(
                "the last line is empty and the format has no final line break, so that readers would miss the line"
            )
        text = "\n".join(out)
        return (text + "\n" if out and self.final_newline else text).encode("utf-8")


class _Reading:
    """State of one parse of a text of lines."""

    def __init__(self, text: LinesFile, source: TextSource) -> None:
        self.text = text
        self.source = source
        self.lines = source.lines()
        self.last: Line | None = None
        self.obj = text.parsed_class()

    def read(self) -> Parsed:
        """Return the values of the text; all are None for an empty text that ``may_be_empty``.
        Raise ParseError if a line is missing, does not parse or breaks a rule, the final line feed
        is not as declared, or lines follow the last known one. A lenient session adds broken
        ``valid`` rules, and the deviations that the text accepts, to its findings instead.
        """
        if not self.source.end and self.text.may_be_empty:
            return self.text.parsed_class({line.name: None for line in self.text.lines})
        for line in self.text.lines:
            if isinstance(line, TextLine):
                self.read_line(line)
            else:
                self.read_lines(line)
        last = self.last
        more = next(self.lines, None)
        if more is not None:
            error = TrailingError("lines follow the last one that has a meaning")
            path = self.text.lines[-1].name if isinstance(self.text.lines[-1], EachLine) else ""
            self.source.tolerate_form("more_lines", self.source.locate(error, more, path))
            for _ in self.lines:
                pass  # so that they are lines of text, no more than there may be
        if last is not None:
            self.source.last_newline(last, self.text.final_newline)
        return self.obj

    def ended(self, name: str, yaml_line: int) -> ParseError:
        """Return, without raising it, a TruncatedError for the line ``name`` that is missing at the
        end of the text, with its path, place and line in YAML.
        """
        number = 1 if self.last is None else self.last.number + 1
        error = TruncatedError("the text ends before this line")
        error.where = self.source.where(self.source.end, number)
        return self.source.add_path(error, name, yaml_line)

    def read_line(self, f: TextLine) -> None:
        """Read the next line, which has one value, into ``obj``. Raise ParseError if there is none
        (with ``ends_early``, a lenient session sets a count to 0), or the label, the value, a
        constant, a negative count or a rule is wrong. A lenient session adds a broken ``valid``
        rule, and the deviations that the line or the text accepts, to its findings instead.
        """
        line = next(self.lines, None)
        if line is None:
            error = self.ended(f.name, f.line)
            if f.counts is None:
                raise error
            self.source.tolerate_form("ends_early", error, f.accepts)
            self.obj[f.name] = 0
            return
        self.last = line
        at = Span(line, 0, line.text)
        if f.label is not None:
            label, at = self.split_values(f, line, 2, f.name)
            if label.text != f.label:
                reason = f"{label.text!r} stands where {f.label!r} is written"
                error = self.source.locate(ValueRefused(reason), label, f.name, f.line)
                self.source.tolerate_form("any_label", error, f.accepts)
        value = self.source.value(f.kind, at, f.name, f.line, f.accepts)
        self.obj[f.name] = value
        if f.const is not None and value != f.const:
            refused: ParseError = ValueRefused(f"{value!r} is not {f.const}")
            raise self.source.locate(refused, at, f.name, f.line)
        if f.counts is not None and value < 0:
            raise self.source.locate(
                LengthError(f"the count is {value}: it cannot be negative"), at, f.name, f.line
            )
        self.judge(f, value, self.obj, at, f.name)

    def read_lines(self, f: EachLine) -> None:
        """Read repeated lines into a list in ``obj``: as many as the value ``counted_by`` says,
        else all that are left. Raise ParseError if fewer are there than counted, or a line does not
        parse.
        """
        items = construct.ListContainer()
        self.obj[f.name] = items
        wanted = None if f.counted_by is None else self.obj[f.counted_by]
        while wanted is None or len(items) < wanted:
            path = f"{f.name}[{len(items)}]"
            line = next(self.lines, None)
            if line is None:
                if wanted is None:
                    return
                raise self.ended(path, f.line)
            self.last = line
            items.append(self.read_item(f, line, path))

    def read_item(self, f: EachLine, line: Line, path: str) -> Parsed:
        """Return the values of one of repeated lines by name. Raise ParseError if a value does not
        parse or breaks a rule, or the line has another number of values. A lenient session adds a
        broken ``valid`` rule, and the deviations that the lines or the text accept, to its findings
        instead.
        """
        item = Parsed()
        pieces = [Span(line, 0, line.text)]
        if len(f.values) > 1:
            pieces = self.split_values(f, line, len(f.values), path)
        for value, at in zip(f.values, pieces, strict=True):
            name = f"{path}.{value.name}"
            item[value.name] = self.source.value(value.kind, at, name, value.line, f.accepts)
            self.judge(value, item[value.name], item, at, name)
        return item

    def judge(self, f: TextLine | LineValue, value: Any, this: Any, at: Span, path: str) -> None:
        """Check the ``refuse`` and ``valid`` rules of a value. Raise ValueRefused if one is broken;
        a lenient session adds a broken ``valid`` rule to its findings instead.
        """
        error, lenient = judge(value, this, f.refuse, f.valid)
        if error is None:
            return
        error = self.source.locate(error, at, path, f.line)
        if not lenient:
            raise error
        self.source.session.tolerate(error)

    def split_values(self, f: TextLine | EachLine, line: Line, count: int, path: str) -> list[Span]:
        """Return the ``count`` pieces of a line between separators; the last takes the rest of the
        line if its kind allows blanks. Raise ValueRefused for another number of pieces, or a blank
        in a value. With ``extra_blanks``, a lenient session also takes longer or other runs of
        blanks for those in the separator, and separators at the end. If that gives ``count``
        pieces, it adds a finding instead.
        """
        if isinstance(f, TextLine):
            rest, max_splits, first = isinstance(f.kind, RestOfLine), count, 1
        else:
            rest, first = isinstance(f.values[-1].kind, RestOfLine), 0
            max_splits = count if rest else 0
        exact = list(_split(line, re.escape(f.separator), max_splits))
        words = exact[first : count - rest]
        if len(exact) == count and not any(_blank(at.text) for at in words):
            return exact
        loose = "".join(
            f"[{BLANKS}]+" if _blank(piece) else re.escape(piece)
            for piece in re.findall(f"[{BLANKS}]+|[^{BLANKS}]+", f.separator)
        )
        found = list(_split(line, loose, max_splits))
        while len(found) > count and not found[-1].text:
            found.pop()
        reason = (
            f"{f.label + f.separator!r} and a value are expected"
            if isinstance(f, TextLine) and f.label is not None
            else f"{count_noun(count, 'value is', 'values are')} expected, with {f.separator!r} between them, not {len(exact)}"
        )
        if len(exact) == count:
            reason = f"a blank stands in a value, where {f.separator!r} lies between values"
        error = self.source.locate(ValueRefused(reason), line, path, f.line)
        if len(found) != count:
            raise error
        self.source.tolerate_form("extra_blanks", error, f.accepts)
        return found


def _blank(text: str) -> bool:
    """Return whether a text contains a blank."""
    return any(blank in text for blank in BLANKS)


def _split(line: Line, pattern: str, max_splits: int) -> Iterator[Span]:
    """Yield the pieces of a line between matches of the regular expression ``pattern``, in order.
    If ``max_splits`` is not 0, yield at most so many; the last one has the rest of the line.
    """
    at, count = 0, 1
    for found in re.finditer(pattern, line.text):
        if count == max_splits:
            break
        yield Span(line, at, line.text[at : found.start()])
        at = found.end()
        count += 1
    yield Span(line, at, line.text[at:])


# ---------------------------------------------------------------- building


def _built_line(f: TextLine, values: Any) -> str:
    """Return the text of a line with one value, behind its label. A count is the length of its
    list, a constant need not be given; both are stored in ``values``. Raise BuildError if the value
    is missing, cannot be written, breaks a rule, has a line break or contradicts the constant, or
    the counted value is no list.
    """
    if f.counts is not None:
        items = values[f.counts]
        if not isinstance(items, list | tuple):
            raise BuildError(f"{f.counts} must be a list, because its elements are counted here")
        values[f.name] = len(items)
    elif f.const is not None:
        if values.get(f.name, f.const) != f.const:
            raise BuildError(
                f"{values[f.name]!r} is not {f.const}, which the line always has: leave {f.name} out"
            )
        values[f.name] = f.const
    text = _one_line(_value_text(f, values))
    return text if f.label is None else f"{f.label}{f.separator}{text}"


def _built_lines(f: EachLine, values: Any) -> Iterator[str]:
    """Yield the text of a line for each item of the list ``values[f.name]``. Raise BuildError,
    whose path has the index, if an item is no dict, has an unknown name, or a value that is
    missing, cannot be written or breaks a rule; without an index if ``values[f.name]`` is no list.
    """
    items = values[f.name]
    if not isinstance(items, list | tuple):
        raise BuildError(f"a list is needed, not {items!r}")
    names = [value.name for value in f.values]
    for i, item in enumerate(items):
        try:
            if not isinstance(item, dict):
                raise BuildError(f"a dict with {', '.join(names)} is needed, not {item!r}")
            refuse_others(item, names, f.name)
            yield f.separator.join(_value_texts(f, item))
        except BuildError as error:
            raise _with_path(error, f"[{i}]", 0, "") from None


def _value_texts(f: EachLine, item: Any) -> Iterator[str]:
    """Yield the text of each value of a line, in order; a missing value takes its default. Raise
    BuildError if it has none, a value cannot be written, breaks a rule or has a line break, or one
    before the last contains the separator.
    """
    for i, value in enumerate(f.values):
        try:
            text = _one_line(_value_text(value, item))
            if f.separator and f.separator in text and i + 1 < len(f.values):
                raise BuildError(
                    f"{text!r} holds the separator {f.separator!r}, which only the last value of a line may contain"
                )
        except BuildError as error:
            raise _with_path(error, value.name, value.line, "") from None
        yield text


def _value_text(f: TextLine | LineValue, values: Any) -> str:
    """Return the text of the value in ``values``, or of its default, which is stored there. Raise
    BuildError if there is neither, the value has no text, or it breaks a ``refuse`` or ``valid``
    rule.
    """
    if f.name not in values:
        if f.default is None:
            raise BuildError("a value is needed: it is missing or null")
        values[f.name] = f.default(values)
    text = write_text(f.kind, values[f.name])
    error, _ = judge(values[f.name], values, f.refuse, f.valid)
    if error is not None:
        raise BuildError(error.reason)
    return text


def _one_line(text: str) -> str:
    """Return a text; raise BuildError if it has a line break."""
    if "\n" in text or "\r" in text:
        raise BuildError("the text contains a line break, but the format keeps it in one line")
    return text


def _with_path(error: BuildError, name: str, yaml_line: int, source: str) -> BuildError:
    """Put ``name`` before the path of an error, and set ``source:yaml_line`` as its place in YAML
    if it has none and ``yaml_line`` is not 0. Change the error in place, and return it.
    """
    path = error.where.path
    joined = name if not path else name + path if path.startswith("[") else f"{name}.{path}"
    error.where = error.where.__class__(
        path=joined, schema=error.where.schema or (f"{source}:{yaml_line}" if yaml_line else None)
    )
    return error


def refuse_others(obj: Any, names: Collection[str], what: str) -> None:
    """Raise BuildError for the first name of ``obj`` that is neither in ``names`` nor begins with
    ``_``. The message begins with ``what``, and suggests the closest name if one is near.
    """
    for name in obj:
        if name not in names and not str(name).startswith("_"):
            close = difflib.get_close_matches(str(name), names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise BuildError(f"{what} has no {name!r}{hint}")
