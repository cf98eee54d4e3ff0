"""Constants, defaults and cases as a person writes them."""

from __future__ import annotations

from typing import Any

import pytest

from codecgen.explain.declarations import explain
from codecgen.plan import make_plan
from codecgen.runtime.errors import ParseError, ValueRefused
from codecgen.schema.expression import ExpressionError, Number, Truth, parse, source
from codecgen.targets import docs
from codecgen.targets.live_codecs import load_codecs
from tests.codecgen.schemas import codecs_of, model_of, unread_by_kernels

TEXT = r"""
enums: {kind: {doc: Kinds., values: {far: 0x10, near: -3}}}
---
layout: head
doc: A head.
fields:
  magic: {bytes: 4, const: "Obj\x01"}
  word: {string: u8, const: "hé\"{0}"}
  raw: {bytes: i16, none: -1, const: {hex: 89 50}}
  mark: {type: u16, const: 0xCAFE}
  on: {type: bool, const: true}
  kind: {type: i8, enum: kind, const: near}
  off: {type: bool, default: false}
  name: {string: u8, default: "if"}
  data: {bytes: i16, none: -1, default: {hex: 00ff}}
  number: {type: u32, default: 0x10, valid: number != 0xFF}
  even: {type: bool, default: if number == 0x10 then true else false}
---
layout: far_thing
fields: {k: {type: i8, enum: kind, const: far}, x: u8}
---
layout: near_thing
fields: {k: {type: i8, enum: kind, const: near}, y: u8}
---
layout: beef
fields: {k: {type: u32, const: 0xdeadbeef}}
---
layout: wide
fields: {k: {type: u32, const: 0xFFFFFFFF}}
---
choice: by_name
by: k
cases: {far: far_thing, -3: near_thing}
---
choice: by_hex
by: k
cases: {0xdeadbeef: beef, 4294967295: wide}
"""
BYTES = (
    b"Obj\x01" + b"\x07h\xc3\xa9\"{0}" + b"\0\x02\x89P" + b"\xca\xfe" + b"\1" + b"\xfd" + b"\0"
    b"\x02if" + b"\0\x02\0\xff" + b"\0\0\0\x10" + b"\1"
)  # fmt: skip


@pytest.fixture(scope="module")
def codecs() -> Any:
    return codecs_of(make_plan(model_of(TEXT)))


def test_everything_is_left_to_the_builder(codecs: Any) -> None:
    assert codecs.HEAD.build({}) == BYTES
    parsed = codecs.HEAD.parse(BYTES)
    assert (parsed.magic, parsed.word, parsed.raw) == (b"Obj\x01", 'hé"{0}', b"\x89P")
    assert (parsed.on, parsed.off, parsed.even, parsed.mark) == (True, False, True, 0xCAFE)
    assert codecs.HEAD.build({"number": 7})[-1] == 0


@pytest.mark.parametrize(
    ("at", "bad", "path"),
    [
        (3, b"\x02", "magic"),
        (5, b"H", "word"),
        (14, b"\x88", "raw"),
        (16, b"\xcb", "mark"),
        (18, b"\0", "on"),
        (19, b"\x10", "kind"),
    ],
)
def test_other_values_are_refused(codecs: Any, at: int, bad: bytes, path: str) -> None:
    data = BYTES[:at] + bad + BYTES[at + 1 :]
    with pytest.raises(ValueRefused) as caught:
        codecs.HEAD.parse(data, file="x")
    assert caught.value.where.path == path
    findings: list[ParseError] = []
    codecs.HEAD.parse(data, strict=False, findings=findings)
    assert [f.where.path for f in findings] == [path]


def test_null_is_another_value(codecs: Any) -> None:
    with pytest.raises(ValueRefused, match="None stands where only hex 8950 may"):
        codecs.HEAD.parse(BYTES[:12] + b"\xff\xff" + BYTES[16:])


def test_what_is_said_of_long_bytes_is_short() -> None:
    text = 'layout: a\nfields: {b: {bytes: i32, const: "x"}}\n'
    found, _ = load_codecs(make_plan(model_of(text)))
    assert found is not None
    with pytest.raises(ValueRefused) as caught:
        found.module("case.yaml").A.parse(b"\0\1\0\0" + bytes(1 << 16))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("choice", "data", "value"),
    [
        ("BY_NAME", b"\x10\x01", {"k": 16, "x": 1}),
        ("BY_NAME", b"\xfd\x01", {"k": -3, "y": 1}),
        ("BY_HEX", b"\xde\xad\xbe\xef", {"k": 0xDEADBEEF}),
        ("BY_HEX", b"\xff\xff\xff\xff", {"k": 0xFFFFFFFF}),
    ],
)
def test_cases(codecs: Any, choice: str, data: bytes, value: dict[str, int]) -> None:
    codec = getattr(codecs, choice)
    assert codec.parse(data) == value
    assert codec.build(value) == data


def test_literals_in_expressions() -> None:
    assert parse("0xfF").node == Number(255)
    assert parse("-0x10").node == Number(-16)
    assert parse("true").node == Truth(True)
    for text in ("a == true", "if a then false else true", "a + 16"):
        assert source(parse(text).node) == text
    for bad in ("0x", "0xg", "1x", "- true", "true.x", "0x1" + "0" * 30):
        with pytest.raises(ExpressionError):
            parse(bad)


def test_words_for_people() -> None:
    plan = make_plan(model_of(TEXT))
    page = "".join(text for path, text in docs.emit(plan).files.items() if path.endswith(".md"))
    for words in ("hex 4f626a01", "51966", "true", "hex 00ff"):
        assert words in page
    assert "always hex 4f626a01" in explain(model_of(TEXT), "head.magic")
    assert 'always "hé' in explain(model_of(TEXT), "head.word")


def test_kernels_refuse_what_they_cannot_compare() -> None:
    view = """
---
layout: entry
fields: {k: {type: u8, const: 1}, size: {type: u32, measures: rest}, m: {bytes: 2, const: "ab"}}
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
    (refused,) = unread_by_kernels(model_of(TEXT + view))
    assert '"m"' in refused.message
    assert "bytes or text" in refused.message
