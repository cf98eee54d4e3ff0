"""Lines made of whole columns: byte for byte those of plain Python, and JSON that gives the values back."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.text.json_values import format_json, is_text, make_json_field
from kafka_log.text.lines import (
    Cell,
    Layout,
    encode_csv_lines,
    encode_json_lines,
    encode_text_lines,
)
from tests.support.random_tables import NASTY, TEXT, TIMES, tables
from tests.support.reference_lines import csv_rows, display_rows, json_rows

HEADER = pa.struct([pa.field("key", pa.string(), False), pa.field("value", pa.binary())])
WORDS = [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\0", b"\x7f", b"\xc3", b'"', b"\\", b"\t\r\n"]
BYTES = st.one_of(
    st.binary(max_size=30),
    TEXT.map(lambda text: text.encode("utf-8")),
    st.lists(st.sampled_from([*WORDS, "\u2028\u0085é漢👍".encode(), b"plain text", b"a"])).map(
        b"".join
    ),
)


def records() -> st.SearchStrategy[pa.RecordBatch]:
    """Rows as a dump has them."""
    header = st.fixed_dictionaries({"key": TEXT, "value": st.none() | BYTES})
    row = st.tuples(
        st.sampled_from(["orders", "a\x1b[31mb", 'quo"ted']),
        st.integers(-(1 << 63), (1 << 63) - 1),
        st.none() | TIMES,
        st.none() | BYTES,
        st.lists(header, max_size=3),
        st.none() | st.sampled_from(["{}", '{"a": [1, null]}']),
    )
    return st.lists(row, max_size=6).flatmap(
        lambda rows: st.integers(0, len(rows)).map(lambda n: batch(rows).slice(n))
    )


def batch(rows: list[Any]) -> pa.RecordBatch:
    topics, offsets, times, values, headers, said = zip(*rows, strict=True) if rows else [()] * 6
    arrays = [
        pa.array(topics, pa.string()).dictionary_encode(),
        pa.array(offsets, pa.int64()),
        pa.array(times, pa.timestamp("ms", "UTC")),
        pa.array(values, pa.binary()),
        pa.array(headers, pa.list_(HEADER)),
        pa.array(said, pa.string()),
    ]
    names = ["topic", "offset", "timestamp", "value", "headers", "said"]
    fields = [pa.field(n, a.type) for n, a in zip(names, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(
        arrays, schema=pa.schema([*fields[:5], make_json_field("said")])
    )


def lines_of(batch: pa.RecordBatch, layout: Layout | None = None) -> list[str]:
    """The lines of a batch: JSON objects, or those of a layout."""
    blocks = encode_json_lines(batch) if layout is None else encode_text_lines(batch, layout)
    return split(b"".join(map(bytes, blocks)))


def split(data: bytes) -> list[str]:
    assert not data or data.endswith(b"\n")
    return data.decode("utf-8").split("\n")[:-1]


def batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    return iter(table.to_batches())


@given(tables())
def test_json_of_any_columns(table: pa.Table) -> None:
    assert [line for b in batches(table) for line in lines_of(b)] == list(json_rows(table))


@given(tables())
def test_csv_of_any_columns(table: pa.Table) -> None:
    found = b"".join(bytes(block) for b in batches(table) for block in encode_csv_lines(b))
    assert found == b"".join(csv_rows(table))


@given(tables(), st.integers(0, 40), st.integers(0, 30))
def test_text_of_any_columns(table: pa.Table, most: int, pad: int) -> None:
    cells = [Cell(f"  {name}: ", "none", pad) for name in table.column_names]
    layout = Layout(tuple(cells), most)
    for b in batches(table):
        assert lines_of(b, layout) == list(display_rows(b, layout))


@pytest.mark.slow
@given(records(), st.integers(0, 30))
def test_records(rows: pa.RecordBatch, most: int) -> None:
    lines = lines_of(rows)
    assert lines == list(json_rows(pa.Table.from_batches([rows])))
    assert all(line.isprintable() for line in lines)
    for line, value, headers in zip(
        lines, rows.column("value").to_pylist(), rows.column("headers").to_pylist(), strict=True
    ):
        found = json.loads(line)
        assert back(found["value"]) == value
        assert [(h["key"], back(h["value"])) for h in found["headers"]] == [
            (h["key"], h["value"]) for h in headers
        ]
    layout = Layout(tuple(Cell("  ") for _ in rows.columns), most)
    lines = lines_of(rows, layout)
    assert lines == list(display_rows(rows, layout))
    assert all(line.isprintable() for line in lines)


def back(value: Any) -> bytes | None:
    """The bytes that JSON says."""
    if isinstance(value, dict):
        data = base64.b64decode(value["base64"], validate=True)
        assert not is_text(data)
        return data
    return None if value is None else str(value).encode("utf-8")


@pytest.mark.share(4)
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 4 << 20, 10 << 20])
@pytest.mark.parametrize("byte", [b"a", b"\0", b"\n", b"\xff"])
def test_a_value_of_any_size(size: int, byte: bytes) -> None:
    """One that has no room in the memory for lines gets more; those around it are there."""
    rows = batch(
        [("t", i, i, value, [], None) for i, value in enumerate([b"1", byte * size, b"3"])]
    )
    first, large, last = lines_of(rows)
    assert [back(json.loads(line)["value"]) for line in (first, large, last)] == [
        b"1",
        byte * size,
        b"3",
    ]


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("byte", range(256))
def test_every_byte_at_every_place(byte: int) -> None:
    """Eight bytes are looked at together: each of them counts."""
    values = [bytes([byte if at == i else 97 for at in range(8)]) for i in range(8)]
    rows = batch([("t", 0, 0, value, [], None) for value in values])
    assert [back(json.loads(line)["value"]) for line in lines_of(rows)] == values
    assert lines_of(rows) == list(json_rows(pa.Table.from_batches([rows])))


@pytest.mark.slow
def test_every_character() -> None:
    """Those that no terminal prints are escaped, by the tables of this Python."""
    for start in range(0, 0x110000, 0x2000):
        codes = [code for code in range(start, start + 0x2000) if not 0xD800 <= code < 0xE000]
        text = "".join(map(chr, codes))
        rows = pa.record_batch({"a": pa.array([text], pa.string())})
        assert lines_of(rows) == [f'{{"a": {format_json(text)}}}']


def test_hard_text_is_hard() -> None:
    assert not NASTY.isprintable()
