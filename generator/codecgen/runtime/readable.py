"""Values for people: a line for each field, and HTML tables for notebooks. Long values and lists are shortened."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from codecgen.runtime.enums import Enumeration
from codecgen.runtime.nouns import count_noun

BYTES, CHARACTERS, ELEMENTS, LINES = 32, 64, 5, 200
"""The most that is shown of bytes, of a text, of a list, and of the whole."""
LONGEST_SPAN = 100_000_000_000
"""Milliseconds, three years: more than that is a time."""
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


@runtime_checkable
class Readable(Protocol):
    """A value that has a title and named values to print."""

    def _title(self) -> str:
        """Return the name of the kind of value."""

    def _named_values(self) -> Iterable[tuple[str, Any]]:
        """Return the values with their names, in order."""


class Milliseconds(int):
    """A number of milliseconds. A number that is too large for a duration is printed with its time since 1970."""


def time_of(milliseconds: int | None) -> datetime | None:
    """Return the UTC datetime of milliseconds since 1970. Return None for None, for -1, and for a
    time that no datetime can hold.
    """
    if milliseconds is None or milliseconds == -1:
        return None
    try:
        return _BEGIN + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


def word(value: Any) -> str:
    """Return a value on one line. Enums have their label and number; Milliseconds are ``5 ms``,
    from 10^11 (three years) on with the ISO time in UTC; a parsed value is ``Title(name=value,
    ...)``. Bytes and str are Python literals, bytes cut to 32, a str to 64 characters, and lists to
    5 elements, with a note of what is missing. Anything else is ``str(value)``.
    """
    if isinstance(value, Enumeration):
        return f"{value.label} ({int(value)})"
    if isinstance(value, Milliseconds):
        time = time_of(value) if value >= LONGEST_SPAN else None
        return f"{int(value)} ms" + ("" if time is None else f" ({_iso(time)})")
    if isinstance(value, bytes | bytearray | memoryview):
        some = bytes(value[:BYTES])
        return (
            repr(some) if len(value) <= BYTES else f"{some!r}... ({count_noun(len(value), 'byte')})"
        )
    if isinstance(value, str):
        some_text = value[:CHARACTERS]
        if len(value) <= CHARACTERS:
            return repr(value)
        return f"{some_text!r}... ({len(value)} characters)"
    if isinstance(value, Readable):
        return f"{value._title()}({', '.join(f'{n}={word(v)}' for n, v in value._named_values())})"
    if isinstance(value, list | tuple):
        shown = [word(item) for item in value[:ELEMENTS]]
        if len(value) > ELEMENTS:
            shown.append(f"... {len(value) - ELEMENTS} more")
        return f"[{', '.join(shown)}]"
    return str(value)


def _iso(time: datetime) -> str:
    """Return a time in ISO 8601 with milliseconds and ``Z``."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text_of(value: Readable) -> str:
    """Return a value as lines: its title, then a line for each field, nested values indented. Of a
    list 5 elements are shown; lines after the first 200 are replaced by one that counts them.
    """
    lines = [value._title(), *_lines(value._named_values(), "  ")]
    if len(lines) > LINES:
        lines[LINES:] = [f"... {len(lines) - LINES} more lines"]
    return "\n".join(lines)


def _lines(parts: Iterable[tuple[str, Any]], indent: str) -> list[str]:
    """Return lines for named values, each behind ``indent``. A nested value follows its name,
    indented further. Of a list of nested values 5 are shown, then a count of the others.
    """
    lines = []
    for name, value in parts:
        if isinstance(value, Readable):
            lines += [f"{indent}{name}:", *_lines(value._named_values(), indent + "  ")]
        elif _is_list(value):
            lines.append(f"{indent}{name}: {len(value)} {value[0]._title()}")
            for i, item in enumerate(value[:ELEMENTS]):
                lines += [f"{indent}  [{i}]", *_lines(_item_parts(item), indent + "    ")]
            if len(value) > ELEMENTS:
                lines.append(f"{indent}  ... {len(value) - ELEMENTS} more")
        else:
            lines.append(f"{indent}{name}: {word(value)}")
    return lines


def html_of(value: Readable) -> str:
    """Return a value as an HTML table, for notebooks, with all text escaped."""
    return _table(value._title(), value._named_values())


def _table(title: str, parts: Iterable[tuple[str, Any]]) -> str:
    """Return named values as an HTML table, with escaped text. ``title`` is its caption, none if
    empty. A nested value is a table, a list of nested values that is not empty a collapsible block,
    and any other value one line of text.
    """
    rows = []
    for name, value in parts:
        if isinstance(value, Readable):
            cell = _table("", value._named_values())
        elif _is_list(value):
            cell = _elements(value)
        else:
            cell = f"<code>{html.escape(word(value))}</code>"
        rows.append(f"<tr><th>{html.escape(name)}</th><td>{cell}</td></tr>")
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    return f"<table>{caption}{''.join(rows)}</table>"


def _elements(items: Sequence[Any]) -> str:
    """Return the first 5 elements of a list that is not empty as a collapsible HTML block, titled
    by the number of all elements and the name of the first one's layout. A note counts those that
    are left out.
    """
    shown = "".join(_table(f"[{i}]", _item_parts(item)) for i, item in enumerate(items[:ELEMENTS]))
    more = f"<p>{len(items) - ELEMENTS} more</p>" if len(items) > ELEMENTS else ""
    title = html.escape(f"{len(items)} {items[0]._title()}")
    return f"<details><summary>{title}</summary>{shown}{more}</details>"


def _is_list(value: Any) -> bool:
    """Return whether a value is a list of readable values that is not empty."""
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Readable)


def _item_parts(item: Any) -> Iterable[tuple[str, Any]]:
    """Return the named values of an element that can be printed; any other element as its only
    value, with ``""`` as name.
    """
    return item._named_values() if isinstance(item, Readable) else [("", item)]
