"""``codecgen import kafka-json``: how JSON is read, and what YAML text is read as."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from codecgen.diagnostics import Diagnostic
from codecgen.importers import commented_json, yaml_text
from codecgen.importers.commented_json import Array, Object, Scalar
from codecgen.importers.kafka_definitions import LAST, NONE, Range, range_of
from codecgen.importers.yaml_text import Mapped, Word


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("", "the file ends where a value is expected", 1, 1),
        ("[1,", "the file ends where a value is expected", 1, 4),
        ('{"a" 1}', "a colon is expected after the key", 1, 6),
        ('{"a": 1 "b": 2}', "a comma or a brace is expected after the value", 1, 9),
        ('{"a": 1,}', "a key is expected after the comma", 1, 9),
        ("{a: 1}", "a key in double quotes is expected", 1, 2),
        ("[1 2]", "a comma or a bracket is expected after the value", 1, 4),
        ("[1,]", "a value is expected after the comma", 1, 4),
        ("[\n  yes]", "yes is not a JSON value", 2, 3),
        ("[01]", "01 is not a JSON value", 1, 2),
        ('["a\nb"]', "the text does not end, or has what must be escaped in it", 1, 2),
        ('["\\ud800"]', "the text has half a character in it", 1, 2),
        ("/* x", "the comment does not end", 1, 1),
        ("{}\n{}", "there is something after the end of the definition", 2, 1),
        ("[" * 100, "more than 64 levels in each other", 1, 65),
        ('"' + "\xff", "the text does not end, or has what must be escaped in it", 1, 1),
    ],
)
def test_what_is_no_json(text: str, message: str, line: int, column: int) -> None:
    found = commented_json.parse("a.json", text.encode())
    assert isinstance(found, Diagnostic)
    assert (found.message, found.span.line, found.span.column) == (message, line, column)


def test_other_files_are_refused() -> None:
    for data in (b"\xff\xfe{}", b" " * (commented_json.MAX_BYTES + 1)):
        assert isinstance(commented_json.parse("a.json", data), Diagnostic)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("ab/*", max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON, st.integers(0, 3))
def test_json_is_read_as_python_reads_it(value: Any, indent: int) -> None:
    text = json.dumps(value, indent=indent or None, ensure_ascii=indent % 2 == 0)
    assert plain(commented_json.parse("a.json", text.encode())) == value


def plain(node: Any) -> Any:
    match node:
        case Scalar(text, quoted):
            return text if quoted else json.loads(text)
        case Array(items):
            return [plain(item) for item in items]
        case Object(members):
            return {member.key: plain(member.value) for member in members}
        case other:
            raise AssertionError(other)


def test_comments_belong_to_what_follows_or_stands_on_their_line() -> None:
    text = """// about the file
{ // begins
  // before a
  "a": 1, // behind a
  /* before
   * b */ "b": [
    // before the first
    {},
    {} // behind the second
    // at the end of the list
  ]
  // at the end
}"""
    node = commented_json.parse("a.json", text.encode())
    assert isinstance(node, Object)
    assert [m.comments for m in node.members] == [
        ("before a", "behind a"),
        ("before", "b", "at the end"),
    ]
    inner = node.members[1].value
    assert isinstance(inner, Array)
    assert [i.comments for i in inner.items if isinstance(i, Object)] == [
        ("before the first",),
        ("behind the second", "at the end of the list"),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3", Range(3, 3)),
        ("0-4", Range(0, 4)),
        (" 2+ ", Range(2, LAST)),
        ("none", NONE),
        ("", None),
        ("-1", None),
        ("1-", None),
        ("+", None),
        ("²", None),
        ("4-2", None),
        ("0-40000", None),
    ],
)
def test_ranges(text: str, found: Range | None) -> None:
    assert range_of(text) == found


# ---------------------------------------------------------------- YAML

TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(" :#'\"-,[]{}&*!|>%@`?\t\n"),
    max_size=200,
)


@given(TEXTS, st.booleans())
def test_text_is_read_as_it_was(text: str, short: bool) -> None:
    if any(c in text for c in "\ufeff\x85\u2028\u2029"):
        text = text.translate(dict.fromkeys(map(ord, "\ufeff\x85\u2028\u2029")))
    inner = Mapped({"type": Word("i8"), "doc": text}, short=short)
    written = yaml_text.documents([Mapped({"layout": Word("x"), "fields": Mapped({"a": inner})})])
    read = yaml.safe_load(written)["fields"]["a"]["doc"]
    assert read == text or (read == f"{text}\n" and "doc: >" in written)
