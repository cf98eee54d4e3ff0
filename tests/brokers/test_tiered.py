"""Tiered storage, as a real broker writes it: what the tier has is listed, read under its own name, and makes the log whole."""

from __future__ import annotations

import csv
import io
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory, SegmentReader, discover, read_table, scan_batches
from kafka_log.cli import main
from kafka_log.logs.broker_files import read_checkpoint
from kafka_log.logs.discovery import survey
from kafka_log.logs.names import LOG_START
from tests.brokers.answers import ISOLATIONS, complaints, consumed, plain, summed
from tests.brokers.brokers import KraftBroker
from tests.brokers.process import wait_until
from tests.brokers.tiered import TOPIC, segments, tiered_broker
from tests.support.check_plants import change, flip

pytestmark = pytest.mark.broker
PLACE = (TOPIC, 0)
Running = tuple[KraftBroker, Path]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with tiered_broker(tmp_path_factory.mktemp("tiered")) as found:
        yield found


@pytest.fixture(scope="module")
def theirs(running: Running) -> dict[str, Any]:
    return consumed(running[0], [PLACE])[PLACE]


def rows(paths: list[Path], isolation: Any) -> list[dict[str, Any]]:
    columns = ["offset", "timestamp", "key", "value", "headers", "state"]
    return plain(read_table(paths, columns, isolation=isolation, topics=TOPIC, include=["remote"]))


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_tier_and_the_disk_have_what_a_consumer_reads(
    running: Running, theirs: dict[str, Any], isolation: str
) -> None:
    broker, tier = running
    found = rows([broker.log_dir, tier], isolation)
    # What was copied is on the disk too, until retention takes it.
    whole = sorted({row["offset"]: row for row in found}.values(), key=lambda row: row["offset"])
    assert {row["state"] for row in whole} == {"live", "remote"}
    ours = summed(whole)
    assert ours == {name: theirs[isolation][name] for name in ours}


def test_the_disk_alone_has_less_and_says_so(running: Running) -> None:
    broker, tier = running
    partitions, left_out, *_ = survey([broker.log_dir, tier])
    (live,) = [p for p in partitions if p.topic == TOPIC]
    assert [s.path.name for s in live.segments] == segments(broker)
    remote = [s for s in left_out if s.state == "remote"]
    assert len(remote) == len(list(tier.rglob("*.log"))) > 3
    assert min(s.base_offset for s in remote) == 0 < live.segments[0].base_offset


def test_the_metadata_of_the_tier_names_every_segment(running: Running) -> None:
    """What the view says of segments whose copy is whole is what lies there."""
    broker, tier = running
    states: dict[bytes, dict[str, Any]] = {}
    for row in read_table(broker.log_dir, view="remote_segments").to_pylist():
        changed = {name: value for name, value in row.items() if value is not None}
        states.setdefault(row["segment_id"], {}).update(changed)
    said = [(s["start_offset"], s["size"]) for s in states.values() if s["state"] == 1]
    (partition,) = discover(tier, ["remote"])
    assert (partition.topic, partition.partition, partition.state) == (*PLACE, "remote")
    assert sorted(said) == [(s.base_offset, s.size) for s in partition.segments]


def test_a_broker_with_a_tier_is_healthy(running: Running) -> None:
    broker, tier = running
    assert complaints(broker.log_dir) == []
    assert complaints(tier) == []
    stores = list(tier.glob("kafka-tiered-storage/*"))
    assert stores and complaints(*stores) == []


def test_other_commands_read_the_tier(running: Running) -> None:
    (partition,) = running[1].glob("kafka-tiered-storage/*")
    log = LogDirectory(partition)
    assert log.stat().column("problems").to_pylist() == [0]
    found = log.txn().column("state").to_pylist()
    assert found.count("aborted") >= 4


# ---------------------------------------------------------------- planted damage


@dataclass(frozen=True)
class Copied:
    """A copy of the broker's directory and of its tier, which tests damage."""

    live: Path
    tier: Path

    @property
    def copies(self) -> list[Path]:
        """The logs in the tier, by base offset."""
        return sorted(self.tier.rglob("*.log"))

    @property
    def first_live(self) -> Path:
        return min((self.live / f"{TOPIC}-0").glob("*.log"))

    def find(self) -> set[tuple[Any, ...]]:
        """Return what `check` reports: severity, code, file, byte, first and last offset."""
        rows = LogDirectory([self.live, self.tier], include="remote").check().to_pylist()
        names = ("severity", "code", "file", "byte", "first_offset", "last_offset")
        return {tuple(row[name] for name in names) for row in rows}


@pytest.fixture
def copied(running: Running, tmp_path: Path) -> Copied:
    broker, tier = running
    of = Copied(tmp_path / "broker", tmp_path / "tier")
    shutil.copytree(broker.log_dir, of.live)
    shutil.copytree(tier, of.tier)
    return of


Findings = set[tuple[Any, ...]]


def flip_bit(of: Copied) -> Findings:
    path = of.copies[1]
    batch = list(SegmentReader(path))[1]
    flip(path, batch.position + 70)
    place = str(path), batch.position, batch.base_offset, batch.last_offset
    return {("error", "batch_checksum", *place)}


def move_offsets(of: Copied) -> Findings:
    """Give a batch the base offset of an earlier one, which no checksum covers."""
    path = of.copies[1]
    _, _, moved, *_ = list(SegmentReader(path))
    base = int(path.name[:20])
    change(path, moved.position, moved.position + 8, base.to_bytes(8, "big"))
    last = base + len(moved.records) - 1
    return {("error", "offsets_not_rising", str(path), moved.position, base, last)}


def remove_copy(of: Copied) -> Findings:
    """Remove a copy with all of its files."""
    _, path, after, *_ = of.copies
    first, end = int(path.name[:20]), int(after.name[:20])
    for one in path.parent.glob(f"{first:020}-*"):
        one.unlink()
    return {("error", "segment_missing", str(after), None, first, end - 1)}


def shorten_copy(of: Copied) -> Findings:
    """Cut bytes off a copy: its last batch is torn, and the metadata of the tier states more bytes."""
    path = of.copies[1]
    last = list(SegmentReader(path))[-1]
    size = path.stat().st_size - 5
    change(path, size, size + 5, b"")
    return {
        ("error", "torn_tail", str(path), last.position, last.base_offset, None),
        ("error", "segment_shrunk", str(path), size, last.base_offset, None),
    }


def damage_live_segment(of: Copied) -> Findings:
    """Damage the first batch on the disk: the broker, which did not stop, truncates the segment there."""
    path = of.first_live
    batches = list(SegmentReader(path))
    flip(path, batches[0].position + 70)
    first, last = batches[0].base_offset, batches[0].last_offset
    end = list(SegmentReader(max(path.parent.glob("*.log"))))[-1].last_offset
    return {
        ("error", "batch_checksum", str(path), 0, first, last),
        ("note", "not_stopped", str(path), 0, first, end),
    }


def remove_live_index(of: Copied) -> Findings:
    path = of.first_live.with_suffix(".index")
    path.unlink()
    return {("note", "index_missing", str(path), None, None, None)}


@pytest.mark.share(ci=3)
@pytest.mark.parametrize(
    "plant",
    [flip_bit, move_offsets, remove_copy, shorten_copy, damage_live_segment, remove_live_index],
)
def test_planted_damage_is_found_where_it_is(
    copied: Copied, plant: Callable[[Copied], Findings]
) -> None:
    healthy = copied.find()
    assert {severity for severity, *_ in healthy} == {"note"}
    assert copied.find() - healthy == set()
    expected = plant(copied)
    found = copied.find()
    assert found - healthy == expected
    assert healthy <= found


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot"])
def test_files_beside_a_copy_are_not_checked(copied: Copied, suffix: str) -> None:
    """Neither are they read: the rows are the same without them."""
    healthy, before = copied.find(), rows([copied.live, copied.tier], "read_committed")
    (path,) = copied.tier.rglob(f"{copied.copies[1].stem}{suffix}")
    path.unlink()
    assert copied.find() == healthy
    assert rows([copied.live, copied.tier], "read_committed") == before


# ---------------------------------------------------------------- DeleteRecords, which changes the log: last

LIMIT_S = 60.0


def dumped(paths: list[Path]) -> list[int]:
    """Offsets that ``dump`` prints."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(out):
        words = ["--topic", TOPIC, "--include", "remote", "--format", "csv", "--columns", "offset"]
        assert main(["dump", *map(str, paths), *words]) == 0
    out.seek(0)
    return [int(row["offset"]) for row in csv.DictReader(out)]


def counted(paths: list[Path]) -> int:
    """Number of records that ``stat`` counts, without those that a live segment and a copy both have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = LogDirectory(paths, topics=TOPIC, include="remote")
        live = min(s.base_offset for p in log.partitions if p.state == "live" for s in p.segments)
        found = LogDirectory(paths, topics=TOPIC).stat().to_pylist()
        of_copies = log.stat(offsets=(None, live)).to_pylist()
    found += [row for row in of_copies if row["state"] == "remote"]
    return sum(row["records"] for row in found)


def test_deleted_records_do_not_come_back_from_the_tier(running: Running, tmp_path: Path) -> None:
    """Neither while the tier still has their segments nor when the broker has deleted them."""
    broker, tier = running
    copies = sorted(
        segment.base_offset for p in discover(tier, ["remote"]) for segment in p.segments
    )
    start = copies[2] + 4
    before = tmp_path / "tier"
    shutil.copytree(tier, before)
    with broker.client() as client:
        client.ask("delete_records", topic=TOPIC, partition=0, before=start)
    checkpoint = broker.log_dir / LOG_START
    wait_until(
        lambda: checkpoint.exists() and read_checkpoint(checkpoint).get(PLACE) == start,
        LIMIT_S,
        lambda: f"{checkpoint} does not state {start}; see {broker.log_file}",
    )
    theirs = consumed(broker, [PLACE])[PLACE]
    assert theirs["read_uncommitted"]["start_offset"] == start

    def assert_all_agree(paths: list[Path]) -> None:
        for isolation in ISOLATIONS:
            found = rows(paths, isolation)
            ours = summed(found)
            assert ours == {name: theirs[isolation][name] for name in ours}, isolation
        offsets = [row["offset"] for row in rows(paths, "read_uncommitted")]
        assert dumped(paths) == offsets
        whole: dict[str, Any] = {"topics": TOPIC, "include": ["remote"]}
        columns = ["base_offset", "last_offset"]
        batches = scan_batches(paths, columns, **whole).read_all().to_pylist()
        [first] = [
            b["base_offset"] for b in batches if b["base_offset"] <= start <= b["last_offset"]
        ]
        split = read_table(paths, ["offset"], offsets=(first, start), deleted_records=True, **whole)
        assert counted(paths) == len(offsets) + split.num_rows

    assert_all_agree([broker.log_dir, before])
    wait_until(
        lambda: (
            min(s.base_offset for p in discover(tier, ["remote"]) for s in p.segments) == copies[2]
        ),
        LIMIT_S,
        lambda: f"the tier has segments before {copies[2]}; see {broker.log_file}",
    )
    assert_all_agree([broker.log_dir, tier])
