"""Batches of a next version of the log format, each written as the author of a KIP would: YAML alone."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codecgen.check import run
from codecgen.plan import make_plan
from codecgen.runtime.fast_path import without_fast_paths
from codecgen.schema import loader
from codecgen.targets.registry import TARGETS
from tests.codecs.next_batches import MAGIC, add_batch
from tests.codecs.test_random_format import texts
from tests.codecs.tree import Tree
from tests.paths import ROOT

NAMES = ["flagged", "columnar", "dictionary"]
PACKAGE = "drawn_codecs"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a package of codecs is generated; it can be imported while the test runs."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


@pytest.mark.parametrize("name", NAMES)
def test_codecs(name: str, package: Path) -> None:
    """The schemas have no findings, so that the examples hold, and each codec compresses the batch."""
    schemas = package / "schemas"
    shutil.copytree(ROOT / "schemas", schemas)
    add_batch(name, schemas)
    model, found = loader.load(texts(schemas))
    assert model is not None and found == [] and run(model) == []
    for path, text in TARGETS["construct"](make_plan(model)).files.items():
        file = package / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    codecs: Any = importlib.import_module(PACKAGE)
    for example in model.layouts[f"{name}_batch"].examples:
        assert example.data is not None
        batch = codecs.LOG_ENTRY.parse(example.data)
        with without_fast_paths():
            assert repr(codecs.LOG_ENTRY.parse(example.data)) == repr(batch)
        assert batch.magic == MAGIC
        for codec in codecs.Compression:
            batch.attributes.compression = codec
            data = codecs.LOG_ENTRY.build(batch)
            again = codecs.LOG_ENTRY.parse(data)
            assert again.records == batch.records


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_commands_read_and_write_it(name: str, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    tree = Tree(tmp_path / "tree")
    add_batch(name, tree.root / "schemas")
    tree.run("codecgen", "generate", "schemas", "--out", "generated")
    work = tmp_path / "work"
    work.mkdir()
    out = tree.run("python", "-m", "tests.codecs.use_next_batch", name, str(work))
    assert out.splitlines()[-1] == "all of it"
