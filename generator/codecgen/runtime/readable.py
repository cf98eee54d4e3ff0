"""Values for people: a line for each field, and tables for notebooks. Long values and long lists are shortened."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from codecgen.runtime.enums import Enumeration

BYTES, CHARACTERS, ELEMENTS, LINES = 32, 64, 5, 200
"""The most that is shown of bytes, of a text, of a list, and of the whole."""
LONGEST_SPAN = 100_000_000_000
"""Milliseconds, three years: more than that is a time."""
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


@runtime_checkable
class Readable(Protocol):
    """What has parts to show."""

    def _title(self) -> str:
        """What it is."""

    def _parts(self) -> Iterable[tuple[str, Any]]:
        """Its values with their names, in order."""


class Milliseconds(int):
    """A number of milliseconds. One that is larger than any span is shown with the time that it is since 1970."""


def time_of(milliseconds: int | None) -> datetime | None:
    """The time, in UTC, of milliseconds since 1970; None for none (None, or -1) and for what no datetime can hold."""
    if milliseconds is None or milliseconds == -1:
        return None
    try:
        return _BEGIN + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


def word(value: Any) -> str:
    """A value in a line."""
    if isinstance(value, Enumeration):
        return f"{value.label} ({int(value)})"
    if isinstance(value, Milliseconds):
        time = time_of(value) if value >= LONGEST_SPAN else None
        return f"{int(value)} ms" + ("" if time is None else f" ({_iso(time)})")
    if isinstance(value, bytes | bytearray | memoryview):
        some = bytes(value[:BYTES])
        return repr(some) if len(value) <= BYTES else f"{some!r}... ({len(value)} bytes)"
    if isinstance(value, str):
        some_text = value[:CHARACTERS]
        if len(value) <= CHARACTERS:
            return repr(value)
        return f"{some_text!r}... ({len(value)} characters)"
    if isinstance(value, Readable):
        return f"{value._title()}({', '.join(f'{n}={word(v)}' for n, v in value._parts())})"
    if isinstance(value, list | tuple):
        shown = [word(item) for item in value[:ELEMENTS]]
        if len(value) > ELEMENTS:
            shown.append(f"... {len(value) - ELEMENTS} more")
        return f"[{', '.join(shown)}]"
    return str(value)


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text_of(value: Readable) -> str:
    """A value as lines: its name, then one for each field; what is nested stands indented below."""
    lines = [value._title(), *_lines(value._parts(), "  ")]
    if len(lines) > LINES:
        lines[LINES:] = [f"... {len(lines) - LINES} more lines"]
    return "\n".join(lines)


def _lines(parts: Iterable[tuple[str, Any]], indent: str) -> list[str]:
    lines = []
    for name, value in parts:
        if isinstance(value, Readable):
            lines += [f"{indent}{name}:", *_lines(value._parts(), indent + "  ")]
        elif _is_list(value):
            lines.append(f"{indent}{name}: {len(value)} {value[0]._title()}")
            for i, item in enumerate(value[:ELEMENTS]):
                lines += [f"{indent}  [{i}]", *_lines(_parts(item), indent + "    ")]
            if len(value) > ELEMENTS:
                lines.append(f"{indent}  ... {len(value) - ELEMENTS} more")
        else:
            lines.append(f"{indent}{name}: {word(value)}")
    return lines


def html_of(value: Readable) -> str:
    """A value as a table of HTML, for notebooks. All text is escaped."""
    return _table(value._title(), value._parts())


def _table(title: str, parts: Iterable[tuple[str, Any]]) -> str:
    rows = []
    for name, value in parts:
        if isinstance(value, Readable):
            cell = _table("", value._parts())
        elif _is_list(value):
            cell = _elements(value)
        else:
            cell = f"<code>{html.escape(word(value))}</code>"
        rows.append(f"<tr><th>{html.escape(name)}</th><td>{cell}</td></tr>")
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    return f"<table>{caption}{''.join(rows)}</table>"


def _elements(items: Sequence[Any]) -> str:
    shown = "".join(_table(f"[{i}]", _parts(item)) for i, item in enumerate(items[:ELEMENTS]))
    more = f"<p>{len(items) - ELEMENTS} more</p>" if len(items) > ELEMENTS else ""
    title = html.escape(f"{len(items)} {items[0]._title()}")
    return f"<details><summary>{title}</summary>{shown}{more}</details>"


def _is_list(value: Any) -> bool:
    """Whether it is a list of what has parts."""
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Readable)


def _parts(item: Any) -> Iterable[tuple[str, Any]]:
    return item._parts() if isinstance(item, Readable) else [("", item)]
