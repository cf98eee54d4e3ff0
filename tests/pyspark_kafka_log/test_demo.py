"""The demo, as `make demo` runs it once .venv is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kafka_log import SegmentReader, discover
from tests.paths import ROOT, SAMPLES

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def show(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline")]
    return subprocess.run(
        [sys.executable, ROOT / "demo" / "show.py", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots), "LC_ALL": "C", "COLUMNS": "40"},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def shown(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    scratch = tmp_path_factory.mktemp("demo")
    logs = [SAMPLES / "kafka-2.8", SAMPLES / "kafka-4.x"]
    return scratch, show(*logs, "--output", scratch / "out", cwd=scratch)


@pytest.mark.soak
def test_it_answers(shown: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """What is open stands first, libraries say nothing, and the end says how to go on."""
    scratch, done = shown
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) < 55  # `make demo` has a few more
    (first, *_) = [line for line in lines if line.startswith("$ ")]
    assert first.startswith("$ kafka-log txn ") and "kafka-4.x" in first
    assert any(line.split()[:5] == ["transactions", "2", "open", "no", "1001"] for line in lines)
    assert any(line.startswith("|kafka-2.8|codecs ") for line in lines)
    assert any(line.strip().endswith("activate") for line in lines)
    assert "WARN" not in done.stdout
    assert sorted(p.name for p in scratch.iterdir()) == ["out"]


@pytest.mark.soak
def test_parquet_has_every_record(shown: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    scratch, _ = shown
    found = pq.read_table(scratch / "out" / "records")
    wanted = sum(
        partition.topic != "trimmed" or record.offset >= 7  # the others were deleted
        for name in ("kafka-4.x", "kafka-2.8")
        for partition in discover(SAMPLES / name)
        for segment in partition.segments
        for batch in SegmentReader(segment.path)
        for record in batch.records
    )
    assert found.num_rows == wanted
    assert set(found["log"].to_pylist()) == {"kafka-4.x", "kafka-2.8"}


def test_it_replaces_nothing_but_its_own(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    done = show(SAMPLES / "kafka-4.x" / "idempotent-0", "--output", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 1
    assert "is not the demo's own" in done.stderr
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


def test_a_directory_without_logs(tmp_path: Path) -> None:
    done = show(tmp_path / "nowhere", cwd=tmp_path)
    assert done.returncode == 1
    assert "there is no such file or directory" in done.stderr
    assert "Traceback" not in done.stderr
