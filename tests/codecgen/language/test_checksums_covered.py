"""Checksums over several ranges, and over fields that count as zeros; lengths that begin before themselves."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from codecgen.diff import Side, diff
from codecgen.explain.declarations import explain
from codecgen.explain.programs import explain_program
from codecgen.plan import make_plan
from codecgen.runtime.errors import ChecksumError, LengthError, ParseError
from codecgen.targets.docs import emit as emit_docs
from codecgen.targets.live_codecs import load_codecs
from codecgen.targets.template import emit_kaitai
from tests.codecgen.schemas import codecs_of, model_of, unread_by_kernels

TEXT = """
layout: two
fields:
  head: u16
  sum: {type: u32, checksum: crc32, covers: [{from: body}, {from: head, to: head}]}
  body: {bytes: rest}
---
layout: masked
fields:
  head: u16
  sum: {type: u32, checksum: crc32, covers: {from: head, zero: [sum, flags]}}
  flags: {type: u8, versions: 0+}
  body: {bytes: rest}
versions: 0
---
layout: bits
fields:
  sum: {type: u32, checksum: crc32, covers: rest, mask: 0x7FFF00FF}
  body: {bytes: rest}
---
layout: chained
fields:
  x: u8
  y: u8
  one: {type: u32, checksum: crc32, covers: {from: x, to: y}}
  two: {type: u32, checksum: crc32, covers: {from: one, to: one}}
---
layout: framed
fields:
  sum: {type: u16, checksum: crc16_arc, covers: [{from: size, to: kind}, {from: body, zero: [body]}]}
  size: {type: i16, measures: {from: sum}}
  kind: u8
  body: {bytes: rest}
---
layout: frames
fields: {all: {array: framed, until: end, accepts: [truncated_tail]}}
"""
VIEW = """
---
layout: entry
fields:
  k: {type: u8, const: 1}
  size: {type: i32, measures: MEASURES}
  n: i64
  sum: {type: u32, checksum: crc32, covers: COVERS}
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


def test_one_range_after_the_other(codecs: Any) -> None:
    data = codecs.TWO.build({"head": 7, "body": b"abc"})
    assert data == b"\0\7" + zlib.crc32(b"abc\0\7").to_bytes(4, "big") + b"abc"
    assert codecs.TWO.parse(data).body == b"abc"


def test_what_counts_as_zeros(codecs: Any) -> None:
    masked = codecs.MASKED_V0
    data = masked.build({"head": 7, "flags": 5, "body": b"abc"})
    wanted = zlib.crc32(b"\0\7" + bytes(5) + b"abc")
    assert data == b"\0\7" + wanted.to_bytes(4, "big") + b"\5abc"
    assert masked.parse(data).sum == wanted
    assert masked.parse(data[:6] + b"\6abc").flags == 6  # no checksum sees it


def test_some_bits_are_kept(codecs: Any) -> None:
    data = codecs.BITS.build({"body": b"abc"})
    assert data == (zlib.crc32(b"abc") & 0x7FFF00FF).to_bytes(4, "big") + b"abc"
    assert codecs.BITS.parse(data).body == b"abc"
    with pytest.raises(ChecksumError):
        codecs.BITS.parse(b"\xff" + data[1:])


def test_the_order_is_that_of_what_covers_what(codecs: Any) -> None:
    data = codecs.CHAINED.build({"x": 1, "y": 2})
    one = zlib.crc32(b"\1\2").to_bytes(4, "big")
    assert data == b"\1\2" + one + zlib.crc32(one).to_bytes(4, "big")
    assert codecs.CHAINED.build(codecs.CHAINED.parse(data)) == data


def test_many_checksums_over_each_other() -> None:
    """Each covers all that follow it."""
    sums = [f"  s{i}: {{type: u16, checksum: crc16_arc, covers: rest}}" for i in range(30)]
    text = "\n".join(["layout: many", "fields:", *sums, "  end: u8"])
    found, _ = load_codecs(make_plan(model_of(text)))
    assert found is not None
    many = found.module("case.yaml").MANY
    data = many.build({"end": 1})
    assert (len(data), many.parse(data).end) == (61, 1)


@pytest.mark.parametrize("at", [0, 2, 5, 6, 8])
def test_damage_is_seen_in_each_range(codecs: Any, at: int) -> None:
    data = bytearray(codecs.TWO.build({"head": 7, "body": b"abc"}))
    data[at] ^= 16
    with pytest.raises(ChecksumError) as caught:
        codecs.TWO.parse(bytes(data))
    assert (caught.value.where.path, caught.value.where.position) == ("sum", 2)
    findings: list[ParseError] = []
    codecs.TWO.parse(bytes(data), strict=False, findings=findings)
    assert [type(f) for f in findings] == [ChecksumError]


def test_a_length_that_begins_before_itself(codecs: Any) -> None:
    framed = codecs.FRAMED
    data = framed.build({"kind": 3, "body": b"abc"})
    assert data[2:] == b"\0\x08\3abc"
    assert framed.parse(data).size == 8
    findings: list[ParseError] = []
    both = codecs.FRAMES.parse(data + data + data[:5], strict=False, findings=findings)
    assert (len(both.all), len(findings)) == (2, 1)
    for size in (-1, 0, 3, 4, 7, 9, 0x7FFF):
        with pytest.raises(ParseError):
            framed.parse(data[:2] + size.to_bytes(2, "big", signed=True) + data[4:])
    with pytest.raises(LengthError) as caught:
        framed.parse(data[:2] + b"\0\3" + data[4:])
    assert (caught.value.where.path, caught.value.where.position) == ("size", 2)


@pytest.mark.parametrize(
    ("measures", "covers", "reason"),
    [
        ("rest", "[{from: k, to: k}, {from: n, to: n}]", "a checksum of several ranges"),
        ("rest", "{from: n, zero: [sum]}", "a checksum for which fields count as zero bytes"),
        ("{from: k}", "{from: n, to: n}", "a length that counts bytes before it"),
    ],
)
def test_kernels_refuse_it(measures: str, covers: str, reason: str) -> None:
    text = VIEW.replace("MEASURES", measures).replace("COVERS", covers)
    (refused,) = unread_by_kernels(model_of(text))
    assert (refused.code, reason in refused.message) == ("C023", True)


def test_words() -> None:
    model = model_of(TEXT)
    plan = make_plan(model)
    assert "crc32 over body, then head" in explain(model, "two.sum")
    assert "sum (crc32, as zero bytes)" in explain(model, "masked.flags")
    assert "crc32 & 0x7fff00ff over body" in explain(model, "bits.sum")
    program = explain_program(model, "masked")
    assert "head to the end, with zeros for sum, flags" in program
    assert "size=size - 4" in explain_program(model, "framed")
    left_out = "".join(emit_kaitai(plan, {}).files.values())
    assert "the crc32 of body to body, then head to head" in left_out
    page = "".join(emit_docs(plan).files.values())
    assert "CRC-32 of `body`, then `head`" in page
    assert "with zeros for `sum` and `flags`" in page


def test_what_changed() -> None:
    before = model_of(TEXT)
    after = model_of(
        TEXT.replace("zero: [sum, flags]", "zero: [sum]").replace("0x7FFF00FF", "0xFF")
    )
    changed = diff("masked", Side("1", before, None), Side("2", after, None))
    zeros = "with zeros for sum, flags becomes crc32 of head to the end, with zeros for sum"
    assert zeros in changed
    changed = diff("bits", Side("1", before, None), Side("2", after, None))
    assert "the checksum crc32 & 0x7fff00ff of the next field to the end becomes" in changed
