"""Schemas that a stranger might write: what ``check`` accepts is parsed, built and refused as it should be."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from codecgen.plan import make_plan
from codecgen.runtime.errors import (
    BuildError,
    LimitError,
    ParseError,
    TruncatedError,
    ValueRefused,
)
from codecgen.runtime.located_bytes import Session, Source
from codecgen.schema import loader
from tests.codecgen.schemas import checked, codecs_of
from tests.paths import ROOT

STRANGERS = ROOT / "tests" / "data" / "strangers"


@cache
def codecs(name: str) -> Any:
    """The generated module of a directory's case.yaml."""
    plan = make_plan(checked(loader.read_files(STRANGERS / name)))
    return codecs_of(plan)


# ---------------------------------------------------------------- a choice of layouts with versions


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\0", {"kind": 0}),
        (b"\1\0", {"kind": 1, "version": 0}),
        (b"\1\1\7", {"kind": 1, "version": 1, "extra": 7}),
    ],
)
def test_a_case_may_have_versions(data: bytes, value: dict[str, int]) -> None:
    entry = codecs("choice-of-versions").ENTRY
    assert entry.parse(data) == value
    assert entry.build(value) == data
    assert entry.peek(Source(data, Session())) == value["kind"]
    assert entry.case(Source(data, Session())).size == len(data)
    with pytest.raises(TruncatedError):
        entry.parse(data[:-1])


def test_values_that_no_case_is_for() -> None:
    entry = codecs("choice-of-versions").ENTRY
    with pytest.raises(ValueRefused, match="2 is not one of 0, 1") as caught:
        entry.parse(b"\2\0")
    assert caught.value.where.path == "kind"
    with pytest.raises(ValueRefused, match="9 is not one of 0, 1") as caught:
        entry.parse(b"\1\x09")
    assert caught.value.where.path == "version"
    for value in ({"kind": 2}, {"kind": []}, {}, [], {"kind": 1}, {"kind": 1, "version": 9}):
        with pytest.raises(BuildError, match="must be one of"):
            entry.build(value)


def test_each_case_may_allow_its_own_value_only() -> None:
    shape = codecs("choice-of-versions").SHAPE
    for data, value in (
        (b"\2\0\5", {"kind": "square", "side": 5}),
        (b"\1\1\0\6", {"kind": 1, "version": 1, "radius": 6}),
    ):
        assert shape.build(value) == data
        assert shape.build(shape.parse(data)) == data


# ---------------------------------------------------------------- elements that are cut off


@pytest.mark.parametrize(
    ("layout", "whole", "tail"),
    [
        ("INDEX", bytes(range(16)), 8),
        ("NUMBERS", bytes(range(8)), 2),
    ],
)
def test_a_tail_that_is_cut_off(layout: str, whole: bytes, tail: int) -> None:
    codec = getattr(codecs("truncated-tail-of-fixed-size"), layout)
    (name,) = codec.by_name
    elements = codec.parse(whole)[name]
    assert codec.build({name: elements}) == whole
    for left in range(1, tail):
        cut = whole[: len(whole) - tail + left]
        with pytest.raises(ParseError):
            codec.parse(cut)
        findings: list[ParseError] = []
        assert codec.parse(cut, strict=False, findings=findings)[name] == elements[:-1]
        assert [f.reason for f in findings] == [
            f"the last element is cut off after {left} byte{'s' * (left != 1)}"
        ]
        assert findings[0].where.path == name
        assert findings[0].where.position == len(whole) - tail


# ---------------------------------------------------------------- nesting


def test_an_array_without_elements_is_no_level() -> None:
    letter = codecs("nesting").LETTER
    value = {"version": 1, "enclosed": [{"version": 1, "enclosed": []}]}
    data = letter.build(value)
    assert data == b"\1\1\1\0"
    assert letter.parse(data) == value
    with pytest.raises(ValueRefused, match="must not hold such an array") as caught:
        letter.parse(b"\1\1\1\1\1\0")
    assert caught.value.where.path == "enclosed[0].enclosed"


def test_builders_know_nesting() -> None:
    letter = codecs("nesting").LETTER
    value: dict[str, Any] = {"version": 1, "enclosed": []}
    for _ in range(2):
        value = {"version": 1, "enclosed": [value]}
    with pytest.raises(BuildError, match="must not hold such an array") as caught:
        letter.build(value)
    assert caught.value.where.path == "enclosed[0].enclosed"


@pytest.mark.parametrize("depth", range(1, 5))
def test_builders_and_parsers_agree_on_nesting_to_the_end(depth: int) -> None:
    folder = codecs("nesting").FOLDER
    value: dict[str, Any] = {"parts": []}
    data = b"\0"
    for _ in range(depth - 1):
        value = {"parts": [value]}
        data = bytes([len(data)]) + data
    if depth <= 3:
        assert folder.build(value) == data
        assert folder.build(folder.parse(data)) == data
        return
    with pytest.raises(BuildError) as refused:
        folder.build(value)
    with pytest.raises(ValueRefused) as caught:
        folder.parse(data)
    assert refused.value.where.path == caught.value.where.path == "parts[0].parts[0].parts"


def test_builders_know_how_deep_layouts_may_lie() -> None:
    chain = codecs("nesting").CHAIN

    def of(depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {"more": 0}
        for _ in range(depth - 1):
            value = {"more": 1, "next": value}
        return value

    data = chain.build(of(32))
    assert chain.build(chain.parse(data)) == data == b"\1" * 31 + b"\0"
    with pytest.raises(BuildError, match="more than 32 deep") as caught:
        chain.build(of(33))
    assert caught.value.where.path == ".".join(["next"] * 32)
    with pytest.raises(LimitError, match="more than 32 deep"):
        chain.parse(b"\1" + data)


# ---------------------------------------------------------------- a count that decides whether there is an array


@pytest.mark.parametrize(
    "data", [b"\xff\xff\xff\xff\1", b"\xff\xff\xff\0\1", b"\0\0\0\0\1", b"\0\0\0\2\0\1\0\2\1"]
)
def test_a_count_that_decides_is_built_as_it_was_parsed(data: bytes) -> None:
    layout = codecs("count-that-decides").A
    assert layout.build(layout.parse(data)) == data


def test_a_count_is_the_callers_where_the_array_is_left_out() -> None:
    module = codecs("count-that-decides")
    assert module.A.build({"n": -1, "z": 1}) == b"\xff\xff\xff\xff\1"
    assert module.A.build({"z": 1}) == b"\0\0\0\0\1"
    assert module.A.build({"xs": [5], "z": 1}) == b"\0\0\0\1\0\5\1"
    assert module.B.build({"n": 7, "there": False}) == b"\7\0"
    assert module.B.build(module.B.parse(b"\7\0")) == b"\7\0"
    for value, path in (
        ({"n": 3, "z": 1}, "xs"),  # the array is there then, and has no elements
        ({"n": 0, "xs": None, "z": 1}, "xs"),
        ({"xs": None, "z": 1}, "xs"),
        ({"n": "many", "z": 1}, "n"),
    ):
        with pytest.raises(BuildError) as caught:
            module.A.build(value)
        assert caught.value.where.path == path
    with pytest.raises(BuildError, match="xs is left out: its count must be given") as caught:
        module.B.build({"there": False})
    assert caught.value.where.path == "n"


# ---------------------------------------------------------------- codecs mean what they mean everywhere


def test_snappy_is_raw_unless_a_variant_says_otherwise() -> None:
    module = codecs("raw-snappy")
    value = {"codec": "snappy", "numbers": list(b"abc")}
    plain, framed = module.PLAIN.build(value), module.FRAMED.build(value)
    assert plain == b"\1\3\x08abc"  # the length, a literal of three bytes
    assert framed == b"\1\x82SNAPPY\0\0\0\0\1\0\0\0\1\0\0\0\5\3\x08abc"
    assert module.PLAIN.parse(plain).numbers == module.FRAMED.parse(framed).numbers == [97, 98, 99]
    for codec, data in ((module.PLAIN, framed), (module.FRAMED, plain)):
        with pytest.raises(ParseError) as caught:
            codec.parse(data)
        assert caught.value.where.path == "numbers"


def test_nothing_is_compressed_where_the_count_is_0() -> None:
    counted = codecs("raw-snappy").COUNTED
    assert counted.build({"codec": "snappy", "numbers": []}) == b"\1\0"
    for numbers in ([], [1, 2]):
        assert (
            counted.parse(counted.build({"codec": "snappy", "numbers": numbers})).numbers == numbers
        )


# ---------------------------------------------------------------- runs


@pytest.mark.parametrize(
    ("layout", "data", "value"),
    [
        ("INSIDE", b"\3xy\7\0\0\0\1", {"length": 3, "data": b"xy", "kind": 7, "crc": 1}),
        ("INSIDE", b"\1\7\0\0\0\1", {"length": 1, "data": b"", "kind": 7, "crc": 1}),
        (
            "SOMETIMES",
            b"\1\5\3\2ab\7\x08",
            {"flag": True, "outer": 5, "inner": 3, "text": "ab", "number": 7, "behind": 8},
        ),
        (
            "SOMETIMES",
            b"\0\4\2ab\7\x08",
            {"flag": False, "outer": 4, "inner": None, "text": "ab", "number": 7, "behind": 8},
        ),
    ],
)
def test_runs_end_where_they_are_said_to_end(
    layout: str, data: bytes, value: dict[str, Any]
) -> None:
    codec = getattr(codecs("runs"), layout)
    assert codec.parse(data) == value
    assert codec.build(value) == data
    with pytest.raises(ParseError):
        codec.parse(data[:-1])
