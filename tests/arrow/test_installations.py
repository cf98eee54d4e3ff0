"""The scan works wherever it is installed: without a compiler, without numpy's help, and where nothing can be cached."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.paths import ROOT

READ = """
from kafka_log.scanner import Scanner
from tests.arrow.rows import ALL, reference, unpacked
from tests.paths import VECTORS
path = VECTORS / "matrix" / "v2-gzip-create.log"
scanner = Scanner(path, ALL)
rows = [row for batch in scanner for row in unpacked(batch)]
assert rows == reference(path, "kafka").rows
"""
NO_CACHE = """
from numba.core import caching
for kind in (caching.FunctionCache, caching.CacheImpl, caching.CodeLibraryCacheImpl):
    if hasattr(kind, "_locator_classes"):
        kind._locator_classes = []
caching.FunctionCache._impl_class._locator_classes = []
"""


def run(program: str, **variables: str) -> None:
    roots = [ROOT / name for name in ("generator", "generated", "pipeline")] + [ROOT]
    path = os.pathsep.join(map(str, roots))
    environment = dict(os.environ, PYTHONPATH=path, **variables)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_numba_the_reference_codecs_read() -> None:
    program = (
        'import sys\nsys.modules["numba"] = None\n' + READ + "assert scanner.kernels is None\n"
    )
    run(program)


def test_without_a_place_for_a_cache_the_kernels_are_compiled_each_time() -> None:
    run(NO_CACHE + READ + "assert scanner.kernels.JIT and scanner.odd == 0\n")


def test_a_disabled_compiler_leaves_it_to_the_reference_codecs() -> None:
    run(READ + "assert scanner.kernels is None\n", NUMBA_DISABLE_JIT="1")
