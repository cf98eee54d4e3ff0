"""Layouts of fixed size as dtypes: an array of them has what the Construct codecs read from the same bytes."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.arrow.structured_dtype import structured
from codecgen.runtime.construct import (
    Array,
    Bit,
    Bits,
    Boolean,
    Bytes,
    Enumeration,
    EnumField,
    Field,
    Float64,
    Integer,
    Layout,
    Lazy,
    Text,
    Uuid,
    Varint,
)
from codecgen.runtime.errors import CodecError
from kafka_codecs import (
    HEADER,
    MESSAGE_V1,
    OFFSET_INDEX_ENTRY,
    RECORD_BATCH,
    TIME_INDEX_ENTRY,
    TRANSACTION_INDEX_ENTRY_V0,
)
from kafka_log.logs.index_files import OFFSET_ENTRY_DTYPE, TIME_ENTRY_DTYPE
from tests.paths import SAMPLES

INDEXES = {
    ".index": OFFSET_INDEX_ENTRY,
    ".timeindex": TIME_INDEX_ENTRY,
    ".txnindex": TRANSACTION_INDEX_ENTRY_V0,
}


class Kind(Enumeration):
    """A few values."""

    ONE = 1
    TWO = 2


POINT = Layout(
    "point", Field("x", Integer(4, endian="little")), Field("y", Float64(endian="little"))
)
INTEGERS = [
    Field(f"n{size}{'s' if signed else 'u'}{endian}", Integer(size, signed, endian))
    for size in (1, 2, 4, 8)
    for signed in (True, False)
    for endian in ("big", "little")
]
EVERYTHING = Layout(
    "everything",
    *INTEGERS,
    Field("kind", EnumField(Integer(2), Kind, keep_unknown=True)),
    Field("flags", Bits(Integer(2, endian="little"), Bit("low", 0), Bit("rest", 1, 15))),
    Field("number", Float64()),
    Field("yes", Boolean()),
    Field("id", Uuid()),
    Field("data", Bytes(5)),
    Field("text", Text(3)),
    Field("point", POINT),
)


def parsed(layout: Layout, data: bytes) -> list[Any]:
    """The entries as the Construct codecs read them one by one. Lenient: a dtype has no rules."""
    size = layout.size or 0
    whole = range(0, len(data), size)
    return [dict(layout.parse(data[at : at + size], strict=False)) for at in whole]


def viewed(layout: Layout, data: bytes) -> list[Any]:
    array = np.frombuffer(data, structured(layout))
    return [dict(zip(layout.related.names, row, strict=True)) for row in array.tolist()]


@pytest.mark.parametrize("suffix", INDEXES)
def test_index_files_of_brokers_read_the_same(suffix: str) -> None:
    count = 0
    for path in sorted(SAMPLES.rglob(f"*{suffix}")):
        data = path.read_bytes()
        found = viewed(INDEXES[suffix], data)
        assert found == parsed(INDEXES[suffix], data)
        count += len(found)
    assert count >= 20


@given(st.data())
def test_any_bytes_read_the_same(data: st.DataObject) -> None:
    layout = data.draw(st.sampled_from(list(INDEXES.values())))
    size = layout.size or 0
    head = bytes(2) if layout is TRANSACTION_INDEX_ENTRY_V0 else b""  # the version
    rows = st.binary(min_size=size - len(head), max_size=size - len(head))
    content = b"".join(head + row for row in data.draw(st.lists(rows, max_size=5)))
    assert viewed(layout, content) == parsed(layout, content)


def test_the_dtypes_of_index_files() -> None:
    assert np.dtype([("relative_offset", ">i4"), ("position", ">i4")]) == OFFSET_ENTRY_DTYPE
    assert np.dtype([("timestamp", ">i8"), ("relative_offset", ">i4")]) == TIME_ENTRY_DTYPE
    names = ["producer_id", "first_offset", "last_offset", "last_stable_offset"]
    expected = np.dtype([("version", ">i2"), *((name, ">i8") for name in names)])
    assert structured(TRANSACTION_INDEX_ENTRY_V0) == expected


@pytest.mark.parametrize("size", [3, 5, 6, 7])
def test_numbers_that_numpy_has_no_type_for_are_their_bytes(size: int) -> None:
    dtype = structured(Layout("odd", Field("n", Integer(size)), Field("tail", Integer(1))))
    assert dtype == np.dtype([("n", f"V{size}"), ("tail", "i1")])


@given(st.binary(min_size=5, max_size=5), st.lists(st.integers(0, 2**64 - 1), min_size=20))
def test_fields_of_all_kinds_read_the_same(data: bytes, numbers: list[int]) -> None:
    values: dict[str, Any] = {
        f.name: min(max(number % 2**64, f.codec.low), f.codec.high)
        for f, number in zip(INTEGERS, numbers, strict=False)
        if isinstance(f.codec, Integer)
    }
    values |= {
        "kind": numbers[-1] % 2**15,
        "flags": {"low": bool(data[0] & 1), "rest": numbers[-2] % 2**15},
        "number": numbers[-3] / 7,
        "yes": bool(data[0] & 2),
        "id": uuid.UUID(int=numbers[-4]),
        "data": data,
        "text": "€",
        "point": {"x": numbers[-5] % 2**31, "y": numbers[-6] / 3},
    }
    content = EVERYTHING.build(values) * 2
    dtype = structured(EVERYTHING)
    assert dtype.itemsize == EVERYTHING.size
    assert [dtype.fields[f.name][1] for f in EVERYTHING.fields] == [
        EVERYTHING.offset_of(f.name) for f in EVERYTHING.fields
    ]
    for row in np.frombuffer(content, dtype):
        found = {name: row[name].item() for name in dtype.names}
        expected = values | {
            "flags": values["flags"]["low"] + 2 * values["flags"]["rest"],
            "id": values["id"].bytes,
            "text": "€".encode(),
            "point": tuple(values["point"].values()),
        }
        expected["flags"] -= (expected["flags"] >= 1 << 15) << 16  # the sixteen bits are signed
        assert found == expected


@pytest.mark.parametrize(
    "codec",
    [
        Varint(),
        Varint(64, signed=False),
        Bytes(Integer(2)),
        Bytes(None),
        Text(Varint()),
        Array(Integer(1), count=Integer(1)),
        EnumField(Varint(), Kind),
        Lazy(lambda: POINT),
    ],
    ids=lambda codec: type(codec).__name__,
)
def test_what_varies_is_refused_by_name(codec: Any) -> None:
    inner = Layout("inner", Field("a", Integer(1)), Field("b", codec, line=7), source="in.yaml")
    outer = Layout("outer", Field("c", Integer(1)), Field("d", inner, line=2), source="out.yaml")
    for layout, path in ((inner, "b"), (outer, "d.b")):
        with pytest.raises(CodecError, match="no fixed size") as caught:
            structured(layout)
        assert caught.value.where.path == path
        assert caught.value.where.schema == "in.yaml:7"


def test_a_field_that_is_not_always_there_is_refused_by_name() -> None:
    layout = Layout(
        "some", Field("a", Integer(1)), Field("b", Integer(1), when=lambda this: this.a)
    )
    with pytest.raises(CodecError, match="only under a condition") as caught:
        structured(layout)
    assert caught.value.where.path == "b"


@pytest.mark.parametrize(
    ("layout", "field"), [(RECORD_BATCH, "records"), (HEADER, "key"), (MESSAGE_V1, "key")]
)
def test_layouts_of_records_are_refused(layout: Layout, field: str) -> None:
    with pytest.raises(CodecError) as caught:
        structured(layout)
    assert caught.value.where.path == field
    assert (caught.value.where.schema or "").startswith("records/")
