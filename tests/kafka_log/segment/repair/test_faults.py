"""A sample of the random faults of the table in docs/repair.md; the soak tries 100,000 of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka_log.segment.repair import faults

ALWAYS_REPAIRED = (
    "one bit of the covered bytes",
    "one bit of the checksum",
    "one bit of the length",
    "one bit of the magic byte",
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", faults.FAULTS)
def test_no_repair_that_is_called_certain_is_wrong(kind: str, tmp_path: Path) -> None:
    found = faults.try_faults(kind, 12, faults.SEED, tmp_path)
    assert not found[faults.WRONG_CERTAIN] and not found[faults.WRONG_LIKELY]
    if kind in ALWAYS_REPAIRED:
        assert found[faults.CERTAIN] == 12
    if kind in ("two bits far apart", "a zeroed sector of 512 bytes"):
        assert found[faults.LEFT] == 12


def test_the_table_fails_for_a_wrong_repair(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = "one bit of the checksum"
    assert faults.main(["--faults", "2", "--kind", kind]) == 0
    assert f"| {kind} | 2 | 2 | 0 | 0 | 0 | 0 |" in capsys.readouterr().out
    monkeypatch.setattr(faults, "judge", lambda *_: faults.WRONG_CERTAIN)
    assert faults.main(["--faults", "2", "--kind", kind]) == 1
