"""Answers about logs whose older segments lie in tiered storage: those of the whole log."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory
from tests.shares import draw_seeds
from tests.support.histories import TIME, history

ID = "WTscIl6vTOe-sFdJ50q0_w"
ANSWERS: dict[str, dict[str, Any]] = {
    "txn": {"now": TIME + 1000},
    "producers": {},
    "keys": {"control_records": False},
}


def tiered(source: Path, root: Path, local: int) -> None:
    """The last ``local`` segments of a partition live, all before them and one more in tiered storage."""
    segments = sorted(source.glob("*.log"))
    live, tier = root / "broker" / source.name, root / "tier" / f"{source.name}-{ID}"
    live.mkdir(parents=True)
    tier.mkdir(parents=True)
    for path in source.iterdir():
        if path.suffix != ".log" or path in segments[-local:]:
            shutil.copyfile(path, live / path.name)
    for path in segments[: len(segments) - local + 1]:
        shutil.copyfile(path, tier / f"{path.stem}-{ID}.log")
        snapshot = path.with_suffix(".snapshot")
        if snapshot.exists():
            shutil.copyfile(snapshot, tier / f"{path.stem}-{ID}.snapshot")


def plain(table: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.drop_columns("directory").to_pylist()
    return found


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("answer", ANSWERS)
def test_they_are_of_the_whole_log(answer: str, tmp_path: Path) -> None:
    seen = 0
    for seed in draw_seeds(40):
        made = history(tmp_path / f"t-{seed}", seed)
        if made.log_start or len(list(made.directory.glob("*.log"))) < 3:
            continue
        root = tmp_path / f"of{seed}"
        tiered(made.directory, root, 1)
        whole = LogDirectory(made.directory)
        parts = LogDirectory([root / "broker", root / "tier"], include="remote")
        ask = ANSWERS[answer]
        expected = plain(getattr(whole, answer)(**ask))
        assert plain(getattr(parts, answer)(**ask)) == expected, seed
        if answer == "keys":
            keys = [b"k", None]
            found = parts.records_of_key(keys).select(["offset", "latest"])
            assert found.equals(whole.records_of_key(keys).select(["offset", "latest"]))
        seen += bool(expected)
    assert seen > 5


def test_ls_and_stat_list_copies_apart(tmp_path: Path) -> None:
    made = next(
        h
        for seed in range(40)
        if len(list((h := history(tmp_path / f"t-{seed}", seed)).directory.glob("*.log"))) > 2
    )
    tiered(made.directory, tmp_path / "of", 1)
    parts = LogDirectory([tmp_path / "of" / "broker", tmp_path / "of" / "tier"], include="remote")
    for table in (parts.ls(), parts.stat()):
        rows = table.select(["topic", "partition", "state"]).to_pylist()
        assert len({(r["topic"], r["partition"]) for r in rows}) == 1
        assert [r["state"] for r in rows] == ["live", "remote"]
