"""Values of logical types that differ between versions: each keeps its meaning, or has a reason."""

from __future__ import annotations

import json
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.read.schemas.decoding import PartDecoder
from tests.support.avro_engines import (
    compare,
    decode_rows,
    encode_avro,
    framed,
    record_schema,
    registry_of,
)

UNITS = {"millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}
_ARROW_UNITS = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_TEXT_UNITS = {"milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}


def logical(kind: str, name: str, **more: Any) -> Any:
    return {"type": kind, "logicalType": name, **more}


LONG = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-(10**15), 10**15)
INT = st.integers(-(1 << 31), (1 << 31) - 1)


@st.composite
def quantities(draw: Any) -> tuple[Any, Any, Any]:
    """A type, a value as Avro stores it, and what it is: a kind and an exact number, None if it is no value of the type."""
    kind = draw(st.sampled_from(["timestamp", "local-timestamp", "time", "date", "decimal", "plain"]))  # fmt: skip
    if kind == "time":
        base, name = draw(st.sampled_from([("int", "time-millis"), ("long", "time-micros")]))
        per_second = UNITS[name.removeprefix("time-")]
        number = draw((INT if base == "int" else LONG) | st.integers(0, 86_399_999))
        time = Fraction(number, per_second)
        return logical(base, name), number, (kind, time) if 0 <= time < 86_400 else None
    if kind == "date":
        number = draw(INT | st.integers(-100_000, 100_000))
        return logical("int", "date"), number, (kind, Fraction(number))
    if kind == "decimal":
        precision = draw(st.integers(1, 76))
        scale = draw(st.integers(0, precision))
        digits = draw(st.integers(-(10 ** (precision + 1)), 10 ** (precision + 1)))
        data = digits.to_bytes(digits.bit_length() // 8 + 1, "big", signed=True)
        fits = abs(digits) < 10**precision
        meaning = (kind, Fraction(digits, 10**scale)) if fits else None
        return logical("bytes", "decimal", precision=precision, scale=scale), data, meaning
    if kind == "plain":
        number = draw(LONG)
        return "long", number, (kind, Fraction(number))
    unit = draw(st.sampled_from(list(UNITS)))
    number = draw(LONG)
    return logical("long", f"{kind}-{unit}"), number, (kind, Fraction(number, UNITS[unit]))


def read_meaning(kind: Any, array: Any) -> Any:
    """What a cell of a column is, by its type alone or, of a JSON text, by the text."""
    is_plain = pa.types.is_decimal(kind) or pa.types.is_string(kind)
    value: Any = array[0].as_py() if is_plain else None
    if pa.types.is_string(kind):
        return read_text(json.loads(value))
    if pa.types.is_decimal(kind):
        return "decimal", Fraction(value)
    number = array.cast(pa.int32() if kind.bit_width == 32 else pa.int64())[0].as_py()
    if pa.types.is_integer(kind):
        return "plain", Fraction(number)
    if pa.types.is_date(kind):
        return "date", Fraction(number)
    meaning = Fraction(number, _ARROW_UNITS[kind.unit])
    if pa.types.is_time(kind):
        return "time", meaning
    return "local-timestamp" if kind.tz is None else "timestamp", meaning


def read_text(value: Any) -> Any:
    """What a JSON value is."""
    if isinstance(value, int):
        return "plain", Fraction(value)
    if " days since 1970" in value:
        return "date", Fraction(value.split()[0])
    if " since 1970" in value:
        number, unit = value.split()[:2]
        kind = "local-timestamp" if value.endswith(", local time") else "timestamp"
        return kind, Fraction(int(number), _TEXT_UNITS[unit])
    if "T" in value:
        day, _, time = value.removesuffix("Z").partition("T")
        seconds = 86_400 * read_date(day) + read_time(time)
        return "timestamp" if value.endswith("Z") else "local-timestamp", seconds
    if ":" in value:
        return "time", read_time(value)
    if value.count("-") == 2 and "." not in value:
        return "date", Fraction(read_date(value))
    return "decimal", Fraction(Decimal(value))


def read_date(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)) // timedelta(days=1)


def read_time(text: str) -> Fraction:
    hours, minutes, seconds = text.split(":")
    return 3_600 * int(hours) + 60 * int(minutes) + Fraction(seconds)


def stripped(schema: Any) -> Any:
    """The schema for an encoder that shall take numbers and bytes as they are."""
    return json.loads(json.dumps(schema).replace("logicalType", "x"))


@pytest.mark.share(5)
@pytest.mark.parametrize("around", ["alone", "union", "list", "map", "nullable"])
@given(st.data())
def test_a_value_means_the_same_whatever_other_versions_are(around: str, data: Any) -> None:
    drawn = data.draw(st.lists(quantities(), min_size=1, max_size=3))

    def wrap(kind: Any) -> Any:
        return {
            "alone": kind,
            "union": ["null", kind, "string"],
            "list": {"type": "array", "items": kind},
            "map": {"type": "map", "values": kind},
            "nullable": ["null", kind],
        }[around]

    def put(value: Any) -> Any:
        return {"list": [value], "map": {"k": value}}.get(around, value)

    registry = registry_of(*(record_schema(("f", wrap(kind))) for kind, _, _ in drawn))
    values = [
        framed(i, encode_avro(stripped(record_schema(("f", wrap(kind)))), {"f": put(value)}))
        for i, (kind, value, _) in enumerate(drawn, 1)
    ]
    columns = compare(registry, values)
    column, problems = columns[0].field("f"), columns[3].to_pylist()
    for row, (_, _, meaning) in enumerate(drawn):
        if problems[row] is None:
            cell = column.slice(row, 1)
            if around in ("list", "map"):
                cell = cell.flatten() if around == "list" else cell.items.slice(cell.offsets[0].as_py(), 1)  # fmt: skip
            assert read_meaning(cell.type, cell) == meaning
        elif meaning is not None:
            assert "do not fit a column of" in problems[row], (
                "only a finer unit cannot hold a valid value"
            )


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (logical("long", "timestamp-millis"), logical("long", "timestamp-micros"), pa.timestamp("us", "UTC")),
        (logical("long", "timestamp-nanos"), logical("long", "timestamp-micros"), pa.timestamp("ns", "UTC")),
        (logical("int", "time-millis"), logical("long", "time-micros"), pa.time64("us")),
        (logical("bytes", "decimal", precision=6, scale=2), logical("bytes", "decimal", precision=9, scale=5), pa.decimal128(9, 5)),
        (logical("bytes", "decimal", precision=38), logical("bytes", "decimal", precision=38, scale=10), pa.decimal256(48, 10)),
        (logical("bytes", "decimal", precision=76), logical("bytes", "decimal", precision=9, scale=1), pa.string()),
        (logical("long", "timestamp-millis"), logical("long", "local-timestamp-millis"), pa.string()),
        (logical("int", "date"), "int", pa.string()),
        (logical("int", "date"), logical("long", "timestamp-millis"), pa.string()),
        (logical("long", "timestamp-millis"), "long", pa.string()),
    ],
)  # fmt: skip
def test_the_column_of_two_versions(old: Any, new: Any, kind: Any) -> None:
    for versions in ((old, new), (new, old), (old, new, old, new)):
        registry = registry_of(*(record_schema(("f", one)) for one in versions))
        assert PartDecoder(registry, "t", "value", []).fields[0].type.field("f").type == kind


def test_a_default_in_a_union_keeps_its_meaning() -> None:
    old = record_schema(("a", "int"))
    new = record_schema(("a", "int"))
    kind = [logical("long", "timestamp-millis"), "string"]
    new["fields"].append({"name": "t", "type": kind, "default": 1_700_000_000_000})
    ((value, _, _, problem),) = decode_rows(
        registry_of(old, new), [framed(1, b"\2")], schema_version=2
    )
    assert problem is None
    assert value == {"a": 1, "t": '"2023-11-14T22:13:20.000Z"'}


@pytest.mark.parametrize(
    ("old", "new", "value", "expected"),
    [
        (logical("long", "timestamp-millis"), "double", (1 << 53) + 1, float((1 << 53) + 1)),
        (logical("int", "date"), "long", 7, 7),
        (logical("bytes", "decimal", precision=9, scale=2), "string", b"ab", "ab"),
    ],
)
def test_a_promoted_value_is_what_avro_says(old: Any, new: Any, value: Any, expected: Any) -> None:
    registry = registry_of(record_schema(("f", old)), record_schema(("f", new)))
    data = framed(1, encode_avro(stripped(record_schema(("f", old))), {"f": value}))
    ((found, _, _, problem),) = decode_rows(registry, [data], schema_version=2)
    assert problem is None
    assert found == {"f": expected}


def test_a_fixed_decimal_with_a_name() -> None:
    fixed = {"type": "fixed", "name": "D", "size": 3, "logicalType": "decimal", "precision": 6}
    old, new = (record_schema(("f", {**fixed, "scale": scale}), ("g", "D")) for scale in (1, 3))
    values = [framed(i, b"\0\0\x7b\xff\xff\xff") for i in (1, 2)]
    rows = decode_rows(registry_of(old, new), values)
    assert [row[0] for row in rows] == [
        {"f": Decimal("12.3"), "g": Decimal("-0.1")},
        {"f": Decimal("0.123"), "g": Decimal("-0.001")},
    ]
