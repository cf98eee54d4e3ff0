"""Tables for people and for programs: aligned text, JSON lines, CSV, Parquet, Arrow."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, Literal

import pyarrow as pa

from kafka_log.report.printing import iso_time, short_uuid

Output = Literal["text", "jsonl", "csv", "parquet", "arrow"]
OUTPUTS: tuple[Output, ...] = ("text", "jsonl", "csv", "parquet", "arrow")

_UNPRINTABLE = re.compile(r"[^ -~]")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_JSON = {b"kafka_log": b"json"}
_QUOTED = re.compile(r'[,"\r\n]|\A\s|\s\Z|\A\Z')


def write(table: pa.Table, output: Output, out: BinaryIO, width: int | None = None) -> None:
    """Write a table. ``width`` is that of the screen, for ``text``; None: lines are as long as they are."""
    if output == "text":
        from kafka_log.report.text_tables import as_text

        out.write(as_text(table, width).encode("utf-8", "backslashreplace"))
    elif output == "jsonl":
        from kafka_log.report.lines import line_blocks

        for batch in table.to_batches():
            out.writelines(line_blocks(batch))
    elif output == "csv":
        _write_csv(table, out)
    elif output == "parquet":
        from kafka_log.read.parquet import parquet_writer

        # A pipe cannot tell its position: the file is made in memory.
        made = pa.BufferOutputStream()
        with parquet_writer(made, table.schema) as writer:
            writer.write_table(table)
        out.write(made.getvalue())
    else:
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)


# ---------------------------------------------------------------- for programs


def json_lines(table: pa.Table) -> Iterable[str]:
    """An object a row. Times are ISO 8601 in UTC; bytes are text where :func:`is_text` says so, else ``{"base64": ...}``; numbers that
    are none are the texts NaN, Infinity and -Infinity. Characters that cannot be printed are escaped."""
    names = table.column_names
    for row in rows(table):
        yield json_text(dict(zip(names, row, strict=True)))


def rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    """The rows as JSON values."""
    convert = [json.loads if is_json(f) else json_value(f.type) for f in table.schema]
    for batch in table.to_batches():
        columns = [objects(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            yield tuple(
                None if value is None else f(value) for f, value in zip(convert, row, strict=True)
            )


def json_text(value: Any, *, compact: bool = False) -> str:
    """A JSON value on one line that a terminal takes for text: what cannot be printed is escaped."""
    separators = (",", ":") if compact else None
    line = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=separators)
    if line.isprintable():
        return line
    return _UNPRINTABLE.sub(lambda c: c[0] if c[0].isprintable() else json.dumps(c[0])[1:-1], line)


def json_value(kind: Any) -> Callable[[Any], Any]:
    """What makes a JSON value of one that :func:`objects` gave."""
    plain: Callable[[Any], Any]
    if pa.types.is_dictionary(kind):
        return json_value(kind.value_type)
    if pa.types.is_timestamp(kind):
        plain = iso_time
    elif pa.types.is_floating(kind):
        plain = _json_number
    elif pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        plain = short_uuid
    elif (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    ):
        plain = json_bytes
    elif pa.types.is_list(kind):
        item = json_value(kind.value_type)
        plain = lambda values: [item(value) for value in values]  # noqa: E731
    elif pa.types.is_struct(kind):
        members = {field.name: json_value(field.type) for field in kind}
        plain = lambda value: {name: members[name](value[name]) for name in members}  # noqa: E731
    else:
        return lambda value: value
    return lambda value: None if value is None else plain(value)


def json_field(name: str) -> pa.Field:
    """A column of texts that are JSON already, one line each as :func:`json_text` makes it."""
    return pa.field(name, pa.string(), metadata=_JSON)


def is_json(field: pa.Field) -> bool:
    """Whether a column is such a one."""
    return bool(field.metadata) and field.metadata.items() >= _JSON.items()


def is_text(value: bytes) -> bool:
    """Whether bytes are shown as text: UTF-8 without control characters, but for tabs and ends of lines."""
    if _CONTROL.search(value):
        return False
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def json_bytes(value: bytes) -> Any:
    """Bytes as a JSON value: text where they are, else in Base64."""
    if is_text(value):
        return value.decode("utf-8")
    return {"base64": b64encode(value).decode("ascii")}


def _json_number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _write_csv(table: pa.Table, out: BinaryIO) -> None:
    """Null is an empty cell, empty text is ``""``; what has parts is JSON. A column by itself has ``""`` for null too: its
    line would be empty."""
    out.write(csv_line(table.column_names))
    out.writelines(csv_lines(table))


def csv_lines(table: pa.Table) -> Iterable[bytes]:
    """The rows of a table as CSV has them: null is an empty cell, empty text is ``""``; what has parts is JSON."""
    for row in rows(table):
        yield csv_line(row) if len(row) > 1 or row[0] is not None else b'""\r\n'


def csv_line(values: Iterable[Any]) -> bytes:
    return (",".join(map(_csv_cell, values)) + "\r\n").encode("utf-8")


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = json_text(value) if isinstance(value, list | dict) else str(value)
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def objects(column: Any) -> list[Any]:
    """A column as Python objects. Times are milliseconds: some are more than a datetime can hold."""
    plain = _without_times(column.type)
    return (column if plain == column.type else column.cast(plain)).to_pylist()  # type: ignore[no-any-return]


def _without_times(kind: Any) -> Any:
    """The type with numbers for times, and without dictionaries."""
    if pa.types.is_dictionary(kind):
        return _without_times(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_times(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_times(field.type)) for field in kind])
    return kind
