"""Arrow columns as columns of text: JSON values, CSV cells and values for people.

Arrow's string functions convert whole columns. Python converts only values that these functions cannot: bytes that are no text,
characters that a terminal does not print, numbers with a fraction. Each function returns a `large_string` array, so that no column
is too long for its offsets. Null stays null.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.nouns import count_noun
from kafka_log.segment.printable import escape_unprintable
from kafka_log.text.json_values import format_json, is_json, is_text, json_converter, to_objects

TEXT = pa.large_string()

_FIRST_MS, _LAST_MS = -62135596800000, 253402300799999
"""The first millisecond of the year 1 and the last one of the year 9999."""

# Patterns of RE2. That of bytes is the definition of `is_text`: UTF-8 without control characters but tabs and ends of lines.
_TEXT_BYTES = (
    r"\A(?:[\t\n\r -~]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]"
    r"|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    r"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})*\z"
)
_CONTINUATION = r"\A[\x80-\xbf]"
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Ticks in a second, by the unit of a timestamp."""
_SPACE = (
    r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
)
_NEEDS_QUOTES = rf'[,"\r\n]|\A{_SPACE}|{_SPACE}\z|\A\z'


def format_json_column(field: pa.Field, column: Any) -> Any:
    """Return each value of a column as JSON text on one line. A column of JSON texts (`is_json`) is returned as it is."""
    return column.cast(TEXT) if is_json(field) else _format_json(column)


def format_csv_column(field: pa.Field, column: Any) -> Any:
    """Return each value of a column as a CSV cell, in quotes if it needs them. Times are ISO 8601;
    lists, structs and bytes that are no text are JSON, but fixed-size binaries of 16 bytes UUIDs.
    ``field`` says whether texts are JSON: strings are then shown without their quotes. Null, and
    JSON null in such a column, is null in the result. Raise ValueError for a text of such a column
    that is not JSON.
    """
    kind = column.type
    if is_json(field):
        return quote_csv_cells(
            _convert_values(column, lambda text: _format_unquoted(json.loads(text)))
        )
    if pa.types.is_dictionary(kind):
        return format_csv_column(field.with_type(kind.value_type), column.dictionary).take(
            column.indices
        )
    if pa.types.is_timestamp(kind):
        return _format_times(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return quote_csv_cells(column.cast(TEXT))
    if _is_bytes(kind):
        return quote_csv_cells(
            _convert_column(column.cast(pa.large_binary()), _is_text, _cast_to_text, _format_base64)
        )
    if pa.types.is_nested(kind):
        return quote_csv_cells(_format_json(column))
    if _is_scalar(kind):
        return _format_scalars(column)
    if _is_cast(kind):
        return column.cast(TEXT)
    convert = json_converter(kind)
    return quote_csv_cells(_convert_values(column, lambda value: _format_unquoted(convert(value))))


def format_text_column(field: pa.Field, column: Any, max_bytes: int) -> Any:
    """Return each value of a column as text for people: values of type binary as JSON strings if
    they are text, else ``0x`` and hexadecimal digits, at most ``max_bytes`` of each; texts of a
    dictionary without quotes, times as ISO 8601, JSON texts (by ``field``) unchanged, a struct in a
    list as its values joined by ``=``. All others are JSON and never shortened, as are large_binary
    values. Null stays null, but is ``null`` in a list.
    """
    kind = column.type
    if is_json(field):
        return column.cast(TEXT)
    if pa.types.is_dictionary(kind):
        return _convert_values(column.dictionary, escape_unprintable).take(column.indices)
    if pa.types.is_timestamp(kind):
        return _format_times(column)
    if pa.types.is_binary(kind):
        return _format_text_bytes(column, max_bytes)
    if not pa.types.is_list(kind):
        return _format_json(column)

    def display(values: Any) -> Any:
        if not pa.types.is_struct(values.type):
            return fill_null(format_text_column(pa.field("", values.type), values, max_bytes))
        parts: list[Any] = []
        for i, member in enumerate(values.type):
            shown = format_text_column(member, values.field(i), max_bytes)
            parts += ["=" if i else "", fill_null(shown)]
        return join(*parts) if parts else pa.repeat(pa.scalar("", TEXT), len(values))

    return _format_lists(column, display)


def format_rows_as_json(table: pa.Table) -> list[str]:
    """Return each row of a table as a JSON object on one line."""
    batches = table.to_batches()
    texts = (build_json_objects(b.schema, b.columns, b.num_rows) for b in batches)
    return [text for part in texts for text in part.to_pylist()]


def format_bytes(data: bytes, max_bytes: int) -> str:
    """Return at most `max_bytes` of `data` for people: a JSON string if they are text, else ``0x``
    and hexadecimal digits. A UTF-8 character is not divided. If bytes are left out, ``...(N bytes
    more)`` follows.
    """
    end = len(data)
    if end > max_bytes:
        end = max_bytes
        while end > 0 and end > max_bytes - 3 and data[end] & 0xC0 == 0x80:
            end -= 1
    start = data[:end]
    text = format_json(start.decode("utf-8")) if is_text(start) else f"0x{start.hex()}"
    return text if end == len(data) else f"{text}...({count_noun(len(data) - end, 'byte')} more)"


def fill_null(texts: Any, text: str = "null") -> Any:
    """Return `texts` with `text` in the place of each null."""
    return pc.fill_null(texts, pa.scalar(text, TEXT)) if texts.null_count else texts


def join(*parts: Any) -> Any:
    """Return one text a row: its texts of the arrays among `parts` and the strings between them,
    one after the other. It is null if one of them is null.
    """
    scalars = (pa.scalar(part, TEXT) if isinstance(part, str) else part for part in parts)
    return pc.binary_join_element_wise(*scalars, pa.scalar("", TEXT))


def _format_json(column: Any) -> Any:
    """Return each value of a column as JSON text: strings, times, dates, decimals and numbers that
    are not finite in quotes, bytes as a string if they are text, else as ``{"base64": ...}``,
    fixed-size binaries of 16 bytes as UUIDs. Null stays null, but is ``null`` inside lists, maps and
    structs.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _format_json(column.dictionary).take(column.indices)
    if pa.types.is_timestamp(kind):
        return join('"', _format_times(column), '"')
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quote_json(column.cast(TEXT))
    if _is_bytes(kind):
        return _convert_column(
            column.cast(pa.large_binary()),
            _is_text,
            lambda values: _quote_json(_cast_to_text(values)),
            _format_base64,
        )
    if pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _format_json(column.cast(pa.list_(kind.value_field)))
    if pa.types.is_list(kind):
        item = kind.value_field
        return _format_lists(column, lambda values: fill_null(format_json_column(item, values)))
    if pa.types.is_struct(kind):
        return _format_structs(column)
    if pa.types.is_map(kind):
        return _format_maps(column)
    if _is_cast(kind):
        return column.cast(TEXT)
    if _is_scalar(kind):
        return join('"', _format_scalars(column), '"')
    convert = json_converter(kind)
    return _convert_values(column, lambda value: format_json(convert(value)))


def _is_bytes(kind: Any) -> bool:
    """Return whether values of a type are bytes of any length."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_cast(kind: Any) -> bool:
    """Return whether Arrow spells the values of a type as JSON does."""
    tests = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null)
    return any(test(kind) for test in tests)


def _is_scalar(kind: Any) -> bool:
    """Return whether :func:`_format_scalars` formats values of a type."""
    tests = (pa.types.is_decimal, pa.types.is_date, pa.types.is_time)
    return any(test(kind) for test in tests)


def _convert_values(column: Any, convert: Callable[[Any], str | None]) -> Any:
    """Return the texts that a Python function makes of values; times are integers in the unit of their type."""
    return pa.array([None if v is None else convert(v) for v in to_objects(column)], TEXT)


def _convert_column(
    column: Any,
    test: Callable[[Any], Any],
    convert: Callable[[Any], Any],
    convert_value: Callable[[Any], str],
) -> Any:
    """Return the texts of a column: values that pass `test`, and null, are converted together by
    `convert`, all others one by one by `convert_value`.
    """
    passed = pc.fill_null(test(column), True)
    if pc.all(passed, min_count=0).as_py():
        return convert(column)
    failed = pc.invert(passed)
    texts = convert(pc.if_else(passed, column, pa.scalar(None, column.type)))
    others = map(convert_value, column.filter(failed).to_pylist())
    return pc.replace_with_mask(texts, failed, pa.array(others, TEXT))


def _is_text(values: Any) -> Any:
    """Return for each value of bytes whether it is text: UTF-8 without control characters of ASCII
    (DEL is one) except tabs and ends of lines. For null the result is null or True.
    """
    data = _view_bytes(values)
    if not len(data) or (data.min() >= 32 and not (data == 127).any() and _is_utf8(values)):
        return pa.repeat(True, len(values))
    return pc.match_substring_regex(values, _TEXT_BYTES)


def _is_utf8(values: Any) -> bool:
    """Return whether all byte strings of an array are valid UTF-8."""
    try:
        values.cast(TEXT)
    except pa.ArrowInvalid:
        return False
    return True


def _cast_to_text(values: Any) -> Any:
    """Return bytes that are UTF-8 as texts."""
    return values.cast(TEXT)


def _format_base64(value: bytes) -> str:
    """Return bytes that are no text as JSON: an object with the member ``base64``."""
    return f'{{"base64": "{b2a_base64(value, newline=False).decode("ascii")}"}}'


def _view_bytes(column: Any) -> Any:
    """Return the bytes of all values of a column of large texts or bytes, one after the other, as a
    NumPy array without copying; those of null values too. Return an empty array for a column
    without rows.
    """
    _, offsets, data = column.buffers()
    if data is None or not len(column):
        return np.empty(0, np.uint8)
    ends = np.frombuffer(offsets, np.int64)
    start, end = ends[column.offset], ends[column.offset + len(column)]
    return np.frombuffer(data, np.uint8)[start:end]


def _quote_json(texts: Any) -> Any:
    """Return texts as JSON strings, with characters escaped that a terminal does not print. Null
    stays null.
    """
    data = _view_bytes(texts)
    if not len(data) or (data.min() >= 32 and data.max() < 127):
        return _escape_json(texts)
    return _convert_column(
        texts,
        lambda values: pc.invert(pc.match_substring_regex(values, _unprintable_pattern())),
        _escape_json,
        format_json,
    )


def _escape_json(texts: Any) -> Any:
    """Return printable texts as JSON strings in quotes, with backslashes, quotes, tabs and ends of
    lines escaped. Null stays null.
    """
    data = _view_bytes(texts)
    for character, escaped in _ESCAPES:
        if (data == ord(character)).any():
            texts = pc.replace_substring(texts, character, escaped)
    return join('"', texts, '"')


@cache
def _unprintable_pattern() -> str:
    """Return a regular expression (RE2) for one character that this Python calls unprintable; tabs
    and ends of lines do not match.
    """
    ranges = []
    codes = (code for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    wanted = lambda code: chr(code).isprintable() or chr(code) in "\t\n\r"  # noqa: E731
    for is_wanted, group in groupby(codes, wanted):
        found = list(group)
        if not is_wanted:
            ranges.append(rf"\x{{{found[0]:x}}}-\x{{{found[-1]:x}}}")
    return f"[{''.join(ranges)}]"


def _format_times(column: Any) -> Any:
    """Return times as ISO 8601 in UTC, with the digits of their unit (``2026-11-22T00:00:00.000Z``),
    without ``Z`` if their type has no time zone; as a number in the unit of their type if they are
    before the year 1 or after 9999. Null stays null.
    """
    numbers, unit = column.cast(pa.int64()), column.type.unit
    low, high = (ms * _PER_SECOND[unit] // 1_000 for ms in (_FIRST_MS, _LAST_MS + 1))
    known = pc.and_(
        pc.greater_equal(numbers, max(low, -1 << 63)),
        pc.less_equal(numbers, min(high, 1 << 63) - 1),
    )
    if pc.all(known, min_count=0).as_py():
        times = pc.binary_replace_slice(numbers.cast(pa.timestamp(unit)).cast(TEXT), 10, 11, "T")
        return times if column.type.tz is None else join(times, "Z")
    times = pc.if_else(known, column, pa.scalar(None, column.type))
    return pc.if_else(known, _format_times(times), numbers.cast(TEXT))


def _format_scalars(column: Any) -> Any:
    """Return decimals, dates and times of day as texts; dates and times out of range as numbers.
    Null stays null.
    """
    texts = column.cast(TEXT)
    if pa.types.is_decimal(column.type):
        return texts
    numbers = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64()).cast(TEXT)
    return pc.if_else(pc.starts_with(texts, "<"), numbers, texts)  # <value out of range: 172800000>


def _format_maps(column: Any) -> Any:
    """Return maps as JSON objects, entries in order, also with equal keys, and their keys as JSON
    strings: one that is none, such as a number, is put in quotes. A null value is ``null``. A null
    map stays null.
    """
    if not len(column):
        return pa.array([], TEXT)
    offsets = column.offsets.cast(pa.int64())
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    keys, items = (x.slice(first, last - first) for x in (column.keys, column.items))
    values = fill_null(format_json_column(column.type.item_field, items))
    names = _format_json(keys)
    names = pc.if_else(pc.starts_with(names, '"'), names, _quote_json(names))
    entries = join(names, ": ", values)
    lists = pa.LargeListArray.from_arrays(pc.subtract(offsets, first), entries)
    texts = join("{", pc.binary_join(lists, pa.scalar(", ", TEXT)), "}")
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, TEXT))


def _format_text_bytes(column: Any, max_bytes: int) -> Any:
    """Return each value of a column of bytes as a JSON string if it is text, else ``0x`` and
    hexadecimal digits, with at most ``max_bytes`` of it (see :func:`format_bytes`). Null stays null.
    """
    column = column.cast(pa.large_binary())
    starts = pc.binary_slice(column, 0, max_bytes)
    following = pc.binary_slice(column, max_bytes, max_bytes + 1)

    def is_short_text(_: Any) -> Any:
        divided = pc.match_substring_regex(following, _CONTINUATION)
        return pc.and_(_is_text(starts), pc.invert(divided))

    def display(values: Any) -> Any:
        shown = _quote_json(
            _cast_to_text(pc.if_else(values.is_valid(), starts, pa.scalar(None, values.type)))
        )
        more = pc.subtract(pc.binary_length(column), max_bytes)
        is_cut = pc.greater(more, 0)
        if not pc.any(is_cut).as_py():
            return shown
        rest = pc.if_else(
            pc.equal(more, 1), *(pa.scalar(f" {noun} more)", TEXT) for noun in ("byte", "bytes"))
        )
        return join(shown, pc.if_else(is_cut, join("...(", more.cast(TEXT), rest), ""))

    return _convert_column(
        column, is_short_text, display, lambda value: format_bytes(value, max_bytes)
    )


def _format_lists(column: Any, convert: Callable[[Any], Any]) -> Any:
    """Return lists as texts in brackets, with ``, `` between items; null stays null. `convert`
    makes texts of the items of all lists at once, none of them null.
    """
    if not len(column):
        return pa.array([], TEXT)
    offsets = column.offsets.cast(pa.int64())
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    items = convert(column.values.slice(first, last - first))
    lists = pa.LargeListArray.from_arrays(pc.subtract(offsets, first), items)
    texts = join("[", pc.binary_join(lists, pa.scalar(", ", TEXT)), "]")
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, TEXT))


def _format_structs(column: Any) -> Any:
    """Return structs as JSON objects with the names of their fields; a null struct stays null, a
    null field is ``null``.
    """
    members = [column.field(i) for i in range(column.type.num_fields)]
    texts = build_json_objects(column.type, members, len(column))
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, TEXT))


def build_json_objects(
    fields: Iterable[pa.Field], columns: Iterable[Any], rows: int, end: str = "}"
) -> Any:
    """Return one JSON object for each of `rows` rows, with the names of `fields` and the values of
    `columns`, Arrow columns of any type, followed by `end` instead of ``}``; null is ``null``. Without fields the objects are
    empty. Raise ValueError if there are more fields than columns, or fewer.
    """
    parts: list[Any] = []
    for field, column in zip(fields, columns, strict=True):
        parts += [f"{', ' if parts else '{'}{format_json(field.name)}: "]
        parts += [fill_null(format_json_column(field, column))]
    return join(*parts, end) if parts else pa.repeat(pa.scalar(f"{{{end}", TEXT), rows)


def quote_csv_cells(texts: Any) -> Any:
    """Return texts as CSV cells: in quotes, with inner quotes doubled, if they have a comma, a
    quote, an end of a line or space around them, or are empty. Null stays null.
    """
    is_quoted = pc.match_substring_regex(texts, _NEEDS_QUOTES)
    if not pc.any(is_quoted).as_py():
        return texts
    quoted = join('"', pc.replace_substring(texts, '"', '""'), '"')
    return pc.if_else(is_quoted, quoted, texts)


def _format_unquoted(value: Any) -> str | None:
    """Return a JSON value as the text of a CSV cell before it is quoted: a string as it is, a
    number by ``str``, booleans, lists and objects as JSON. Return None for None.
    """
    if value is None:
        return None
    if isinstance(value, bool | list | dict):
        return format_json(value)
    return str(value)
