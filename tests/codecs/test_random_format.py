"""A version of batches that nobody knows, by YAML alone: everything reads it and writes it, next to the others."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from codecgen.check import run
from codecgen.plan import make_plan
from codecgen.runtime.editing import edit
from codecgen.runtime.errors import ChecksumError
from codecgen.runtime.located_bytes import Session, Source
from codecgen.schema import loader
from codecgen.targets.registry import TARGETS
from pyspark_kafka_log.java import JavaNotFound, find_java
from tests.codecs.random_format import (
    LAYOUT,
    MAGIC,
    add_columns,
    add_version,
    drawn,
    sealed,
)
from tests.codecs.tree import Tree
from tests.paths import ROOT
from tests.shares import SEED
from tests.support.drawn_codecs import PACKAGE, read_log_schemas

DRAWN = [SEED, *(pytest.param(SEED + i, marks=pytest.mark.soak) for i in range(1, 5))]
"""Seeds of versions. CI takes the same one each time, the soak five others each day."""

SEALED: dict[str, tuple[str, dict[str, int] | None]] = {
    "crc64_nvme": ("crc64_nvme", None),
    "xxh64": ("xxh64", None),
    "xxh3_64": ("xxh3_64", None),
    "masked": ("crc32c", {"rotate_right": 15, "add": 0xA282EAD8}),
}
"""Versions with the checksums that a proposal might choose, and masks for them."""
ONLY_IN_SOAK = [pytest.param(name, marks=pytest.mark.soak) for name in (None, *SEALED)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Tree:
    """The codecs with a version that a seed draws, with one of SEALED, or (None) with a second version of today's layouts."""
    pytest.importorskip("numba")
    tree = Tree(tmp_path_factory.mktemp("tree"))
    schemas = tree.root / "schemas"
    if request.param is None:
        add_version(schemas)
    elif request.param in SEALED:
        sealed(*SEALED[request.param]).add_to(schemas)
        add_columns(schemas)
    else:
        drawn(request.param).add_to(schemas)
        add_columns(schemas)
    tree.run("codecgen", "generate", "schemas", "--out", "generated")
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("tree", [*DRAWN, *ONLY_IN_SOAK], indirect=True)
def test_all_commands_read_and_write_it(tree: Tree, tmp_path: Path) -> None:
    use(tree, str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("tree", [SEED, *ONLY_IN_SOAK[:1]], indirect=True)
def test_every_old_file_reads_as_before(tree: Tree) -> None:
    from tests.codecs.use_random_format import read_before

    found = json.loads(tree.run("python", "-m", "tests.codecs.use_random_format", "old"))
    assert found == read_before()
    assert len(found) > 500


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.parametrize("tree", [*DRAWN, *ONLY_IN_SOAK], indirect=True)
def test_both_sources_of_spark_read_and_write_it(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    try:
        monkeypatch.setenv("JAVA_HOME", str(find_java(os.environ, tmp_path).home))
    except JavaNotFound as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    use(tree, str(tmp_path), "spark")


def use(tree: Tree, *arguments: str) -> None:
    out = tree.run("python", "-m", "tests.codecs.use_random_format", *arguments)
    assert out.splitlines()[-1] == "all of it"


# ------------------------------------------------------------ a quick look at some


@pytest.mark.slow
@pytest.mark.share(ci=5)
@pytest.mark.parametrize(
    "version",
    [
        SEED,
        *(pytest.param(SEED + i, marks=pytest.mark.slow) for i in range(5, 15)),
        *(pytest.param(name, marks=pytest.mark.slow) for name in SEALED),
    ],
)
def test_codecs_of_a_version(version: int | str, package: Path) -> None:
    """Batches are parsed as they were built, and edited to those that are built of other values: also of formats that only the
    reference codecs read."""
    schemas = package / "schemas"
    shutil.copytree(ROOT / "schemas", schemas)
    if isinstance(version, str):
        sealed(*SEALED[version]).add_to(schemas)
    else:
        drawn(version, kernels=False).add_to(schemas)
    model, found = loader.load(read_log_schemas(schemas))
    assert model is not None and found == [] and run(model) == []
    for name, text in TARGETS["construct"](make_plan(model)).files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    codecs: Any = importlib.import_module(PACKAGE)
    layout = getattr(codecs, LAYOUT.upper())
    records = [{"offset_delta": i, "key": b"k", "value": None if i else b"v"} for i in range(3)]
    values = {"base_offset": 7, "partition_leader_epoch": 2, "records": records}
    for codec in codecs.Compression:
        data = layout.build(values | {"attributes": {"compression": codec}})
        batch = codecs.LOG_ENTRY.parse(data)
        assert batch.magic == MAGIC and batch.last_offset == 9
        assert [(r.offset, r.key, r.value) for r in batch.records] == [
            (7, b"k", b"v"),
            (8, b"k", None),
            (9, b"k", None),
        ]
        source = Source(data, Session())
        changes = {"attributes.compression": codecs.Compression.GZIP, "base_offset": 1 << 40}
        wanted = values | {"attributes": {"compression": "gzip"}, "base_offset": 1 << 40}
        assert edit(layout, source, changes, recompress=True) == layout.build(wanted)
        wrong = bytearray(data)
        wrong[layout.offset_of("crc")] ^= 1
        with pytest.raises(ChecksumError):
            layout.parse(bytes(wrong))
