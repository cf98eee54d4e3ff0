"""Counts of several arrays, counts plus or minus a number, and counts from outside, in the generated codecs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from codecgen.runtime.errors import BuildError, LengthError
from codecgen.runtime.fast_path import without_fast_paths
from tests.codecgen.generated import package_of

TEXT = """
layout: path
fields:
  point_count: {type: u16, counts: [points, heights]}
  points: {array: u8}
  heights: {array: varint}
  edges: {array: u8, count: point_count - 1}
  ends: {array: u8, count: point_count + 1}
  parts: {array: part, count: u8, given: {point_count: point_count}}
---
layout: part
given: {point_count: u16}
fields:
  id: u8
  weights: {array: u8, count: point_count}
"""
VALUES = {
    "points": [1, 2],
    "heights": [-1, 300],
    "edges": [3],
    "ends": [4, 5, 6],
    "parts": [{"id": 9, "weights": [7, 8]}],
}
BYTES = bytes.fromhex("0002 0102 01 d804 03 040506 01 09 0708")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return package_of(TEXT, tmp_path_factory.mktemp("counts"), "counts_codecs").PATH


WAYS = pytest.mark.parametrize("way", [nullcontext, without_fast_paths])


@WAYS
def test_the_builder_works_out_the_count(path: Any, way: type[AbstractContextManager[Any]]) -> None:
    with way():
        assert path.build(VALUES) == BYTES
        parsed = path.parse(BYTES)
        assert parsed.point_count == 2
        assert {name: list(parsed[name]) for name in ("points", "heights", "edges", "ends")} == {
            name: VALUES[name] for name in ("points", "heights", "edges", "ends")
        }
        assert path.build(parsed) == BYTES


@WAYS
@pytest.mark.parametrize(
    ("changed", "at", "message"),
    [
        ({"heights": [1]}, "point_count", "2 for points, and 1 for heights"),
        ({"heights": []}, "point_count", "2 for points, and 0 for heights"),
        ({"edges": [1, 2]}, "point_count", "2 for points, and 3 for edges"),
        ({"ends": [1, 2]}, "point_count", "2 for points, and 1 for ends"),
        (
            {"parts": [{"id": 1, "weights": [1]}]},
            "parts[0].weights",
            "2 elements are needed, not 1: point_count is 2",
        ),
    ],
)
def test_arrays_that_differ_are_refused(
    path: Any, way: type[AbstractContextManager[Any]], changed: Any, at: str, message: str
) -> None:
    with way(), pytest.raises(BuildError, match=message) as error:
        path.build(VALUES | changed)
    assert error.value.where.path == at


@WAYS
def test_a_count_below_zero_is_refused(path: Any, way: type[AbstractContextManager[Any]]) -> None:
    with way(), pytest.raises(LengthError, match="count is -1") as error:
        path.parse(bytes.fromhex("0000 00 00"))
    assert error.value.where.path == "edges"
