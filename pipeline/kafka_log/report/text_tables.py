"""Tables as aligned text for people. What a cell holds never reaches the terminal as anything but text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from rich.cells import cell_len

from kafka_log.report.printing import NUMBER, fold, printable
from kafka_log.report.table_output import json_text, json_value, objects

GAP = 2
"""Blanks between columns."""

NARROWEST = 12
"""Cells of the terminal that a column of text keeps where there is no room. Numbers are never cut."""

_CONFUSING = re.compile(r"\A(?:-|\[\]|\s.*|.*\s|\".*)?\Z", re.DOTALL)
_CONFUSING_ITEM = re.compile(r"[,\"]")


@dataclass(frozen=True, slots=True)
class _Column:
    """A column as text. ``right``: numbers. ``whole``: nothing of it is cut, it breaks at blanks only; ``nested``: what looks like a
    number is not. ``least`` is what it needs at least where it breaks; ``width`` what it needs where it does not."""

    name: str
    cells: list[str]
    right: bool
    whole: bool
    nested: bool
    least: int
    width: int


def as_text(table: pa.Table, width: int | None = None) -> str:
    """A table in columns. Where they do not fit the width texts are folded, and where that is not enough each row is a
    paragraph with a line for each column. No line is longer than a width of 60 or more, unless a number or a time does
    not fit.

    Null is ``-``, empty text ``""``, an empty list ``[]``; text that could be taken for one of these is in quotes. What cannot be
    printed is escaped.
    """
    columns = [_column(f, table.column(i)) for i, f in enumerate(table.schema)]
    widths = [column.width for column in columns]
    if width is not None:
        fitted = _fitted(columns, width)
        if fitted is None:
            return _paragraphs(columns, width)
        widths = fitted
    right = [column.right for column in columns]
    lines = [_line([[column.name] for column in columns], widths, right)]
    for row in zip(*(column.cells for column in columns), strict=True):
        folded = [
            fold(cell, size, whole=column.whole, nested=column.nested)
            for cell, size, column in zip(row, widths, columns, strict=True)
        ]
        lines.append(_line(folded, widths, right))
    return "\n".join(lines) + "\n"


def _column(field: Any, values: Any) -> _Column:
    name, kind = printable(field.name), field.type
    convert = json_value(kind)
    cells = [_cell(convert(value)) for chunk in values.chunks for value in objects(chunk)]
    width = max([cell_len(name), *map(cell_len, cells)])
    nested = bool(pa.types.is_nested(kind))
    whole = _is_atom(kind.value_type if pa.types.is_list(kind) else kind)
    least = [cell_len(name), 0 if whole and not nested else NARROWEST]
    if whole or nested:
        tokens = (token for cell in cells for token in cell.split(" "))
        least += (len(token) for token in tokens if whole or NUMBER.fullmatch(token))
    return _Column(name, cells, _is_number(kind), whole, nested, min(width, max(least)), width)


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_atom(kind: Any) -> bool:
    return _is_number(kind) or bool(pa.types.is_timestamp(kind) or pa.types.is_boolean(kind))


def _cell(value: Any, item: bool = False) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value and not any(isinstance(i, list | dict) for i in value):
        return ", ".join(_cell(part, item=True) for part in value)
    if isinstance(value, list | dict):
        return json_text(value)
    text = str(value)
    if _CONFUSING.match(text) or (item and _CONFUSING_ITEM.search(text)):
        return json_text(text)
    return printable(text)


def _fitted(columns: Sequence[_Column], width: int) -> list[int] | None:
    """Widths with which a line fits, None when there are none: texts give way, the widest first."""
    out = [column.width for column in columns]
    least = [column.least for column in columns]
    over = sum(out) + GAP * (len(out) - 1) - width
    while over > 0:
        room = [(size - low, i) for i, (size, low) in enumerate(zip(out, least, strict=True))]
        most, widest = max(((out[i], i) for spare, i in room if spare > 0), default=(0, -1))
        if widest < 0:
            return None
        following = max((out[i] for spare, i in room if spare > 0 and out[i] < most), default=0)
        cut = min(over, out[widest] - max(least[widest], following)) or 1
        out[widest] -= cut
        over -= cut
    return out


def _line(cells: Sequence[list[str]], widths: Sequence[int], right: Sequence[bool]) -> str:
    lines = []
    for i in range(max(map(len, cells), default=0)):
        parts = []
        for cell, size, number in zip(cells, widths, right, strict=True):
            part = cell[i].rstrip(" ") if i < len(cell) else ""
            blanks = " " * (size - cell_len(part))
            parts.append(blanks + part if number else part + blanks)
        lines.append((" " * GAP).join(parts).rstrip(" "))
    return "\n".join(lines)


def _paragraphs(columns: Sequence[_Column], width: int) -> str:
    longest = max((cell_len(column.name) for column in columns), default=0)
    room = max(width - longest - GAP, NARROWEST)
    out = []
    for row in zip(*(column.cells for column in columns), strict=True):
        lines = []
        for column, cell in zip(columns, row, strict=True):
            blanks = " " * (longest + GAP - cell_len(column.name))
            first, *more = fold(cell, room, whole=column.whole, nested=column.nested)
            lines.append(f"{column.name}{blanks}{first}".rstrip(" "))
            lines += [(" " * (longest + GAP) + part).rstrip(" ") for part in more]
        out.append("\n".join(lines))
    return "\n\n".join(out) + "\n"
