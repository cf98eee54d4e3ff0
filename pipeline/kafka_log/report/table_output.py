"""Tables for people and for programs: aligned text, JSON lines, CSV, Parquet, Arrow."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, BinaryIO, Literal

import pyarrow as pa

Output = Literal["text", "jsonl", "csv", "parquet", "arrow"]
OUTPUTS: tuple[Output, ...] = ("text", "jsonl", "csv", "parquet", "arrow")

GAP = 2
"""Blanks between columns of text."""

NARROWEST = 12
"""Characters that a column of text keeps where there is no room. Numbers are never cut."""


def write(table: pa.Table, output: Output, out: BinaryIO, width: int | None = None) -> None:
    """Write a table. ``width`` is that of the screen, for ``text``; None: lines are as long as they are."""
    if output == "text":
        out.write(as_text(table, width).encode("utf-8", "backslashreplace"))
    elif output == "jsonl":
        for line in json_lines(table):
            out.write(line.encode("utf-8") + b"\n")
    elif output == "csv":
        _write_csv(table, out)
    elif output == "parquet":
        import pyarrow.parquet as pq

        # A pipe cannot tell its position: the file is made in memory.
        made = pa.BufferOutputStream()
        pq.write_table(table, made, compression="zstd")
        out.write(made.getvalue())
    else:
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)


# ---------------------------------------------------------------- for programs


def json_lines(table: pa.Table) -> Iterable[str]:
    """An object a row. Times are ISO 8601 in UTC; bytes are text where they are UTF-8, else ``{"base64": ...}``."""
    convert = [_json_value(field.type) for field in table.schema]
    for batch in table.to_batches():
        columns = [_objects(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            cells = (f(value) for f, value in zip(convert, row, strict=True))
            yield json.dumps(dict(zip(table.column_names, cells, strict=True)), ensure_ascii=False)


def _json_value(kind: Any) -> Callable[[Any], Any]:
    """What makes a JSON value of one that :func:`_objects` gave."""
    plain: Callable[[Any], Any]
    if pa.types.is_timestamp(kind):
        plain = iso_time
    elif pa.types.is_fixed_size_binary(kind):
        plain = short_uuid
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        plain = _json_bytes
    elif pa.types.is_list(kind):
        item = _json_value(kind.value_type)
        plain = lambda values: [item(value) for value in values]  # noqa: E731
    elif pa.types.is_struct(kind):
        members = {field.name: _json_value(field.type) for field in kind}
        plain = lambda value: {name: members[name](value[name]) for name in members}  # noqa: E731
    else:
        return lambda value: value
    return lambda value: None if value is None else plain(value)


def _json_bytes(value: bytes) -> Any:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode("ascii")}


def _write_csv(table: pa.Table, out: BinaryIO) -> None:
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(table.column_names)
    convert = [_json_value(field.type) for field in table.schema]
    for batch in table.to_batches():
        columns = [_objects(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            writer.writerow([_csv_cell(f(value)) for f, value in zip(convert, row, strict=True)])
    text.flush()
    text.detach()


def _csv_cell(value: Any) -> Any:
    """Null is an empty cell; what has parts is JSON."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else value


def _objects(column: Any) -> list[Any]:
    """A column as Python objects. Times are milliseconds: some are more than a datetime can hold."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    return column.to_pylist()  # type: ignore[no-any-return]


# ---------------------------------------------------------------- for people


def iso_time(milliseconds: int) -> str:
    """A time in UTC, or the number where a calendar has none."""
    try:
        time = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


def short_uuid(value: bytes) -> str:
    """16 bytes as Kafka spells them: URL-safe Base64 without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def as_text(table: pa.Table, width: int | None = None) -> str:
    """A table in columns. Where they do not fit the width texts are folded, and where that is not enough each row is a
    paragraph with a line for each column."""
    names = table.column_names
    cells = [_cells(table.column(i)) for i in range(table.num_columns)]
    right = [_is_number(field.type) for field in table.schema]
    widths = [
        max([len(name), *map(len, column)]) for name, column in zip(names, cells, strict=True)
    ]
    if width is not None:
        whole = [
            n or pa.types.is_timestamp(f.type) for n, f in zip(right, table.schema, strict=True)
        ]
        fitted = _fitted(names, widths, whole, width)
        if fitted is None:
            return _paragraphs(names, cells, width)
        widths = fitted
    lines = [_line([[name] for name in names], widths, right)]
    for row in zip(*cells, strict=True):
        folded = [_fold(cell, size) for cell, size in zip(row, widths, strict=True)]
        lines.append(_line(folded, widths, right))
    return "\n".join(lines) + "\n"


def _cells(column: Any) -> list[str]:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    convert = _json_value(kind)
    values = [value for chunk in column.chunks for value in _objects(chunk)]
    return [_cell(convert(value)) for value in values]


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and not any(isinstance(item, list | dict) for item in value):
        return ", ".join(map(_cell, value))
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _fitted(
    names: Sequence[str], widths: Sequence[int], whole: Sequence[bool], width: int
) -> list[int] | None:
    """Widths with which a line fits, None when there are none: texts give way, the widest first. ``whole`` are columns that
    are never folded."""
    out = list(widths)
    over = sum(out) + GAP * (len(out) - 1) - width
    least = [
        size if kept else min(size, max(NARROWEST, len(name)))
        for name, size, kept in zip(names, out, whole, strict=True)
    ]
    while over > 0:
        room = [(size - low, i) for i, (size, low) in enumerate(zip(out, least, strict=True))]
        most, widest = max(((out[i], i) for spare, i in room if spare > 0), default=(0, -1))
        if widest < 0:
            return None
        following = max((out[i] for spare, i in room if spare > 0 and out[i] < most), default=0)
        cut = min(over, out[widest] - max(least[widest], following), over) or 1
        out[widest] -= cut
        over -= cut
    return out


def _fold(cell: str, size: int) -> list[str]:
    """A cell in lines that are not longer, broken at blanks where there are some."""
    lines = []
    while len(cell) > size:
        at = cell.rfind(" ", 1, size + 1)
        cut = at if at > 0 else size
        lines.append(cell[:cut].rstrip())
        cell = cell[cut:].lstrip()
    return [*lines, cell]


def _line(cells: Sequence[list[str]], widths: Sequence[int], right: Sequence[bool]) -> str:
    lines = []
    for i in range(max(map(len, cells), default=0)):
        parts = [
            part.rjust(size) if number else part.ljust(size)
            for part, size, number in zip(
                (cell[i] if i < len(cell) else "" for cell in cells), widths, right, strict=True
            )
        ]
        lines.append((" " * GAP).join(parts).rstrip())
    return "\n".join(lines)


def _paragraphs(names: Sequence[str], cells: Sequence[list[str]], width: int) -> str:
    longest = max(map(len, names), default=0)
    room = max(width - longest - GAP, NARROWEST)
    out = []
    for row in zip(*cells, strict=True):
        lines = []
        for name, cell in zip(names, row, strict=True):
            first, *more = _fold(cell, room)
            lines.append(f"{name.ljust(longest + GAP)}{first}".rstrip())
            lines += [" " * (longest + GAP) + part for part in more]
        out.append("\n".join(lines))
    return "\n\n".join(out) + "\n"
