"""A version of batches that nobody knows, by YAML alone: everything reads it and writes it, next to the others."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")
pytest.importorskip("pyspark")

from pyspark_kafka_log.java import JavaNotFound, find_java
from tests.codecs.random_format import add_columns, add_version, drawn
from tests.codecs.tree import Tree
from tests.codecs.use_random_format import read_before

pytestmark = pytest.mark.slow


SEEDS = os.environ.get("RANDOM_FORMATS", "1,2").split(",")
"""Seeds of the versions that are drawn. RANDOM_FORMATS=3,4,5 draws others."""


@pytest.fixture(scope="module", params=[*SEEDS, None])
def tree(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Tree:
    """The codecs with a version that was drawn, or (None) with a second version of today's layouts."""
    tree = Tree(tmp_path_factory.mktemp("tree"))
    schemas = tree.root / "schemas"
    if request.param is None:
        add_version(schemas)
    else:
        drawn(int(request.param)).add_to(schemas)
        add_columns(schemas)
    tree.run("codecgen", "generate", "schemas", "--out", "generated")
    return tree


def test_it_is_read_and_written_by_everything(tree: Tree, tmp_path: Path) -> None:
    use(tree, str(tmp_path))


@pytest.mark.spark
def test_spark_reads_it(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        monkeypatch.setenv("JAVA_HOME", str(find_java(os.environ, tmp_path).home))
    except JavaNotFound as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    use(tree, str(tmp_path), "spark")


def test_every_old_file_reads_as_before(tree: Tree) -> None:
    found = json.loads(tree.run("python", "-m", "tests.codecs.use_random_format", "old"))
    assert found == read_before()
    assert len(found) > 500


def use(tree: Tree, *arguments: str) -> None:
    out = tree.run("python", "-m", "tests.codecs.use_random_format", *arguments)
    assert out.splitlines()[-1] == "all of it"
