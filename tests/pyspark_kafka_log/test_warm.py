"""What is compiled ahead of use: all modules with kernels, and all that a first scan needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codecgen.runtime.arrow.primitives.compiling import JIT, compile_ahead
from pyspark_kafka_log.warm import kernel_modules
from tests.paths import ROOT, SAMPLES

ROOTS = ("generator", "generated", "pipeline")
USED = (".records_kernels", ".batches_kernels", ".offsets_kernels")
WITHOUT = {"codecgen.runtime.arrow.primitives.compiling"}


def test_every_module_with_kernels_is_known() -> None:
    found = {
        ".".join(path.relative_to(ROOT / root).with_suffix("").parts)
        for root in ROOTS
        for path in (ROOT / root).rglob("*.py")
        if "\n@jit\n" in path.read_text("utf-8")
    }
    assert found - WITHOUT == set(kernel_modules())


@pytest.mark.skipif(not JIT, reason="needs numba")
def test_functions_of_a_module() -> None:
    import codecgen.runtime.arrow.lz4 as lz4

    assert compile_ahead(lz4) == ["sections"]
    assert compile_ahead(sys.modules[__name__]) == []


@pytest.mark.soak
@pytest.mark.skipif(not JIT, reason="needs numba")
def test_nothing_is_compiled_after_it(tmp_path: Path) -> None:
    """Machine code for the arguments that calls have: a scan, headers, a view and a dump add none."""
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    env["PYTHONPATH"] = os.pathsep.join(str(ROOT / root) for root in ROOTS)

    def run(code: str) -> set[str]:
        subprocess.run([sys.executable, "-c", code], env=env, cwd=SAMPLES, check=True, timeout=600)
        return {path.name for path in tmp_path.rglob("*.nbc")}

    kernels = run(f"""
from importlib import import_module
from codecgen.runtime.arrow.primitives.compiling import compile_ahead
from pyspark_kafka_log.warm import kernel_modules
for name in kernel_modules():
    if "kafka_codecs" not in name or name.endswith({USED}):
        assert compile_ahead(import_module(name))
""")
    use = """
import kafka_log
from kafka_log.cli import main
path = "kafka-4.x"
kafka_log.read_table(path, engine="arrow")
list(kafka_log.scan_batches(path, engine="arrow"))
kafka_log.scan(path, view="offsets", engine="arrow").read_all()
assert main(["dump", path, "--engine", "arrow", "--format", "jsonl"]) == 0
"""
    assert run(use) == kernels and kernels
