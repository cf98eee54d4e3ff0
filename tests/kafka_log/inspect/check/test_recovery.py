"""What a broker recovers that was killed. tests/brokers/test_crashes.py compares it with what a broker says when it starts again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_codecs import OFFSET_CHECKPOINT
from kafka_log import LogDirectory
from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.check_plants import PLAIN

RECOVERY_POINT = "recovery-point-offset-checkpoint"
HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    root = tmp_path / "logs"
    shutil.copytree(SAMPLES / "kafka-4.x" / PLAIN, root / PLAIN)
    shutil.copy(SAMPLES / "kafka-4.x" / "meta.properties", root)
    return root


def write_recovery_point(root: Path, offset: int) -> None:
    topic, _, number = PLAIN.rpartition("-")
    entry = {"topic": topic, "partition": int(number), "offset": offset}
    data = OFFSET_CHECKPOINT.build({"version": 0, "entries": [entry]})
    (root / RECOVERY_POINT).write_bytes(data)


def said(root: Path) -> str | None:
    rows = LogDirectory(root).check().to_pylist()
    of_directory = [row for row in rows if row["topic"] is None]
    found = [row["meaning"] for row in of_directory if row["code"] == "not_stopped"]
    assert len(found) < 2
    return found[0] if found else None


def test_segments_from_the_recovery_point_on(killed: Path) -> None:
    bases = sorted(int(path.stem) for path in (killed / PLAIN).glob("*.log"))
    assert len(bases) > 3
    without = f"it recovers {len(bases)} segments of 1 partition, "
    assert without in (said(killed) or "")
    for i, base in enumerate(bases):
        for offset, count in ((base - 1, len(bases) - i + 1), (base, len(bases) - i), (base + 1, len(bases) - i)):  # fmt: skip
            if offset >= 0:
                write_recovery_point(killed, offset)
                noun = "segment" if count == 1 else "segments"
                assert f"it recovers {count} {noun} of 1 partition, " in (said(killed) or "")


def test_only_where_a_broker_was_killed(killed: Path) -> None:
    assert said(killed) is not None
    assert said(killed / PLAIN) is None
    (killed / ".kafka_cleanshutdown").touch()
    assert said(killed) is None
    (killed / ".kafka_cleanshutdown").unlink()
    (killed / "meta.properties").unlink()
    assert said(killed) is None


@pytest.mark.skipif(sys.platform != "linux", reason="asks who holds a lock as Linux answers it")
def test_a_broker_that_runs_holds_the_lock(killed: Path) -> None:
    lock = killed / ".lock"
    lock.touch()
    assert said(killed) is not None
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert said(killed) is None
        holder.communicate()
    assert said(killed) is not None


def damage(root: Path, base: int, position: int) -> None:
    path = root / PLAIN / f"{base:020d}.log"
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def losses(root: Path, **options: Any) -> list[tuple[int, int, int]]:
    """First and last offset, and number of records, that the notes of partitions name."""
    rows = LogDirectory(root, **options).check().to_pylist()
    found = [row for row in rows if row["code"] == "not_stopped" and row["topic"] is not None]
    return [(row["first_offset"], row["last_offset"], row["records"]) for row in found]


@pytest.mark.slow
def test_what_a_start_truncates(killed: Path) -> None:
    """The log ends where the first damaged batch begins, in the segments from the recovery point on."""
    assert losses(killed) == []
    write_recovery_point(killed, 0)
    damage(killed, 84, 500)
    damage(killed, 42, 500)
    for options in ({}, {"topics": "segments.small"}):
        assert losses(killed, **options) == [(48, 143, 96)]
    line = f"{PLAIN}: truncated at offset 48, offsets 48 to 143 are lost"
    assert line in (said(killed) or "")
    assert "at most 96 records." in (said(killed) or "")
    write_recovery_point(killed, 84)
    assert losses(killed) == [(90, 143, 54)]
    write_recovery_point(killed, 130)
    assert losses(killed) == []
    (killed / ".kafka_cleanshutdown").touch()
    assert losses(killed) == []


def test_a_segment_without_an_index_is_truncated_alone(killed: Path) -> None:
    """The broker rebuilds it before it recovers the log, and finds no damage there later."""
    damage(killed, 42, 500)
    for point in (0, 130):
        write_recovery_point(killed, point)
        (killed / PLAIN / f"{42:020d}.index").unlink(missing_ok=True)
        assert losses(killed) == [(48, 83, 36)]


def test_a_torn_batch_at_the_end_loses_no_other(killed: Path) -> None:
    path = max((killed / PLAIN).glob("*.log"))
    path.write_bytes(path.read_bytes()[:-5])
    assert losses(killed) == []


def test_the_report_has_what_a_start_truncates(
    killed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(killed, 42, 500)
    assert main(["report", str(killed), "--out", str(tmp_path / "page.html")]) == 1
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "truncated at offset 48, offsets 48 to 143 are lost" in page
