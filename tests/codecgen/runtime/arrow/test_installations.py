"""The scan works wherever it is installed: without a compiler, without numpy's help, and where nothing can be cached."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.paths import ROOT

READ = """
from kafka_log.segment.scanner import Scanner
from tests.support.scanned_rows import ALL, reference, unpacked
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


WITHOUT = 'import sys\nsys.modules["numba"] = None\n'
BY_NUMPY = """
assert scanner.kernels.__name__ == "kafka_codecs.arrow.records_numpy" and scanner.fallbacks == 0
from tests.support.scanned_rows import scanned
for path in sorted((VECTORS / "matrix").rglob("*.log"))[::5]:
    for policy in ("strict", "kafka", "salvage"):
        for engine in ("auto", "arrow"):
            assert scanned(path, policy, engine=engine) == reference(path, policy)
from kafka_log import scan_batches
from kafka_log.segment.scanner import header_scanner
assert header_scanner(path).kernels.__name__ == "kafka_codecs.arrow.batches_numpy"
assert scan_batches(path).read_all() == scan_batches(path, engine="construct").read_all()
"""


@pytest.mark.slow
def test_without_numba_numpy_reads() -> None:
    run(WITHOUT + READ + BY_NUMPY)


@pytest.mark.slow
def test_without_numba_numpy_reads_large_batches() -> None:
    program = """
from codecgen.runtime.arrow.numpy_decoder import NumpyDecoder
from kafka_log.logs.discovery import discover
from kafka_log import read_table
from tests.paths import VECTORS
calls = []
plain = NumpyDecoder.decode
NumpyDecoder.decode = lambda *all: calls.append(1) or plain(*all)
path = VECTORS / "large" / "v2-gzip-1mib.log"
rows = read_table(path, engine="arrow")
assert calls and rows.num_rows
assert rows == read_table(path, engine="construct")
"""
    run(WITHOUT + program)


@pytest.mark.soak
def test_without_a_place_for_a_cache_the_kernels_are_compiled_each_time() -> None:
    run(NO_CACHE + READ + "assert scanner.kernels.JIT and scanner.fallbacks == 0\n")


@pytest.mark.slow
def test_a_disabled_compiler_leaves_it_to_numpy() -> None:
    run(READ + BY_NUMPY.split("from tests")[0], NUMBA_DISABLE_JIT="1")


@pytest.mark.slow
def test_a_view_without_readers_is_left_to_the_reference_codecs() -> None:
    program = """
from dataclasses import replace
from kafka_codecs.arrow import records
records.RECORDS = replace(records.RECORDS, numpy=None)
assert Scanner(path).kernels is None
try:
    Scanner(path, engine="arrow")
except ImportError as error:
    assert "numba" in str(error)
else:
    raise AssertionError
"""
    run(WITHOUT + READ + program)
