"""Tagged layouts whose default is the one whose fields all hold their defaults: they are left out then, and null is written."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codecgen.cli import GOOD, main
from codecgen.plan import make_plan
from codecgen.plan.encoded_sizes import encoded_size
from codecgen.runtime.errors import BuildError, ValueRefused
from tests.codecgen.generated import package_of
from tests.codecgen.schemas import model_of

SCHEMA = """
layout: parcel
versions: 0-1
flexible: 0+
accepts: [loose_tags]
fields:
  id: u8
tagged:
  sender:
    tag: 0
    none: {1+: true}
    default: {}
    doc: Who sent it.
    fields:
      age: {type: i16, none: -1}
      names: {array: string, none: {1+: true}}
      shop: {type: bool, default: false}
  size: {tag: 2, layout: size, default: {}}
---
layout: size
versions: 0-1
flexible: 0+
fields: {metres: {type: u8, default: 1}}
tagged: {exact: {tag: 0, type: u8}}
"""
SENDER: dict[str, Any] = {"age": -1, "names": [], "shop": False}
SIZE: dict[str, Any] = {"metres": 1, "exact": 0}


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return package_of(SCHEMA, tmp_path_factory.mktemp("filled"), "filled_codecs")


CASES: list[tuple[str, int, dict[str, Any], str]] = [
    ("nothing", 1, {"sender": SENDER, "size": SIZE}, "07 00"),
    ("null", 1, {"sender": None, "size": SIZE}, "07 01 00 01 00"),
    ("no names", 1, {"sender": SENDER | {"names": None}, "size": SIZE}, "07 01 00 06 01 ffff 00 00 00"),
    ("a shop", 1, {"sender": SENDER | {"shop": True}, "size": SIZE}, "07 01 00 06 01 ffff 01 01 00"),
    ("large", 1, {"sender": SENDER, "size": {"metres": 2, "exact": 0}}, "07 01 02 02 02 00"),
    ("exact", 0, {"sender": SENDER, "size": {"metres": 1, "exact": 5}}, "07 01 02 05 01 01 00 01 05"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "value", "data"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])  # fmt: skip
def test_it_is_left_out_where_its_fields_hold_their_defaults(
    codecs: ModuleType, version: int, value: dict[str, Any], data: str
) -> None:
    layout, wanted = getattr(codecs, f"PARCEL_V{version}"), bytes.fromhex(data)
    assert layout.build({"id": 7, **value}) == wanted
    parsed = layout.parse(wanted)
    assert layout.build(parsed) == wanted
    for name, held in value.items():
        found = parsed[name]
        assert held == (found if found is None else {key: found[key] for key in held})
    model = model_of(SCHEMA)
    [plan] = [p for p in make_plan(model).versions["parcel"] if p.version == version]
    assert encoded_size(make_plan(model), plan, {"id": 7, **value}) == len(wanted)


def test_nothing_need_be_given(codecs: ModuleType) -> None:
    assert codecs.PARCEL_V1.build({"id": 7}) == bytes.fromhex("0700")
    assert codecs.PARCEL_V1.build({"id": 7, "sender": {}, "size": {}}) == bytes.fromhex("0700")


@pytest.mark.parametrize("data", ["07 01 00 06 01 ffff 01 00 00", "07 01 02 02 01 00"])
def test_a_strict_reader_refuses_the_default(codecs: ModuleType, data: str) -> None:
    with pytest.raises(ValueRefused, match="holds its default"):
        codecs.PARCEL_V1.parse(bytes.fromhex(data))
    lenient = codecs.PARCEL_V1.parse(bytes.fromhex(data), strict=False)
    assert lenient == codecs.PARCEL_V1.parse(bytes.fromhex("0700"))


def test_null_only_where_it_is_allowed(codecs: ModuleType) -> None:
    with pytest.raises(BuildError):
        codecs.PARCEL_V1.build({"id": 7, "size": None})
    with pytest.raises(BuildError):
        codecs.PARCEL_V0.build({"id": 7, "sender": None})


def test_people_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    manifest = "language: 1\npackage: parcel_codecs\ntitle: Parcels\n"
    (schemas / "codecgen.yaml").write_text(manifest, encoding="utf-8")
    (schemas / "parcel.yaml").write_text(SCHEMA, encoding="utf-8")
    assert main(["explain", "parcel.sender", "--schemas", str(schemas)]) == GOOD
    assert "{} when no value is given" in capsys.readouterr().out
    assert main(["generate", str(schemas), "--out", str(tmp_path / "out")]) == GOOD
    page = (tmp_path / "out" / "docs" / "parcel.md").read_text("utf-8")
    assert "Default: its fields hold their defaults." in page
