"""Generated and mutated segments: the kernels and the reference codecs read the same, or fail alike."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given

from tests.paths import ROOT
from tests.shares import draw_seeds
from tests.support.mutated_bytes import mutants
from tests.support.random_segments import segments
from tests.support.scanned_rows import reference, scanned

POLICIES = ("strict", "kafka", "salvage")


@pytest.mark.slow
@given(data=segments)
def test_generated_segments(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "generated.log"
    path.write_bytes(data)
    expected = reference(path, "strict")
    assert expected.error is None
    read = scanned(path, "strict")
    assert read == expected
    assert read.fallbacks == 0


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("seed", draw_seeds(8))
def test_mutated_segments(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "mutated.log"
    for i, data in enumerate(mutants(100, seed)):
        path.write_bytes(data)
        policy = POLICIES[i % 3]
        assert scanned(path, policy) == reference(path, policy), (policy, data.hex())


@pytest.mark.slow
@pytest.mark.share(ci=9)
@pytest.mark.parametrize("seed", draw_seeds(40, first=100))
def test_many_mutated_segments(seed: int, tmp_path: Path) -> None:
    test_mutated_segments(seed, tmp_path)


@pytest.mark.soak
@pytest.mark.slow
def test_the_lines_of_the_kernels_run() -> None:
    pytest.importorskip("coverage")
    roots = [ROOT / name for name in ("generator", "generated", "pipeline")] + [ROOT]
    path = os.pathsep.join(map(str, roots))
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.coverage_of_kernels"],
        env=dict(os.environ, NUMBA_DISABLE_JIT="1", PYTHONPATH=path),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_without_a_compiler_the_kernels_are_plain_python() -> None:
    program = (
        "from tests.support.scanned_rows import *\n"
        "from tests.paths import VECTORS\n"
        "from kafka_codecs.arrow import records_kernels\n"
        "assert not records_kernels.JIT\n"
        "files = sorted((VECTORS / 'matrix').rglob('*.log'))[::4]\n"
        "files += sorted((VECTORS / 'malformed').rglob('*.log'))[::4]\n"
        "files = [f for f in files if f.stat().st_size < 20000]\n"
        "assert len(files) > 20\n"
        "for f in files:\n"
        "    for policy in ('strict', 'kafka', 'salvage'):\n"
        "        assert scanned(f, policy) == reference(f, policy), f\n"
    )
    roots = [ROOT / name for name in ("generator", "generated", "pipeline")] + [ROOT]
    environment = dict(
        os.environ, NUMBA_DISABLE_JIT="1", PYTHONPATH=os.pathsep.join(map(str, roots))
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
