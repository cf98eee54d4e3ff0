"""Plans are kept as long as the files are the same. No Java is needed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka_log.read.plan import Split
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.splits.plan import PLAN_CACHE, Plan, PlanCache, plan
from tests.support.spark_logs import numbered, write


@pytest.fixture
def path(directory: Path) -> Path:
    PLAN_CACHE.clear()
    write(directory, "t", 1, 0, numbered(2, 3))
    return write(directory, "t", 0, 0, numbered(2, 3))


def splits(directory: Path, **options: str) -> list[Split]:
    return [part for task in plan(parse({"path": str(directory), **options})) for part in task]


def test_the_same_files_have_the_same_plan(path: Path, directory: Path) -> None:
    assert splits(directory)[0] is splits(directory)[0]
    assert splits(directory, isolationLevel="read_committed")[0] is not splits(directory)[0]


def test_a_log_that_grows_is_planned_anew(path: Path, directory: Path) -> None:
    before = splits(directory)[0].size
    path.write_bytes(numbered(2, 4))
    assert splits(directory)[0].size > before


def test_a_file_of_the_same_size_is_another(path: Path, directory: Path) -> None:
    before = splits(directory)[0]
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert splits(directory)[0] is not before


def test_the_start_of_a_log_counts(path: Path, directory: Path) -> None:
    before = splits(directory)[0]
    (directory / "log-start-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    assert before.rows.offsets == (None, None)
    assert splits(directory)[0].rows.offsets == (2, None)


def test_files_beside_segments_count(path: Path, directory: Path) -> None:
    before = splits(directory, isolationLevel="read_committed")[0]
    (path.parent / "00000000000000000006.snapshot").write_bytes(b"")
    assert splits(directory, isolationLevel="read_committed")[0] is not before


def test_no_more_are_kept_than_there_is_room_for(path: Path, directory: Path) -> None:
    task = tuple(splits(directory))
    plans = PlanCache(kept=2, splits=3 * len(task))
    asked: list[str] = []

    def get(key: str, times: int) -> None:
        def make() -> Plan:
            asked.append(key)
            return Plan([task] * times, {})

        assert plans.get(key, make).tasks == [task] * times

    for key, times in (("a", 1), ("b", 1), ("a", 1), ("c", 1), ("a", 1), ("b", 1)):
        get(key, times)
    assert asked == ["a", "b", "c", "b"]
    get("large", 4)
    get("large", 4)
    assert asked[-2:] == ["large", "large"]


def test_a_plan_that_fails_is_not_kept(path: Path) -> None:
    plans = PlanCache()

    def fails() -> Plan:
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            plans.get("a", fails)
