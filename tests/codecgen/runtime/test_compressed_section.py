"""Compressed sections that hold more than they may: whatever promises bytes beyond the limit, the limit is the error."""

from __future__ import annotations

import gzip

import pytest

from codecgen.plan import make_plan
from codecgen.runtime.errors import CompressionError, LimitError
from codecgen.targets.live_codecs import load_codecs
from tests.codecgen.schemas import model_of

SCHEMA = """
enums:
  codec: {{values: {{none: 0, gzip: 1}}}}
---
layout: section
fields:
  codec: {{type: i8, enum: codec}}
  entries: {{array: item, until: end, compressed: {{by: codec, limit: 100}}}}
---
layout: item
{flexible}
fields:
{fields}
"""

BLANK = bytes(200)
CASES = {
    "bytes": ("  x: {bytes: i32}", b"\0\0\0\x96"),
    "text": ("  x: {string: u8}", b"\x96"),
    "bytes of a size": ("  x: {bytes: 120}", b""),
    "a count": ("  x: {array: i16, count: u8}", b"\x64"),
    "a length": ("  x: {array: i16, length: u8}", b"\x96"),
    "a choice with a length": (
        "  n: {type: u8, const: 1}\n  x: {choice: chosen, given: {kind: n}, length: u8}",
        b"\1\x96",
    ),
    "a layout": ("  x: {layout: large}", b""),
    "zero-terminated": ("  x: {string: zero_terminated}", b"a" * 150),
    "a range": ("  n: {type: u8, measures: {from: x}}\n  x: {bytes: rest}", b"\x96"),
    "tagged fields": ("  x: u8", b"\0\x64"),
    "the size of a tagged field": ("  x: u8", b"\0\x01\x07\x78"),
    "a varint": ("  x: {bytes: 97}\n  y: uvarint", b"\0" * 97 + b"\x80\x80\x80\x80\x01"),
}
MORE = """---
choice: chosen
given: {kind: u8}
by: kind
cases: {1: large}
---
layout: large
fields: {a: {bytes: 110}}
"""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("damaged", [False, True])
def test_the_limit_is_the_error(name: str, damaged: bool) -> None:
    fields, head = CASES[name]
    text = SCHEMA.format(fields=fields, flexible="flexible: 0+" if "tagged" in name else "")
    plan = make_plan(model_of(text + MORE))
    codecs, _ = load_codecs(plan)
    assert codecs is not None
    codec = codecs.layout(plan.versions["section"][0])
    packed = gzip.compress(head + BLANK, 0)
    error: type[Exception] = LimitError
    if damaged:  # the stream ends after some bytes, fewer than the limit
        packed, error = packed[:90], CompressionError
    with pytest.raises(error) as caught:
        codec.parse(b"\1" + packed, strict=True)
    assert "bytes are left" not in str(caught.value)
