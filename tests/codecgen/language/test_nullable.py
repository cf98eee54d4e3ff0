"""Arrays and layouts that can be null: null is another value than empty, in bytes, values, sizes and expressions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codecgen.plan import make_plan
from codecgen.plan.encoded_sizes import encoded_size
from codecgen.plan.size_bounds import size_bounds
from codecgen.runtime.errors import (
    BuildError,
    CodecError,
    LengthError,
    TrailingError,
    ValueRefused,
)
from codecgen.schema import loader
from tests.codecgen.generated import package_of
from tests.codecgen.goldens import MANIFEST

SCHEMA = """
layout: counted
accepts: [negative_null]
fields:
  xs: {array: u8, count: i32, none: -1, at_least: 1}
  y: {type: u8, when: xs == null}
---
layout: compact
accepts: [overlong_varints]
fields: {xs: {array: u16, count: compact, none: 0, default: null}}
---
layout: measured
fields: {xs: {array: u16, length: i16, none: -1}, z: u8}
---
layout: by_field
accepts: [negative_null]
fields: {n: {type: i16, counts: xs}, xs: {array: u16, none: -1}}
---
layout: perhaps
fields: {a: u8, n: {type: i8, counts: xs}, xs: {array: u8, none: -1, when: a == 1}}
---
layout: unsigned
fields: {xs: {array: u8, count: u8, none: 2}, s: {bytes: u8, none: 3}}
---
layout: held
fields: {p: {layout: point, none: {type: i8, value: -1}}, q: {type: i16, valid: p.x > 3 or p == null}}
---
layout: lenient
accepts: [negative_null, any_present]
fields: {p: {layout: point, none: {type: i8, value: -1}}}
---
layout: point
fields: {x: i16}
---
layout: chain
fields: {x: u8, next: {layout: chain, none: {type: uvarint, value: 0}}}
---
layout: tree
fields: {parts: {array: tree, count: i8, none: -1, nesting: 2}}
---
layout: packed
accepts: [bytes_after_none]
fields:
  size: {type: u8, measures: rest}
  codec: {type: u8, enum: codec}
  xs: {array: u8, count: i8, none: -1, compressed: {by: codec, limit: 100}}
---
enums: {codec: {values: {none: 0, gzip: 1}}}
"""

NULL_AND_EMPTY: list[tuple[str, dict[str, Any], str]] = [
    ("COUNTED", {"xs": None, "y": 7}, "ffffffff 07"),
    ("COUNTED", {"xs": [1, 2], "y": None}, "00000002 0102"),
    ("COMPACT", {"xs": None}, "00"),
    ("COMPACT", {"xs": []}, "01"),
    ("COMPACT", {"xs": [3]}, "02 0003"),
    ("MEASURED", {"xs": None, "z": 1}, "ffff 01"),
    ("MEASURED", {"xs": [], "z": 1}, "0000 01"),
    ("MEASURED", {"xs": [9], "z": 1}, "0002 0009 01"),
    ("BY_FIELD", {"n": -1, "xs": None}, "ffff"),
    ("BY_FIELD", {"n": 0, "xs": []}, "0000"),
    ("PERHAPS", {"a": 1, "n": -1, "xs": None}, "01 ff"),
    ("PERHAPS", {"a": 0, "n": -1, "xs": None}, "00 ff"),
    ("PERHAPS", {"a": 0, "n": 5, "xs": None}, "00 05"),
    ("PERHAPS", {"a": 1, "n": 0, "xs": []}, "01 00"),
    ("UNSIGNED", {"xs": None, "s": None}, "02 03"),
    ("UNSIGNED", {"xs": [1, 2, 3], "s": b"ab"}, "03 010203 02 6162"),
    ("HELD", {"p": None, "q": 5}, "ff 0005"),
    ("HELD", {"p": {"x": 4}, "q": 5}, "01 0004 0005"),
    ("CHAIN", {"x": 1, "next": {"x": 2, "next": None}}, "01 01 02 00"),
    ("TREE", {"parts": [{"parts": [{"parts": None}]}]}, "01 01 ff"),
    ("PACKED", {"size": 2, "codec": 1, "xs": None}, "02 01 ff"),
]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return package_of(SCHEMA, tmp_path_factory.mktemp("nullable"), "nullable")


@pytest.mark.parametrize(("name", "value", "hex"), NULL_AND_EMPTY)
def test_null_is_not_empty(package: ModuleType, name: str, value: dict[str, Any], hex: str) -> None:
    codec, data = getattr(package, name), bytes.fromhex(hex)
    assert codec.parse(data) == value
    assert codec.build(value) == data
    model, _ = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": SCHEMA})
    assert model is not None
    plan = make_plan(model)
    layout = plan.versions[name.lower()][0]
    if name != "PACKED":
        assert encoded_size(plan, layout, value) == len(data)
    found = size_bounds(plan, layout)
    assert found.min_size <= len(data)
    for cut in range(len(data)):
        with pytest.raises(CodecError):
            codec.parse(data[:cut])


@pytest.mark.parametrize(
    ("name", "given", "hex"),
    [
        ("COMPACT", {}, "00"),
        ("MEASURED", {"z": 1}, "0000 01"),
        ("BY_FIELD", {}, "0000"),
        ("BY_FIELD", {"xs": None}, "ffff"),
        ("PERHAPS", {"a": 1}, "01 00"),
        ("HELD", {"q": 0}, "ff 0000"),
    ],
)
def test_what_is_not_given(package: ModuleType, name: str, given: dict[str, Any], hex: str) -> None:
    assert getattr(package, name).build(given) == bytes.fromhex(hex)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("COUNTED", {"xs": []}, "at least 1 element is needed"),
        ("UNSIGNED", {"xs": [1, 2]}, "2 elements cannot be written: that number means null"),
        ("UNSIGNED", {"xs": [], "s": b"abc"}, "3 bytes cannot be written"),
        (
            "BY_FIELD",
            {"n": 4, "xs": None},
            "a list is needed, not null: n is 4, and null needs -1 there",
        ),
        ("PERHAPS", {"a": 0}, "its count must be given"),
        ("HELD", {"p": 3, "q": 0}, "a dict with the fields of point is needed"),
        ("HELD", {"p": {"x": 3}, "q": 0}, "p.x > 3 or p == null"),
    ],
)
def test_what_builders_refuse(
    package: ModuleType, name: str, value: dict[str, Any], why: str
) -> None:
    with pytest.raises(BuildError, match=why):
        getattr(package, name).build(value)


@pytest.mark.parametrize(
    ("name", "hex", "error", "path", "position"),
    [
        ("COUNTED", "fffffffe 07", LengthError, "xs", 0),
        ("COUNTED", "00000000", LengthError, "xs", 0),
        ("MEASURED", "fffe 01", LengthError, "xs", 0),
        ("BY_FIELD", "fffe", LengthError, "xs", 2),
        ("HELD", "00 0004 0005", ValueRefused, "p", 0),
        ("HELD", "fe 0005", ValueRefused, "p", 0),
        ("HELD", "02 0005", ValueRefused, "p", 0),
        ("CHAIN", "01" * 80 + "00", CodecError, None, None),
        ("PACKED", "03 01 ff 00", TrailingError, "xs", 3),
    ],
)
def test_what_strict_readers_refuse(
    package: ModuleType,
    name: str,
    hex: str,
    error: type[CodecError],
    path: str | None,
    position: int | None,
) -> None:
    with pytest.raises(error) as found:
        getattr(package, name).parse(bytes.fromhex(hex))
    if path is not None:
        assert (found.value.where.path, found.value.where.position) == (path, position)


@pytest.mark.parametrize(
    ("name", "hex", "value", "noted"),
    [
        ("COUNTED", "fffffffb 07", {"xs": None, "y": 7}, "null is written as -1, not as -5"),
        ("COMPACT", "8100", {"xs": []}, "varint is not in its shortest form"),
        ("COMPACT", "8000", {"xs": None}, "varint is not in its shortest form"),
        ("BY_FIELD", "fffb", {"n": -5, "xs": None}, "null is written as -1, not as -5"),
        ("LENIENT", "80", {"p": None}, "-128 stands where only 1 or, for null, -1 may"),
        ("LENIENT", "00 0004", {"p": {"x": 4}}, "0 stands where only 1 or, for null, -1 may"),
        ("LENIENT", "7f 0004", {"p": {"x": 4}}, "127 stands where only 1"),
        (
            "PACKED",
            "03 01 ff 00",
            {"size": 3, "codec": 1, "xs": None},
            "1 byte follows a count of null",
        ),
    ],
)
def test_what_lenient_readers_take(
    package: ModuleType, name: str, hex: str, value: dict[str, Any], noted: str
) -> None:
    findings: list[CodecError] = []
    codec, data = getattr(package, name), bytes.fromhex(hex)
    assert codec.parse(data, strict=False, findings=findings) == value
    assert [noted in str(finding) for finding in findings] == [True]


def test_freedoms_are_asked_for(package: ModuleType) -> None:
    refused: Callable[..., Any] = package.HELD.parse
    for hex in ("00 0004 0005", "fe 0005"):
        with pytest.raises(ValueRefused):
            refused(bytes.fromhex(hex), strict=False)


def test_a_null_array_is_no_level(package: ModuleType, tmp_path: Path) -> None:
    package.TREE.parse(bytes.fromhex("01 01 ff"))
    with pytest.raises(ValueRefused, match="must not hold such an array"):
        package.TREE.parse(bytes.fromhex("01 01 01 ff"))
