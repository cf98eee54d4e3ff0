"""The object of a layout with versions: its versions, one of them, the last one, and its text."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from tests.codecgen.generated import package_of

SCHEMA = """\
layout: step
versions: 1-3
fields: {x: u8, y: {type: u8, versions: 2+}}
---
layout: point
versions: 0-1
fields: {version: {type: u8, is: version}, x: u8, y: {type: u8, versions: 1}}
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return package_of(SCHEMA, tmp_path_factory.mktemp("versions"), "layout_versions")


def test_the_caller_chooses_a_version(package: Any) -> None:
    step = package.STEP
    assert repr(step) == "<LayoutVersions step: 1, 2, 3>"
    assert step.versions == (1, 2, 3)
    assert step[2] is package.STEP_V2
    assert step.latest is package.STEP_V3


def test_it_is_a_mapping(package: Any) -> None:
    step = package.STEP
    assert isinstance(step, Mapping)
    assert dict(step) == {1: package.STEP_V1, 2: package.STEP_V2, 3: package.STEP_V3} == step
    assert (len(step), list(step), 3 in step, step.get(4)) == (3, [1, 2, 3], True, None)


def test_the_bytes_choose_a_version(package: Any) -> None:
    point = package.POINT
    assert repr(point) == "<VersionedLayout point by version: 0, 1>"
    assert point.versions == tuple(point) == (0, 1)
    assert point[0] is package.POINT_V0
    assert point.latest is package.POINT_V1
    assert point.parse(bytes([1, 2, 3])).y == 3


@pytest.mark.parametrize("name", ["STEP", "POINT"])
def test_pickles_and_copies_are_the_object_itself(package: Any, name: str) -> None:
    whole = getattr(package, name)
    assert pickle.loads(pickle.dumps(whole)) is whole
    assert copy.deepcopy(whole) is copy.copy(whole) is whole


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("STEP", "step has no version 7; its versions: 1, 2, 3"),
        ("POINT", "point has no version 7; its versions: 0, 1"),
    ],
)
def test_an_unknown_version_is_refused_by_name(package: Any, name: str, message: str) -> None:
    with pytest.raises(KeyError) as refused:
        getattr(package, name)[7]
    assert refused.value.args == (message,)
