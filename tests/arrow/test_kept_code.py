"""Compiled kernels are kept on disk, and never found again once a primitive that is part of them has changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.arrow.primitives import compiling
from tests.paths import ROOT, VECTORS

pytestmark = pytest.mark.skipif(not compiling.JIT, reason="there is no compiler")

PACKAGES = ("generator/codecgen", "generated/kafka_codecs", "pipeline/kafka_log")
SMALL = """
from codecgen.runtime.arrow.primitives.compiling import jit
from codecgen.runtime.arrow.primitives.memory import wrap_64
from codecgen.runtime.arrow.primitives.varints import varint


@jit
def kernel(p: int) -> int:
    return varint(p)[0]
"""
CALL = """
import json
import numpy as np
from small import kernel
data = np.array([14] + [0] * 100, np.uint8)
found = int(kernel(data.ctypes.data))
print(json.dumps([found, sum(kernel.stats.cache_hits.values())]))
"""
SCAN = """
import json
import sys
from kafka_log.segment.columnar import BatchScanner
from kafka_codecs.arrow import batches_kernels
scanner = BatchScanner(sys.argv[1], ["base_offset", "producer_epoch"], engine="arrow")
rows = [row for batch in scanner for row in batch.to_pylist()]
hits = [k.stats.cache_hits for k in batches_kernels.KERNELS[2]]
print(json.dumps([rows, sum(n for found in hits for n in found.values())]))
"""


@dataclass(frozen=True)
class Tree:
    """A copy of the packages that has code of its own kept."""

    folder: Path

    def run(self, program: str, *arguments: str) -> Any:
        own = ("NUMBA_", "PYTHON")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(own)}
        environment["PYTHONPATH"] = str(self.folder)
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def change(self, module: str, before: str, after: str) -> None:
        path = self.folder / "codecgen" / "runtime" / "arrow" / "primitives" / f"{module}.py"
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / Path(package).name, ignore=ignored)
    (tmp_path / "small.py").write_text(SMALL, encoding="utf-8")
    return Tree(tmp_path)


@pytest.mark.slow
def test_a_change_of_a_primitive_is_noticed(tree: Tree) -> None:
    assert tree.run(CALL) == [7, 0]
    assert tree.run(CALL) == [7, 1]
    before, after = "return (value >> 1) ^ -(value & 1), after", "return value + 1, after"
    tree.change("varints", before, after)
    assert tree.run(CALL) == [15, 0]
    assert tree.run(CALL) == [15, 1]
    tree.change("varints", after, before)
    assert tree.run(CALL) == [7, 1]  # what was compiled with these primitives is there still


@pytest.mark.slow
def test_a_change_in_a_file_that_the_kernel_does_not_name_is_noticed(tree: Tree) -> None:
    """``varint`` stands on ``load_u8``, which is in another file."""
    assert tree.run(CALL) == [7, 0]
    tree.change("memory", "_loader(8, False, False)", "_loader(8, True, False)")
    assert tree.run(CALL) == [7, 0]


@pytest.mark.slow
def test_generated_kernels_are_kept_and_dropped_alike(tree: Tree) -> None:
    path = str(VECTORS / "matrix" / "v2-none-create.log")
    rows, hits = tree.run(SCAN, path)
    assert rows[0]["producer_epoch"] == -1 and hits == 0
    assert tree.run(SCAN, path) == [rows, 2]
    tree.change("memory", "_loader(16, True, True)", "_loader(8, False, True)")
    changed, hits = tree.run(SCAN, path)
    assert changed == [row | {"producer_epoch": 255} for row in rows] and hits == 0


@pytest.mark.slow
def test_a_place_that_cannot_be_written_to_is_done_without(tree: Tree) -> None:
    (tree.folder / "__pycache__").write_bytes(b"")
    nowhere = str(tree.folder / "small.py" / "home")
    program = "import os\n" + "".join(
        f"os.environ[{name!r}] = {nowhere!r}\n"
        for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA")
    )
    assert tree.run(program + CALL) == [7, 0]
    assert tree.run(program + CALL) == [7, 0]
    assert not list(tree.folder.glob("*.nb[ci]"))
