"""Bytes and text that a zero byte ends or that zeros fill up, and padding between fields."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.explain.declarations import explain
from codecgen.explain.programs import explain_program
from codecgen.plan import Plan, make_plan
from codecgen.plan.encoded_sizes import encoded_size
from codecgen.runtime.errors import BuildError, ParseError, TruncatedError, ValueRefused
from codecgen.targets import arrow
from codecgen.targets.docs import emit as emit_docs
from codecgen.targets.template import emit_kaitai
from tests.codecgen.schemas import codecs_of, model_of, unread_by_kernels

TEXT = """
layout: texts
fields:
  title: {string: zero_terminated}
  key: {bytes: zero_terminated, default: "k"}
  tags: {array: {string: zero_terminated}, count: u8}
---
layout: filled
fields:
  name: {string: 8, padded: true}
  data: {bytes: 4, padded: true, default: {hex: ff}}
  all: {array: {string: 3, padded: true}, count: 2}
---
layout: padded
fields:
  size: {type: u16, measures: {from: id, to: end}}
  id: u8
  text: {string: u8}
  end: {padding: 8}
  tail: {bytes: rest}
---
layout: fixed
fields: {a: u8, b: {padding: 4}, c: {bytes: rest}, d: u8}
---
layout: outer
fields: {before: u8, all: {array: inner, until: end}}
---
layout: inner
fields: {n: u8, maybe: {padding: 2, when: n != 9}}
"""
VIEW = """
---
layout: entry
fields: {k: {type: u8, const: 1}, size: {type: i32, measures: rest}, n: i64, x: FIELD}
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


@cache
def the_plan() -> Plan:
    return make_plan(model_of(TEXT))


@pytest.fixture(scope="module")
def codecs() -> Any:
    return codecs_of(the_plan())


# ---------------------------------------------------------------- ended by a zero byte


@given(st.text(max_size=300), st.binary(max_size=300), st.lists(st.text(max_size=70), max_size=3))
def test_what_a_zero_ends(codecs: Any, title: str, key: bytes, tags: list[str]) -> None:
    values = {"title": title, "key": key, "tags": tags}
    parts = [title.encode(), key, *(tag.encode() for tag in tags)]
    if any(0 in part for part in parts):
        with pytest.raises(BuildError, match="is zero, which readers would take for its end"):
            codecs.TEXTS.build(values)
        return
    data = codecs.TEXTS.build(values)
    tail = b"".join(part + b"\0" for part in parts[2:])
    assert data == parts[0] + b"\0" + parts[1] + b"\0" + bytes([len(tags)]) + tail
    assert codecs.TEXTS.parse(memoryview(data)) == values


@pytest.mark.parametrize(
    ("data", "path", "position"),
    [
        (b"", "title", 0),
        (b"abc", "title", 0),
        (b"a\0b", "key", 2),
        (b"a\0b\0\2c\0d", "tags[1]", 7),
        (b"x" * 100_000, "title", 0),
    ],
)
def test_no_zero_ends_it(codecs: Any, data: bytes, path: str, position: int) -> None:
    with pytest.raises(TruncatedError, match="no zero byte") as caught:
        codecs.TEXTS.parse(data)
    assert (caught.value.where.path, caught.value.where.position) == (path, position)


def test_text_that_is_not_utf8(codecs: Any) -> None:
    with pytest.raises(ValueRefused) as caught:
        codecs.TEXTS.parse(b"ab\xff\0\0\0")
    assert (caught.value.where.path, caught.value.where.position) == ("title", 0)


# ---------------------------------------------------------------- filled up with zeros


@given(st.text(max_size=9), st.binary(max_size=5))
def test_what_zeros_fill_up(codecs: Any, name: str, data: bytes) -> None:
    values = {"name": name, "data": data, "all": ["a", ""]}
    bad = len(name.encode()) > 8 or name.endswith("\0") or len(data) > 4 or data[-1:] == b"\0"
    if bad:
        with pytest.raises(BuildError):
            codecs.FILLED.build(values)
        return
    built = codecs.FILLED.build(values)
    assert built == name.encode().ljust(8, b"\0") + data.ljust(4, b"\0") + b"a" + bytes(5)
    assert codecs.FILLED.parse(built) == values


def test_zeros_before_the_end_are_part_of_it(codecs: Any) -> None:
    data = b"a\0b" + bytes(5) + b"\0\1\0\0" + bytes(6)
    parsed = codecs.FILLED.parse(data)
    assert (parsed.name, parsed.data, parsed.all) == ("a\0b", b"\0\1", ["", ""])
    assert codecs.FILLED.build(parsed) == data
    assert codecs.FILLED.size == 18
    with pytest.raises(TruncatedError) as caught:
        codecs.FILLED.parse(b"abc")
    assert caught.value.where.path == "name"


# ---------------------------------------------------------------- padding


@given(st.text(max_size=20), st.binary(max_size=3))
def test_padding_goes_up_to_a_multiple(codecs: Any, text: str, tail: bytes) -> None:
    if len(text.encode()) > 255:
        return
    values = {"id": 1, "text": text, "tail": tail}
    data = codecs.PADDED.build(values)
    raw = b"\1" + bytes([len(text.encode())]) + text.encode()
    raw += bytes(-(len(raw) + 2) % 8)
    assert data == len(raw).to_bytes(2, "big") + raw + tail
    parsed = codecs.PADDED.parse(data)
    assert parsed == {"size": len(raw), "end": None} | values
    assert codecs.PADDED.build(parsed) == data
    plan = the_plan()
    assert encoded_size(plan, plan.versions["padded"][0], values) == len(data)


def test_padding_that_is_not_zero(codecs: Any) -> None:
    good = codecs.PADDED.build({"id": 1, "text": "a", "tail": b""})
    assert good == b"\0\6\1\1a\0\0\0"
    bad = good[:6] + b"\7\1"
    with pytest.raises(ValueRefused, match="only zero bytes") as caught:
        codecs.PADDED.parse(bad)
    assert (caught.value.where.path, caught.value.where.position) == ("end", 6)
    findings: list[ParseError] = []
    parsed = codecs.PADDED.parse(bad, strict=False, findings=findings)
    assert (parsed.end, [f.where.path for f in findings]) == (None, ["end"])
    assert codecs.PADDED.build(parsed) == good
    with pytest.raises(ParseError):
        codecs.PADDED.parse(good[:7])
    with pytest.raises(BuildError, match="padding has no value"):
        codecs.PADDED.build({"id": 1, "text": "a", "tail": b"", "end": b"\0"})


def test_padding_at_a_fixed_place_has_a_size(codecs: Any) -> None:
    assert codecs.FIXED.build({"a": 1, "c": b"xy", "d": 2}) == b"\1\0\0\0xy\2"
    assert (codecs.FIXED.offset_of("c"), codecs.FIXED.size_of("b")) == (4, 3)
    plan = make_plan(model_of(TEXT)).versions["fixed"][0]
    assert [(f.offset, f.size) for f in plan.fields[:3]] == [(0, 1), (1, 3), (4, None)]


def test_padding_counts_from_the_start_of_its_layout(codecs: Any) -> None:
    data = b"\xff" + b"\1\0" + b"\x09" + b"\2\0"
    parsed = codecs.OUTER.parse(data)
    assert [item.n for item in parsed.all] == [1, 9, 2]
    assert codecs.OUTER.build(parsed) == data


# ---------------------------------------------------------------- everything else


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("{string: zero_terminated}", "ended by a zero byte"),
        ("{array: {bytes: zero_terminated}, count: u8}", "ended by a zero byte"),
        ("{bytes: 4, padded: true}", "filled up with zero bytes"),
        ("{padding: 8}", "padding"),
    ],
)
def test_kernels_refuse_it(field: str, reason: str) -> None:
    (refused,) = unread_by_kernels(model_of(VIEW.replace("FIELD", field)))
    assert (refused.code, f'"x" is {reason}' in refused.message) == ("C023", True)


def test_bytes_that_zeros_fill_up_are_not_written_from_a_column() -> None:
    """Bytes that end with a zero byte would be read back without it."""
    text = VIEW.replace("FIELD", "{bytes: 4, padded: true}").replace(
        "columns: {n: {type: int64}}", "columns: {n: {type: int64}, x: {type: binary}}"
    )
    text = text.replace("columns: {n: n}}", "columns: {n: n, x: x}, write: {entry: {n: n, x: x}}}")
    (refused,) = arrow.emit(make_plan(model_of(text))).diagnostics
    assert refused.message == '"x" is filled up with zero bytes, which target arrow cannot express'


def test_words() -> None:
    model = model_of(TEXT)
    plan = make_plan(model)
    assert "text (UTF-8) up to a zero byte" in explain(model, "texts.title")
    assert "4 bytes, filled up with zeros" in explain(model, "filled.data")
    assert "zero bytes to the next multiple of 8" in explain(model, "padded.end")
    assert "padding   end                     to a multiple of 8" in explain_program(
        model, "padded"
    )
    page = "".join(emit_docs(plan).files.values())
    assert "end: zero bytes to a multiple of 8" in page
    assert "name: 8 bytes of text (filled up with zero bytes)" in page
    kaitai = "".join(emit_kaitai(plan, {}).files.values())
    assert "terminator: 0" in kaitai
    assert "pad-right: 0" in kaitai
    assert "b: it is padding to a multiple of 4" in kaitai
