"""Views of one layout: entries with a length, of a fixed size, and those that end where their fields end."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import Place
from tests.codecgen.generated import package_of
from tests.support.plain_kernels import decoded, view_of

PACKAGE = "views_of_a_layout_codecs"
TEXT = """\
layout: fixed
endian: little
fields:
  flags: {bits: u8, members: {used: {at: 0}, other: {reserved: keep}}}
  number: {type: i32, valid: number < 1000}
---
layout: measured
fields:
  size: {type: u16, measures: rest, refuse: size > 500}
  name: {string: u8}
  numbers: {array: i16, until: end}
---
layout: packed
fields:
  size: {type: u8, measures: rest}
  base: i32
  parts: {array: {fields: {delta: varint}}, until: end}
---
layout: told
versions: 1-2
fields:
  version: {type: u8, is: version}
  number: {type: {1: u8, 2: u16}}
---
layout: open
fields:
  name: {string: varint}
  numbers: {array: varlong, count: u8}
  place: {layout: fixed, none: {type: i8, value: -1}}
---
view: fixed_rows
of: fixed
columns: {number: {type: int32}, position: {type: int64}, size: {type: int64}}
rows: [{of: fixed, when: flags.used, columns: {number: number, position: position, size: size}}]
---
view: fixed_heads
of: fixed
columns: {number: {type: int32}}
rows: [{of: fixed, header_only: true, columns: {number: number}}]
---
view: measured_rows
of: measured
columns: {name: {type: string}, numbers: {list: int16}, size: {type: int64}}
rows: [{of: measured, columns: {name: name, numbers: numbers, size: size}}]
---
view: packed_rows
of: packed
columns: {number: {type: int64}, position: {type: int64}}
rows: [{of: packed, each: parts, columns: {number: base + item.delta, position: position}}]
---
view: told_rows
of: told
columns: {version: {type: int8}, number: {type: int32}}
rows: [{of: told, columns: {version: version, number: number}}]
---
view: open_rows
of: open
columns: {name: {type: string}, numbers: {list: int64}, position: {type: int64}, size: {type: int64}}
rows: [{of: open, columns: {name: name, numbers: numbers, position: position, size: size}}]
"""
NUMPY = ("fixed_rows", "fixed_heads", "packed_rows", "told_rows")


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    root = tmp_path_factory.mktemp("views_of_a_layout")
    package_of(TEXT, root, PACKAGE, "construct,arrow")
    sys.path.insert(0, str(root / "out"))
    try:
        yield importlib.import_module(f"{PACKAGE}.case")
    finally:
        sys.path.remove(str(root / "out"))


def read(
    name: str, data: bytes, engine: str = "plain", **options: Any
) -> tuple[list[tuple[Any, ...]], list[tuple[int, int | None]], int]:
    """The rows, where something was rejected, and where the last row ends."""
    view = view_of(PACKAGE, name)
    assert (view.numpy is not None) == (name in NUMPY)
    parts, rejected = decoded(view, data, engine=engine, **options)
    rows = [tuple(row.values()) for part in parts for row in part.batch.to_pylist()]
    end = parts[-1].end if parts else 0
    return rows, [(item.start, item.end) for item in rejected], end


def functions(name: str, data: bytes) -> list[tuple[Any, ...]]:
    """The rows by the functions that take what the codecs parse."""
    view = getattr(importlib.import_module(f"{PACKAGE}.rows.{name}"), name.upper())
    source = Source(data, Session())
    opened = view.of.case(source).open(source)
    rows = view.rows(view.of.case(Source(data, Session())), opened, Place(0, len(data)))
    return [tuple(list(v) if isinstance(v, tuple) else v for v in row) for row in rows]


def fixed(codecs: ModuleType, number: int, used: bool = True) -> bytes:
    return bytes(codecs.FIXED.build({"flags": {"used": used}, "number": number}))


@pytest.mark.parametrize("engine", ["plain", "numpy"])
def test_a_fixed_size(codecs: ModuleType, engine: str) -> None:
    data = b"".join(fixed(codecs, i) for i in range(3))
    rows = [(i, 5 * i, 5) for i in range(3)]
    assert read("fixed_rows", data, engine) == (rows, [], 15)
    assert read("fixed_rows", data[:-1], engine) == (rows[:2], [], 10)
    unused, wrong = fixed(codecs, 7, used=False), bytearray(fixed(codecs, 9))
    wrong[1:5] = (1000).to_bytes(4, "little")
    found = read("fixed_rows", data + unused + bytes(wrong) + data, engine)
    assert found[0] == [*rows, *[(i, 25 + 5 * i, 5) for i in range(3)]]
    assert found[1] == [
        (15, 20),
        (20, 25),
    ]  # no rows: left to the codecs, which see whether it is sound
    heads = read("fixed_heads", data + unused + bytes(wrong), engine)
    assert heads == ([(0,), (1,), (2,), (7,), (1000,)], [], 25)
    assert functions("fixed_rows", data[:5]) == [(0, 0, 5)]


def test_a_length(codecs: ModuleType) -> None:
    values = [{"name": "a" * i, "numbers": [i, -1]} for i in range(4)]
    parts = [bytes(codecs.MEASURED.build(value)) for value in values]
    rows = [(v["name"], v["numbers"], len(p) - 2) for v, p in zip(values, parts, strict=True)]
    data = b"".join(parts)
    assert read("measured_rows", data) == (rows, [], len(data))
    assert read("measured_rows", data[:-1]) == (rows[:-1], [], len(data) - len(parts[-1]))
    bad = b"\x00\x02\xff\xff"
    assert read("measured_rows", parts[1] + bad + parts[2]) == (
        [rows[1], rows[2]],
        [(len(parts[1]), len(parts[1]) + 4)],
        len(parts[1]) + 4 + len(parts[2]),
    )
    found = read("measured_rows", parts[1] + b"\x01\xf5" + bytes(600))
    assert found == ([rows[1]], [(len(parts[1]), None)], len(parts[1]))  # a length of no entry
    assert functions("measured_rows", parts[2]) == [rows[2]]


@pytest.mark.parametrize("engine", ["plain", "numpy"])
def test_elements_as_rows(codecs: ModuleType, engine: str) -> None:
    parts = [{"delta": -1}, {"delta": 200}]
    one = bytes(codecs.PACKED.build({"base": 10, "parts": parts}))
    none = bytes(codecs.PACKED.build({"base": 10, "parts": []}))
    rows, rejected, end = read("packed_rows", one + none + one, engine)
    at = len(one) + len(none)
    assert rows == [(9, 0), (210, 0), (9, at), (210, at)] and not rejected
    assert end == at + len(one)


@pytest.mark.parametrize("engine", ["plain", "numpy"])
def test_versions_that_the_bytes_say(codecs: ModuleType, engine: str) -> None:
    data = bytes.fromhex("0105 020102 01ff 0103")
    rows = [(1, 5), (2, 258), (1, 255), (1, 3)]
    assert read("told_rows", data, engine) == (rows, [], len(data))
    assert read("told_rows", data + b"\x02\x01", engine) == (rows, [], len(data))
    assert read("told_rows", data + b"\x03\x01", engine) == (rows, [(len(data), None)], len(data))
    assert functions("told_rows", data[2:5]) == [(2, 258)]


def test_entries_that_end_where_their_fields_end(codecs: ModuleType) -> None:
    place = {"flags": {"used": True}, "number": 5}
    values = [
        {"name": "a" * i, "numbers": [i, -1 << i], "place": place if i % 2 else None}
        for i in range(40)
    ]
    parts = [bytes(codecs.OPEN.build(value)) for value in values]
    rows, at = [], 0
    for value, part in zip(values, parts, strict=True):
        rows.append((value["name"], value["numbers"], at, len(part)))
        at += len(part)
    data = b"".join(parts)
    assert read("open_rows", data) == (rows, [], at)
    assert read("open_rows", data, max_rows=7) == (rows, [], at)
    assert read("open_rows", b"") == ([], [], 0)
    last = at - len(parts[-1])
    for cut in range(1, len(parts[-1])):
        found, rejected, end = read("open_rows", data[:-cut])
        left = len(parts[-1]) - cut
        assert (found, end) == (rows[:-1], last)
        assert rejected == ([(last, None)] if left >= 3 else [])
    bad = data + b"\x02\xff\x00\xff" + data
    assert read("open_rows", bad) == (rows, [(at, None)], at)
    assert functions("open_rows", parts[0]) == [("", [0, -1], 0, len(parts[0]))]


@pytest.mark.soak
def test_compiled_kernels(codecs: ModuleType) -> None:
    data = b"".join(fixed(codecs, i % 1000) for i in range(100_000))
    rows, rejected, end = read("fixed_rows", data, "compiled")
    assert [row[0] for row in rows] == [i % 1000 for i in range(100_000)] and not rejected
    assert end == len(data)
    one = bytes(codecs.OPEN.build({"name": "ab", "numbers": [5, -7], "place": None}))
    rows, rejected, end = read("open_rows", one * 50_000 + one[:-1], "compiled")
    assert len(rows) == 50_000 and end == len(one) * 50_000
    assert {row[:2] for row in ((r[0], tuple(r[1])) for r in rows)} == {("ab", (5, -7))}
    assert rejected == [(end, None)]
