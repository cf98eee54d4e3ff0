"""Columns of tagged fields, and of layouts that have some: also where they are left out, with their defaults."""

from __future__ import annotations

import importlib
import sys
import uuid
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import Place
from tests.codecgen.generated import package_of
from tests.codecgen.schemas import model_of, unread_by_kernels
from tests.support.plain_kernels import decoded, view_of

PACKAGE = "tagged_columns_codecs"
TEXT = """\
layout: registered
versions: 0-1
flexible: 1+
fields:
  version: {type: u8, is: version}
  id: uuid
  inner: {layout: inner}
  replicas: {array: i32, none: true}
tagged:
  rate: {tag: 0, type: f64, default: 0, versions: 1+}
  epoch: {tag: 1, type: i64, default: -1, versions: 1+}
  ready: {tag: 2, type: bool, default: true, versions: 1+}
  directories: {tag: 3, array: uuid, versions: 1+}
---
layout: inner
versions: 0-1
flexible: 1+
fields:
  name: {type: string, none: true}
tagged:
  number: {tag: 5, type: i32, default: 7, versions: 1+}
  on: {tag: 6, type: bool, default: true, versions: 1+}
---
view: registrations
of: registered
columns:
  id: {type: uuid}
  inner: {struct: {name: {type: string, nullable: true}, number: {type: int32, nullable: true}, on: {type: bool, nullable: true}}}
  replicas: {list: int32, nullable: true}
  rate: {type: double, nullable: true}
  epoch: {type: int64, nullable: true}
  ready: {type: bool, nullable: true}
  directories: {list: uuid, nullable: true}
rows:
  - of: registered
    columns: {id: id, inner: inner, replicas: replicas, RATE, EPOCH, READY, DIRECTORIES}
"""


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    root = tmp_path_factory.mktemp("tagged_columns")
    text = TEXT
    for name in ("rate", "epoch", "ready", "directories"):
        text = text.replace(name.upper(), f"{name}: if version > 0 then {name} else null")
    package_of(text, root, PACKAGE, "construct,arrow")
    sys.path.insert(0, str(root / "out"))
    try:
        yield importlib.import_module(f"{PACKAGE}.case")
    finally:
        sys.path.remove(str(root / "out"))


def test_values_and_defaults(codecs: ModuleType) -> None:
    some, other = uuid.UUID(int=1), uuid.UUID(int=2)
    base: dict[str, Any] = {"id": some, "replicas": [1, -2]}
    values = [
        base | {"inner": {"name": "a"}},
        base | {"inner": {"name": "b", "number": 9, "on": False}, "rate": 1.5, "epoch": 4},
        base
        | {"inner": {"name": None, "number": -1}, "ready": False, "directories": [some, other]},
        {"id": other, "inner": {"name": "", "on": False}, "replicas": None},
    ]
    data = b"".join(bytes(codecs.REGISTERED_V1.build(value)) for value in values)
    parts, rejected = decoded(view_of(PACKAGE, "registrations"), data)
    assert not rejected
    rows = [row for part in parts for row in part.batch.to_pylist()]
    assert [row["inner"] for row in rows] == [
        {"name": "a", "number": 7, "on": True},
        {"name": "b", "number": 9, "on": False},
        {"name": None, "number": -1, "on": True},
        {"name": "", "number": 7, "on": False},
    ]
    assert [row["rate"] for row in rows] == [0.0, 1.5, 0.0, 0.0]
    assert [row["epoch"] for row in rows] == [-1, 4, -1, -1]
    assert [row["ready"] for row in rows] == [True, True, False, True]
    assert [row["directories"] for row in rows] == [[], [], [some.bytes, other.bytes], []]
    assert [row["replicas"] for row in rows] == [[1, -2]] * 3 + [None]
    view = importlib.import_module(f"{PACKAGE}.rows.registrations").REGISTRATIONS
    at = 0
    for row in rows:
        source = Source(data, Session(), pos=at)
        layout = view.of.case(source)
        opened = layout.open(source)
        found = list(view.rows(layout, opened, Place(at, 0)))
        inner = tuple(row["inner"].values())
        lists = [None if row[n] is None else tuple(row[n]) for n in ("replicas", "directories")]
        wanted = (row["id"], inner, lists[0], row["rate"], row["epoch"], row["ready"], lists[1])
        assert found == [wanted]
        at = source.pos


def test_a_version_without_them(codecs: ModuleType) -> None:
    value = {"id": uuid.UUID(int=3), "inner": {"name": "x"}, "replicas": [5]}
    data = bytes(codecs.REGISTERED_V0.build(value))
    (part,), rejected = decoded(view_of(PACKAGE, "registrations"), data)
    assert not rejected
    (row,) = part.batch.to_pylist()
    assert row["inner"] == {"name": "x", "number": None, "on": None}
    assert row["rate"] is None and row["ready"] is None and row["directories"] is None


LAYOUT = """\
layout: entry
flexible: 0+
fields: {id: i32}
tagged: {more: {tag: 1, array: string}}
---
layout: inner
flexible: 0+
fields: {number: i32, names: {array: string}}
---
view: entries
of: entry
columns: {id: {type: int32}, more: {list: string}}
rows: [{of: entry, columns: {id: id, more: more}}]
"""


def test_a_tagged_layout_is_refused() -> None:
    assert not unread_by_kernels(model_of(LAYOUT))
    model = model_of(
        LAYOUT.replace("tagged: {", "tagged: {inner: {tag: 0, layout: inner, none: true}, ")
    )
    (found,) = unread_by_kernels(model)
    assert '"inner" is a tagged layout' in found.message
