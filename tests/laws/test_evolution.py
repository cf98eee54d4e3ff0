"""The law of `codecgen breaking`, for random schemas and edits. LAWS_SEED asks for others; the soak tries more of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.paths import ROOT
from tests.shares import SEED

FEW, MANY = 20, 2000


@pytest.mark.parametrize(
    "schemas",
    [
        pytest.param(FEW, marks=pytest.mark.slow),
        pytest.param(MANY, marks=[pytest.mark.slow, pytest.mark.soak]),
    ],
)
def test_silence_means_that_old_bytes_are_read(schemas: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.laws.evolution_laws", "--schemas", str(schemas), "--seed", str(SEED + 1)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
    )  # fmt: skip
    shown = done.stdout + done.stderr
    assert done.returncode == 0, shown
    counts = re.search(r"(\d+) edits .*?(\d+) of them silent, (\d+) values read", shown)
    assert counts is not None, shown
    edits, silent, values = map(int, counts.groups())
    assert edits > schemas
    assert schemas < silent < edits  # neither silent about all edits, nor about few
    assert values > silent
