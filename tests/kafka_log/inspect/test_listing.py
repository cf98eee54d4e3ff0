"""Disk usage per topic, beside a plain sum over the files."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_log import LogDirectory
from kafka_log.cli import main
from tests.paths import SAMPLES

BROKERS = [SAMPLES / "kafka-2.8", SAMPLES / "kafka-4.x"]


def sizes_of(*directories: Path) -> dict[str, dict[int, list[list[int]]]]:
    """By topic and number: the sizes of the segments of each copy."""
    found: dict[str, dict[int, list[list[int]]]] = defaultdict(lambda: defaultdict(list))
    for directory in directories:
        for path in sorted(directory.iterdir()):
            name = re.fullmatch(r"(.+)-([0-9]+)", path.name)
            if path.is_dir() and name:
                sizes = [file.stat().st_size for file in path.iterdir() if re.fullmatch(r"[0-9]{20}\.log", file.name)]  # fmt: skip
                found[name[1]][int(name[2])].append(sizes)
    return found


def expected(*directories: Path) -> list[dict[str, Any]]:
    rows = [
        {
            "topic": topic,
            "partitions": len(numbers),
            "replicas": sum(len(copies) for copies in numbers.values()),
            "segments": sum(len(copy) for copies in numbers.values() for copy in copies),
            "bytes": sum(sum(copy) for copies in numbers.values() for copy in copies),
            "largest_replica_bytes": sum(max(map(sum, copies)) for copies in numbers.values()),
            "state": "live",
        }
        for topic, numbers in sizes_of(*directories).items()
    ]
    return sorted(rows, key=lambda row: (-row["bytes"], row["topic"]))


@pytest.mark.parametrize("directories", [BROKERS[:1], BROKERS[1:], BROKERS])
def test_samples(directories: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert LogDirectory(directories).ls(by="topic").to_pylist() == expected(*directories)
    argv = ["ls", *map(str, directories), "--by", "topic"]
    assert main([*argv, "--format", "jsonl"]) == 0
    assert list(map(json.loads, capsys.readouterr().out.splitlines())) == expected(*directories)
    assert main(argv) == 0
    *_, total = capsys.readouterr().out.splitlines()
    names = ("partitions", "replicas", "segments", "bytes", "largest_replica_bytes")
    sums = [str(sum(row[name] for row in expected(*directories))) for name in names]
    assert total.split() == ["total", *sums, "-"]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "b-1", "total"]), st.integers(0, 2), st.sampled_from(["x", "y"]), st.lists(st.integers(0, 99), max_size=3)), min_size=1, max_size=8))  # fmt: skip
def test_made_directories(
    tmp_path_factory: pytest.TempPathFactory, logs: list[tuple[str, int, str, list[int]]]
) -> None:
    root = tmp_path_factory.mktemp("logs")
    for topic, number, disk, sizes in logs:
        path = root / disk / f"{topic}-{number}"
        path.mkdir(parents=True, exist_ok=True)
        for i, size in enumerate(sizes or [0]):
            (path / f"{i:020}.log").write_bytes(bytes(size))
    directories = sorted(root.iterdir())
    assert LogDirectory(directories).ls(by="topic").to_pylist() == expected(*directories)


def test_states_are_told_apart(tmp_path: Path) -> None:
    for name, size in (("t-0", 5), (f"t-0.{'0' * 32}-future", 7), (f"t-1.{'0' * 32}-delete", 9)):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020}.log").write_bytes(bytes(size))
    rows = LogDirectory(tmp_path, include="all").ls(by="topic").to_pylist()
    assert {row["state"]: (row["partitions"], row["replicas"], row["bytes"]) for row in rows} == {
        "live": (1, 1, 5),
        "future": (1, 1, 7),
        "delete": (1, 1, 9),
    }
    assert [row["state"] for row in LogDirectory(tmp_path).ls(by="topic").to_pylist()] == ["live"]


def test_one_topic_has_no_total_and_a_topic_may_be_called_total(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("total-0", "a-0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020}.log").write_bytes(b"x")
    assert main(["ls", str(tmp_path), "--by", "topic", "--topic", "total"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["ls", str(tmp_path), "--by", "topic", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_what_cannot_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    log = LogDirectory(BROKERS[0])
    with pytest.raises(ValueError, match="exclude each other: leave one out"):
        log.ls(by="topic", segments=True)
    with pytest.raises(ValueError, match="by is 'codec'; known: partition, topic"):
        log.ls(by="codec")  # type: ignore[arg-type]
    with pytest.raises(SystemExit):
        main(["ls", str(BROKERS[0]), "--by", "topic", "--segments"])
    assert "not allowed with argument --by" in capsys.readouterr().err


def test_the_size_of_what_cannot_be_opened_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(b"12345")
    (tmp_path / "t-0" / f"{9:020}.log").symlink_to(tmp_path / "gone")
    log = LogDirectory(tmp_path)
    assert log.ls(segments=True).column("bytes").to_pylist() == [5, None]
    assert log.ls().column("bytes").to_pylist() == [5]
    assert log.ls(by="topic").column("bytes").to_pylist() == [5]
