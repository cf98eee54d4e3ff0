"""Tables as aligned text for people. What a cell holds never reaches the terminal as anything but text."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kafka_log.text.json_values import json_text, json_value, objects
from kafka_log.text.printing import printable
from kafka_log.text.text_layout import TextColumn, lay_out, text_column

WIDE = 30
"""Cells of the terminal that a column keeps which says what a row is."""

_CONFUSING = re.compile(r"\A(?:-|\[\]|\s.*|.*\s|\".*)?\Z", re.DOTALL)
_CONFUSING_ITEM = re.compile(r"[,\"]")


def as_text(table: pa.Table, width: int | None = None, keys: int = 0) -> str:
    """A table in columns, as :func:`~kafka_log.text.text_layout.lay_out` has them.

    Null is ``-``, empty text ``""``, an empty list ``[]``; text that could be taken for one of these is in quotes. What cannot be
    printed is escaped. Where there are several tables, ``keys`` columns stand in each.
    """
    return lay_out(text_columns(table, keys), width, keys)


def text_columns(table: pa.Table, keys: int = 0) -> list[TextColumn]:
    """The columns of a table as text. The first ``keys`` say what a row is, and are not made narrow."""
    columns = [_column(f, table.column(i)) for i, f in enumerate(table.schema)]
    columns[:keys] = [replace(c, least=max(c.least, min(c.width, WIDE))) for c in columns[:keys]]
    return columns


def _column(field: Any, values: Any) -> TextColumn:
    name, kind = printable(field.name), field.type
    convert = json_value(kind)
    cells = [_cell(convert(value)) for chunk in values.chunks for value in objects(chunk)]
    return text_column(
        name,
        cells,
        right=_is_number(kind),
        whole=_is_atom(kind.value_type if pa.types.is_list(kind) else kind),
        nested=bool(pa.types.is_nested(kind)),
    )


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
