"""What a text of a schema is, or a value of one, as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from codecgen.explain_text import paragraph, row, title, wrapped
from codecgen.schema.texts import EachLine, Text, TextValue
from codecgen.schema.types import Since

SinceRows = Callable[[Since | None, Since | None], Iterator[str]]


def text_lines(text: Text, since_rows: SinceRows) -> Iterator[str]:
    """A text."""
    yield from title(text.name, "text of lines" if text.lines else "text of properties", text.span)
    yield from paragraph(text.doc)
    yield from since_rows(text.since, None)
    yield from row("empty", "it may be, and every value is null then" if text.may_be_empty else "")
    yield from row("last line", "" if text.final_newline else "has no line feed after it")
    if text.properties:
        yield from row("other keys", "are kept" if text.keep_unknown else "a strict reader refuses")
    yield from row("accepts", ", ".join(sorted(text.accepts)))
    yield ""
    yield "lines" if text.lines else "keys"
    for line in (*text.lines, *text.properties):
        yield from wrapped(f"  {line.name}: {form(line)}", 6)


def value_lines(text: Text, path: str, since_rows: SinceRows) -> Iterator[str] | None:
    """A value of a text, None when there is none of that name."""
    for line in text.lines:
        if isinstance(line, EachLine) and line.name == path:
            return _each(text, line)
    for name, value in text.values():
        if name == path:
            return _value(text, name, value, since_rows)
    return None


def names(text: Text) -> list[str]:
    """What can be asked about in a text."""
    lines = [line.name for line in text.lines if isinstance(line, EachLine)]
    return [*lines, *(name for name, _ in text.values())]


def form(line: TextValue | EachLine) -> str:
    """How a value or a line is written, in a few words."""
    if isinstance(line, EachLine):
        values = line.separator.join(f"<{value.name}>" for value in line.values)
        counted = "to the end" if line.counted_by is None else f"as many as {line.counted_by} says"
        return f"lines of {values}, {counted}"
    words = {"decimal": f"decimal {line.of}", "string": line.of, "uuid": f"uuid in {line.of}"}
    found = words[line.kind]
    if line.label is not None:
        found += f" after {line.label + line.separator!r}"
    if line.const is not None:
        found += f", always {line.const}"
    return found + ("" if line.counts is None else f", the number of {line.counts}")


def _each(text: Text, line: EachLine) -> Iterator[str]:
    yield from title(f"{text.name}.{line.name}", f"lines of {text.name}", line.span)
    yield from paragraph(line.doc)
    yield from row("form", form(line))
    yield from row("accepts", ", ".join(sorted(line.accepts)))
    yield ""
    yield "values"
    for value in line.values:
        yield from wrapped(f"  {value.name}: {form(value)}", 6)


def _value(text: Text, path: str, value: TextValue, since_rows: SinceRows) -> Iterator[str]:
    yield from title(f"{text.name}.{path}", f"value of {text.name}", value.span)
    yield from paragraph(value.doc)
    yield from row("form", form(value))
    yield from row("key", value.key if text.properties else "")
    yield from since_rows(value.since or text.since, None)
    yield from row("default", "" if value.default is None else str(value.default))
    yield from row("valid", "" if value.valid is None else str(value.valid))
    yield from row("refused", "" if value.refuse is None else str(value.refuse))
    yield from row("unit", value.unit or "")
    yield from row("accepts", ", ".join(sorted(value.accepts)))
