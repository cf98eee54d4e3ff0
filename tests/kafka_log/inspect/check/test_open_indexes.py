"""Indexes of an active segment that its broker has not closed: behind the entries that count may lie those of batches it has truncated."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_log import LogDirectory, encode
from tests.paths import SAMPLES
from tests.support.check_plants import ACTIVE, PLAIN, THIRD

STALE = {".index": struct.pack(">ii", 3, 100), ".timeindex": struct.pack(">qi", 5, 3)}
BEYOND = {".index": struct.pack(">ii", 90, 5000), ".timeindex": struct.pack(">qi", 1 << 41, 90)}


@pytest.mark.slow
@pytest.mark.share(4)
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
    rows = [row for row in LogDirectory(root).check().to_pylist() if row["code"] != "not_stopped"]
    found = {(row["severity"], row["code"].partition("_")[0], row["file"]) for row in rows}
    kind = suffix[1:]
    assert (severity, kind, str(path)) in found
    if severity == "note":
        assert found == {("note", kind, str(path))}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", BEYOND)
@pytest.mark.parametrize(
    ("segment", "was_stopped", "is_judged"),
    [(ACTIVE, False, False), (ACTIVE, True, True), (THIRD, False, True)],
)
def test_entries_beyond_the_bytes_that_were_read(
    tmp_path: Path, suffix: str, segment: str, was_stopped: bool, is_judged: bool
) -> None:
    """A broker that runs appends to a segment, and then to its index, after the segment was read."""
    root = tmp_path / "broker"
    shutil.copytree(SAMPLES / "kafka-4.x", root)
    if not was_stopped:
        (root / ".kafka_cleanshutdown").unlink()
    path = root / PLAIN / f"{segment}{suffix}"
    path.write_bytes(path.read_bytes() + BEYOND[suffix])
    rows = [row for row in LogDirectory(root).check().to_pylist() if row["code"] != "not_stopped"]
    assert [(row["severity"], row["file"]) for row in rows] == [("error", str(path))] * is_judged


@pytest.mark.parametrize(
    ("time", "base", "entries", "codes"),
    [
        (0, 0, 1, []),
        (0, 7, 1, []),
        (0, 0, 2, ["timeindex_zero_tail"]),
        (0, 0, 0, []),
        # No other record has an entry like this.
        (5, 0, 1, ["timeindex_zero_tail"]),
        (-1, 0, 1, ["timeindex_zero_tail"]),
    ],
)
def test_an_entry_of_zeros(
    time: int, base: int, entries: int, codes: list[str], tmp_path: Path
) -> None:
    """A segment whose only record has the first offset and a time of 1970 has one, which a broker writes when it rolls it."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    for offset in (base, base + 1):
        rows = pa.table({"offset": [offset], "timestamp": [time], "value": [b"x"]})
        path = directory / f"{offset:020d}.log"
        path.write_bytes(b"".join(encode(rows)))
        path.with_suffix(".index").write_bytes(b"")
        path.with_suffix(".timeindex").write_bytes(bytes(12 * entries) if offset == base else b"")
    assert LogDirectory(directory).check().column("code").to_pylist() == codes


def test_the_entry_is_the_one_that_is_written(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    for offset in range(3):
        rows = pa.table({"offset": [offset], "timestamp": [0], "value": [b"x"]})
        (directory / f"{offset:020d}.log").write_bytes(b"".join(encode(rows)))
    LogDirectory(directory).salvage(tmp_path / "out")
    made = tmp_path / "out" / "t-0"
    assert {path.read_bytes() for path in made.glob("*.timeindex")} >= {bytes(12)}
    assert LogDirectory(made).check().num_rows == 0
