"""Types that differ between versions: one field, one name, one column, and a concrete type in each version."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codecgen.cli import GOOD, main
from codecgen.plan import make_plan
from codecgen.plan.encoded_sizes import encoded_size
from codecgen.plan.nodes import FieldValue, iterate_nodes
from codecgen.plan.value_ranges import range_of
from codecgen.runtime.errors import BuildError
from codecgen.schema import loader
from codecgen.schema.model import Model
from tests.codecgen.generated import package_of
from tests.codecgen.goldens import MANIFEST

SCHEMA = """
layout: commit
versions: 0-4
accepts: [negative_null]
fields:
  version: {type: i16, is: version}
  offset: {type: {0: i32, 1+: i64}}
  metadata: {string: {0-3: i16, 4+: compact}, none: {2-3: -1, 4: 0}}
  parts: {array: u8, count: {1-3: i32, 4+: compact}, none: {2-3: -1, 4: 0}, versions: 1+}
  number: {type: {0-1: u8, 2+: uvarint}, counts: more}
  more: {array: part, none: {2: 255}}
  held: {layout: part, none: {0-1: {type: i8, value: -1}, 2+: {type: uvarint, value: 0}}}
  late: {type: u8, when: metadata == null and offset > 2}
---
layout: part
fields: {x: u8}
---
layout: around
fields:
  inner: {layout: commit}
  big: {type: u8, when: inner.offset > 4294967296 and inner.metadata == null}
"""

VALUES: list[tuple[int, dict[str, Any], str]] = [
    (0, {"offset": 5, "metadata": "m", "number": 0, "more": [], "held": None}, "00000005 00016d 00 ff"),
    (1, {"offset": 5, "metadata": "", "parts": [], "number": 1, "more": [{"x": 9}], "held": {"x": 1}},
     "0000000000000005 0000 00000000 01 09 01 01"),
    (2, {"offset": 2, "metadata": None, "parts": None, "number": 255, "more": None, "held": None},
     "0000000000000002 ffff ffffffff ff01 00"),
    (3, {"offset": 2, "metadata": None, "parts": [7], "number": 0, "more": [], "held": {"x": 2}},
     "0000000000000002 ffff 00000001 07 00 01 02"),
    (4, {"offset": 3, "metadata": None, "parts": None, "number": 0, "more": [], "held": None, "late": 8},
     "0000000000000003 00 00 00 00 08"),
]  # fmt: skip

INSIDE = """
layout: names
versions: 0-1
fields:
  xs: {array: {string: {0: i16, 1: compact}, none: {1: 0}}, count: {0: i32, 1: compact}}
  p: {fields: {x: u8, s: {string: {0: u8, 1: compact}}}, none: {0: {type: i8, value: -1}, 1: {type: uvarint, value: 0}}}
"""


def model() -> Model:
    found, diagnostics = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": SCHEMA})
    assert found is not None and not diagnostics
    return found


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return package_of(SCHEMA, tmp_path_factory.mktemp("by_version"), "by_version")


@pytest.mark.parametrize(("version", "value", "hex"), VALUES)
def test_each_version_has_its_own(
    package: ModuleType, version: int, value: dict[str, Any], hex: str
) -> None:
    data = version.to_bytes(2, "big") + bytes.fromhex(hex)
    whole = {"version": version, "late": None, **value}
    assert package.COMMIT.parse(data) == whole
    assert package.COMMIT.build(whole) == data
    plan = make_plan(model())
    assert encoded_size(plan, plan.versions["commit"][version], whole) == len(data)


@pytest.mark.parametrize(
    ("version", "value", "why"),
    [
        (0, {"offset": 1 << 40}, "does not fit int32"),
        (1, {"offset": 0, "metadata": None}, "null is not allowed here"),
        (2, {"offset": 0, "metadata": "", "more": [{"x": 1}] * 255}, "that number means null"),
        (3, {"offset": 0, "metadata": "", "more": None}, "a list is needed"),
    ],
)
def test_what_another_version_has_is_refused(
    package: ModuleType, version: int, value: dict[str, Any], why: str
) -> None:
    with pytest.raises(BuildError, match=why):
        package.COMMIT.build({"version": version, **value})


def test_expressions_know_all_versions_that_there_may_be() -> None:
    plan = make_plan(model())
    own = plan.versions["commit"][0].field("late")
    around = plan.versions["around"][0].field("big")
    assert own is not None and own.when is not None
    assert around is not None and around.when is not None
    ranges = {
        (n.names, range_of(n))
        for when in (own.when, around.when)
        for n in iterate_nodes(when)
        if isinstance(n, FieldValue) and n.names[-1] == "offset"
    }
    assert ranges == {
        (("offset",), (-(1 << 31), (1 << 31) - 1)),
        (("inner", "offset"), (-(1 << 63), (1 << 63) - 1)),
    }


def test_a_layout_around_reads_any_version(package: ModuleType) -> None:
    for version, value, hex in VALUES:
        data = version.to_bytes(2, "big") + bytes.fromhex(hex)
        parsed = package.AROUND.parse(data)
        assert parsed["inner"]["offset"] == value["offset"] and parsed["big"] is None
        assert package.AROUND.build(parsed) == data


@pytest.mark.parametrize(
    ("name", "value", "hex"),
    [
        ("NAMES_V0", {"xs": ["a"], "p": {"x": 1, "s": "b"}}, "00000001 0001 61 01 01 01 62"),
        ("NAMES_V0", {"xs": [], "p": None}, "00000000 ff"),
        ("NAMES_V1", {"xs": ["a", None], "p": {"x": 1, "s": "b"}}, "03 02 61 00 01 01 02 62"),
        ("NAMES_V1", {"xs": [], "p": None}, "01 00"),
    ],
)
def test_elements_and_local_layouts(
    inside: ModuleType, name: str, value: dict[str, Any], hex: str
) -> None:
    codec, data = getattr(inside, name), bytes.fromhex(hex)
    assert codec.parse(data) == value
    assert codec.build(value) == data


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return package_of(
        INSIDE, tmp_path_factory.mktemp("inside"), "inside_by_version", "construct,docs"
    )


def test_people_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "codecgen.yaml").write_text(MANIFEST, "utf-8")
    (tmp_path / "case.yaml").write_text(SCHEMA, "utf-8")
    schemas = ["--schemas", str(tmp_path)]
    assert main(["diff", "commit", "3", "4", *schemas]) == GOOD
    told = capsys.readouterr().out
    assert (
        "~ metadata: text (UTF-8) with int16 length, null as -1 becomes "
        "text (UTF-8) with compact length, null as 0" in told
    )
    assert main(["explain", "commit.metadata", *schemas]) == GOOD
    told = " ".join(capsys.readouterr().out.split())
    assert "text (UTF-8) with int16 length in version 0, 1 " in told
    assert "text (UTF-8) with int16 length, null as -1 in version 2, 3 " in told
    assert "text (UTF-8) with compact length, null as 0 in version 4 " in told
