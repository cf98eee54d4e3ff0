"""Patterns of names and paths. That they mean what Hadoop's do tests/pyspark_kafka_log/splits/test_patterns.py says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka_log.segment.globs import compile_pattern, find_matching_paths, is_pattern, matches
from tests.support.permissions import bound_by_modes


@pytest.mark.parametrize(
    ("pattern", "taken", "left"),
    [
        ("*", ["", "a", ".a", "a\nb"], []),
        ("a?c", ["abc", "a.c"], ["ac", "abbc"]),
        ("[abc]x", ["ax", "cx"], ["dx", "x", "abx"]),
        ("[a-c0]", ["b", "0"], ["d", "-"]),
        ("[^a]", ["b", "^"], ["a", ""]),
        ("[!a-c]", ["d", "!"], ["b"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[a-]", ["a", "-"], ["b"]),
        (r"[\]\-x]", ["]", "-", "x"], ["\\"]),
        ("{a,b}", ["a", "b"], ["c", "ab", "a,b"]),
        ("x{,y,z?}", ["x", "xy", "zz"[:0] + "xzq"], ["xz"]),
        ("{a{b,c},d}*", ["ab", "ac", "d", "dx"], ["a", "c"]),
        ("a,b", ["a,b"], ["a", "b"]),
        ("a}", ["a}"], ["a"]),
        (r"a\*", ["a*"], ["ab"]),
        (r"\{a\,b}", ["{a,b}"], ["a"]),
        (r"{a\,b,c}", ["a,b", "c"], ["a"]),
        ("a.c+(x)|$", ["a.c+(x)|$"], ["abc"]),
        ("0000000000000000000{0,5}.log", [f"{n:020}.log" for n in (0, 5)], [f"{1:020}.log"]),
    ],
)
def test_what_a_pattern_takes(pattern: str, taken: list[str], left: list[str]) -> None:
    assert [name for name in taken if not matches(name, pattern)] == []
    assert [name for name in left if matches(name, pattern)] == []


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("a{b,c", "a { without its }"),
        ("a[bc", r"a \[ without its \]"),
        ("[]", r"a \[ without its \]"),
        ("[^]", r"a \[ without its \]"),
        ("[a-", r"a \[ without its \]"),
        ("a\\", "nothing follows"),
        ("[a\\", "nothing follows"),
        ("[z-a]", "z-a is not a range"),
    ],
)
def test_patterns_that_end_too_early(pattern: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        compile_pattern(pattern)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for place in ("a/x-0", "a/x-1", "b/x-0", "b/y-0", "c", ".h/x-0", "a/.k", "{q}/x-0"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "a" / "file").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["a", "b", "c", "{q}"]),
        ("*/x-*", ["a/x-0", "a/x-1", "b/x-0", "{q}/x-0"]),
        ("{a,c}", ["a", "c"]),
        ("{a/x-1,b/y}*", ["a/x-1", "b/y-0"]),
        ("{a/x-1,b/y-0}", ["a/x-1", "b/y-0"]),
        ("{a/x,b/{x,y}}-0", ["a/x-0", "b/x-0", "b/y-0"]),
        ("{b,a}/{x-0,none}", ["a/x-0", "b/x-0"]),
        ("[^a]/x-0", ["b/x-0"]),
        (".*", [".h"]),
        ("a/.*", ["a/.k"]),
        ("a/file/*", []),
        ("none/*", []),
        ("*//x-1/", ["a/x-1"]),
        ("{a,a}/x-1", ["a/x-1"]),
    ],
)
def test_paths_of_a_pattern(tree: Path, pattern: str, found: list[str]) -> None:
    assert [
        path.relative_to(tree).as_posix() for path in find_matching_paths(tree, pattern)
    ] == found


@pytest.mark.skipif(os.name == "nt", reason="a backslash stands between the parts of a path there")
def test_an_escape_in_a_path(tree: Path) -> None:
    assert find_matching_paths(tree, r"\{q\}/x-*") == [tree / "{q}" / "x-0"]
    assert find_matching_paths(tree, r"\{q\}") == [tree / "{q}"]
    assert find_matching_paths(tree, r"\a/x-1") == [tree / "a" / "x-1"]


def test_what_is_a_pattern() -> None:
    assert not is_pattern("/data/orders-0")
    assert all(map(is_pattern, ["*", "a?", "a[b]", "{a,b}"]))


def test_a_directory_that_may_not_be_listed_is_told(tree: Path) -> None:
    (tree / "b").chmod(0)
    try:
        with (
            bound_by_modes(),
            pytest.warns(UserWarning, match="b is skipped, .*: Permission denied"),
        ):
            assert find_matching_paths(tree, "*/x-0") == [tree / "a" / "x-0", tree / "{q}" / "x-0"]
    finally:
        (tree / "b").chmod(0o755)
