"""Views into payloads whose layouts hold choices: what they ask of a case is read by the kernel as by the reference codecs."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from codecgen.runtime.arrow.payloads import decode
from tests.codecgen.generated import package_of
from tests.laws.compiled import compiled_module
from tests.laws.made import checked, generated, imported
from tests.laws.mutations import mutated
from tests.laws.payload_memory import decoded, summed
from tests.laws.world import World
from tests.paths import ROOT

SCHEMA = ROOT / "tests" / "data" / "choosing"
COPIED = ("name", "was", "to", "speed", "stops", "depth", "alias", "peers")
VIEWS = ("moves", "everything", "measured")
Parts = dict[str, list[bytes | None]]


@pytest.fixture(scope="module")
def codecs() -> Iterator[ModuleType]:
    world = World.read({path.name: path.read_text("utf-8") for path in SCHEMA.glob("*.yaml")})
    model, found = checked(world)
    assert not found
    made = generated(world, model)
    assert not made.refused
    with imported(made) as package:
        yield package


def view_of(name: str) -> Any:
    return getattr(importlib.import_module(f"choosing_codecs.columns.{name}"), name.upper())


def moved(version: int, i: int) -> dict[str, Any]:
    """A move as it is written in a version."""
    has_speed = bool(i & 1)
    body: dict[str, Any] = {"name": f"n\u00e4me {i}", "has_speed": has_speed}
    body["speed"] = i / 4 if has_speed else None
    body["flags"] = {"urgent": bool(i & 2), "rest": 5}
    body["stops"] = None if i % 5 == 0 else [*range(i % 4)]
    body["marks"] = [{"name": "x" * k, "mark": f"m{k}"} for k in range(i % 3)]
    if version <= 2:
        body["was"] = None if version and i % 4 == 0 else "w" * (i % 7)
    if version >= 1:
        body["to"] = -i
        body["marks"] = [mark | {"level": k} for k, mark in enumerate(body["marks"])]
    if version >= 2:
        body["id"] = UUID(int=i)
        body["depth"] = i % 3 - 1
        body["peers"] = [7] * (i // 4 % 3)
    if version == 3:
        body["alias"] = "a" * (i // 4 % 3)
    return body


def message(i: int) -> tuple[int, int, Any]:
    """A kind, a version, and what is written in it."""
    return [
        (2, i % 4, moved(i % 4, i)),
        (1, i % 2, {"number": i, "labels": ["a"] * (i % 3)}),
        (3, 0, {"at": i, "is_late": bool(i & 1), "late": i % 6 if i & 1 else None}),
        (7, 1, {"number": -i, "labels": []}),
        (9, 3, b"whatever"),
        (8, 0, b""),
        (2, 4, b"of a later version"),
    ][i // 4 % 7]


def parts_of(codecs: Any, name: str, count: int) -> Parts:
    every = [message(i) for i in range(count)]
    if name == "measured":
        bodies = [
            {"kind": kind, "version": version, "body": None if i % 9 == 0 else body, "after": i}
            for i, (kind, version, body) in enumerate(every)
            if isinstance(body, dict)
        ]
        return {"value": [codecs.ENVELOPE.build(body) for body in bodies]}
    values = [
        codecs.MESSAGE.build({"frame": 1, "kind": kind, "version": version, "body": body})
        for kind, version, body in every
    ]
    if name == "moves":
        return {"value": [*values, None]}
    keys = [
        None if i % 6 == 0 else codecs.MESSAGE_KEY.build({"station": f"s{i}"}) for i in range(count)
    ]
    return {"key": keys, "value": [None if i % 10 == 9 else v for i, v in enumerate(values)]}


@pytest.mark.parametrize("name", VIEWS)
def test_kernels_read_what_the_codecs_read(codecs: ModuleType, name: str) -> None:
    parts = parts_of(codecs, name, 112)
    view = view_of(name)
    assert view.kernels is not None
    by_kernel = summed(decoded(view, parts, before=3))
    assert by_kernel == summed(decoded(view, parts, compiled=False))
    assert by_kernel["rows"] and not by_kernel["rejected"]


def test_rows(codecs: ModuleType) -> None:
    parts = parts_of(codecs, "moves", 112)
    rows = summed(decoded(view_of("moves"), parts))["values"]
    assert [row["record"] for row in rows] == [
        i for i in range(112) if message(i)[2] == moved(i % 4, i)
    ]
    for row in rows:
        i = row["record"]
        body = moved(i % 4, i)
        marks = [{"mark": m["mark"], "level": m.get("level")} for m in body["marks"]]
        assert row == {
            "record": i,
            "urgent": body["flags"]["urgent"],
            "id": body["id"].bytes if "id" in body else None,
            "marks": marks,
            **{name: body.get(name) for name in COPIED},
        }


@pytest.mark.slow
@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("strict", [True, False])
def test_damaged_payloads(codecs: ModuleType, name: str, strict: bool) -> None:
    """Of a case that has no rows the kernel sees no damage; all else is read as by the reference codecs."""
    r = random.Random(name)
    view, whole = view_of(name), parts_of(codecs, name, 56)
    for _ in range(5):
        values = [
            v if v is None or r.random() < 0.5 else next(iter(mutated(v, r, 1)), v)
            for v in whole["value"]
        ]
        parts = {**whole, "value": values}
        found = summed(decoded(view, parts, strict=strict, max_rows=7))
        wanted = summed(decoded(view, parts, strict=strict, compiled=False))
        passed_over = [w for w in wanted["rejected"] if w not in found["rejected"]]
        assert all(passes_over(values[w.row] or b"", name) for w in passed_over)
        wanted["rejected"] = [w for w in wanted["rejected"] if w in found["rejected"]]
        assert found == wanted


def passes_over(data: bytes, name: str) -> bool:
    """Whether a value says that it is a case which the view makes no rows of."""
    kind = int.from_bytes(data[:2]) if name == "measured" else data[1]
    return kind in {"moves": (1, 3, 7), "everything": (1, 7), "measured": (3,)}[name]


def test_what_has_rows_is_looked_at(codecs: ModuleType) -> None:
    """A case that the condition lets in is read by somebody, whatever columns ask for."""
    value = codecs.MESSAGE.build(
        {"frame": 1, "kind": 3, "version": 0, "body": {"at": 1, "is_late": False, "late": None}}
    )
    found = summed(decoded(view_of("everything"), {"key": [None], "value": [value[:-1]]}))
    assert [(w.row, w.field) for w in found["rejected"]] == [(0, "body.is_late")]


NEVER_THERE = """
view: found
of: {key: found_key, value: found_value}
kernels: true
columns:
  number: {type: int64, nullable: true}
  data: {type: binary, nullable: true}
  text: {type: string, nullable: true}
  id: {type: uuid, nullable: true}
  list: {list: int32, nullable: true}
  pair: {struct: {left: {type: int32}}, nullable: true}
  old: {type: int64, nullable: true}
rows:
  - of: {key: found_key, value: found_value}
    when: value == null or value.version == 0
    columns:
      number: value.body.one.number
      data: value.body.one.data
      text: value.body.one.text
      id: value.body.one.id
      list: value.body.one.list
      pair: value.body.one.pair
      old: value.body.one.old
---
layout: found_key
fields: {n: u8}
---
layout: found_value
versions: 0-1
fields:
  version: {type: i16, is: version}
  kind: u8
  body: {choice: body, given: {kind: kind}}
---
choice: body
given: {kind: u8}
by: kind
cases: {1: one, 2: two}
---
layout: one
versions: 0-1
fields:
  old: u8
  number: {type: u8, versions: 1+}
  data: {bytes: u8, versions: 1+}
  text: {string: u8, versions: 1+}
  id: {type: uuid, versions: 1+}
  list: {array: i32, count: u8, versions: 1+}
  pair: {layout: pair, versions: 1+}
---
layout: pair
fields: {left: i32}
---
layout: two
fields: {other: u8}
"""


@pytest.mark.slow
def test_columns_of_fields_that_no_version_has(tmp_path: Path) -> None:
    """The rows are of a version whose case lacks the fields, so that their columns are null."""
    package_of(NEVER_THERE, tmp_path, "never_there_codecs", "construct,arrow")
    view = importlib.import_module("never_there_codecs.columns.found").FOUND
    assert view.kernels is not None
    values = [bytes([0, 0, 1, 9]), bytes([0, 0, 2, 8]), bytes([0, 0, 3]), bytes([0, 0, 1]), None]
    parts: Parts = {"key": [b"k"] * len(values), "value": values}
    found = summed(decoded(view, parts))
    assert found == summed(decoded(view, parts, compiled=False))
    assert [row.pop("old") for row in found["values"]] == [9, None, None]
    assert {value for row in found["values"] for value in row.values()} == {None}
    assert [wrong.row for wrong in found["rejected"]] == [2, 3]


@pytest.mark.share(ci=3)
@pytest.mark.soak
@pytest.mark.parametrize("name", VIEWS)
def test_machine_code(codecs: ModuleType, name: str, tmp_path: Path) -> None:
    """The kernel as machine code reads what it reads as plain Python, also where it is damaged."""
    r = random.Random(name)
    view, parts = view_of(name), parts_of(codecs, name, 56)
    text = importlib.import_module(view.kernels).__loader__.files[
        f"{view.kernels.replace('.', '/')}.py"
    ]
    module = compiled_module(f"compiled_choosing_{name}", text, tmp_path)
    for damaged in (False, True):
        if damaged:
            values = [next(iter(mutated(v or b"", r, 1)), v) for v in parts["value"]]
            parts = {**parts, "value": values}
        plain = summed(decoded(view, parts))
        before = sys.modules[view.kernels]
        sys.modules[view.kernels] = module
        try:
            arrays = {part: pa.array(data, pa.binary()) for part, data in parts.items()}
            found = summed(list(decode(view, arrays)))
        finally:
            sys.modules[view.kernels] = before
        assert found == plain
