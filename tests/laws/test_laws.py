"""Laws for schemas that nobody wrote. LAWS_SCHEMAS is how many of the slow suite, LAWS_SEED where they begin."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import Phase

from tests.laws.compiled import compare
from tests.laws.coverage import constructs
from tests.laws.runs import Run, block_of, run, shrunk
from tests.laws.world import World

FEW = 60
SEED = int(os.environ.get("LAWS_SEED", "0"))
COMPILED = 6
MANY = int(os.environ.get("LAWS_SCHEMAS", "5000"))


def told(result: Run) -> str:
    """What was found, each finding once, as small as it becomes in a few seconds."""
    parts = []
    for name, finding in list(result.findings.items())[:5]:
        small = shrunk(finding, result.seeds[name], 20.0)
        parts.append(f"{name}\n{small.schema}\n{small.text}")
    return "\n\n".join(parts)


def test_a_few_schemas_keep_the_laws() -> None:
    result = run(FEW, SEED)
    assert not result.findings, told(result)
    assert result.rows > 50


@pytest.mark.slow
def test_many_schemas_keep_the_laws_and_use_every_construct() -> None:
    result = run(MANY, SEED + 1)
    assert not result.findings, told(result)
    missing = constructs() - result.used
    assert not missing, f"no random schema used {', '.join(sorted(missing))}"
    assert sum(result.rejected.values()) < result.schemas / 3


@pytest.mark.slow
def test_a_sample_of_compiled_kernels_reads_what_plain_ones_do(tmp_path: Path) -> None:
    compared = 0

    def look(world: World) -> None:
        nonlocal compared
        if compared < COMPILED:
            compared += compare(world, tmp_path, random.Random(compared))

    block_of(SEED + 2, look, (Phase.generate,), views=True)
    assert compared == COMPILED
