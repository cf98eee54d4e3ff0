"""What a broker recovers that was killed. tests/brokers/test_crashes.py compares it with what a broker says when it starts again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_codecs import OFFSET_CHECKPOINT
from kafka_log import LogDirectory
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
    found = [row["meaning"] for row in rows if row["code"] == "not_stopped"]
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
