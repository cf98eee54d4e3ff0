"""Tables as aligned text for a terminal of any width. Numbers are never cut, and no cell moves the cursor."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from rich.cells import cell_len

from kafka_log.segment.printable import escape_unprintable
from kafka_log.text.columns import format_json_column
from kafka_log.text.folding import NUMBER, fold_cell
from kafka_log.text.json_values import format_json, is_json

GAP = 2
"""Spaces between columns."""

NARROWEST = 12
"""Minimum width of a column of text, in cells of the terminal. Numbers are never cut."""


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of a table as text.

    Attributes:
        name: The heading.
        cells: One text a row, printable.
        right: Whether cells are aligned to the right, as numbers are.
        whole: Whether cells are folded at spaces only.
        nested: Whether cells hold JSON: numbers in it are not cut.
        least: Minimum width in cells of the terminal, when cells are folded.
        width: Width in cells of the terminal, when no cell is folded.
    """

    name: str
    cells: list[str]
    right: bool
    whole: bool
    nested: bool
    least: int
    width: int


def make_column(
    name: str,
    cells: list[str],
    *,
    right: bool = False,
    whole: bool = False,
    nested: bool = False,
) -> TextColumn:
    """Return a column with its widths: that of the widest cell or the name, and the minimum to
    which cells may be folded. `right` aligns to the right; `whole` folds at spaces only; `nested`
    does not divide numbers. The cells must be printable.
    """
    width = max([cell_len(name), *map(cell_len, cells)])
    least = [cell_len(name), 0 if whole and not nested else NARROWEST]
    if whole or nested:
        tokens = (token for cell in cells for token in cell.split(" "))
        least += (len(token) for token in tokens if whole or NUMBER.fullmatch(token))
    return TextColumn(name, cells, right, whole, nested, min(width, max(least)), width)


def lay_out(columns: Sequence[TextColumn], width: int | None = None, keys: int = 0) -> str:
    """Return columns next to each other as lines of text, with a heading. If they exceed `width`,
    fold texts; if they still do, return several tables, each with the first `keys` columns, or (if
    `keys` is 0, or a table does not fit) each row as a paragraph. Numbers and times are not cut.
    Without rows only headings are left, or an empty line in place of paragraphs. Raise ValueError if
    columns have different numbers of cells.

    With a `width` of 60 or more, a line is longer
    than `width` only if a number or a time does not fit.

    Args:
        columns: The columns, all of the same number of cells.
        width: Width of the terminal. None: nothing is folded.
        keys: Number of columns that identify a row.
    """
    widths = [column.width for column in columns]
    if width is not None:
        fitted = _fit_widths(columns, width)
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
            fold_cell(cell, size, whole=column.whole, nested=column.nested)
            for cell, size, column in zip(row, widths, columns, strict=True)
        ]
        lines.append(_line(folded, widths, right))
    return "\n".join(lines) + "\n"


def _blocks(columns: Sequence[TextColumn], width: int, keys: int) -> list[list[TextColumn]] | None:
    """Return the columns divided into tables that fit `width` with folded cells, each with the
    first `keys` columns and then as many others as fit. Return None if a column, at its minimum
    width, does not fit beside these. If there are no others, return one table, even if it does not
    fit.
    """
    first = list(columns[:keys])
    blocks = [first]
    for column in columns[keys:]:
        if _fit_widths([*blocks[-1], column], width) is None:
            blocks.append(first)
        blocks[-1] = [*blocks[-1], column]
        if _fit_widths(blocks[-1], width) is None:
            return None
    return blocks


def _fit_widths(columns: Sequence[TextColumn], width: int) -> list[int] | None:
    """Return widths with which a line fits `width`; the widest columns shrink first, none below its
    minimum. Return None if they cannot shrink enough.
    """
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
    """Return one row as lines of text, without spaces at their ends. Each cell is a list of its
    lines, padded to its width, on the left if `right` is True for it.
    """
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
    """Return each row as a paragraph with one line a column, its name first and its cell folded to
    `width` (but at least 12 cells of it), with an empty line between rows. Empty values have a line
    too. Return one empty line without rows.
    """
    longest = max((cell_len(column.name) for column in columns), default=0)
    room = max(width - longest - GAP, NARROWEST)
    out = []
    for row in zip(*(column.cells for column in columns), strict=True):
        lines = []
        for column, cell in zip(columns, row, strict=True):
            blanks = " " * (longest + GAP - cell_len(column.name))
            first, *more = fold_cell(cell, room, whole=column.whole, nested=column.nested)
            lines.append(f"{column.name}{blanks}{first}".rstrip(" "))
            lines += [(" " * (longest + GAP) + part).rstrip(" ") for part in more]
        out.append("\n".join(lines))
    return "\n\n".join(out) + "\n"


WIDE = 30
"""Minimum width of a column that identifies a row, in cells of the terminal."""

_CONFUSING = re.compile(r"\A(?:-|\[\]|\s.*|.*\s|\".*)?\Z", re.DOTALL)
_CONFUSING_ITEM = re.compile(r"[,\"]")


def format_table(table: pa.Table, width: int | None = None, keys: int = 0) -> str:
    """Return a table as aligned text with a heading. What exceeds ``width`` (None: no limit) is
    folded, then divided into several tables, each with the first ``keys`` columns, which identify a
    row, or into a paragraph for each row. Null is ``-``, a boolean ``yes`` or ``no``, an
    empty list ``[]``; lists of simple values have commas, other nested values are JSON. Text that
    could be mistaken for these, or has spaces at an end, is in quotes; unprintable characters are
    escaped.
    """
    return lay_out(format_columns(table, keys), width, keys)


def format_columns(table: pa.Table, keys: int = 0) -> list[TextColumn]:
    """Return the columns of a table as text. The first `keys` columns identify a row and keep a width of :data:`WIDE`."""
    columns = [_column(f, table.column(i)) for i, f in enumerate(table.schema)]
    columns[:keys] = [replace(c, least=max(c.least, min(c.width, WIDE))) for c in columns[:keys]]
    return columns


def _column(field: Any, values: Any) -> TextColumn:
    """Return a column of a table as text: values as JSON values in the form of :func:`_cell` (null is
    ``-``, booleans are ``yes`` or ``no``), but JSON texts (by ``field``) as they are. Numbers are
    aligned to the right.
    """
    name, kind = escape_unprintable(field.name), field.type
    read = str if is_json(field) else json.loads
    texts = [
        text for chunk in values.chunks for text in format_json_column(field, chunk).to_pylist()
    ]
    cells = [_cell(None if text is None else read(text)) for text in texts]
    return make_column(
        name,
        cells,
        right=_is_number(kind),
        whole=_is_atom(kind.value_type if pa.types.is_list(kind) else kind),
        nested=bool(pa.types.is_nested(kind)),
    )


def _is_number(kind: Any) -> bool:
    """Return whether values of an Arrow type are numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_atom(kind: Any) -> bool:
    """Return whether values of an Arrow type are numbers, times or booleans."""
    return _is_number(kind) or bool(pa.types.is_timestamp(kind) or pa.types.is_boolean(kind))


def _cell(value: Any, item: bool = False) -> str:
    """Return a JSON value as the text of a cell. None is ``-``, a boolean ``yes`` or ``no``. A list
    of simple values has commas; an empty or nested list and an object are JSON. Text that could be
    mistaken for another value is in quotes. `item`: the value is in a list.
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value and not any(isinstance(i, list | dict) for i in value):
        return ", ".join(_cell(part, item=True) for part in value)
    if isinstance(value, list | dict):
        return format_json(value)
    text = str(value)
    if _CONFUSING.match(text) or (item and _CONFUSING_ITEM.search(text)):
        return format_json(text)
    return escape_unprintable(text)
