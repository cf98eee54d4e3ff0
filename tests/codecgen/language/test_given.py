"""Values from outside: what a layout is given, in the codecs that parse and build it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codecgen.runtime.errors import BuildError, CodecError, ValueRefused
from codecgen.runtime.fast_path import without_fast_paths
from tests.codecgen.generated import package_of

SCHEMA = """
enums:
  kind: {doc: Kinds., values: {plain: 0, long_: 1}}

---
layout: batch
fields:
  flags: {bits: u8, members: {has_schema: {at: 0}, kind: {at: 1, enum: kind}, unused: {reserved: keep}}}
  base: i32
  head: {layout: record, given: {base: base, kind: plain, has_schema: not flags.has_schema}}
  maybe: {layout: record, none: {type: i8, value: -1}, given: {base: 1, kind: flags.kind, has_schema: base > 4}}
  records: {array: record, count: u8, given: {has_schema: flags.has_schema, base: base, kind: flags.kind}}
  told: {layout: told, version: base, given: {has_schema: flags.has_schema}}
  body: {choice: body, given: {kind: flags.kind, has_schema: flags.has_schema}}
  fixed: {choice: body, given: {kind: plain, has_schema: false}}
  told_apart: {choice: body, given: {kind: if base > 0 then long_ else plain, has_schema: false}}

derived:
  records:
    number: {type: i64, is: item.base + item.delta}

---
layout: record
given: {has_schema: bool, base: i32, kind: kind}
fields:
  delta: {type: u8, refuse: base + delta > 200}
  schema_id: {type: i16, when: has_schema}
  more: {type: u8, when: kind == long_}

derived:
  absolute: {type: i32, is: base + delta}

---
layout: told
versions: 0-1
given: {has_schema: bool}
fields: {a: {type: u8, when: has_schema}, b: {type: u8, versions: 1}}

---
choice: body
given: {kind: kind, has_schema: bool}
by: kind
cases: {plain: plain, long_: longer}

---
layout: plain
given: {has_schema: bool}
fields: {x: u8, y: {type: u8, when: has_schema}}

---
layout: longer
fields: {x: u16}
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return package_of(SCHEMA, tmp_path_factory.mktemp("given"), "given_codecs")


def values(has_schema: bool, kind: int, base: int) -> dict[str, Any]:
    """Values of a batch, without what its records are given."""

    def record(delta: int, schema: bool, long_: bool) -> dict[str, Any]:
        own: dict[str, Any] = {"delta": delta}
        return own | ({"schema_id": -7} if schema else {}) | ({"more": 9} if long_ else {})

    plain = {"x": 3} | ({"y": 4} if has_schema else {})
    return {
        "flags": {"has_schema": has_schema, "kind": kind},
        "base": base,
        "head": record(1, not has_schema, False),
        "maybe": record(2, base > 4, bool(kind)),
        "records": [record(i, has_schema, bool(kind)) for i in range(3)],
        "told": ({"a": 5} if has_schema else {}) | ({"b": 6} if base else {}),
        "body": {"x": 300} if kind else plain,
        "fixed": {"x": 6},
        "told_apart": {"x": 301 if base > 0 else 7},
    }


def expected(has_schema: bool, kind: int, base: int) -> bytes:
    """The bytes of :func:`values`, written by hand."""

    def record(delta: int, schema: bool, long_: int) -> bytes:
        return bytes([delta]) + (b"\xff\xf9" if schema else b"") + (b"\x09" if long_ else b"")

    body = b"\x01\x2c" if kind else b"\x03\x04" if has_schema else b"\x03"
    return b"".join(
        (
            bytes([has_schema | kind << 1]),
            base.to_bytes(4, "big"),
            record(1, not has_schema, 0),
            b"\x01" + record(2, base > 4, kind),
            b"\x03" + b"".join(record(i, has_schema, kind) for i in range(3)),
            (b"\x05" if has_schema else b"") + (b"\x06" if base else b""),
            body,
            b"\x06" + (b"\x01\x2d" if base > 0 else b"\x07"),
        )
    )


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("has_schema", [False, True])
def test_bytes(package: ModuleType, has_schema: bool, kind: int, base: int) -> None:
    data = expected(has_schema, kind, base)
    assert package.BATCH.build(values(has_schema, kind, base)) == data
    parsed = package.BATCH.parse(data)
    assert package.BATCH.build(parsed) == data
    with without_fast_paths():
        assert repr(package.BATCH.parse(data)) == repr(parsed)
    for i, record in enumerate(parsed.records):
        assert (record.has_schema, record.base, record.kind) == (has_schema, base, kind)
        assert record.schema_id == (-7 if has_schema else None)
        assert record.number == record.absolute == base + i
    for end in range(len(data)):
        with pytest.raises(CodecError):
            package.BATCH.parse(data[:end])


def test_what_is_given_decides_whether_a_value_is_refused(package: ModuleType) -> None:
    given = {"has_schema": False, "kind": "plain"}
    assert package.RECORD.parse(b"\x64", given=given | {"base": 100}).absolute == 200
    with pytest.raises(ValueRefused) as error:
        package.RECORD.parse(b"\x65", given=given | {"base": 100})
    assert error.value.where.path == "delta"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (None, "has_schema"),
        ({}, "has_schema"),
        ({"has_schema": 1, "base": 0, "kind": 0}, "has_schema"),
        ({"has_schema": True, "base": 1 << 31, "kind": 0}, "base"),
        ({"has_schema": True, "base": 0, "kind": "green"}, "kind"),
        ({"has_schema": True, "base": 0}, "kind"),
    ],
)
def test_a_caller_has_to_give_all_of_them(
    package: ModuleType, given: dict[str, Any] | None, path: str
) -> None:
    with pytest.raises(ValueRefused) as error:
        package.RECORD.parse(b"\x01\x00\x01", given=given)
    assert error.value.where.path == path
    with pytest.raises(BuildError) as wrong:
        package.RECORD.build({"delta": 1, "schema_id": 1, **(given or {})})
    assert wrong.value.where.path == path


def test_the_holder_decides_for_a_builder(package: ModuleType) -> None:
    wrong = values(False, 0, 0)
    wrong["records"][1]["has_schema"] = True
    with pytest.raises(BuildError) as error:
        package.BATCH.build(wrong)
    assert error.value.where.path == "records[1].has_schema"
    wrong["records"][1] = {"delta": 1, "schema_id": 3}
    with pytest.raises(BuildError) as error:
        package.BATCH.build(wrong)
    assert error.value.where.path == "records[1].schema_id"
    wrong["records"][1] = {"delta": 1, "has_schema": False, "kind": "plain", "base": 0}
    assert package.BATCH.build(wrong) == expected(False, 0, 0)


def test_any_name_may_be_given(tmp_path: Path) -> None:
    """Names that mean something in the runtime are names like any others."""
    schema = """
layout: box
fields:
  part: {layout: part, given: {layout: 1, self_: 2, head: 3, values_: 4}}
---
layout: part
given: {layout: u8, self_: u8, head: u8, values_: u8}
fields: {x: {type: u8, valid: x == layout + self_ + head + values_}}
"""
    box = package_of(schema, tmp_path, "any_name_codecs").BOX
    assert box.parse(b"\x0a").part.x == 10
    with pytest.raises(ValueRefused):
        box.parse(b"\x0b")
