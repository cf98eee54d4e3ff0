"""Arrays whose elements say which one is the last."""

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
from codecgen.runtime.errors import BuildError, LimitError, ParseError, TrailingError
from codecgen.runtime.located_bytes import Limits
from codecgen.targets.docs import emit as emit_docs
from codecgen.targets.template import emit_kaitai
from tests.codecgen.schemas import codecs_of, model_of, unread_by_kernels

TEXT = """
enums: {kind: {doc: What., unknown: keep, values: {more: 0, end: 1}}}
---
layout: domain
doc: A name of DNS.
fields:
  labels:
    until: item.size == 0
    array: {fields: {size: {type: u8, measures: {from: text, to: text}, valid: size < 64}, text: {string: rest}}}
  type: u16
---
layout: numbers
fields:
  stop: u8
  all: {array: u8, until: item == stop, at_least: 2}
  after: {array: i16, until: item < 0}
---
layout: parts
fields:
  size: {type: u8, measures: {from: all, to: all}}
  all: {array: part, until: item.flags.is_last or item.kind == end}
  rest: {bytes: rest}
---
layout: part
fields:
  kind: {type: u8, enum: kind, default: more}
  flags: {bits: u8, members: {is_last: {at: 0}, other: {reserved: keep}}}
---
layout: packed
fields:
  codec: {type: u8, enum: codec}
  all: {array: u8, until: item == 0, compressed: {by: codec, limit: 100}}
---
enums: {codec: {doc: How., values: {none: 0, gzip: 1}}}
"""
VIEW = """
---
layout: entry
fields: {k: {type: u8, const: 1}, size: {type: i32, measures: rest}, n: i64, x: {array: u8, until: item == 0}}
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


@given(st.lists(st.text("abc", min_size=1, max_size=63), max_size=5))
def test_names_of_dns(codecs: Any, labels: list[str]) -> None:
    given = {"labels": [{"text": text} for text in [*labels, ""]], "type": 1}
    data = codecs.DOMAIN.build(given)
    wire = b"".join(bytes([len(text)]) + text.encode() for text in labels) + b"\0"
    assert data == wire + b"\0\1"
    parsed = codecs.DOMAIN.parse(data)
    assert [label.text for label in parsed.labels] == [*labels, ""]
    assert codecs.DOMAIN.build(parsed) == data
    assert given["labels"] == [{"text": text} for text in [*labels, ""]]  # as they were given
    plan = the_plan()
    assert encoded_size(plan, plan.versions["domain"][0], given) == len(data)


def test_elements_that_are_numbers(codecs: Any) -> None:
    data = b"\7" + b"\1\2\7" + b"\0\1\xff\xff"
    assert codecs.NUMBERS.parse(data) == {"stop": 7, "all": [1, 2, 7], "after": [1, -1]}
    assert codecs.NUMBERS.build({"stop": 7, "all": [1, 2, 7], "after": [1, -1]}) == data
    with pytest.raises(ParseError, match="at least 2") as caught:
        codecs.NUMBERS.parse(b"\7\7\xff\xff")
    assert caught.value.where.path == "all"


@pytest.mark.parametrize(
    ("items", "path", "reason"),
    [
        ([], "all", "the array must end with an element that meets the condition item == stop"),
        ([1, 2], "all[1]", "is the last: it must fulfil item == stop"),
        (
            [1, 7, 7],
            "all[1]",
            "fulfils item == stop, which only the last one may: more elements follow",
        ),
        ([7, 1], "all[0]", "fulfils item == stop"),
    ],
)
def test_only_the_last_fulfils_it(codecs: Any, items: list[int], path: str, reason: str) -> None:
    numbers = codecs.NUMBERS
    if not items:
        with pytest.raises(BuildError):
            numbers.build({"stop": 7, "after": [-1]})
        return
    with pytest.raises(BuildError) as caught:
        numbers.build({"stop": 7, "all": items, "after": [-1]})
    assert (caught.value.where.path, reason in str(caught.value)) == (path, True)


def test_bits_and_defaults_of_elements(codecs: Any) -> None:
    last = {"flags": {"is_last": True}}
    data = codecs.PARTS.build({"all": [{"flags": {}}, last], "rest": b"x"})
    assert data == b"\4\0\0\0\1x"
    assert len(codecs.PARTS.parse(data).all) == 2
    end = codecs.PARTS.build({"all": [{"kind": "end", "flags": {}}], "rest": b""})
    assert end == b"\2\1\0"
    assert codecs.PARTS.parse(end).all[0].kind.label == "end"


@pytest.mark.parametrize("data", [b"", b"\1a", b"\1a\1b", b"\1a\0", b"\1a\2", b"\x40" + b"a" * 70])
def test_bytes_that_end_early(codecs: Any, data: bytes) -> None:
    for strict in (True, False):
        with pytest.raises(ParseError) as caught:
            codecs.DOMAIN.parse(data, strict=strict)
        assert caught.value.where.path


def test_what_follows_the_last_one_in_its_range(codecs: Any) -> None:
    with pytest.raises(TrailingError):
        codecs.PARTS.parse(b"\4\1\0\0\1x")
    with pytest.raises(ParseError) as caught:
        codecs.PARTS.parse(b"\2\0\0\0\1x")
    assert caught.value.where.path == "all[1].kind"


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_compressed(codecs: Any, codec: str) -> None:
    data = codecs.PACKED.build({"codec": codec, "all": [2, 1, 0]})
    assert codecs.PACKED.parse(data).all == [2, 1, 0]
    for bad in (b"\0\2\1", b"\0\2\0\1", b"\0"):
        with pytest.raises(ParseError):
            codecs.PACKED.parse(bad)


def test_there_is_a_bound(codecs: Any) -> None:
    with pytest.raises(LimitError):
        codecs.NUMBERS.parse(b"\7" + b"\1" * 100, limits=Limits(elements=10))


def test_kernels_refuse_it() -> None:
    (refused,) = unread_by_kernels(model_of(VIEW))
    assert refused.code == "C023"
    assert '"x" is an array whose elements say which one is the last' in refused.message


def test_words() -> None:
    model = model_of(TEXT)
    plan = make_plan(model)
    assert "array of uint8 up to one for which item == stop" in explain(model, "numbers.all")
    assert "until item == stop" in explain_program(model, "numbers")
    page = "".join(emit_docs(plan).files.values())
    assert "after: [int16] (up to one for which" in page
    kaitai = "".join(emit_kaitai(plan, {}).files.values())
    assert "its last element is one for which item == stop" in kaitai
