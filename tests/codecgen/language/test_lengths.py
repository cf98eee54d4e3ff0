"""Lengths that count their own bytes."""

from __future__ import annotations

from typing import Any

import pytest

from codecgen.check import run
from codecgen.explain.declarations import explain
from codecgen.plan import make_plan
from codecgen.runtime.errors import LengthError, ParseError, TrailingError
from codecgen.runtime.fast_path import without_fast_paths
from codecgen.schema import loader
from codecgen.targets.template import emit_kaitai
from tests.codecgen.goldens import MANIFEST
from tests.codecgen.schemas import codecs_of, model_of, unread_by_kernels

TEXT = """
layout: envelope
fields: {total: {type: i16, measures: {from: total}}, letter: {bytes: rest}}
---
layout: inside
fields:
  before: u8
  size: {type: u8, measures: {from: size, to: text}}
  text: {string: rest}
  after: u8
---
layout: letters
fields: {all: {array: envelope, until: end, accepts: [truncated_tail]}}
"""
VIEW = """
---
layout: entry
fields: {k: {type: u8, const: 1}, total: {type: i32, measures: {from: total}}, n: i64}
---
choice: log
by: k
cases: {1: entry}
---
view: rows
of: log
columns: {n: {type: int64}}
rows: [{of: entry, HEADERcolumns: {n: n}}]
"""


@pytest.fixture(scope="module")
def codecs() -> Any:
    return codecs_of(make_plan(model_of(TEXT)))


def test_the_length_counts_itself(codecs: Any) -> None:
    assert codecs.ENVELOPE.build({"letter": b"abc"}) == b"\0\5abc"
    assert codecs.ENVELOPE.parse(b"\0\5abc") == {"total": 5, "letter": b"abc"}
    assert codecs.ENVELOPE.parse(b"\0\2").letter == b""
    data = b"\7\4abc\x09"
    assert codecs.INSIDE.build({"before": 7, "text": "abc", "after": 9}) == data
    assert codecs.INSIDE.parse(data).after == 9


@pytest.mark.parametrize("length", [-1, 0, 1, 6, 0x7FFF])
def test_lengths_that_cannot_be(codecs: Any, length: int) -> None:
    data = length.to_bytes(2, "big", signed=True) + b"abc"
    with pytest.raises(LengthError) as caught:
        codecs.ENVELOPE.parse(data)
    assert (caught.value.where.path, caught.value.where.position) == ("total", 0)


def test_bytes_that_are_left(codecs: Any) -> None:
    with pytest.raises(TrailingError):
        codecs.ENVELOPE.parse(b"\0\4abc")


def test_frames(codecs: Any) -> None:
    whole = b"\0\5abc\0\2"
    assert [e.letter for e in codecs.LETTERS.parse(whole).all] == [b"abc", b""]
    findings: list[ParseError] = []
    cut = codecs.LETTERS.parse(whole + b"\0\x09ab", strict=False, findings=findings)
    assert (len(cut.all), len(findings)) == (2, 1)
    for strict in (True, False):
        with pytest.raises(LengthError):  # and no loop without end
            codecs.LETTERS.parse(whole + b"\0\0\0\0", strict=strict)


@pytest.mark.parametrize("header", ["", "header_only: true, "])
def test_kernels_refuse_it(header: str) -> None:
    refused = unread_by_kernels(model_of(VIEW.replace("HEADER", header)))
    assert {d.code for d in refused} == {"C023"}
    assert '"total" is a length that counts itself' in refused[0].message


def test_words() -> None:
    model = model_of(TEXT)
    assert "measures     total to the end, in bytes" in explain(model, "envelope.total")
    left_out = "".join(emit_kaitai(make_plan(model), {}).files.values())
    assert "total: it counts its own bytes" in left_out


PARCEL = """
layout: parcel
fields:
  has_name: bool
  name_length: {type: u8, measures: {from: name, to: name}, when: LENGTH}
  name: {bytes: rest, when: has_name}
  text: {string: u8}
"""


def test_a_length_with_the_condition_of_its_field() -> None:
    """The length exists whenever the field does, so the field ends where the length says."""
    parcel = codecs_of(make_plan(model_of(PARCEL.replace("LENGTH", "has_name")))).PARCEL
    for data, values in (
        (b"\1\2ab\1c", {"has_name": True, "name_length": 2, "name": b"ab", "text": "c"}),
        (b"\1\0\0", {"has_name": True, "name_length": 0, "name": b"", "text": ""}),
        (b"\0\1c", {"has_name": False, "name_length": None, "name": None, "text": "c"}),
    ):
        given = {k: v for k, v in values.items() if k != "name_length"}
        assert parcel.parse(data) == values and parcel.build(given) == data
        with without_fast_paths():
            assert parcel.parse(data) == values and parcel.build(given) == data
        for cut in range(1, len(data)):
            with pytest.raises(ParseError):
                parcel.parse(data[:cut])
    with pytest.raises(TrailingError):
        parcel.parse(b"\0\0\0")


def test_a_length_with_another_condition_than_its_field() -> None:
    text = PARCEL.replace("LENGTH", "not has_name")
    model, _ = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": text})
    assert model is not None
    found = list(run(model))
    assert [d.code for d in found] == ["C031"]
    assert found[0].help.startswith('remove `when` from "name_length"')
