"""Rows of entries that ask for cases of choices: what the functions of rows give, and that columnar readers are left out."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import Place
from tests.codecgen.generated import package_of
from tests.codecgen.schemas import model_of, unread_by_kernels

SCHEMA = """
view: events
of: entry
columns:
  kind: {type: int16}
  x: {type: int16, nullable: true}
  y: {type: int16, nullable: true}
  is_moved: {type: bool}
  by: {type: string, nullable: true}
  key: {type: int16, nullable: true}
  urgent: {type: bool, nullable: true}
rows:
  - of: entry
    when: kind < 9
    columns:
      kind: kind
      x: body.moved.x
      y: if body.moved != null then body.moved.y else null
      is_moved: body.moved != null
      by: body.built.by
      key: key.numbered.number
      urgent: body.moved.flags.urgent
---
view: parts
of: log
columns: {x: {type: int16, nullable: true}, by: {type: string, nullable: true}}
rows:
  - {of: log, each: entries, when: size > 0, columns: {x: item.body.moved.x, by: item.body.built.by}}
---
layout: log
fields:
  size: {type: u8, measures: rest}
  entries: {array: entry, until: end}
---
layout: entry
fields:
  kind: u8
  version: u8
  body: {choice: body, given: {kind: kind}, version: version, length: u8, none: 255, unknown: bytes}
  key: {choice: key}
---
choice: body
given: {kind: u8}
by: kind
cases: {0-1: built, 2: moved}
---
choice: key
by: type
cases: {0: numbered, 1: named}
---
layout: numbered
fields: {type: {type: u8, const: 0}, number: u8}
---
layout: named
fields: {type: {type: u8, const: 1}, name: {string: u8}}
---
layout: built
fields: {by: {string: u8}}
---
layout: moved
versions: 0-1
fields: {x: i8, y: {type: i8, versions: 1}, flags: {bits: u8, members: {urgent: {at: 0}, rest: {at: 1-7}}}}
"""

ENTRIES: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({"kind": 0, "body": {"by": "me"}, "key": 7}, (0, None, None, False, "me", 7, None)),
    ({"kind": 1, "body": {"by": ""}}, (1, None, None, False, "", None, None)),
    ({"kind": 2, "body": {"x": -1}, "key": 0}, (2, -1, None, True, None, 0, True)),
    ({"kind": 2, "version": 1, "body": {"x": 3, "y": 4}}, (2, 3, 4, True, None, None, True)),
    ({"kind": 2, "version": 2, "body": b"x"}, (2, None, None, False, None, None, None)),
    ({"kind": 5, "body": b"by"}, (5, None, None, False, None, None, None)),
    ({"kind": 2, "body": None}, (2, None, None, False, None, None, None)),
]


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    package_of(SCHEMA, tmp_path_factory.mktemp("cases"), "cases_codecs")
    return importlib.import_module("cases_codecs.case")


def value_of(entry: dict[str, Any]) -> dict[str, Any]:
    body = entry["body"]
    if isinstance(body, dict) and "x" in body:
        body = body | {"flags": {"urgent": True, "rest": 0}}
    number = entry.get("key")
    key = {"type": 1, "name": "n"} if number is None else {"type": 0, "number": number}
    return {"kind": entry["kind"], "version": entry.get("version", 0), "body": body, "key": key}


def rows_of(view: Any, layout: Any, data: bytes) -> list[tuple[Any, ...]]:
    opened = layout.open(Source(data, Session()))
    return [*view.rows(layout, opened, Place(0, len(data)))]


@pytest.mark.parametrize(("entry", "row"), ENTRIES)
def test_rows_of_entries(codecs: Any, entry: dict[str, Any], row: tuple[Any, ...]) -> None:
    view = importlib.import_module("cases_codecs.rows.events").EVENTS
    data = codecs.ENTRY.build(value_of(entry))
    assert rows_of(view, codecs.ENTRY, data) == [row]


def test_rows_of_elements(codecs: Any) -> None:
    view = importlib.import_module("cases_codecs.rows.parts").PARTS
    data = codecs.LOG.build({"entries": [value_of(entry) for entry, _ in ENTRIES]})
    assert rows_of(view, codecs.LOG, data) == [(row[1], row[4]) for _, row in ENTRIES]


def test_columnar_readers_of_entries_are_left_out() -> None:
    found = [d.message.partition(" is ")[0] for d in unread_by_kernels(model_of(SCHEMA))]
    assert found == ['"body"', '"body"']
