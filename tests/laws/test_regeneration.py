"""The law of `codecgen generate --watch`, for random schemas and for our own. LAWS_SEED asks for others."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.paths import ROOT
from tests.shares import SEED

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schemas", "edits"),
    [
        (2, 4),
        pytest.param(20, 8, marks=pytest.mark.soak),
        pytest.param(0, 2, marks=pytest.mark.soak),
        pytest.param(400, 12, marks=pytest.mark.soak),
        pytest.param(0, 60, marks=pytest.mark.soak),
    ],
)
def test_what_a_process_has_generated_before_changes_nothing(schemas: int, edits: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.laws.regeneration_laws", "--schemas", str(schemas), "--seed", str(SEED), "--edits", str(edits)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )  # fmt: skip
    shown = done.stdout + done.stderr
    assert done.returncode == 0, shown
    counts = re.search(r"(\d+) states, (\d+) of them generated", shown)
    assert counts is not None and int(counts[1]) == max(schemas, 1) * (edits + 1), shown
    assert int(counts[2]) > 0
