"""A partition that lies in several directories is never part of a sum twice without a word."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kafka_log import discover
from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.browse_sites import Visitor

SUMS = (
    ("schemas",),
    ("stat", "--by", "topic"),
    ("stat", "--by", "codec"),
    ("stat", "--largest", "3"),
    ("keys", "--key", "x"),
    ("dump",),
    ("dump", "--batches"),
    ("sql", "select count(*) from records"),
    ("export", "--out", "out"),
)
"""Commands whose answers have no column for the directory."""


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """Two log directories with a copy of one partition in each, and other partitions."""
    for disk, names in (("a", ("codecs-1", "codecs-2")), ("b", ("codecs-1", "features-0"))):
        for name in names:
            shutil.copytree(SAMPLES / "kafka-4.x" / name, tmp_path / disk / name)
    return tmp_path


def size(disks: Path, *, of_copies: bool) -> int:
    sizes = {}
    total = 0
    for partition in discover(disks):
        sizes[partition.key] = partition.size
        total += partition.size
    return total if of_copies else sum(sizes.values())


@pytest.mark.parametrize("words", SUMS)
def test_sums_are_refused(
    words: tuple[str, ...], disks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if words[0] == "sql":
        pytest.importorskip("duckdb")
    more = [str(disks.parent / word) if word == "out" else word for word in words[1:]]
    assert main([words[0], str(disks), *more]) == 2
    shown = capsys.readouterr()
    assert not shown.out
    assert "holds the same partition" in shown.err and "--replicas" in shown.err


def test_the_overview_counts_a_partition_once_and_names_copies(
    disks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(disks)]) == 0
    said = dict(line.split(None, 1) for line in capsys.readouterr().out.split("\n\n")[0].splitlines())  # fmt: skip
    every = f"{size(disks, of_copies=True):,}"
    assert said["partitions"] == "3"
    assert said["replicas"] == "4 partition directories"
    assert said["segments"] == "4 in all replicas"
    assert said["bytes"].startswith(f"{every} (") and said["bytes"].endswith(" in all replicas")
    assert main(["overview", str(disks), "--replicas", "newest"]) == 0
    out = capsys.readouterr().out
    assert "replicas" not in out
    assert f"\nbytes       {size(disks, of_copies=False):,} (" in out


def test_ls_counts_a_partition_once_and_names_copies(
    disks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ls", str(disks), "--by", "topic", "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    counts = {row["topic"]: (row["partitions"], row["replicas"], row["segments"]) for row in rows}
    assert counts == {"codecs": (2, 3, 3), "features": (1, 1, 1)}
    assert sum(row["bytes"] for row in rows) == size(disks, of_copies=True)
    assert sum(row["largest_replica_bytes"] for row in rows) == size(disks, of_copies=False)


def test_the_first_page_names_copies(disks: Path) -> None:
    page = Visitor(disks).see("/")
    rows = {row[0]: row for row in page.rows}
    assert rows["topic"][2:5] == ["partitions", "replicas", "segments"]
    assert rows["codecs"][2:5] == ["2", "3", "3"]
    assert rows["features"][2:5] == ["1", "1", "1"]
    assert "3 partitions (4 replicas)" in page.text
    alone = Visitor(disks / "a").see("/")
    assert "replicas" not in alone.text
