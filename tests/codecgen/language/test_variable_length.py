"""Integers of variable length with the high bits first, and bits of integers of variable length."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.check import run
from codecgen.check.examples import check_trials
from codecgen.explain.declarations import explain
from codecgen.plan import make_plan
from codecgen.plan.encoded_sizes import encoded_size
from codecgen.plan.size_bounds import size_bounds
from codecgen.runtime.errors import (
    BuildError,
    CodecError,
    LengthError,
    TruncatedError,
    ValueRefused,
)
from codecgen.runtime.fast_path import without_fast_paths
from codecgen.runtime.primitives import Vlq
from codecgen.schema import loader
from codecgen.targets import docs
from codecgen.targets.template import emit_kaitai
from tests.codecgen.generated import package_of
from tests.codecgen.goldens import MANIFEST
from tests.codecgen.schemas import checked, model_of, unread_by_kernels

MIDI = {
    0x00: "00",
    0x40: "40",
    0x7F: "7f",
    0x80: "8100",
    0x2000: "c000",
    0x3FFF: "ff7f",
    0x4000: "818000",
    0x100000: "c08000",
    0x1FFFFF: "ffff7f",
    0x200000: "81808000",
    0x08000000: "c0808000",
    0x0FFFFFFF: "ffffff7f",
}
"""The table of the Standard MIDI File specification."""


def git_bytes(number: int) -> bytes:
    """Encode a number as ``encode_varint`` of Git's ``varint.c`` does."""
    out = [number & 127]
    while number := number >> 7:
        number -= 1
        out.append(128 | number & 127)
    return bytes(reversed(out))


@pytest.mark.parametrize(("number", "data"), [(n, bytes.fromhex(d)) for n, d in MIDI.items()])
def test_midi(number: int, data: bytes) -> None:
    for bits in (32, 64):
        assert Vlq(bits).build(number) == data
        assert Vlq(bits).parse(data) == number


@given(st.integers(0, (1 << 64) - 1) | st.integers(0, 1 << 22))
def test_git(number: int) -> None:
    data = git_bytes(number)
    assert Vlq(64, bijective=True).build(number) == data
    assert Vlq(64, bijective=True).parse(data) == number


def test_bijective_numbers_have_one_encoding() -> None:
    codec = Vlq(32, bijective=True)
    found = {codec.parse(bytes([a, b])) for a in range(128, 256) for b in range(128)}
    assert found == set(range(128, 128 + 128 * 128))
    assert codec.parse(b"\x80\x80\x00") == 128 + 128 * 128


@pytest.mark.parametrize(
    ("codec", "data", "error"),
    [
        (Vlq(32), "8001", ValueRefused),
        (Vlq(32), "80ff7f", ValueRefused),
        (Vlq(32), "9080808000", ValueRefused),
        (Vlq(32), "8080808080", LengthError),
        (Vlq(64), "82808080808080808000", ValueRefused),
        (Vlq(64), "81" * 10 + "00", LengthError),
        (Vlq(32, bijective=True), git_bytes(1 << 32).hex(), ValueRefused),
        (Vlq(64, bijective=True), git_bytes(1 << 64).hex(), ValueRefused),
        (Vlq(64, bijective=True), "ff" * 11, LengthError),
        (Vlq(32), "", TruncatedError),
        (Vlq(32), "81", TruncatedError),
    ],
)
def test_bytes_that_are_no_number(codec: Vlq, data: str, error: type[CodecError]) -> None:
    with pytest.raises(error):
        codec.parse(bytes.fromhex(data))


@pytest.mark.parametrize("value", [-1, 1 << 32, True, 1.0, None])
def test_values_that_are_no_number(value: object) -> None:
    for bijective in (False, True):
        with pytest.raises(BuildError):
            Vlq(32, bijective=bijective).build(value)


TEXT = """
enums:
  wire: {doc: How a value is written., values: {number: 0, eight: 1, bytes: 2, four: 5}}

---
layout: mixed
accepts: [overlong_varints]
fields:
  a: vlq32
  b: {type: vlq64, default: 300}
  c: bijective_vlq64
  tag:
    bits: uvarint
    members: {wire: {at: 0-2, enum: wire}, number: {at: 3-31, default: 1}}
  word:
    bits: vlq32
    members: {low: {at: 0}, others: {reserved: keep}}
  name: {string: vlq32, when: tag.wire == bytes}
  many: {array: bijective_vlq32, count: vlq32}

examples:
  - name: one
    hex: 8100 822c 8000 8a7a 01 01 61 02 00 8000
    values: {a: 128, c: 128, tag: {wire: bytes, number: 1953}, word: {low: true}, name: a, many: [0, 128]}
"""
ONE = bytes.fromhex("8100 822c 8000 8a7a 01 01 61 02 00 8000")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("variable_length")
    return package_of(TEXT, root, "variable_length_codecs").MIXED


def test_layout(mixed: Any) -> None:
    fields = {
        "a": 128,
        "b": 300,
        "c": 128,
        "tag": {"wire": 2, "number": 1953},
        "word": {"low": True, "others": 0},
        "name": "a",
        "many": [0, 128],
    }
    assert mixed.fast_path is not None
    assert mixed.parse(ONE) == fields
    with without_fast_paths():
        assert mixed.parse(ONE) == fields
    assert mixed.build(fields) == ONE
    for cut in range(len(ONE)):
        with pytest.raises(CodecError):
            mixed.parse(ONE[:cut])
    plan = make_plan(model_of(TEXT))
    (layout,) = plan.versions["mixed"]
    assert encoded_size(plan, layout, fields) == len(ONE)
    bounds = size_bounds(plan, layout)
    assert (bounds.min_size, bounds.max_size) == (6, 5 + 10 + 10 + 5 + 5 + 5 + 5)


def test_what_lenient_readers_accept(mixed: Any) -> None:
    data = b"\x80" + ONE
    with pytest.raises(ValueRefused) as caught:
        mixed.parse(data)
    assert (caught.value.where.path, caught.value.where.position) == ("a", 0)
    found = mixed.parse(data, strict=False)
    assert found.a == 128
    reserved = ONE[:8] + b"\x03" + ONE[9:]
    with pytest.raises(ValueRefused) as caught:
        mixed.parse(reserved)
    assert caught.value.where.path == "word.others"


@given(
    st.integers(0, (1 << 32) - 1),
    st.integers(0, (1 << 64) - 1),
    st.integers(0, (1 << 29) - 1),
    st.lists(st.integers(0, (1 << 32) - 1), max_size=3),
)
def test_round_trip(mixed: Any, a: int, c: int, number: int, many: list[int]) -> None:
    fields = {"a": a, "c": c, "tag": {"wire": "number", "number": number}, "word": {}, "many": many}
    data = mixed.build(fields)
    found = mixed.parse(data)
    assert (found.a, found.c, found.tag.number, found.many) == (a, c, number, many)
    assert git_bytes(c) in data
    with without_fast_paths():
        assert mixed.parse(data) == found
    with pytest.raises(BuildError):
        mixed.build(fields | {"tag": {"wire": "number", "number": 1 << 29}})


def test_words_for_people() -> None:
    model = model_of(TEXT)
    assert list(check_trials(model)) == []
    page = "".join(docs.emit(make_plan(model)).files.values())
    assert "VLQ of 32 bits (at most 5 bytes)" in page
    assert "bijective VLQ of 64 bits (at most 10 bytes)" in page
    assert "unsigned varint, bits" in page
    assert "VLQ of 32 bits" in explain(model, "mixed.a")
    kaitai = emit_kaitai(make_plan(model), {})
    assert [w for w in kaitai.warnings if "it is of the type vlq32" in w]


def test_bits_of_signed_varints_are_refused() -> None:
    text = "layout: a\nfields: {b: {bits: varint, members: {c: {at: 0-31}}}}"
    _, found = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": text})
    assert [d.code for d in found] == ["C013"]


def test_bits_beyond_a_varint_are_refused() -> None:
    text = "layout: a\nfields: {b: {bits: uvarint, members: {c: {at: 0-32}}}}"
    model, _ = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": text})
    assert model is not None
    assert ["beyond the 32 bits of uvarint" in d.message for d in run(model)] == [True]


VIEW = """
layout: entry
fields: {k: {type: u8, const: 1}, size: {type: u32, measures: rest}, n: FIELD, tail: u8}
---
choice: log
by: k
cases: {1: entry}
---
view: rows
of: log
columns: {n: {type: int64}}
rows: [{of: entry, columns: {n: VALUE}}]
"""


@pytest.mark.parametrize("type_", ["vlq32", "bijective_vlq32"])
def test_views_of_numbers_that_kernels_lack_are_read_by_the_codecs(type_: str) -> None:
    (note,) = unread_by_kernels(model_of(VIEW.replace("FIELD", type_).replace("VALUE", "n")))
    assert note.message == f'"n" is a number of the type {type_}, which kernels cannot express'


def test_kernels_read_bits_of_varints() -> None:
    field = "{bits: uvarint, members: {low: {at: 0-2}, high: {at: 3-31}}}"
    model = checked(
        {
            "codecgen.yaml": MANIFEST,
            "case.yaml": VIEW.replace("FIELD", field).replace("VALUE", "n.high"),
        }
    )
    assert unread_by_kernels(model) == []
