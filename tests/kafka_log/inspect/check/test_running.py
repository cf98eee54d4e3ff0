"""Logs that a broker writes, rolls, compacts and deletes while they are checked: a hook changes files between two reads."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory
from kafka_log.inspect.check import segment_scan
from kafka_log.inspect.check import table as check
from kafka_log.inspect.check.segment_scan import ScannedSegment
from kafka_log.inspect.check.segment_scan import scan_segment as read_segment
from kafka_log.logs.listing import list_base_offsets
from kafka_log.logs.names import HIGH_WATERMARK, RECOVERY_POINT
from tests.paths import SAMPLES
from tests.support.check_plants import ACTIVE, FIRST, PLAIN, SECOND, TX, flip, pieces, without_line

Change = Callable[[], None]


@dataclass
class Broker:
    """What a broker does after the first and the second reading of a segment."""

    segment: Path | None = None
    changes: list[Change] = field(default_factory=list)

    def after_reading(self, segment: Path, *changes: Change) -> None:
        self.segment, self.changes = segment, list(changes)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    running = Broker()

    def read(segment: Any, *rest: Any) -> ScannedSegment:
        try:
            return read_segment(segment, *rest)
        finally:
            if segment.path == running.segment and running.changes:
                running.changes.pop(0)()

    monkeypatch.setattr(check, "scan_segment", read)
    yield running
    assert running.changes == []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The log directory of a broker that runs."""
    copy = tmp_path / "broker"
    shutil.copytree(SAMPLES / "kafka-4.x", copy)
    (copy / ".kafka_cleanshutdown").unlink()
    return copy


def complaints(root: Path) -> list[tuple[str, str]]:
    told: list[int] = []
    log = LogDirectory(root)
    sizes = [segment.size for partition in log.partitions for segment in partition.segments]
    rows = log.check(advance=told.append).to_pylist()
    assert sum(sizes) > 0 and sum(told) > 0  # files come and go meanwhile, but some were read
    return [(row["code"], Path(row["file"]).name) for row in rows if row["severity"] != "note"]


def put(path: Path, data: bytes) -> Change:
    return lambda: (path.write_bytes(data), None)[1]


def move(path: Path, other: Path) -> None:
    if path.exists():
        path.rename(other)


def active_of(root: Path, name: str) -> Path:
    return max((root / name).glob("*.log"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [PLAIN, TX])
@pytest.mark.parametrize("kept", [0, 1, 2])
def test_batches_and_index_entries_that_come_after_the_reading(
    root: Path, broker: Broker, name: str, kept: int
) -> None:
    """The segment is read with its first batches; then the rest and all index entries are written."""
    path = active_of(root, name)
    whole = path.read_bytes()
    path.write_bytes(b"".join(pieces(path)[:kept]))
    broker.after_reading(path, put(path, whole))
    assert complaints(root) == []


@pytest.mark.slow
@pytest.mark.parametrize("cut", [5, 100, 380])
def test_a_batch_that_is_written_in_two_parts(root: Path, broker: Broker, cut: int) -> None:
    path = root / PLAIN / f"{ACTIVE}.log"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    broker.after_reading(path, put(path, whole))
    assert complaints(root) == []


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 2])
def test_zeros_of_a_longer_file_that_become_batches(
    root: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """The file was made longer in advance. What was a tail of zeros is a batch when its bytes are looked at again."""
    path = root / PLAIN / f"{ACTIVE}.log"
    whole, batches = path.read_bytes(), pieces(path)
    longer = [b"".join(batches[: i + 1]).ljust(len(whole) + 5000, b"\0") for i in range(3)]
    path.write_bytes(longer[2 - steps])
    for file in (RECOVERY_POINT, HIGH_WATERMARK, f"{PLAIN}/{144:020d}.snapshot"):
        (root / file).unlink()  # written when the log was longer
    without_line(root / PLAIN / "leader-epoch-checkpoint", -1)
    changes = [put(path, data) for data in longer[3 - steps :]]
    find_tail_kind = segment_scan.find_tail_kind

    def write_before(segment: Any, *rest: Any) -> str | None:
        if segment.path == path and changes:
            changes.pop(0)()
        return find_tail_kind(segment, *rest)

    monkeypatch.setattr(segment_scan, "find_tail_kind", write_before)
    assert complaints(root) == []
    assert changes == []


def test_zeros_over_which_a_batch_is_just_written(root: Path, broker: Broker) -> None:
    """The reading met the first half of a batch, whose other half was still zeros."""
    path = root / PLAIN / f"{ACTIVE}.log"
    whole = path.read_bytes()
    path.write_bytes(whole[:900].ljust(len(whole) + 5000, b"\0"))
    broker.after_reading(path, put(path, whole.ljust(len(whole) + 5000, b"\0")))
    assert complaints(root) == []


def test_a_segment_that_is_rolled_after_it_was_read(root: Path, broker: Broker) -> None:
    """It was read as the active one, without its last batch."""
    directory = root / PLAIN
    rolled = {path: path.read_bytes() for path in directory.glob(f"{ACTIVE}.*")}
    path = root / PLAIN / f"{84:020d}.log"
    whole = path.read_bytes()
    for later in rolled:
        later.unlink()
    path.write_bytes(b"".join(pieces(path)[:-1]))

    def roll() -> None:
        path.write_bytes(whole)
        for later, data in rolled.items():
            later.write_bytes(data)

    broker.after_reading(path, roll)
    assert complaints(root) == []


def test_a_leader_epoch_that_the_file_knows_a_moment_later(root: Path, broker: Broker) -> None:
    path = root / PLAIN / "leader-epoch-checkpoint"
    whole = path.read_bytes()
    without_line(path, 0)
    broker.after_reading(root / PLAIN / f"{FIRST}.log", put(path, whole))
    assert complaints(root) == []


def test_segments_that_the_cleaner_merges(root: Path, broker: Broker) -> None:
    """The first one is read as it was, with the offset index of what takes its place; the second one is gone."""
    first, second = (root / PLAIN / f"{name}.log" for name in (FIRST, SECOND))

    def merge() -> None:
        merged = first.read_bytes() + second.read_bytes()
        for path in (first, second):
            for suffix in (".log", ".index", ".timeindex"):
                file = path.with_suffix(suffix)
                move(file, file.with_name(file.name + ".deleted"))
        first.write_bytes(merged)

    broker.after_reading(first, merge)
    assert complaints(root) == []


@pytest.mark.slow
def test_a_segment_that_retention_deletes_while_its_index_is_read(
    root: Path, broker: Broker
) -> None:
    path = root / PLAIN / f"{FIRST}.log"
    index = path.with_suffix(".index")
    flip(index, 11)  # which is worth a second reading

    def delete() -> None:
        for file in (path, index, path.with_suffix(".timeindex")):
            move(file, file.with_name(file.name + ".deleted"))

    broker.after_reading(path, delete)
    assert complaints(root) == []
    codes = LogDirectory(root).check().column("code").to_pylist()
    assert "deleted_files" in codes


def test_a_partition_that_is_deleted_after_the_listing(root: Path) -> None:
    log = LogDirectory(root)
    assert log.partitions
    (root / PLAIN).rename(root / f"{PLAIN}.{'0a' * 16}-delete")
    rows = [row for row in log.check().to_pylist() if row["topic"] == "segments.small"]
    codes = {(r["severity"], r["code"]) for r in rows if r["partition"] == 0}
    assert codes == {
        ("note", code) for code in ("checkpoint_unknown_partition", "delete_directory", "file_gone")
    }


@pytest.mark.slow
@pytest.mark.parametrize("gone", [PLAIN, ""])
@pytest.mark.parametrize("name", [FIRST, ACTIVE])
def test_a_directory_that_is_gone_before_the_second_reading(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, gone: str
) -> None:
    """A damaged segment is read again; until then the partition directory, or the log directory, is removed."""
    flip(root / PLAIN / f"{name}.log", 60)
    listings: list[Path] = []

    def list_after_removal(directory: Path) -> tuple[int, ...]:
        if directory in listings:
            shutil.rmtree(root / gone, ignore_errors=True)
        listings.append(directory)
        return list_base_offsets(directory)

    monkeypatch.setattr(check, "list_base_offsets", list_after_removal)
    rows = LogDirectory(root).check().to_pylist()
    assert listings.count(root / PLAIN) == 2
    assert ("file_gone", str(root / PLAIN)) in {(row["code"], row["file"]) for row in rows}
    assert "batch_checksum" not in {row["code"] for row in rows}


def test_what_is_there_at_both_readings_is_found(root: Path, broker: Broker) -> None:
    """Damage in a segment to which the broker goes on to append."""
    path = root / PLAIN / f"{ACTIVE}.log"
    batches = pieces(path)
    flip(path, 60)
    damaged = path.read_bytes()
    path.write_bytes(damaged[: len(batches[0]) + len(batches[1])])
    broker.after_reading(path, put(path, damaged))
    assert complaints(root) == [("batch_checksum", path.name)]
