"""Writing of partitions of which no segment is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_log.cli import main
from tests.support.batches import batch


def test_only_excluded_segments_are_not_an_empty_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = tmp_path / "odd-0", tmp_path / "out"
    log.mkdir()
    (log / f"{0:020d}.log.deleted").write_bytes(batch(0))
    assert main(["salvage", str(log), "--out", str(out)]) == 1
    shown = capsys.readouterr()
    assert "--include deleted" in " ".join(shown.out.split())
    assert not list(out.glob("odd-0/*.log"))
