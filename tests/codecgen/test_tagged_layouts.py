"""Tagged fields that hold a layout which is never null: where they are left out, it has the defaults of its fields."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from codecgen.plan import make_plan
from codecgen.plan.encoded_sizes import encoded_size
from codecgen.runtime.errors import BuildError, ParseError
from tests.codecgen.generated import package_of
from tests.codecgen.schemas import model_of

SCHEMA = """
layout: reply
versions: 0-1
flexible: 0+
accepts: [loose_tags]
fields: {code: i16}
tagged:
  leader: {tag: 0, layout: node, versions: 1+}
  place:
    tag: 1
    fields:
      x: {type: i32, absent: -1}
      names: {array: string}
      note: {type: string, nullable: 0+}
---
layout: node
versions: 0-1
flexible: 0+
fields:
  id: {type: i32, default: -1}
  host: {type: string, default: "here"}
  flags: {bits: u8, members: {up: {at: 0, default: true}, rest_: {reserved: keep}}}
tagged:
  rack: {tag: 0, type: string}
"""
LEADER = {"id": -1, "host": "here", "flags": {"up": True, "rest_": 0}, "rack": ""}
PLACE = {"x": -1, "names": [], "note": None}
SAME: dict[str, Any] = {"leader": LEADER, "place": PLACE}

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "0007 00"),
    ({"place": {"x": 5}}, "0007 01 01 07 00000005 01 00 00"),
    (
        {"leader": {"id": 2}, "place": {"names": [""]}},
        "0007 02 00 0b 00000002 0568657265 01 00 01 08 ffffffff 02 01 00 00",
    ),
    (
        {"leader": {"flags": {"up": False}, "rack": "a"}},
        "0007 01 00 0f ffffffff 0568657265 00 01 00 02 02 61",
    ),
    (
        {"place": {"unknown_tags": [{"tag": 4, "data": b"!"}]}},
        "0007 01 01 0a ffffffff 01 00 01 04 01 21",
    ),
]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return package_of(SCHEMA, tmp_path_factory.mktemp("tagged_layouts"), "tagged_layout_codecs")


@pytest.mark.parametrize(("values", "data"), CASES)
def test_bytes_by_hand(package: ModuleType, values: dict[str, Any], data: str) -> None:
    whole = bytes.fromhex(data)
    assert package.REPLY_V1.build({"code": 7, **values}) == whole
    parsed = package.REPLY_V1.parse(whole)
    for name, default in SAME.items():
        expected = {"unknown_tags": [], **default, **values.get(name, {})}
        if name == "leader" and "flags" in values.get(name, {}):
            expected["flags"] = {"up": False, "rest_": 0}
        assert parsed[name] == expected
    assert package.REPLY_V1.build(parsed) == whole
    plan = make_plan(model_of(SCHEMA))
    assert encoded_size(plan, plan.versions["reply"][1], parsed) == len(whole)


def test_defaults_that_are_given_are_left_out(package: ModuleType) -> None:
    assert package.REPLY_V1.build({"code": 7, **SAME}).hex() == "000700"
    assert package.REPLY_V0.build({"code": 7, "place": PLACE}).hex() == "000700"


def test_defaults_in_bytes_are_noted(package: ModuleType) -> None:
    data = bytes.fromhex("0007 01 01 07 ffffffff 01 00 00")
    with pytest.raises(ParseError) as caught:
        package.REPLY_V1.parse(data)
    assert "a field that holds its default is not written" in str(caught.value)
    assert "(place, byte 5" in str(caught.value)
    assert package.REPLY_V1.parse(data, strict=False)["place"]["x"] == -1


def test_null_is_no_value(package: ModuleType) -> None:
    with pytest.raises(BuildError) as caught:
        package.REPLY_V1.build({"code": 7, "leader": None})
    assert "leader" in str(caught.value)
