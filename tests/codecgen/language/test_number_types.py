"""Numbers of 3 bytes, floats, and an order of bytes of a field's own, beside struct and int.from_bytes."""

from __future__ import annotations

import math
import struct
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.explain.declarations import explain
from codecgen.plan import make_plan
from codecgen.runtime.errors import BuildError, CodecError, TruncatedError
from codecgen.runtime.primitives import Float32, Float64, Integer
from codecgen.targets import docs
from codecgen.targets.template import emit_kaitai
from tests.codecgen.schemas import codecs_of, model_of, unread_by_kernels

TEXT = """
layout: mixed
fields:
  magic: {type: u24, const: 0x010203}
  low: {type: i24, endian: little, default: -2}
  ratio: f32
  other: {type: f32, endian: little, default: 0}
  many: {array: u16, count: u32, endian: little}
  name: {string: u16, endian: little}
  flags: {bits: u24, endian: little, members: {lowest: {at: 0}, highest: {at: 23}, others: {reserved: keep}}}
  data: {bytes: u24}
"""
NUMBERS = st.integers(-(1 << 23), (1 << 24) - 1)
ORDERS: tuple[Literal["big", "little"], ...] = ("big", "little")


@pytest.fixture(scope="module")
def mixed() -> Any:
    return codecs_of(make_plan(model_of(TEXT))).MIXED


def test_bytes(mixed: Any) -> None:
    value = {
        "ratio": 0.5,
        "many": [1, 2],
        "name": "é",
        "flags": {"lowest": True, "highest": True},
        "data": b"xyz",
    }
    data = (
        b"\1\2\3"
        + (-2).to_bytes(3, "little", signed=True)
        + struct.pack(">f", 0.5)
        + bytes(4)
        + struct.pack("<IHH", 2, 1, 2)
        + b"\2\0\xc3\xa9"
        + b"\1\0\x80"
        + b"\0\0\3xyz"
    )
    assert mixed.build(value) == data
    parsed = mixed.parse(data)
    assert (parsed.magic, parsed.low, parsed.ratio, parsed.many) == (0x010203, -2, 0.5, [1, 2])
    for cut in range(len(data)):
        with pytest.raises(CodecError):
            mixed.parse(data[:cut])


@given(NUMBERS)
def test_numbers_of_3_bytes(number: int) -> None:
    for order in ORDERS:
        for signed in (True, False):
            codec = Integer(3, signed, order)
            try:
                data = number.to_bytes(3, order, signed=signed)
            except OverflowError:
                with pytest.raises(BuildError):
                    codec.build(number)
            else:
                assert codec.build(number) == data
                assert codec.parse(data) == number


@given(st.floats(width=32), st.sampled_from(ORDERS))
def test_floats(number: float, order: Literal["big", "little"]) -> None:
    codec = Float32(order)
    data = struct.pack(">f" if order == "big" else "<f", number)
    assert codec.build(number) == data
    found = codec.parse(data)
    assert found == number or (math.isnan(found) and math.isnan(number))


def test_floats_that_do_not_fit() -> None:
    assert Float32().parse(Float32().build(0.1)) == struct.unpack(">f", struct.pack(">f", 0.1))[0]
    for bad in (1e300, 10**40, 10**5000, "1", True, None):
        with pytest.raises(BuildError):
            Float32().build(bad)
    with pytest.raises(BuildError, match="the integer is too large for 8 bytes"):
        Float64().build(-(10**5000))
    with pytest.raises(TruncatedError):
        Float32().parse(b"\0\0\0")


def test_words_for_people() -> None:
    model = model_of(TEXT)
    page = "".join(docs.emit(make_plan(model)).files.values())
    assert "int24, little endian" in page
    assert "float32" in page
    assert "little endian" in explain(model, "mixed.low")
    assert "endian" not in explain(model, "mixed.magic")
    kaitai = "".join(emit_kaitai(make_plan(model_of(KAITAI)), {}).files.values())
    for line in ("type: u4le", "type: f4\n", "type: f4le"):
        assert line in kaitai


KAITAI = """
layout: plain
fields: {a: {type: u32, endian: little}, b: f32, c: {type: f32, endian: little}}
"""


@pytest.mark.parametrize(
    ("type_", "where"),
    [
        *((t, where) for t in ("u24", "i24") for where in ("k", "size", "n")),
        ("u64", "k"),
        ("u64", "size"),
    ],
)
def test_kernels_name_the_type_that_they_do_not_load(type_: str, where: str) -> None:
    types = {"k": "u8", "size": "u32", "n": "i32"} | {where: type_}
    text = f"""
layout: entry
fields: {{k: {{type: {types["k"]}, const: 1}}, size: {{type: {types["size"]}, measures: rest}}, n: {types["n"]}}}
---
choice: log
by: k
cases: {{1: entry}}
---
view: rows
of: log
columns: {{n: {{type: int64}}}}
rows: [{{of: entry, columns: {{n: n}}}}]
"""
    (refused,) = unread_by_kernels(model_of(text))
    said = f'"{where}" is a number of the type {type_}, which kernels cannot express'
    assert refused.message == said
