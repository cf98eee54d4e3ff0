"""Defaults and conditions of invented formats, through the construct target."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from codecgen.cli import main
from codecgen.runtime.errors import BuildError

SCHEMA = """
layout: thing
doc: All kinds of defaults.
fields:
  kind: {type: u8, enum: kind, default: large}
  name: {string: u8, none: 255, default: null}
  flags:
    bits: u8
    members:
      has_name: {at: 0, default: name != null}
      shade: {at: 1-2, enum: kind, default: small}
      rest: {reserved: keep}
  end_size: {type: u8, default: last(parts).size}
  more: {type: u8, default: 9, when: kind == large}
  parts: {array: part, count: u8}
---
layout: part
fields:
  size: u8
---
enums:
  kind:
    values: {small: 0, large: 1}
"""


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The package that is generated from the schema above."""
    root = tmp_path_factory.mktemp("things")
    (root / "schemas").mkdir()
    manifest = "language: 1\npackage: default_things\ntitle: Things\n"
    (root / "schemas" / "codecgen.yaml").write_text(manifest, "utf-8")
    (root / "schemas" / "thing.yaml").write_text(SCHEMA, "utf-8")
    out = root / "out"
    arguments = ["generate", str(root / "schemas"), "--out", str(out), "--targets", "construct"]
    assert main(arguments) == 0
    sys.path.insert(0, str(out))
    try:
        return importlib.import_module("default_things")
    finally:
        sys.path.remove(str(out))


def test_what_is_not_given_is_filled_in(things: ModuleType) -> None:
    data = things.THING.build({"parts": [{"size": 3}, {"size": 4}]})
    parsed = things.THING.parse(data)
    assert parsed.kind is things.Kind.LARGE
    assert parsed.name is None
    assert (parsed.flags.has_name, parsed.flags.shade) == (False, things.Kind.SMALL)
    assert (parsed.end_size, parsed.more) == (4, 9)
    named = things.THING.parse(
        things.THING.build({"kind": "small", "name": "x", "parts": [{"size": 1}]})
    )
    assert named.flags.has_name
    assert named.more is None


def test_a_default_that_needs_an_element(things: ModuleType) -> None:
    with pytest.raises(BuildError, match="a value is needed: it is missing or null") as caught:
        things.THING.build({})
    assert caught.value.where.path == "end_size"
    assert things.THING.parse(things.THING.build({"end_size": 0})).parts == []


def test_paths_are_for_people(things: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        things.THING.build({"end_size": 0, "parts": [{"size": 1}, {"size": 300}]})
    assert caught.value.where.path == "parts[1].size"
    assert str(caught.value) == "300 does not fit uint8 (0 to 255) (parts[1].size, thing.yaml:19)"
