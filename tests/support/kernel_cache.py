"""A source tree with kernels that is installed by copying, to test the cache of compiled code."""

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

from tests.paths import ROOT

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
