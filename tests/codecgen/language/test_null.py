"""Null in expressions: a sum with null is null, no order holds with null, == and != compare it as a value."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from codecgen.check import run
from codecgen.diagnostics import render
from codecgen.plan import make_plan
from codecgen.plan.encoded_sizes import encoded_size
from codecgen.runtime.errors import CodecError
from codecgen.schema import loader
from tests.codecgen.generated import package_of
from tests.codecgen.goldens import MANIFEST

SCHEMA = """
layout: chain
fields:
  k: u8
  b: {type: u8, when: k == 1}
  c: {type: u8, when: b > 3}
  d: {type: u8, when: b != 7}
  e: {type: u8, when: not (b > 3)}
  f: {type: u8, when: b == null}
  g: {type: u8, when: b != null and b + k > 3}
derived:
  sum: {type: i32, is: b + k}
  guarded: {type: i32, is: if b != null then b + k else 0}
---
layout: ends
fields:
  ys: {array: y, count: u8}
  c: {type: u8, valid: last(ys).v + 1 > c}
---
layout: y
fields: {v: i32}
---
layout: deep
fields:
  has: u8
  inner: {layout: point, when: has == 1}
  more: {type: u8, when: inner.x > 3}
  flag: {type: u8, when: inner.flags.on}
---
layout: point
fields:
  x: i32
  flags: {bits: u8, members: {on: {at: 0}, unused: {reserved: keep}}}
"""


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return package_of(SCHEMA, tmp_path_factory.mktemp("null"), "null_codecs")


@pytest.mark.parametrize(
    ("k", "b", "there"),
    [
        (0, None, {"d", "e", "f"}),
        (1, 0, {"d", "e"}),
        (1, 3, {"d", "e", "g"}),
        (1, 4, {"c", "d", "g"}),
        (1, 7, {"c", "g"}),
    ],
)
def test_conditions_on_what_may_be_null(
    codecs: ModuleType, k: int, b: int | None, there: set[str]
) -> None:
    given = dict.fromkeys(there, 9) | {"k": k} | ({} if b is None else {"b": b})
    data = codecs.CHAIN.build(given)
    assert len(data) == len(given)
    parsed = codecs.CHAIN.parse(data)
    assert {name for name in "cdefg" if parsed[name] is not None} == there
    assert codecs.CHAIN.build(parsed) == data
    module = codecs.case
    assert module.sum(parsed) == (None if b is None else b + k)
    assert module.guarded(parsed) == (0 if b is None else b + k)
    model, found = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": SCHEMA})
    assert model is not None and not found
    plan = make_plan(model)
    assert encoded_size(plan, plan.versions["chain"][0], given) == len(data)


def test_the_ends_of_nothing(codecs: ModuleType) -> None:
    with pytest.raises(CodecError, match=r"last\(ys\)\.v \+ 1 > c"):
        codecs.ENDS.parse(bytes([0, 5]))
    with pytest.raises(CodecError, match=r"last\(ys\)\.v \+ 1 > c"):
        codecs.ENDS.build({"ys": [], "c": 1})
    assert codecs.ENDS.parse(codecs.ENDS.build({"ys": [{"v": 5}], "c": 5})).c == 5


def test_what_lies_in_something_that_is_not_there(codecs: ModuleType) -> None:
    parsed = codecs.DEEP.parse(bytes([0]))
    assert (parsed.inner, parsed.more, parsed.flag) == (None, None, None)
    data = codecs.DEEP.build(
        {"has": 1, "inner": {"x": 4, "flags": {"on": True}}, "more": 2, "flag": 3}
    )
    parsed = codecs.DEEP.parse(data)
    assert (parsed.more, parsed.flag) == (2, 3)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("b", "cannot be null, but its value can"),
        ("if k == 1 then b else 0", ""),
        ("if b != null then b else 0", ""),
        ("if b > 3 then b else 0", ""),
        ("if not (b > 3) then b else 0", "cannot be null, but its value can"),
        ("if k == 1 and b > 2 then b + k else 0", ""),
        ("b + k", "cannot be null, but its value can"),
    ],
)
def test_a_column_knows_when_its_value_can_be_null(value: str, message: str) -> None:
    text = f"""
layout: one
fields:
  kind: {{type: u8, const: 1}}
  size: {{type: u16, measures: rest}}
  k: u8
  b: {{type: u8, when: k == 1}}
---
choice: c
by: kind
cases: {{1: one}}
---
view: v
of: c
columns: {{x: {{type: int64}}}}
rows:
  - {{of: one, columns: {{x: {value}}}}}
"""
    files = {"codecgen.yaml": MANIFEST, "case.yaml": text}
    model, found = loader.load(files)
    assert model is not None
    said = render([*found, *run(model)], files)
    assert message in said and bool(message) == bool(said)


def test_a_codec_is_named_by_a_field(tmp_path: Path) -> None:
    text = """
enums: {codec: {values: {none: 0, gzip: 1}}}
---
layout: one
fields:
  k: u8
  a: {type: u8, enum: codec}
  b: {type: u8, enum: codec}
  body: {array: u8, until: end, compressed: {by: if k == 1 then a else b, limit: 100}}
"""
    files = {"codecgen.yaml": MANIFEST, "case.yaml": text}
    model, found = loader.load(files)
    assert model is not None
    assert "needs a field of the layout, or bits of one" in render([*found, *run(model)], files)
