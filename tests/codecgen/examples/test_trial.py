"""Examples of schemas run through both parsers of a layout: the field-by-field one and the fast one."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from codecgen.check import run
from codecgen.check.examples import check_trials
from codecgen.runtime.fast_path import FastPath
from codecgen.schema import loader
from tests.codecgen.goldens import MANIFEST
from tests.codecgen.schemas import model_of

BOX = """
layout: box
fields: {n: u8, x: f32, inner: {layout: part}}
examples:
  - {name: a nan, hex: 05 7fc00000 07, values: {n: 5, inner: {m: 7}}}
---
layout: part
fields: {m: u8}
"""


def test_each_example_is_read_by_the_fast_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    model, read, values = model_of(BOX), FastPath.read_bytes, list[Any]()

    def note(self: FastPath, *place: Any) -> Any:
        found = read(self, *place)
        values.append(found and found[0])
        return found

    monkeypatch.setattr(FastPath, "read_bytes", note)
    before, finders = set(sys.modules), list(sys.meta_path)
    assert list(check_trials(model)) == []
    assert [value.inner.m for value in values if value is not None] == [7]
    assert not [name for name in set(sys.modules) - before if name.startswith("_codecgen_")]
    assert sys.meta_path == finders


def test_a_fast_parser_that_is_wrong_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    model, read = model_of(BOX), FastPath.read_bytes

    def misread(self: FastPath, *place: Any) -> Any:
        found = read(self, *place)
        if found is not None:
            found[0].inner.m += 1
        return found

    monkeypatch.setattr(FastPath, "read_bytes", misread)
    with pytest.raises(AssertionError, match=r"(?s)the fast parser of box .* from 057fc0000007"):
        list(check_trials(model))


def test_an_example_that_leaves_out_what_a_default_needs_is_refused() -> None:
    """The builder says so, in ``check`` and in ``generate``: neither ends in a traceback."""
    text = """
layout: thing
fields:
  top: {type: u8, default: max(parts).n}
  body: {choice: bodies, given: {kind: top}}
  parts: {array: part, count: u8}
examples:
  - {name: one, build: true, values: {body: {x: 1}, parts: [{}, {n: 1}]}}
---
layout: part
fields: {n: {type: u8, default: 1}}
---
layout: body
fields: {x: u8}
---
choice: bodies
given: {kind: u8}
by: kind
cases: {1: body}
"""
    model, found = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": text})
    assert model is not None and not found
    (refused,) = run(model)
    assert refused.code == "C024"
    assert "a value is needed: it is missing or null (top, case.yaml:4)" in refused.message
