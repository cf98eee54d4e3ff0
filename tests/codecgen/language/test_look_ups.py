"""Look-ups of elements by their number, in parsers, builders, derived values and rows of views."""

from __future__ import annotations

import copy
import importlib
import pickle
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

import pytest

from codecgen.runtime.errors import BuildError, CodecError, ValueRefused
from codecgen.runtime.fast_path import without_fast_paths
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import Place
from tests.codecgen.generated import package_of
from tests.codecgen.schemas import model_of, unread_by_kernels

SCHEMA = """
layout: batch
fields:
  magic: {type: u8, const: 1}
  names: {array: {string: u8}, count: u8}
  sizes: {array: varint, count: u8}
  blobs: {array: {bytes: u8}, count: compact, none: 0}
  notes: {array: note, count: u8}
  main: {type: i8, default: 0, doc: "-1: none."}
  maybe: {layout: head, none: {type: i8, value: -1}, given: {names: names, sizes: sizes}}
  records: {array: record, count: u8, given: {names: names, sizes: sizes}}

derived:
  main_name: {type: string, is: "if main < 0 then null else names[main]"}
  main_blob: {type: bytes, is: "if main < 0 then null else blobs[main]"}
  later: {type: i32, is: "if main < 0 then 0 else notes[main].size + 1"}
  records:
    title: {type: string, is: "names[item.title]"}
    twice: {type: i32, is: "sizes[sizes[item.title]]"}

---
layout: note
fields: {size: u8}

---
layout: record
given: {names: {array: string}, sizes: {array: i32}}
fields:
  title: u8
  heads: {array: head, count: u8, given: {names: names, sizes: sizes}}

---
layout: head
given: {names: {array: string}, sizes: {array: i64}}
fields:
  index: {type: varint, doc: An index.}
  value: {string: u8}
derived:
  key: {type: string, is: "names[index]"}
  size: {type: i32, is: "sizes[index + 1 - 1]"}

---
view: rows
of: batch
columns:
  title: {type: string}
  main: {type: string, nullable: true}
  blob: {type: binary, nullable: true}
  direct: {type: string}
  note: {type: int32}
  heads: {list: {key: {type: string}, value: {type: string}, size: {type: int32}}}
rows:
  - of: batch
    each: records
    columns:
      title: records.title
      main: main_name
      blob: main_blob
      direct: names[item.title + 1]
      note: notes[0].size
      heads: item.heads
"""
VALUES: dict[str, Any] = {
    "names": ["a", "b", "c"],
    "sizes": [2, 0, 1],
    "blobs": [b"\1", b"\2"],
    "notes": [{"size": 5}, {"size": 6}],
    "main": 1,
    "maybe": {"index": 2, "value": "x"},
    "records": [
        {"title": 0, "heads": [{"index": 1, "value": "v"}, {"index": 2, "value": "w"}]},
        {"title": 1, "heads": []},
    ],
}
BYTES = bytes.fromhex(
    "01 03 0161 0162 0163 03 04 00 02 03 0101 0102 02 05 06 01 01 04 0178 02 00 02 02 0176 04 0177 01 00"
)


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return package_of(SCHEMA, tmp_path_factory.mktemp("look_ups"), "look_up_codecs")


@pytest.fixture(params=["fast", "field by field"])
def path(request: pytest.FixtureRequest) -> Any:
    way: AbstractContextManager[Any] = (
        nullcontext() if request.param == "fast" else without_fast_paths()
    )
    with way:
        yield


def changed(**values: Any) -> dict[str, Any]:
    return copy.deepcopy(VALUES) | values


@pytest.mark.usefixtures("path")
def test_values(codecs: ModuleType) -> None:
    assert codecs.BATCH.build(VALUES) == BYTES
    batch = codecs.BATCH.parse(BYTES)
    assert codecs.BATCH.build(batch) == BYTES
    assert (batch.main_name, batch.main_blob, batch.later) == ("b", b"\2", 7)
    assert (batch.maybe.key, batch.maybe.size) == ("c", 1)
    assert [record.title for record in batch.records] == [0, 1]
    assert [[head.key for head in record.heads] for record in batch.records] == [["b", "c"], []]
    assert [r.twice for r in batch.records] == [1, 2]
    assert "names" not in batch.records[0] and "key: 'b'" in repr(batch)
    assert batch.maybe == {"index": 2, "value": "x"}


def test_copies_keep_the_arrays(codecs: ModuleType) -> None:
    batch = codecs.BATCH.parse(BYTES)
    for other in (pickle.loads(pickle.dumps(batch)), copy.deepcopy(batch), copy.copy(batch)):
        assert other == batch and other.records[0].heads[1].key == "c"
        assert codecs.BATCH.build(other) == BYTES


def test_null_looks_nothing_up(codecs: ModuleType) -> None:
    values = changed(main=-1, blobs=None, maybe=None)
    batch = codecs.BATCH.parse(codecs.BATCH.build(values))
    assert (batch.main_name, batch.main_blob, batch.later) == (None, None, 0)
    # A null array has no elements to look up, and null is no error.
    assert codecs.BATCH.parse(codecs.BATCH.build(changed(blobs=None))).main_blob is None


WRONG = [
    ({"main": 3}, "main", "main is 3, but names has elements 0 to 2"),
    ({"main": 2}, "main", "main is 2, but blobs has elements 0 to 1"),
    ({"blobs": [b"", b"", b""], "main": 2}, "main", "main is 2, but notes has elements 0 to 1"),
    ({"notes": [], "main": 0}, "main", "main is 0, but notes has no elements"),
    ({"notes": [{"size": 1}]}, "main", "main is 1, but notes has only element 0"),
    (
        {"maybe": {"index": -1, "value": ""}},
        "maybe.index",
        "index is -1, but names has elements 0 to 2",
    ),
    (
        {"sizes": [1, 0]},
        "maybe.index",
        "index + 1 - 1 is 2, but sizes has elements 0 to 1",
    ),
    (
        {
            "records": [
                {"title": 0, "heads": []},
                {"title": 0, "heads": [{"index": 3, "value": ""}]},
            ]
        },
        "records[1].heads[0].index",
        "index is 3, but names has elements 0 to 2",
    ),
    (
        {"records": [{"title": 0, "heads": []}, {"title": 3, "heads": []}]},
        "records[1].title",
        "title is 3, but names has elements 0 to 2",
    ),
    (
        {"sizes": [2, 0, 3]},
        "records[0].title",
        None,
    ),
]


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(("change", "where", "reason"), WRONG)
def test_numbers_without_an_element(
    codecs: ModuleType, change: dict[str, Any], where: str, reason: str | None
) -> None:
    """Builders and parsers refuse them alike, strict and lenient ones, and name the array and the number."""
    values = changed(**change)
    if reason is None:
        values["records"] = [{"title": 2, "heads": []}]
        where, reason = "records[0].title", "sizes[title] is 3, but sizes has elements 0 to 2"
    for strict in (True, False):
        with pytest.raises(BuildError) as built:
            codecs.BATCH.build(values, strict=strict)
        assert (built.value.reason, built.value.where.path) == (reason, where)
    data = _unchecked(codecs, values)
    for strict in (True, False):
        with pytest.raises(ValueRefused) as parsed:
            codecs.BATCH.parse(data, strict=strict)
        assert (parsed.value.reason, parsed.value.where.path) == (reason, where)
        assert parsed.value.where.position is not None


def _unchecked(codecs: ModuleType, values: dict[str, Any]) -> bytes:
    """The bytes of values that no builder writes."""
    layouts = [codecs.BATCH, codecs.HEAD]
    kept = [layout.related.look_ups for layout in layouts]
    try:
        for layout in layouts:
            layout.related.look_ups = ()
        data: bytes = codecs.BATCH.build(values)
        return data
    finally:
        for layout, look_ups in zip(layouts, kept, strict=True):
            layout.related.look_ups = look_ups


def test_elements_in_another_batch(codecs: ModuleType) -> None:
    """A parsed element whose number would mean another name is refused; a plain one is written."""
    batch = codecs.BATCH.parse(BYTES)
    longer = {**batch, "names": ["a", "b", "c", "d"]}
    assert codecs.BATCH.parse(codecs.BATCH.build(longer)).maybe.key == "c"
    other = {**batch, "names": ["c", "b", "a"]}
    with pytest.raises(
        BuildError, match="key was 'c' when it was parsed, and is 'a' by the names"
    ) as error:
        codecs.BATCH.build(other)
    assert error.value.where.path == "maybe.index"
    plain = {**other, "maybe": dict(batch.maybe), "records": []}
    assert codecs.BATCH.parse(codecs.BATCH.build(plain)).maybe.key == "a"


def test_a_layout_alone(codecs: ModuleType) -> None:
    given = {"names": ["x", "y"], "sizes": [1, 2]}
    data = bytes.fromhex("02 0176")
    head = codecs.HEAD.parse(data, given=given)
    assert (head.key, head.size) == ("y", 2) and codecs.HEAD.build(head) == data
    assert codecs.HEAD.build({**given, "index": 1, "value": "v"}) == data
    with pytest.raises(BuildError, match="index is 2, but names has elements 0 to 1"):
        codecs.HEAD.build({**given, "index": 2, "value": "v"})
    for wrong in ({}, {"names": "xy", "sizes": []}, {"names": [1], "sizes": []}, {"names": ["x"]}):
        with pytest.raises(CodecError):
            codecs.HEAD.parse(data, given=wrong)
    head.index = 7
    with pytest.raises(ValueRefused, match="index is 7, but names has elements 0 to 1"):
        print(head.key)
    assert "key: None" in repr(head)


def test_rows(codecs: ModuleType) -> None:
    """Rows show what is looked up; a number without an element ends them with an error that has a place."""
    view = importlib.import_module("look_up_codecs.rows.rows").ROWS
    opened = codecs.BATCH.open(Source(BYTES, Session()))
    rows = list(view.rows(codecs.BATCH, opened, Place(0, len(BYTES))))
    assert rows == [
        ("a", "b", b"\2", "b", 5, (("b", "v", 0), ("c", "w", 1))),
        ("b", "b", b"\2", "c", 5, ()),
    ]
    data = codecs.BATCH.build(
        changed(records=[{"title": 1, "heads": []}, {"title": 2, "heads": []}])
    )
    opened = codecs.BATCH.open(Source(data, Session()))
    found = view.rows(codecs.BATCH, opened, Place(100, len(data)), ["direct"])
    assert next(found) == ("c",)
    with pytest.raises(
        ValueRefused, match=r"title \+ 1 is 3, but names has elements 0 to 2"
    ) as error:
        next(found)
    assert error.value.where.position == 100


def test_kernels_leave_the_view() -> None:
    """Neither kernels nor NumPy readers read layouts that look elements up, and a note says so."""
    notes = unread_by_kernels(model_of(SCHEMA))
    assert {note.code for note in notes} == {"C023"}
    assert all("looked up" in note.message or "from outside" in note.message for note in notes)
