"""The modules of fast parsers and builders: what they are called, and what they print."""

from __future__ import annotations

import importlib
import inspect
import math
import random
import struct
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from codecgen.cli import main
from codecgen.plan import make_plan
from codecgen.runtime.errors import BuildError, ParseError
from codecgen.runtime.fast_path import without_fast_paths
from codecgen.runtime.located_bytes import Limits, Session, Source
from kafka_codecs.records import header_fast
from tests.codecgen.generated import package_of
from tests.codecgen.schemas import codecs_of, model_of
from tests.laws.fast_laws import same_either_way
from tests.laws.mutations import mutated

LAYOUT = "layout: {}\ndoc: A layout.\nfields: {{x: u8}}\n"


@pytest.mark.parametrize(
    ("other", "suffix"),
    [("b", "_fast"), ("a_fast", "_fast_"), ("a_fast/c", "_fast_"), ("a-fast", "_fast_")],
)
def test_no_module_of_a_schema_has_the_name(tmp_path: Path, other: str, suffix: str) -> None:
    schemas = tmp_path / "schemas"
    (schemas / other).parent.mkdir(parents=True)
    (schemas / "codecgen.yaml").write_text("language: 1\npackage: p\ntitle: A case\n", "utf-8")
    (schemas / "a.yaml").write_text(LAYOUT.format("one"), "utf-8")
    (schemas / f"{other}.yaml").write_text(LAYOUT.format("two"), "utf-8")
    out = tmp_path / "out"
    assert main(["generate", str(schemas), "--out", str(out), "--targets", "construct"]) == 0
    module = other.replace("-", "_")
    assert (out / f"p/a{suffix}.py").is_file()
    assert "FAST_PATHS" in (out / f"p/{module}{suffix}.py").read_text("utf-8")
    assert "TWO" in (out / f"p/{module}.py").read_text("utf-8")


def test_the_function_of_headers() -> None:
    """One straight run in a loop: single bytes of varints in place, no call for each header or field."""
    body = inspect.getsource(header_fast.parse_each_header)
    assert "unpack" not in body
    assert body.count("raw = data[pos]") == 2  # the lengths of the key and the value
    assert body.count("(data, pos") == 2  # longer varints
    assert body.count("while ") == 1


def test_the_builder_of_a_header() -> None:
    """One straight run: lengths in place, and a call only for what is longer than one byte."""
    body = inspect.getsource(header_fast.build_header)
    assert body.count("write_varint(") == 2  # the lengths of the key and the value
    assert body.count("out += ") == 2
    assert "for " not in body


@pytest.mark.parametrize(
    ("rule", "is_accepted"),
    [("valid: x >= 1", False), ("refuse: x < 1", True), ("valid: x != 1", True)],
)
def test_each_comparison_with_nan_is_false(rule: str, is_accepted: bool, tmp_path: Path) -> None:
    name = f"nan_{rule.partition(':')[0]}_{'ne' if '!=' in rule else 'order'}"
    package: Any = package_of(
        f"layout: one\nfields: {{x: {{type: f64, {rule}}}}}\n", tmp_path, name
    )
    data = struct.pack(">d", math.nan)
    for ways in (nullcontext(), without_fast_paths()):
        with ways:
            if is_accepted:
                assert math.isnan(package.ONE.parse(data).x)
                assert package.ONE.build({"x": math.nan}) == data
            else:
                with pytest.raises(ParseError):
                    package.ONE.parse(data)
                with pytest.raises(BuildError):
                    package.ONE.build({"x": math.nan})


FIXED = """
layout: rows
fields: {rows: {array: row, until: end}}
---
layout: row
fields:
  flags: {bits: u8, members: {is_set: {at: 0}, unused: {reserved: keep}}}
  small: i24
  id: uuid
  large: {type: i64, valid: large >= 0}
---
layout: answer
versions: 1
flexible: 1+
fields: {pairs: {array: key}, after: u8}
---
layout: key
versions: 1
flexible: 1+
fields: {a: i16, b: bool}
"""
"""Elements of fixed size, with tagged fields and without."""


def is_taken(codec: Any, data: bytes) -> bool:
    """Whether a fast parser reads bytes itself. Raises Broken if results differ from those of the field-by-field parser."""
    same_either_way(codec, data, Limits())
    return codec.fast_path.read(Source(data, Session())) is not None


@pytest.mark.slow
def test_elements_of_fixed_size_are_unpacked_at_once(tmp_path: Path) -> None:
    package: Any = package_of(FIXED, tmp_path, "elements_of_fixed_size")
    fast = importlib.import_module("elements_of_fixed_size.case_fast")
    assert "iter_unpack_B3s16sq(" in inspect.getsource(fast.parse_each_row)
    row = {"flags": {"is_set": True}, "small": -5, "id": UUID(int=7), "large": 1 << 40}
    for number in (0, 1, 2, 70):
        data = package.ROWS.build({"rows": [row] * number})
        assert is_taken(package.ROWS, data)
        assert not is_taken(package.ROWS, data + b"\0")
        for at in range(min(len(data), 28)):
            assert is_taken(package.ROWS, data[:at]) == (at == 0)
            same_either_way(package.ROWS, data[:at] + b"\xff" + data[at + 1 :], Limits())


def test_a_version_without_fields(tmp_path: Path) -> None:
    text = "layout: some\nversions: 0-1\nfields: {x: {type: u8, versions: 1+}}\n"
    package: Any = package_of(text, tmp_path, "version_without_fields")
    assert is_taken(package.SOME[0], b"")


def test_elements_do_not_begin_after_the_window(tmp_path: Path) -> None:
    """The field before them may have read bytes after the window; no elements follow it then."""
    text = """
layout: some
fields: {before: i32, rows: {array: row, until: end}}
---
layout: row
fields: {x: u16}
"""
    package: Any = package_of(text, tmp_path, "elements_after_the_window")
    data = bytes(12)
    assert package.SOME.fast_path.read(Source(data, Session(), end=6)).rows == [{"x": 0}]
    for end in (0, 1, 2, 3, 5):
        assert package.SOME.fast_path.read(Source(data, Session(), end=end)) is None


@pytest.mark.slow
def test_tagged_fields_of_elements_of_fixed_size_are_read_too(tmp_path: Path) -> None:
    package: Any = package_of(FIXED, tmp_path, "elements_with_tags")
    fast = importlib.import_module("elements_with_tags.case_fast")
    assert "iter_unpack_hBx(" in inspect.getsource(fast.parse_each_key_v1)
    codec, plain = package.ANSWER[1], {"a": 3, "b": True}
    tagged = plain | {"unknown_tags": [{"tag": 5, "data": b"xy"}]}
    for keys in ([], [plain], [plain] * 3, [tagged], [plain, tagged, plain], [plain] * 70):
        data = codec.build({"pairs": keys, "after": 0})
        assert is_taken(codec, data)
        # the bytes after the array are no elements, nor are those after the window
        inside = Source(data + data, Session(), end=len(data) - 1)
        assert codec.fast_path.read(inside) is None
        for bad in mutated(data, random.Random(len(data)), 60):
            same_either_way(codec, bad, Limits())


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["in_array", "second_bytes", "sequences", "list", "session"])
@pytest.mark.parametrize("field", ["number", "place", "more", "read_tags", "parsed"])
def test_names_of_the_schema_do_not_meet_those_of_the_function(
    layout: str, field: str, tmp_path: Path
) -> None:
    text = f"""
layout: around
fields: {{ {field}: {{array: {layout}, count: varint}}, stop: varint}}
---
layout: {layout}
fields: {{ {field}: {{type: varint, default: 0}}, at: {{array: u8, count: u8}}}}
"""
    package: Any = package_of(text, tmp_path, f"names_{layout}_{field}")
    data = package.AROUND.build({field: [{field: 300, "at": [1]}, {field: 1}], "stop": 200})
    assert is_taken(package.AROUND, data)


@pytest.mark.parametrize("field", ["deque", "map", "parsed", "repeat", "starmap", "zip"])
def test_fields_of_fixed_size_do_not_meet_what_fills_the_elements(
    field: str, tmp_path: Path
) -> None:
    text = f"""
layout: around
fields: {{rows: {{array: row, count: u8}}}}
derived:
  rows: {{next: {{type: i64, is: "item.{field} + 1"}}}}
---
layout: row
fields: {{{field}: u16, kind: u8}}
"""
    package: Any = package_of(text, tmp_path, f"filled_{field}")
    data = package.AROUND.build({"rows": [{field: n, "kind": 0} for n in range(3)]})
    assert is_taken(package.AROUND, data)
    assert [row.next for row in package.AROUND.parse(data).rows] == [1, 2, 3]


ELEMENTS = """
enums:
  codec: {values: {none: 0, gzip: 1}}
---
layout: element
fields: {n: varlong}
---
layout: outer
fields:
  add: u16
  codec: {type: i16, enum: codec}
  WAY
derived:
  elements: {sum: {type: i64, is: "item.n + add"}}
"""
WAYS = (
    "elements: {array: element, count: 2}",
    "elements: {array: element, until: end}",
    'elements: {array: element, until: "item.n < 0"}',
    "number: {type: u8, counts: elements}\n  elements: {array: element}",
    "elements: {array: element, compressed: {by: codec, limit: 99}, until: end}",
    "number: {type: u8, counts: elements}\n  elements: {array: element, compressed: {by: codec, limit: 99}}",
)


@pytest.mark.parametrize("way", WAYS)
def test_elements_have_their_derived_values_however_an_array_ends(way: str) -> None:
    codec = codecs_of(make_plan(model_of(ELEMENTS.replace("WAY", way)))).OUTER
    for name in ("none", "gzip"):
        value = {"add": 5, "codec": name, "elements": [{"n": 300}, {"n": -1}]}
        parsed = codec.parse(codec.build(value))
        assert [element.sum for element in parsed.elements] == [305, 4]
