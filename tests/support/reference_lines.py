"""Rows as lines of JSON, CSV and text, a value at a time by plain Python: what the columns of :mod:`kafka_log.text` are compared with."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from kafka_log.segment.printable import escape_unprintable
from kafka_log.text.columns import format_bytes
from kafka_log.text.json_values import convert_bytes, format_json, is_json, to_objects
from kafka_log.text.lines import Cell, Layout
from kafka_log.text.values import format_time, format_uuid

_QUOTED = re.compile(r'[,"\r\n]|\A\s|\s\Z|\A\Z')


def json_rows(table: pa.Table) -> Iterator[str]:
    """Return each row as a JSON object."""
    for row in _rows(table):
        yield format_json(dict(zip(table.column_names, row, strict=True)))


def csv_rows(table: pa.Table) -> Iterator[bytes]:
    """Return each row as a line of CSV."""
    for row in _rows(table):
        line = ",".join(map(_csv_cell, row)) + "\r\n"
        yield line.encode("utf-8") if len(row) > 1 or row[0] is not None else b'""\r\n'


def display_rows(batch: pa.RecordBatch, layout: Layout) -> Iterator[str]:
    """Return each row as a line for people."""
    shows = [_display(field, layout.max_bytes) for field in batch.schema]
    columns = [to_objects(column) for column in batch.columns]
    for row in zip(*columns, strict=True):
        yield "".join(map(_cell, layout.cells, row, shows, batch.schema))


def _rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    convert = [json.loads if is_json(f) else json_converter(f.type) for f in table.schema]
    for batch in table.to_batches():
        columns = [to_objects(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            yield tuple(
                None if value is None else f(value) for f, value in zip(convert, row, strict=True)
            )


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = format_json(value) if isinstance(value, list | dict) else str(value)
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _cell(cell: Cell, value: Any, show: Callable[[Any], str], field: pa.Field) -> str:
    if pa.types.is_list(field.type):
        return cell.prefix + show(value) if value else ""
    text = cell.null if value is None else show(value)
    if pa.types.is_integer(field.type) and value is not None:
        return cell.prefix + text.rjust(cell.pad)
    return cell.prefix + text + " " * (cell.pad - len(text.encode("utf-8")))


def _display(field: pa.Field, most: int) -> Callable[[Any], str]:
    kind = field.type
    if is_json(field):
        return str
    if pa.types.is_dictionary(kind):
        return escape_unprintable
    if pa.types.is_timestamp(kind):
        return format_time
    if pa.types.is_binary(kind):
        return lambda value: format_bytes(value, most)
    if pa.types.is_list(kind):
        if not pa.types.is_struct(kind.value_type):
            item = _display(pa.field("", kind.value_type), most)
            return lambda values: f"[{', '.join('null' if v is None else item(v) for v in values)}]"
        members = [(f.name, _display(f, most)) for f in kind.value_type]
        return lambda values: f"[{', '.join(_pair(value, members) for value in values)}]"
    convert = json_converter(kind)
    return lambda value: format_json(convert(value))


def _pair(value: Any, members: Iterable[tuple[str, Callable[[Any], str]]]) -> str:
    return "=".join("null" if value[name] is None else show(value[name]) for name, show in members)


def json_converter(kind: Any) -> Callable[[Any], Any]:
    """Return the function that converts values of an Arrow type, as :func:`to_objects` returns them, to JSON values."""
    convert: Callable[[Any], Any]
    if pa.types.is_dictionary(kind):
        return json_converter(kind.value_type)
    if pa.types.is_timestamp(kind):
        convert = format_time
    elif pa.types.is_floating(kind):
        convert = _number
    elif pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        convert = format_uuid
    elif (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    ):
        convert = convert_bytes
    elif pa.types.is_list(kind):
        item = json_converter(kind.value_type)
        convert = lambda values: [item(value) for value in values]  # noqa: E731
    elif pa.types.is_struct(kind):
        members = {field.name: json_converter(field.type) for field in kind}
        convert = lambda value: {name: members[name](value[name]) for name in members}  # noqa: E731
    else:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def _number(value: float) -> float | str:
    if value != value:
        return "NaN"
    return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, value)
