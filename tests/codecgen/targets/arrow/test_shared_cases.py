"""Choices that select one layout by several numbers, in any order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.codecgen.generated import package_of
from tests.support.plain_kernels import decoded, view_of

PACKAGE = "shared_cases_codecs"
LAYOUTS = """\
layout: small
fields: {size: {type: u8, measures: rest}, kind: u8, number: u8, more: u8}
---
layout: large
fields: {size: {type: u8, measures: rest}, kind: u8, number: u16}
"""
CHOICE = """\
---
choice: {name}
by: kind
cases: {{0: {0}, 1: {1}, 2: {2}}}
---
view: rows_of_{name}
of: {name}
columns: {{number: {{type: int32}}}}
rows: [{{of: small, columns: {{number: number}}}}, {{of: large, columns: {{number: number}}}}]
"""
ORDERS = [order for order in product(("small", "large"), repeat=3) if len(set(order)) > 1]


def name_of(order: tuple[str, ...]) -> str:
    return "_".join(order)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    root: Path = tmp_path_factory.mktemp("shared_cases")
    choices = [CHOICE.format(*order, name=name_of(order)) for order in ORDERS]
    package_of("".join([LAYOUTS, *choices]), root, PACKAGE, "construct,arrow")
    sys.path.insert(0, str(root / "out"))
    try:
        yield
    finally:
        sys.path.remove(str(root / "out"))


@pytest.mark.parametrize("engine", ["plain", "numpy"])
@pytest.mark.parametrize("order", ORDERS, ids=name_of)
def test_each_number_is_read_as_its_layout(
    package: None, order: tuple[str, ...], engine: str
) -> None:
    data = b"".join(bytes([3, kind, 1, 7]) for kind in (0, 1, 2, 1, 0))
    parts, rejected = decoded(view_of(PACKAGE, f"rows_of_{name_of(order)}"), data, engine=engine)
    numbers = [row["number"] for part in parts for row in part.batch.to_pylist()]
    value = {"small": 1, "large": 0x107}
    assert (numbers, rejected) == ([value[order[kind]] for kind in (0, 1, 2, 1, 0)], [])
