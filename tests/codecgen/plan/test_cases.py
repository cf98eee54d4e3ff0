"""Which layout a choice selects where the values leave out what the builder works out."""

from __future__ import annotations

from typing import Any

import pytest

from codecgen.plan import make_plan
from codecgen.plan.cases import find_held_plan
from codecgen.runtime.errors import BuildError
from codecgen.schema.model import Model
from codecgen.values.documents import BuildError as ValuesRefused
from codecgen.values.documents import build_all
from codecgen.values.named_codec import NamedCodec
from tests.codecgen.schemas import codecs_of, model_of

TEXT = """\
layout: before
fields:
  top: {type: u8, default: max(parts).n}
  body: {choice: bodies, given: {kind: top}}
  parts: {array: part, count: u8}
---
layout: after
fields:
  count: {type: u8, counts: parts}
  parts: {array: part}
  top: {type: u8, default: max(parts).n}
  body: {choice: bodies, given: {kind: top}}
---
layout: counted
fields:
  count: {type: u8, counts: parts}
  parts: {array: part}
  body: {choice: bodies, given: {kind: count}}
---
layout: compared
fields:
  top: {type: u8, default: if last(parts).n > 1 then last(parts).n - 1 else first(parts).n + 0}
  body: {choice: bodies, given: {kind: top}}
  parts: {array: part, count: u8}
---
layout: part
fields: {n: {type: u8, default: 2}, word: {bits: uvarint, members: {low: {at: 0-3}, high: {at: 4-31}}}}
---
layout: body_one
fields: {x: u8}
---
layout: body_two
fields: {x: u16}
---
choice: bodies
given: {kind: u8}
by: kind
cases: {1: body_one, 2: body_two}
"""
MODEL = model_of(TEXT)
PARTS: list[Any] = [
    [{"n": 1}],
    [{"n": 1}, {"n": 2}],
    [{}, {"n": 1}],
    [{"n": 1}, {}],
    [{}],
    [],
    None,
    5,
    "x",
    [5, {"n": 1}],
    [{"n": None}, {"n": 1}],
    [{"n": "x"}, {"n": 1}],
    [{"n": 1}, {"n": "x"}],
    [{"n": 1.5}],
    [{"n": [1]}, {"n": b"1"}],
    [{"n": 1, "word": 5}],
    [{"n": 1, "word": {"low": "x"}}],
]


@pytest.mark.parametrize("parts", PARTS, ids=repr)
@pytest.mark.parametrize("name", ["before", "after", "counted", "compared"])
def test_the_layout_is_the_one_that_the_builder_writes(name: str, parts: Any) -> None:
    plan = make_plan(MODEL)
    (layout,) = plan.versions[name]
    body = layout.field("body")
    assert body is not None
    values = {"body": {"x": 1}, "parts": parts}
    before = repr(values)
    held = find_held_plan(plan, layout, body, values, values["body"])
    assert repr(values) == before
    codec = getattr(codecs_of(plan), name.upper())
    try:
        data = codec.build(values)
    except BuildError:
        return
    assert held is not None
    kind = codec.parse(data)["count" if name == "counted" else "top"]
    assert held.name == {1: "body_one", 2: "body_two"}[kind]


def test_values_of_other_types_are_refused_at_their_place() -> None:
    text = "layout: number\nfields: {id: uuid, far: f64}\n"
    model: Model = model_of(text)
    plan = make_plan(model)
    named = NamedCodec("number", plan, codecs_of(plan).NUMBER)
    right = "id: 00000000-0000-0000-0000-000000000001\nfar: 1"
    assert len(build_all(named, "values.yaml", right)) == 24
    for wrong in ("id: 5\nfar: 1", "id: [5]\nfar: 1", right.replace("far: 1", "far: [1]")):
        with pytest.raises(ValuesRefused) as error:
            build_all(named, "values.yaml", wrong)
        (found,) = error.value.diagnostics
        assert "is needed, not" in found.message
