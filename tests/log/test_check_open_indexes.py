"""Indexes of an active segment that its broker has not closed: behind the entries that count may lie those of batches it has truncated."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from kafka_log import LogDirectory
from tests.log.check_plants import ACTIVE, PLAIN, THIRD
from tests.paths import SAMPLES

STALE = {".index": struct.pack(">ii", 90, 5000), ".timeindex": struct.pack(">qi", 5, 90)}


@pytest.mark.parametrize("suffix", STALE)
@pytest.mark.parametrize(
    ("segment", "zeros", "was_stopped", "severity"),
    [
        (ACTIVE, 4000, False, "note"),
        (ACTIVE, 4000, True, "error"),
        (ACTIVE, 0, False, "error"),
        (THIRD, 4000, False, "error"),
    ],
)
def test_stale_entries(
    tmp_path: Path, suffix: str, segment: str, zeros: int, was_stopped: bool, severity: str
) -> None:
    root = tmp_path / "broker"
    shutil.copytree(SAMPLES / "kafka-4.x", root)
    if not was_stopped:
        (root / ".kafka_cleanshutdown").unlink()
    path = root / PLAIN / f"{segment}{suffix}"
    path.write_bytes(path.read_bytes() + STALE[suffix] + bytes(zeros * len(STALE[suffix])))
    rows = LogDirectory(root).check().to_pylist()
    found = {(row["severity"], row["code"].partition("_")[0], row["file"]) for row in rows}
    kind = suffix[1:]
    assert (severity, kind, str(path)) in found
    if severity == "note":
        assert found == {("note", kind, str(path))}
