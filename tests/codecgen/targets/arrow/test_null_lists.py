"""Lists that are null: kernels, NumPy readers and the rows of the reference codecs tell them from empty ones."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from codecgen.runtime.arrow.decoder import Rejected
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import Place
from tests.paths import ROOT
from tests.support.other_layouts import MANIFEST, decoded, emitted

PACKAGE = "null_lists_codecs"
CASE = ROOT / "tests" / "laws" / "cases" / "null_arrays_in_rows.yaml"
NAMED = {"name": "n", "value": b"v"}
ROWS: list[dict[str, Any]] = [
    {"id": 1, "numbers": None, "parts": None, "more": None, "plain": []},
    {"id": 2, "numbers": [1, 2], "parts": [], "more": [NAMED], "plain": [NAMED]},
    {"id": 3, "numbers": [1], "parts": [NAMED, {"name": "", "value": None}], "more": None, "plain": []},
    {"id": 4, "numbers": None, "parts": None, "more": [NAMED, NAMED], "plain": []},
]  # fmt: skip


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    root = tmp_path_factory.mktemp("null_lists")
    manifest = MANIFEST.replace("made_up_codecs", PACKAGE)
    text = CASE.read_text(encoding="utf-8")
    for path, generated in emitted({"codecgen.yaml": manifest, "format.yaml": text}).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(generated, encoding="utf-8")
    sys.path.insert(0, str(root))
    try:
        yield importlib.import_module(PACKAGE)
    finally:
        sys.path.remove(str(root))


def read(by: str, data: bytes) -> tuple[list[dict[str, Any]], list[Rejected]]:
    view = importlib.import_module(f"{PACKAGE}.arrow.parts").PARTS
    return decoded(view, importlib.import_module(f"{PACKAGE}.arrow.parts_{by}"), data, None)


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the view has it."""

    def items(name: str, *members: str) -> Any:
        value = row.get(name)
        return None if value is None else [{m: item[m] for m in members} for item in value]

    parts = items("parts", "name", "value")
    more, plain = items("more", "name"), items("plain", "value")
    return {"id": row["id"], "parts": parts, "more": more, "plain": plain or []}


@pytest.mark.parametrize("by", [pytest.param("kernels", marks=pytest.mark.slow), "numpy"])
def test_null_is_not_empty(codecs: ModuleType, by: str) -> None:
    entries = [
        codecs.ENTRY.build({"rows": ROWS}),
        codecs.OTHER.build({"id": 9}),
        codecs.ENTRY.build({"rows": None}),
        codecs.ENTRY.build({"rows": []}),
        codecs.ENTRY.build({"rows": ROWS[2:]}),
        codecs.ENTRY.build({"rows": ROWS[:1]}),
    ]
    rows, rejected = read(by, b"".join(entries))
    other = {"id": 9, "parts": None, "more": None, "plain": []}
    assert rows == [*map(shown, ROWS), other, *map(shown, ROWS[2:]), shown(ROWS[0])]
    assert not rejected


@pytest.mark.slow
@pytest.mark.parametrize("by", ["kernels", "numpy"])
@pytest.mark.parametrize("row", [0, 1])
def test_a_number_that_is_not_null_is_rejected(codecs: ModuleType, by: str, row: int) -> None:
    data = codecs.ENTRY.build({"rows": [ROWS[row]]})
    at = data.index(b"\xff\xff\xff\xff" if row == 0 else b"\0\0\0\0") + 3
    bad = bytearray(data)
    bad[at] = 0xFE if row == 0 else 0x40
    rows, rejected = read(by, bytes(bad) + data)
    assert len(rejected) == 1 and rows == [shown(ROWS[row])]


def test_rows_of_the_reference(codecs: ModuleType) -> None:
    view = importlib.import_module(f"{PACKAGE}.rows.parts").PARTS
    data = codecs.ENTRY.build({"rows": ROWS})
    opened = codecs.ENTRY.open(Source(data, Session()))
    found = list(view.rows(codecs.ENTRY, opened, Place(0, len(data))))
    assert [row[1] is None for row in found] == [True, False, False, True]
    assert found[1] == (2, (), (("n",),), ((b"v",),))
    opened = codecs.OTHER.open(Source(codecs.OTHER.build({"id": 9}), Session()))
    assert list(view.rows(codecs.OTHER, opened, Place(0, 7))) == [(9, None, None, ())]
