"""The base offset of the last batch, which no later batch contradicts: checkpoints of the broker do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_log import LogDirectory, SegmentReader
from kafka_log.logs.names import HIGH_WATERMARK, RECOVERY_POINT
from tests.paths import SAMPLES

CODE = "base_offset_implausible"


def flipped(root: Path, name: str, bit: int) -> tuple[Path, int, int]:
    """Copy a partition with the files of its broker, and flip a bit of the base offset of its last batch. Return the file, the byte
    and the base offset that was there."""
    source = SAMPLES / name
    shutil.copytree(source, root / source.name)
    for name in (RECOVERY_POINT, HIGH_WATERMARK):
        shutil.copy(source.parent / name, root)
    path = max(p for p in (root / source.name).glob("*.log") if p.stat().st_size)
    batch = list(SegmentReader(path))[-1]
    data = bytearray(path.read_bytes())
    data[batch.position + 7 - bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    return path, batch.position, batch.base_offset or 0


@pytest.mark.slow
@pytest.mark.parametrize("bit", [12, 20, 30])
@pytest.mark.parametrize(
    "name", ["kafka-4.x/compacted-0", "kafka-4.x/transactions-1", "kafka-2.8/v1-compacted-1"]
)
def test_a_flipped_bit_is_found(tmp_path: Path, name: str, bit: int) -> None:
    path, byte, base = flipped(tmp_path, name, bit)
    (row,) = [r for r in LogDirectory(tmp_path).check().to_pylist() if r["code"] == CODE]
    assert (row["severity"], row["file"], row["byte"]) == ("warning", str(path), byte)
    assert row["first_offset"] - (1 << bit) == base
    assert f"With {base}, which differs in one bit" in row["meaning"]
    for checkpoint in (RECOVERY_POINT, HIGH_WATERMARK):
        (tmp_path / checkpoint).unlink()
    assert CODE not in LogDirectory(tmp_path).check()["code"].to_pylist()


@pytest.mark.slow
def test_a_gap_alone_proves_nothing(tmp_path: Path) -> None:
    """Compaction leaves gaps, and checkpoints may be older than the log."""
    path, byte, _ = flipped(tmp_path, "kafka-4.x/compacted-0", 12)
    data = bytearray(path.read_bytes())
    data[byte + 7] ^= 0b110
    path.write_bytes(data)
    assert CODE not in LogDirectory(tmp_path).check()["code"].to_pylist()
    whole = tmp_path / "whole"
    whole.mkdir()
    shutil.copytree(SAMPLES / "kafka-4.x" / "compacted-0", whole / "compacted-0")
    for end in range(80):
        for checkpoint in (RECOVERY_POINT, HIGH_WATERMARK):
            (whole / checkpoint).write_text(f"0\n1\ncompacted 0 {end}\n")
        assert CODE not in LogDirectory(whole).check()["code"].to_pylist()
