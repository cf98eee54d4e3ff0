"""Kernels read sections of tagged fields: known ones become columns, others are passed over, and what is wrong is rejected."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from codecgen.diagnostics import render
from codecgen.plan import make_plan
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import Place
from codecgen.targets import arrow
from tests.codecgen.schemas import model_of, unread_by_kernels
from tests.laws.made import checked, generated, imported
from tests.laws.view_laws import Read, reader
from tests.laws.world import World

MANIFEST = "language: 1\npackage: tagged_rows_codecs\ntitle: Made up\n"
FORMAT = """\
layout: one
flexible: 0+
fields:
  kind: {type: u8, const: 1}
  size: {type: u16, measures: rest}
  name: string
  tags: {array: held}
tagged:
  count: {tag: 2, type: i32, default: -1}
  label: {tag: 3, type: string, none: true, default: null}
  data: {tag: 0, type: bytes}
  numbers: {tag: 130, array: i16}
  state: {tag: 5, bits: u8, members: {on: {at: 0, default: true}, rest_: {reserved: keep}}}
  more: {tag: 4, array: held}
  id: {tag: 200, type: uuid}
---
layout: held
flexible: 0+
fields: {text: string, is_old: {type: bool}}
tagged: {weight: {tag: 1, type: i64}}
---
layout: many
flexible: never
fields:
  kind: {type: u8, const: 2}
  size: {type: u16, measures: rest}
  samples: {array: sample, count: u8}
---
layout: sample
flexible: 0+
fields: {x: i16}
tagged: {y: {tag: 1, type: varlong}}
---
choice: entry
by: kind
cases: {1: one, 2: many}
---
view: entries
of: entry
columns:
  name: {type: string, nullable: true}
  count: {type: int32, nullable: true}
  label: {type: string, nullable: true}
  data: {type: binary, nullable: true}
  on: {type: bool, nullable: true}
  tags: {list: {text: {type: string}}}
  more: {list: {text: {type: string}}}
  x: {type: int16, nullable: true}
  y: {type: int64, nullable: true}
rows:
  - of: one
    columns: {name: name, count: count, label: label, data: data, on: state.on, tags: tags, more: more}
  - of: many
    each: samples
    columns: {x: item.x, y: item.y}
"""
NOTHING: dict[str, Any] = dict.fromkeys(
    ["name", "count", "label", "data", "on", "x", "y"]
) | {"tags": [], "more": []}  # fmt: skip
HELD = [{"text": "a", "is_old": True}, {"text": "b", "is_old": False, "weight": 7}]


@pytest.fixture(scope="module")
def codecs() -> Iterator[tuple[ModuleType, Read]]:
    world = World.read({"codecgen.yaml": MANIFEST, "format.yaml": FORMAT})
    model, found = checked(world)
    assert found == ""
    made = generated(world, model)
    assert not made.refused
    with imported(made) as package:
        view = importlib.import_module("tagged_rows_codecs.arrow.entries").ENTRIES
        assert view.numpy is None
        yield package, reader(view, importlib.import_module(view.kernels))


def test_rows(codecs: tuple[ModuleType, Read]) -> None:
    package, read = codecs
    unknown = [
        {"tag": 1, "data": b"??"},
        {"tag": 7, "data": b""},
        {"tag": 1 << 20, "data": b"x" * 200},
    ]
    parts = [
        package.ONE.build({"name": "n", "tags": HELD}),
        package.ONE.build(
            {"name": "m", "tags": [], "count": 5, "label": "l", "data": b"d", "state": {"on": False}, "more": HELD,
             "numbers": [1, 2], "unknown_tags": unknown}
        ),
        package.MANY.build({"samples": [{"x": 1}, {"x": 2, "y": 9}, {"x": 3, "unknown_tags": unknown[1:]}]}),
        package.ONE.build({"name": "", "tags": [], "label": "", "count": 0}),
    ]  # fmt: skip
    rows, rejected = read(b"".join(parts), None, True)
    texts = [{"text": "a"}, {"text": "b"}]
    first = {"count": -1, "label": None, "data": b"", "on": True}
    assert not rejected
    assert rows == [
        {**NOTHING, **first, "name": "n", "tags": texts},
        {
            **NOTHING,
            "name": "m",
            "count": 5,
            "label": "l",
            "data": b"d",
            "on": False,
            "more": texts,
        },
        {**NOTHING, "x": 1, "y": 0},
        {**NOTHING, "x": 2, "y": 9},
        {**NOTHING, "x": 3, "y": 0},
        {**NOTHING, **first, "name": "", "label": "", "count": 0},
    ]


def test_rows_of_the_reference(codecs: tuple[ModuleType, Read]) -> None:
    package, _ = codecs
    view = importlib.import_module("tagged_rows_codecs.rows.entries").ENTRIES
    data = package.ONE.build({"name": "n", "tags": [], "count": 7})
    opened = package.ONE.open(Source(data, Session()))
    names = ["name", "count", "label", "data", "on"]
    assert list(view.rows(package.ONE, opened, Place(0, len(data)), names)) == [
        ("n", 7, None, b"", True)
    ]


SECTIONS = [
    ("02 02 04 00000005 02 04 00000006", "a tag twice"),
    ("02 07 00 06 00", "tags that descend"),
    ("01 02 03 00000005", "a size that is too small"),
    ("01 02 05 0000000500", "a size that is too large"),
    ("01 02 04 ffffffff", "a default"),
    ("01 03 01 00", "null as the default"),
    ("01 00 01 01", "an empty default"),
    ("01 05 01 01", "a default of bits"),
    ("01 8201 01 01", "an array that is empty"),
    ("01 c801 10 00000000000000000000000000000000", "a uuid of zeros"),
    ("01 c801 0f 000000000000000000000000000001", "a uuid that is short"),
    ("01 07 05 0000", "a size beyond the end"),
    ("05 07 00", "more tags than there are bytes for"),
    ("ffffffff0f", "a negative number of tags"),
    ("01 ffffffff0f 00", "a tag that is too high"),
    ("8100 07 00", "a number that is not minimal"),
    ("01 04 06 02 02 61 01 01 0100", "an element whose own section is wrong"),
    ("01", "nothing"),
    ("00 00", "something after it"),
]  # fmt: skip


@pytest.mark.parametrize(
    "section", [section for section, _ in SECTIONS], ids=[w for _, w in SECTIONS]
)
def test_what_strict_parsers_refuse_is_rejected(
    codecs: tuple[ModuleType, Read], section: str
) -> None:
    package, read = codecs
    body = bytes.fromhex("0261 01" + section)
    data = b"\1" + len(body).to_bytes(2, "big") + body
    with pytest.raises(CodecError):
        package.ONE.parse(data)
    rows, rejected = read(data + package.ONE.build({"name": "n", "tags": []}), None, True)
    assert [item.start for item in rejected] == [0]
    assert len(rows) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("{tag: 3, type: string, none: true, default: null}", '{tag: 3, type: string, default: "no"}'),
         "a column of a tagged field with a default that is not empty"),
    ],
)  # fmt: skip
def test_what_kernels_cannot_express_is_named(change: tuple[str, str], reason: str) -> None:
    text = FORMAT.replace(*change).replace("tags: tags, more: more", "tags: tags")
    model = model_of(text)
    (found,) = unread_by_kernels(model)
    assert reason in found.message


WRITTEN = """\
layout: one
flexible: 0+
fields:
  kind: {type: u8, const: 1}
  size: {type: u16, measures: rest}
  name: string
tagged: {count: {tag: 2, type: i32}}
---
choice: entry
by: kind
cases: {1: one}
---
view: entries
of: entry
columns: {name: {type: string}, number: {type: int32, default: 0}}
rows:
  - of: one
    columns: {name: name, number: 0}
    write: {entry: {name: name}}
"""


def test_the_section_is_written_empty() -> None:
    model = model_of(WRITTEN)
    emitted = arrow.emit(make_plan(model))
    assert not emitted.diagnostics
    assert "unknown_tags" in emitted.files["example_codecs/arrow/entries_encoders.py"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("write: {entry: {name: name}}", "write: {entry: {name: name, count: number}}"),
        ("number: 0}", "number: count}"),
    ],
)
def test_tagged_fields_are_not_written(old: str, new: str) -> None:
    model = model_of(WRITTEN.replace(old, new))
    found = render(arrow.emit(make_plan(model)).diagnostics, model.files)
    assert '"count" is a tagged field of rows that are written' in found
