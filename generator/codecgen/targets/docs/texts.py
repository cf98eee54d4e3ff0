"""Contents of the section of a text file on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from codecgen.schema.scalars import SCALARS
from codecgen.schema.texts import TEXT_TOLERANCES, EachLine, Text, TextValue
from codecgen.targets.docs.examples import WorkedText
from codecgen.targets.docs.notes import NOTED, REFUSED, ReaderRow
from codecgen.targets.docs.site import Site
from codecgen.targets.docs.text import (
    Phrase,
    anchor,
    as_phrase,
    code,
    field_name,
    join,
    join_list,
    phrase,
    since_words,
)


@dataclass(frozen=True, slots=True)
class TextRow:
    """A row for a value; ``place`` is its line or its key."""

    anchor: str
    field: Phrase
    place: Phrase
    form: Phrase
    meaning: Phrase

    @property
    def name(self) -> Phrase:
        """Return the field with its anchor."""
        return phrase(anchor(self.anchor), self.field)


@dataclass(frozen=True, slots=True)
class TextExampleSection:
    """An example; ``dump`` has its lines, each with its values."""

    name: str
    doc: Phrase
    dump: str


@dataclass(frozen=True, slots=True)
class TextSection:
    """The section of a text file; ``place`` is the heading of the places: "Line" or "Key"."""

    kind: ClassVar[str] = "text"
    name: str
    title: str
    doc: Phrase
    facts: tuple[Phrase, ...]
    notation: str
    place: str
    rows: tuple[TextRow, ...]
    readers: tuple[ReaderRow, ...]
    examples: tuple[TextExampleSection, ...]


def text_section(site: Site, text: Text, worked: Sequence[WorkedText]) -> TextSection:
    """Return the TextSection of a text file: facts, notation, and a row for each value. Readers and
    examples are empty on a brief site.
    """
    full = not site.brief
    return TextSection(
        name=text.name,
        title=site.title(text.name),
        doc=as_phrase(text.doc),
        facts=tuple(_facts(site, text)),
        notation="\n".join(_notation(text)),
        place="Line" if text.lines else "Key",
        rows=tuple(_rows(site, text)),
        readers=tuple(_readers(text)) if full else (),
        examples=tuple(_example(example) for example in worked) if full else (),
    )


def _facts(site: Site, text: Text) -> Iterator[Phrase]:
    """Yield facts about a text file as sentences: name, release if dated, encoding, then for
    properties the treatment of other keys, for lines their ends and whether the file may be empty.
    """
    yield phrase("Name: ", code(text.name), ".")
    if text.since is not None:
        yield phrase("Since: ", since_words(site.plan, text.since), ".")
    if text.properties:
        yield as_phrase(
            "A text in UTF-8, in the form of Java's properties. Keys come in any order, and may be missing."
        )
        kept = "Other keys are kept, and so are comments."
        if not text.keep_unknown:
            kept = "Strict readers refuse other keys; lenient ones keep them. Comments are kept."
        yield as_phrase(kept)
        return
    ends = "A line feed ends each line."
    if not text.final_newline:
        ends = "A line feed ends each line but the last."
    yield as_phrase(f"A text in UTF-8. {ends}")
    if text.may_be_empty:
        yield as_phrase("It may be empty; every value is null then.")


def _notation(text: Text) -> Iterator[str]:
    """Yield the lines of the text file as a pattern with ``<name>`` for each value: labels and
    constants as they are, repeated lines once with the value that counts them or "all that are
    left", and properties as ``key=<name>``.
    """
    for line in text.lines:
        if isinstance(line, EachLine):
            values = line.separator.join(f"<{value.name}>" for value in line.values)
            count = line.counted_by or "all that are left"
            yield f"{values}    (lines: {count})"
        else:
            before = "" if line.label is None else line.label + line.separator
            yield before + (f"<{line.name}>" if line.const is None else str(line.const))
    for value in text.properties:
        yield f"{value.key}=<{value.name}>"


def _rows(site: Site, text: Text) -> Iterator[TextRow]:
    """Yield a TextRow for each value of a text, in order: lines by number from 1, repeated lines
    with a row of their own before their values, and properties by key. Repeated lines count as one
    line in the numbers.
    """
    number = 0
    for line in text.lines:
        number += 1
        if not isinstance(line, EachLine):
            yield _row(text, line.name, line, as_phrase(number))
            continue
        last = line is text.lines[-1]
        place = as_phrase(f"{number} and on" if last else f"from {number} on")
        words = join((as_phrase(line.doc),))
        yield TextRow(
            f"{text.name}-{line.name}", field_name(line.name), place, as_phrase("lines"), words
        )
        for value in line.values:
            yield _row(text, f"{line.name}.{value.name}", value, as_phrase("in each"))
    for value in text.properties:
        yield _row(text, value.name, value, code(value.key))


def _row(text: Text, path: str, value: TextValue, place: Phrase) -> TextRow:
    """Return the TextRow of a value: anchor, name, ``place``, form, and its meaning with constant,
    unit, default and rules, each if declared.
    """
    words: list[str | Phrase] = [as_phrase(value.doc)] if value.doc else []
    if value.const is not None:
        words.append(phrase("Always ", code(value.const), "."))
    if value.counts is not None:
        words.append(phrase("Number of the lines ", field_name(value.counts), "."))
    if value.unit:
        words.append(as_phrase(f"In {value.unit}."))
    if value.default is not None:
        words.append(phrase("Writers that are told nothing write ", code(value.default), "."))
    if value.valid is not None:
        words.append(phrase("Strict readers want ", code(value.valid), "."))
    if value.refuse is not None:
        words.append(phrase("No reader takes ", code(value.refuse), "."))
    where = f"{text.name}-{path.replace('.', '-')}"
    return TextRow(where, field_name(*path.split(".")), place, _form(value), join(words))


def _form(value: TextValue) -> Phrase:
    """Return the spelling of a value in words: a decimal number with its bits and sign, a Base64
    uuid, text without blanks, or text.
    """
    if value.kind == "decimal":
        scalar = SCALARS[value.of]
        sign = "" if scalar.signed else ", not negative"
        return as_phrase(f"decimal number, {scalar.bits} bits{sign}")
    if value.kind == "uuid":
        return as_phrase("uuid in Base64 for addresses, 22 characters")
    return as_phrase("text without blanks" if value.of == "word" else "text")


def _readers(text: Text) -> Iterator[ReaderRow]:
    """Yield a ReaderRow for each unusual spelling that lenient readers accept, in the whole text or
    in certain lines or keys: strict readers refuse it, lenient ones note it. If the whole text
    accepts a spelling, lines and keys are not named.
    """
    for tolerance, words in TEXT_TOLERANCES.items():
        if tolerance in text.accepts:
            yield ReaderRow(as_phrase("the text"), as_phrase(words), REFUSED, NOTED)
            continue
        lines = [line.name for line in (*text.lines, *text.properties) if tolerance in line.accepts]
        if lines:
            yield ReaderRow(join_list(map(field_name, lines)), as_phrase(words), REFUSED, NOTED)


def _example(worked: WorkedText) -> TextExampleSection:
    """Return the section of a worked example."""
    return TextExampleSection(
        name=worked.example.name, doc=as_phrase(worked.example.doc), dump="\n".join(_dump(worked))
    )


def _dump(worked: WorkedText) -> Iterator[str]:
    """Yield each line of an example with its number from 1, the offset of its first byte, its text,
    and ``path = value`` for the values in it. The text is padded to at most 48 characters, not cut.
    """
    lines = worked.data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    shown = [line.decode("utf-8", "replace") for line in lines]
    wide = min(max(map(len, shown), default=0), 48)
    at = 0
    for number, (line, text) in enumerate(zip(lines, shown, strict=True), 1):
        end = at + len(line)
        inside = [
            f"{path} = {worked.data[start:stop].decode('utf-8', 'replace')}"
            for path, start, stop in worked.places
            if at <= start and stop <= end and start < end
        ]
        yield f"{number:>4}  {at:>5}  {text:{wide}}  {', '.join(inside)}".rstrip()
        at = end + 1
