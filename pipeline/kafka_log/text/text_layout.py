"""Columns of text at any width: numbers are never cut, and nothing moves the cursor. No package is needed but rich."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from kafka_log.text.printing import NUMBER, fold

GAP = 2
"""Blanks between columns."""

NARROWEST = 12
"""Cells of the terminal that a column of text keeps where there is no room. Numbers are never cut."""


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column as text. ``right``: numbers. ``whole``: nothing of it is cut, it breaks at blanks only; ``nested``: what looks like a
    number is not. ``least`` is what it needs at least where it breaks; ``width`` what it needs where it does not."""

    name: str
    cells: list[str]
    right: bool
    whole: bool
    nested: bool
    least: int
    width: int


def text_column(
    name: str,
    cells: list[str],
    *,
    right: bool = False,
    whole: bool = False,
    nested: bool = False,
) -> TextColumn:
    """A column of cells that are :func:`printable`, with its widths."""
    width = max([cell_len(name), *map(cell_len, cells)])
    least = [cell_len(name), 0 if whole and not nested else NARROWEST]
    if whole or nested:
        tokens = (token for cell in cells for token in cell.split(" "))
        least += (len(token) for token in tokens if whole or NUMBER.fullmatch(token))
    return TextColumn(name, cells, right, whole, nested, min(width, max(least)), width)


def lay_out(columns: Sequence[TextColumn], width: int | None = None, keys: int = 0) -> str:
    """Columns beside each other. Where they do not fit the width texts are folded. Where that is not enough there are several
    tables, each with the first ``keys`` columns, which say what a row is; or, when there are none of these, each row is a paragraph
    with a line for each column. No line is longer than a width of 60 or more, unless a number or a time does not fit."""
    widths = [column.width for column in columns]
    if width is not None:
        fitted = _fitted(columns, width)
        if fitted is None:
            blocks = _blocks(columns, width, keys) if keys else None
            if blocks is None:
                return _paragraphs(columns, width)
            return "\n".join(lay_out(block, width) for block in blocks)
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


def _blocks(columns: Sequence[TextColumn], width: int, keys: int) -> list[list[TextColumn]] | None:
    """Columns for several tables that fit, None when there are none."""
    first = list(columns[:keys])
    blocks = [first]
    for column in columns[keys:]:
        if _fitted([*blocks[-1], column], width) is None:
            blocks.append(first)
        blocks[-1] = [*blocks[-1], column]
        if _fitted(blocks[-1], width) is None:
            return None
    return blocks


def _fitted(columns: Sequence[TextColumn], width: int) -> list[int] | None:
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


def _paragraphs(columns: Sequence[TextColumn], width: int) -> str:
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
