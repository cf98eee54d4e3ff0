"""Laws for schemas that nobody wrote: a few hundred, the same ones each time. LAWS_SEED asks for others; `make soak PARTS=laws` tries
20,000 of them."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import Phase

from tests.laws.compiled import compare
from tests.laws.runs import block_of
from tests.laws.world import World
from tests.paths import ROOT
from tests.shares import SEED

SCHEMAS = 200
COMPILED = 6


def run(*arguments: str) -> tuple[int, str]:
    """The command, in the process of its own that makes a seed mean the same schemas each time."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.laws", "--shrink", "20", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def rows_of(shown: str) -> int:
    found = re.search(r"(\d+) rows read", shown)
    assert found, shown
    return int(found[1])


@pytest.mark.slow
def test_random_schemas_keep_the_laws() -> None:
    code, shown = run("--schemas", str(SCHEMAS), "--seed", str(SEED + 1))
    assert code == 0, shown
    assert rows_of(shown) > SCHEMAS


@pytest.mark.slow
def test_a_sample_of_compiled_kernels_reads_what_plain_ones_do(tmp_path: Path) -> None:
    compared = 0

    def look(world: World) -> None:
        nonlocal compared
        if compared < COMPILED:
            compared += compare(world, tmp_path, random.Random(compared))

    block_of(SEED + 2, look, (Phase.generate,), views=True)
    assert compared >= COMPILED  # a schema may have several views
