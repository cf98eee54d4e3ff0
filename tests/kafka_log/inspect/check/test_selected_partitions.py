"""Findings of selected partitions, also of those that have no directory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.logs.names import CLEAN_SHUTDOWN, RECOVERY_POINT
from kafka_log.logs.partitions import NotFoundError
from tests.paths import SAMPLES

BROKER = SAMPLES / "kafka-4.x"
ID = "00112233445566778899aabbccddeeff"
KEPT = ("meta.properties", "*-checkpoint", CLEAN_SHUTDOWN, "codecs-*", "empty-*")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a log directory whose checkpoints name many partitions that have no directory."""
    root = tmp_path / "broker"
    root.mkdir()
    for pattern in KEPT:
        for path in BROKER.glob(pattern):
            (shutil.copytree if path.is_dir() else shutil.copy)(path, root / path.name)
    shutil.rmtree(root / "codecs-2")
    shutil.rmtree(root / "codecs-3")
    (root / "codecs-1").rename(root / f"codecs-1.{ID}-stray")
    (root / f"empty-0.{ID}-delete").mkdir()
    return root


def rows(root: Path, **selection: Any) -> list[dict[str, Any]]:
    return LogDirectory(root, **selection).check().to_pylist()


@pytest.mark.parametrize(
    ("topics", "partitions"),
    [
        ("codecs", None),
        ("codecs", 2),
        ("codecs", "2-3"),
        ("codecs", "0,2"),
        ("cod*", None),
        ("empty", None),
        ("transactions", None),
        ("transactions,codecs", 1),
        (None, 2),
        (None, 0),
    ],
)
def test_a_selection_has_all_findings_of_its_partitions(
    root: Path, topics: str | None, partitions: int | str | None
) -> None:
    """A selection answers as a filter of the rows of a whole check does."""
    lists = {None: range(100), "2-3": range(2, 4), "0,2": range(0, 3, 2)}
    numbers = lists[partitions] if not isinstance(partitions, int) else [partitions]
    names = None if topics is None else topics.replace("*", "ecs").split(",")
    expected = [
        row
        for row in rows(root)
        if row["topic"] is not None
        and (names is None or row["topic"] in names)
        and row["partition"] in numbers
    ]
    assert expected
    assert rows(root, topics=topics, partitions=partitions) == expected


def test_a_damaged_checkpoint_hides_what_is_missing(root: Path) -> None:
    (root / RECOVERY_POINT).write_text("what?")
    assert "checkpoint_damaged" in {row["code"] for row in rows(root, topics="codecs")}


def test_the_command(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(root), "--topic", "codecs", "--partition", "2"]) == 1
    assert "warning: partition_missing in codecs-2" in capsys.readouterr().out
    page = root.parent / "page.html"
    assert main(["report", str(root), "--topic", "codecs", "--out", str(page)]) == 1
    assert "partition_missing" in page.read_text()


@pytest.mark.parametrize(
    ("topics", "partitions"), [("nothere", None), ("codecs", 7), ("codecs,nothere", 2)]
)
def test_a_name_that_nothing_has(root: Path, topics: str, partitions: int | None) -> None:
    log = LogDirectory(root, topics=topics, partitions=partitions)
    with pytest.raises(NotFoundError) as error:
        log.check()
    assert "checkpoint" not in str(error.value)


def test_other_answers_say_where_the_missing_partition_is_named(root: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no partition 2; .*kafka-log check"):
        LogDirectory(root, topics="codecs", partitions=2).ls()
