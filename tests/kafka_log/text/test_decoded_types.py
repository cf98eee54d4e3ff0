"""JSON and CSV of the Arrow types that decoded values have."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.text.lines import encode_csv_lines, encode_json_lines
from kafka_log.text.values import format_time

MAX = (1 << 63) - 1


def json_of(column: Any, field: Any = None) -> list[Any]:
    batch = pa.RecordBatch.from_arrays(
        [column], schema=pa.schema([field or pa.field("c", column.type)])
    )
    return [json.loads(line)["c"] for line in b"".join(encode_json_lines(batch)).splitlines()]


def csv_of(column: Any) -> list[str]:
    batch = pa.RecordBatch.from_arrays([column], ["c"])
    text = b"".join(encode_csv_lines(batch)).decode()
    return [row[0] if row else "" for row in csv.reader(io.StringIO(text))]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.decimal128(9, 2), [Decimal("12.50"), None, Decimal("-0.01")], ["12.50", None, "-0.01"]),
        (pa.date32(), [0, None, -(1 << 31)], ["1970-01-01", None, "-2147483648"]),
        (pa.time32("ms"), [1, 86_400_000], ["00:00:00.001", "86400000"]),
        (pa.time64("us"), [1, None], ["00:00:00.000001", None]),
        (pa.timestamp("ms", "UTC"), [0, MAX], ["1970-01-01T00:00:00.000Z", str(MAX)]),
        (pa.timestamp("us", "UTC"), [1, MAX, -MAX], ["1970-01-01T00:00:00.000001Z", str(MAX), str(-MAX)]),
        (pa.timestamp("ns", "UTC"), [1, MAX], ["1970-01-01T00:00:00.000000001Z", "2262-04-11T23:47:16.854775807Z"]),
        (pa.timestamp("ms"), [1, None], ["1970-01-01T00:00:00.001", None]),
    ],
    ids=str,
)  # fmt: skip
def test_scalars(kind: Any, values: list[Any], expected: list[Any]) -> None:
    column = pa.array(values, kind)
    assert json_of(column) == expected
    assert csv_of(column) == ["" if text is None else text for text in expected]
    inside = pa.array([{"x": value} for value in values], pa.struct([("x", kind)]))
    assert json_of(inside) == [{"x": text} for text in expected]
    assert json_of(pa.array([values], pa.list_(kind))) == [expected]


@given(st.lists(st.none() | st.integers(-MAX, MAX), max_size=5))
def test_milliseconds(numbers: list[int | None]) -> None:
    expected = [None if n is None else str(format_time(n)) for n in numbers]
    assert json_of(pa.array(numbers, pa.timestamp("ms", "UTC"))) == expected


@given(st.lists(st.none() | st.dictionaries(st.text(max_size=3), st.none() | st.integers(0, 9), max_size=3), max_size=4), st.integers(0, 2))  # fmt: skip
def test_maps(values: list[Any], skip: int) -> None:
    pairs = [None if v is None else list(v.items()) for v in values]
    column = pa.array([[("before", 1)]] * skip + pairs, pa.map_(pa.string(), pa.int32()))[skip:]
    assert json_of(column) == values
    assert [json.loads(text) if text else None for text in csv_of(column)] == values


def test_json_texts_inside() -> None:
    """Texts that are JSON already, as members of structs and lists."""
    text = pa.field("x", pa.string(), metadata={b"kafka_log": b"json"})
    assert json_of(pa.array([{"x": '{"a": 1}'}], pa.struct([text]))) == [{"x": {"a": 1}}]
    assert json_of(pa.array([["[1]", None]], pa.list_(text))) == [[[1], None]]
