"""Kafka's own reader beside ours, on mutated segments."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.shares import draw_seeds
from tests.support.judged import CASES

from .judge import LISTED, groups, judge
from .judge_rows import java
from .mutants import Mutants

pytestmark = [
    pytest.mark.broker,
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java"),
]

FILES = 1000


@pytest.mark.parametrize("seed", draw_seeds(1, first=20))
def test_mutants_are_read_as_by_kafka(seed: int) -> None:
    verdict = judge(FILES, seed)
    assert not verdict.found, "\n".join(verdict.found)
    assert FILES / 3 < verdict.damaged < FILES, "most have an error, and not all"
    assert verdict.records > FILES
    assert set(verdict.listed) <= set(LISTED)
    assert sum(verdict.listed.values()) < FILES / 20


def test_a_seed_gives_the_same_files() -> None:
    one, other = (Mutants(random.Random(5)) for _ in range(2))
    assert [one.one() for _ in range(50)] == [other.one() for _ in range(50)]


def test_what_is_recorded_of_kafka_is_what_it_says(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.log" for i in range(len(CASES))]
    for path, case in zip(paths, CASES.values(), strict=True):
        path.write_bytes(case.data)
    with java() as kafka:
        kafka.ask(paths)
        for name, case in CASES.items():
            before, found, after, end = groups(kafka.answer())
            read = (
                [row["offset"] for row in found[1:]],
                [row["timestamp"] for row in found[1:]],
                "errors" in found[0],
            )
            assert read == case.read, name
            assert len(before) == len(after) == 2
            assert end[0]["stop"] == "eof"
