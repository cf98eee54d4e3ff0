"""Files and directories that are removed after a LogDirectory listed them: damage for every method that goes on after damage."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.errors import CodecError
from kafka_log import LogDirectory
from kafka_log.logs.metadata_snapshots import (
    MetadataSnapshot,
    find_snapshot_damage,
    list_snapshots,
)
from kafka_log.logs.names import CLUSTER_METADATA
from kafka_log.write.rewrite import metadata_snapshots as copied_snapshots
from tests.paths import SAMPLES

BROKER = SAMPLES / "kafka-4.x"
METADATA = f"{CLUSTER_METADATA}-0"
KEPT = ("segments.small-0", "idempotent-0", METADATA, "__consumer_offsets-0", "__transaction_state-0")  # fmt: skip

Report = Callable[[str], None]

TOLERANT: dict[str, Callable[[LogDirectory, Path, Report], Any]] = {
    "ls": lambda log, out, tell: log.ls(segments=True),
    "stat": lambda log, out, tell: log.stat(deep=True, on_problem=tell),
    "largest": lambda log, out, tell: log.largest(on_problem=tell),
    "check": lambda log, out, tell: log.check(),
    "diff": lambda log, out, tell: log.diff(BROKER, on_damage=tell),
    "txn": lambda log, out, tell: log.txn(on_damage=tell),
    "producers": lambda log, out, tell: log.producers(on_damage=tell),
    "groups": lambda log, out, tell: log.groups(salvage=True, on_damage=tell),
    "coordinator": lambda log, out, tell: log.coordinator("a", on_damage=tell),
    "keys": lambda log, out, tell: log.keys(),
    "records_of_key": lambda log, out, tell: log.records_of_key(b"a", on_problem=tell),
    "export": lambda log, out, tell: list(log.export(out, policy="salvage")),
    "salvage": lambda log, out, tell: log.salvage(out),
    "cut": lambda log, out, tell: log.cut(out, offsets=(0, 5)),
    "convert": lambda log, out, tell: log.convert(out, codec="gzip"),
    "reindex": lambda log, out, tell: log.reindex(out),
}
"""Methods that report damage and go on. Without a metadata log there is no answer of metadata()."""


def remove_segments(root: Path) -> None:
    for path in root.glob("*/*.log"):
        path.unlink()


def replace_segments(root: Path) -> None:
    for path in root.glob("*/*.log"):
        path.unlink()
        path.mkdir()


def remove_partitions(root: Path) -> None:
    for path in root.iterdir():
        shutil.rmtree(path)


CHANGES = [remove_segments, replace_segments, remove_partitions, shutil.rmtree]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in KEPT:
        shutil.copytree(BROKER / name, tmp_path / "broker" / name)
    return tmp_path / "broker"


@pytest.mark.slow
@pytest.mark.share(6)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", TOLERANT)
def test_what_is_removed_after_the_listing_is_damage(
    root: Path, tmp_path: Path, name: str, change: Callable[[Path], None]
) -> None:
    log = LogDirectory(root)
    assert len(log.partitions) == len(KEPT)
    change(root)
    TOLERANT[name](log, tmp_path / "out", lambda line: None)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", ["txn", "producers", "metadata", "groups", "coordinator"])
def test_it_is_raised_as_damage_where_damage_is_raised(
    root: Path, name: str, change: Callable[[Path], None]
) -> None:
    log = LogDirectory(root)
    assert log.partitions
    change(root)
    arguments = ["a"] if name == "coordinator" else []
    try:
        getattr(log, name)(*arguments)
    except CodecError:
        return
    assert name == "coordinator", "it says so, and counts 50 partitions"


def test_salvage_names_a_snapshot_that_is_gone(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker deletes it between its check and the copy."""
    gone = root / METADATA / list_snapshots(root / METADATA)[0].path.name

    def check_and_remove(snapshot: MetadataSnapshot) -> CodecError | None:
        why = find_snapshot_damage(snapshot)
        gone.unlink(missing_ok=True)
        return why

    monkeypatch.setattr(copied_snapshots, "find_snapshot_damage", check_and_remove)
    rows = LogDirectory(root).salvage(tmp_path / "out").to_pylist()
    found = {row["file"]: row["what"] for row in rows if row["topic"] == CLUSTER_METADATA}
    assert found[gone.name] == "lost" and "copied" in found.values()
    assert not (tmp_path / "out" / METADATA / gone.name).exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["salvage", "cut", "convert", "reindex"])
def test_a_metadata_log_without_a_directory_gets_a_row(
    root: Path, tmp_path: Path, name: str
) -> None:
    """It is named as lost or refused; the other partitions are written."""
    log = LogDirectory(root)
    assert log.partitions
    shutil.rmtree(root / METADATA)
    rows = TOLERANT[name](log, tmp_path / "out", lambda line: None).to_pylist()
    reasons = [row["reason"] for row in rows if row["topic"] == CLUSTER_METADATA]
    assert len(reasons) == 1 and METADATA in reasons[0]
    assert (tmp_path / "out" / KEPT[0]).is_dir()
    assert not (tmp_path / "out" / METADATA).exists()
