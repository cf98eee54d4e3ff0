"""Arrays that always have as many elements."""

from __future__ import annotations

from typing import Any

import pytest

from codecgen.diff import Side, diff
from codecgen.explain.declarations import explain
from codecgen.plan import make_plan
from codecgen.runtime.errors import BuildError, ParseError, TruncatedError
from codecgen.targets.docs import emit as emit_docs
from codecgen.targets.template import emit_kaitai
from tests.codecgen.schemas import codecs_of, model_of, unread_by_kernels

TEXT = """
layout: point
fields: {x: i16, y: i16}
---
layout: shape
versions: 0-1
fields:
  corners: {array: point, count: 3}
  tags: {array: {string: u8}, count: {0: 2, 1: u8}}
---
layout: square
fields:
  name: {bytes: rest}
  corners: {array: point, count: 4}
  flags: {array: {bytes: 2}, count: 1}
---
layout: packed
fields:
  codec: {type: u8, enum: codec}
  all: {array: varint, count: 2, compressed: {by: codec, limit: 100}}
---
enums: {codec: {doc: How., values: {none: 0, gzip: 1}}}
"""
VIEW = """
---
layout: entry
fields: {k: {type: u8, const: 1}, size: {type: i32, measures: rest}, n: i64, pair: {array: i16, count: 2}}
---
choice: log
by: k
cases: {1: entry}
---
view: rows
of: log
columns: {n: {type: int64}}
rows: [{of: entry, columns: {n: n}}]
"""


@pytest.fixture(scope="module")
def codecs() -> Any:
    return codecs_of(make_plan(model_of(TEXT)))


def test_bytes_are_those_of_the_elements(codecs: Any) -> None:
    square = codecs.SQUARE
    points = [{"x": i, "y": -i} for i in range(4)]
    data = square.build({"name": b"ab", "corners": points, "flags": [b"ok"]})
    assert data == b"ab" + bytes.fromhex("0000 0000 0001 ffff 0002 fffe 0003 fffd") + b"ok"
    assert square.parse(data).corners == points
    assert square.codec_of("corners").size == 16
    assert make_plan(model_of(TEXT)).versions["square"][0].fields[1].size == 16


def test_a_number_in_one_version_and_a_count_in_another(codecs: Any) -> None:
    points = [{"x": 0, "y": 0}] * 3
    assert codecs.SHAPE[0].build({"corners": points, "tags": ["a", "b"]}) == bytes(12) + b"\1a\1b"
    assert codecs.SHAPE[1].build({"corners": points, "tags": ["a"]}) == bytes(12) + b"\1\1a"


@pytest.mark.parametrize("number", [0, 3, 5])
def test_another_number_is_not_built(codecs: Any, number: int) -> None:
    with pytest.raises(BuildError, match=f"4 elements are needed, not {number}") as caught:
        codecs.SQUARE.build({"name": b"", "corners": [{"x": 0, "y": 0}] * number, "flags": [b"ok"]})
    assert caught.value.where.path == "corners"


def test_elements_that_are_not_given(codecs: Any) -> None:
    with pytest.raises(BuildError, match="4 elements are needed"):
        codecs.SQUARE.build({"name": b"", "flags": [b"ok"]})


def test_bytes_that_end_early(codecs: Any) -> None:
    with pytest.raises(ParseError):
        codecs.SQUARE.parse(bytes(17))
    with pytest.raises(TruncatedError) as caught:
        codecs.SHAPE[0].parse(bytes(12) + b"\1a")
    assert caught.value.where.path == "tags[1]"


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_compressed(codecs: Any, codec: str) -> None:
    packed = codecs.PACKED
    data = packed.build({"codec": codec, "all": [1, -1]})
    assert packed.parse(data).all == [1, -1]
    with pytest.raises(ParseError):
        packed.parse(b"\0\2")
    with pytest.raises(ParseError):
        packed.parse(b"\0\2\2\2")


def test_words() -> None:
    model = model_of(TEXT)
    assert "array of point, 4 of them" in explain(model, "square.corners")
    (specification,) = [
        text for path, text in emit_kaitai(make_plan(model), {}).files.items() if "square" in path
    ]
    assert "corners" in specification
    changed = diff("shape", Side("0", model, 0), Side("1", model, 1))
    assert "array of text (UTF-8) with uint8 length, 2 of them" in changed
    page = "".join(emit_docs(make_plan(model)).files.values())
    assert "corners: [point] (4 of them)" in page


def test_kernels_read_them_in_rows_and_not_as_rows() -> None:
    assert not unread_by_kernels(model_of(VIEW))
    rows = VIEW.replace("i16, count: 2", "{fields: {a: i8}}, count: 2").replace(
        "{of: entry, columns: {n: n}}", "{of: entry, each: pair, columns: {n: n}}"
    )
    (refused,) = unread_by_kernels(model_of(rows))
    assert (refused.code, '"pair" is an array of rows' in refused.message) == ("C023", True)
