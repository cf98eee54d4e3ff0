"""What stands in the place of a field or an element: a few fields of its own, bytes, text."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from codecgen.diagnostics import render
from codecgen.explain.declarations import explain
from codecgen.plan import make_plan
from codecgen.runtime.errors import BuildError, LengthError, ParseError, TruncatedError
from codecgen.schema import loader
from codecgen.targets import docs
from codecgen.targets.template import emit_kaitai
from tests.codecgen.goldens import MANIFEST
from tests.codecgen.schemas import codecs_of, model_of, unread_by_kernels

TEXT = """
layout: lists
endian: little
accepts: [invalid_utf8]
fields:
  names: {array: {string: i16, none: -1}, count: i32}
  hashes: {array: {bytes: 4}, until: end, accepts: [truncated_tail]}
---
layout: places
versions: 0-1
fields:
  origin: {doc: Where., fields: {x: i32, deep: {fields: {y: u8, z: {type: u8, versions: 1}}}}}
  lines: {array: {fields: {n: {type: u8, counts: words}, words: {array: {string: u8}}}}, count: u8}
  tail: {type: u8, valid: tail != origin.x}
---
layout: entry
fields: {k: {type: u8, const: 1}, size: {type: u32, measures: rest}, m: {array: {bytes: 2}, count: u8}}
---
choice: log
by: k
cases: {1: entry}
---
view: rows
of: log
columns: {n: {type: int64}}
rows: [{of: entry, columns: {n: size}}]
"""


@pytest.fixture(scope="module")
def codecs() -> Any:
    model = model_of(TEXT.split("---\nlayout: entry")[0])
    return codecs_of(make_plan(model))


LISTS = struct.pack("<i", 3) + b"\x02\0hi\xff\xff\0\0" + b"abcdefgh"


def test_bytes_and_text_in_arrays(codecs: Any) -> None:
    value = {"names": ["hi", None, ""], "hashes": [b"abcd", b"efgh"]}
    assert codecs.LISTS.parse(LISTS) == value
    assert codecs.LISTS.build(value) == LISTS


@pytest.mark.parametrize("cut", range(len(LISTS) - 8))
def test_lists_that_end_too_early(codecs: Any, cut: int) -> None:
    with pytest.raises(ParseError) as caught:
        codecs.LISTS.parse(LISTS[:cut])
    assert isinstance(caught.value, TruncatedError | LengthError)
    assert caught.value.where.path.startswith("names")


def test_what_lenient_readers_take_of_elements(codecs: Any) -> None:
    findings: list[ParseError] = []
    data = struct.pack("<i", 1) + b"\x01\0\xff" + b"abcdef"
    parsed = codecs.LISTS.parse(data, strict=False, findings=findings)
    assert parsed == {"names": ["\ufffd"], "hashes": [b"abcd"]}
    assert [f.where.path for f in findings] == ["names[0]", "hashes"]


def test_a_count_of_more_than_there_is(codecs: Any) -> None:
    with pytest.raises(LengthError):
        codecs.LISTS.parse(struct.pack("<i", 1 << 30) + bytes(100))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"names": [b"x"], "hashes": []}, "names[0]"),
        ({"names": ["x" * 40000], "hashes": []}, "names[0]"),
        ({"names": [], "hashes": [b"abc"]}, "hashes[0]"),
        ({"names": [], "hashes": [None]}, "hashes[0]"),
    ],
)
def test_elements_that_cannot_be_written(codecs: Any, value: Any, path: str) -> None:
    with pytest.raises(BuildError) as caught:
        codecs.LISTS.build(value)
    assert caught.value.where.path == path


def test_fields_in_the_place_of_a_field(codecs: Any) -> None:
    value: dict[str, Any] = {
        "origin": {"x": 1, "deep": {"y": 2}},
        "lines": [{"words": ["a", "b"]}, {"words": []}],
        "tail": 9,
    }
    data = b"\0\0\0\1\2" + b"\2" + b"\2\1a\1b" + b"\0" + b"\x09"
    assert codecs.PLACES_V0.build(value) == data
    assert codecs.PLACES_V0.parse(data).lines[0] == {"n": 2, "words": ["a", "b"]}
    value["origin"]["deep"]["z"] = 3
    assert codecs.PLACES_V1.build(value) == data[:5] + b"\3" + data[5:]
    with pytest.raises(ParseError) as caught:
        codecs.PLACES_V1.parse(data[:5])
    assert caught.value.where.path == "origin.deep.z"


def test_versions_are_those_that_they_ask_for(codecs: Any) -> None:
    assert set(codecs.PLACES_ORIGIN_DEEP) == {0, 1}
    assert codecs.PLACES_LINES.layout_name == "places_lines"


def test_names_are_those_of_layouts() -> None:
    text = "layout: a\nfields: {b: {fields: {x: u8}}}\n---\nlayout: a_b\nfields: {y: u8}\n"
    _, found = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": text})
    assert [(d.code, d.message) for d in found] == [("C008", '"a_b" is declared twice')]


def test_words_for_people() -> None:
    model = model_of(TEXT)
    said = explain(model, "lists.names")
    assert "array of text (UTF-8) with int16 length, null as -1, with int32 count" in said
    page = "".join(docs.emit(make_plan(model)).files.values())
    assert "array of 4 bytes to the end" in page
    assert "places_origin_deep" in page


@pytest.mark.slow
def test_targets_that_have_no_words_for_it() -> None:
    plan = make_plan(model_of(TEXT))
    assert not unread_by_kernels(plan.model)
    left_out = "".join(emit_kaitai(plan, {}).files.values())
    assert "names: its elements are bytes or text" in left_out
    assert render(emit_kaitai(plan, {}).diagnostics, {}) == ""
