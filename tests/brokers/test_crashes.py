"""What brokers leave that are killed in mid-write, that preallocate, or whose disk is full: all that they read themselves when they start
again is read, and nothing of it is called damage."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory, discover
from kafka_log.inspect.check.recovery import recovered_segments
from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.names import CLUSTER_METADATA
from tests.brokers.answers import Place, assert_same_records, complaints, consumed
from tests.brokers.brokers import KraftBroker
from tests.brokers.crashes import PLACES, TIME, fill_the_disk, kill_in_a_storm, write
from tests.brokers.filler import Filler
from tests.support.small_disks import small_disk

pytestmark = pytest.mark.broker
SEGMENT = 2 << 20
INDEX = 1 << 20


LOADER = "org.apache.kafka.storage.internals.log.LogLoader"
RECOVERED = re.compile(r"Recovering unflushed segment (\d+)\. .* recovered for (\S+)-(\d+)\.")
"""What a broker says of each segment that it recovers."""


@dataclass(frozen=True)
class Crashed:
    """A copy of what was left, the directory after the broker has started again, what a consumer reads of that, and which segments the
    broker has recovered."""

    left: Path
    live: Path
    theirs: dict[Place, dict[str, Any]]
    recovered: frozenset[tuple[str, int, int]] = frozenset()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crashed]:
    root = tmp_path_factory.mktemp("killed")
    config = {"log.segment.bytes": SEGMENT, "log.index.size.max.bytes": INDEX}
    broker = KraftBroker(root / "broker", config, heap_mb=256, say=(LOADER,))
    broker.start()
    try:
        with broker.client() as client:
            write(Filler(broker, client, TIME), 30)
        assert complaints(broker.log_dir) == []
        assert "not_stopped" not in LogDirectory(broker.log_dir).check()["code"].to_pylist()
        assert_same_records(consumed(broker, PLACES), broker.log_dir)
        kill_in_a_storm(broker)
        left = root / "left"
        shutil.copytree(broker.log_dir, left)
        broker.start()
        said = RECOVERED.findall(broker.log_text())
        recovered = frozenset((topic, int(number), int(base)) for base, topic, number in said)
        yield Crashed(left, broker.log_dir, consumed(broker, PLACES), recovered)
    finally:
        broker.kill()


def test_check_says_what_the_broker_recovers(killed: Crashed) -> None:
    """The number of segments, and where each log is cut off."""
    theirs = {one for one in killed.recovered if one[0] != CLUSTER_METADATA}
    rows = LogDirectory(killed.left).check().to_pylist()
    (note,) = [row for row in rows if row["code"] == "not_stopped"]
    segments, partitions = len(theirs), len({(topic, number) for topic, number, _ in theirs})
    assert segments > partitions > 2
    assert f"it recovers {segments} segments of {partitions} partitions, " in note["meaning"]
    broker = read_broker_files(killed.left)
    ours = {
        (p.topic, p.partition, segment.base_offset)
        for p in discover(killed.left)
        for segment in recovered_segments(p, broker)
    }
    assert ours == theirs
    tails = {row["file"]: row for row in rows if row["code"] in ("torn_tail", "zero_tail")}
    assert tails
    for file, row in tails.items():
        assert row["severity"] == "note"
        left, live = Path(file), killed.live / Path(file).relative_to(killed.left)
        assert live.read_bytes()[: row["byte"]] == left.read_bytes()[: row["byte"]]
        if (row["topic"], row["partition"]) in PLACES:  # nobody has written to them since
            (last,) = LogDirectory(live.parent).stat()["last_offset"].to_pylist()
            assert last + 1 == row["first_offset"]


def test_what_was_left_is_what_the_broker_recovers(killed: Crashed) -> None:
    assert_same_records(killed.theirs, killed.left)


def test_what_the_broker_serves_again(killed: Crashed) -> None:
    assert_same_records(killed.theirs, killed.live)


def test_a_kill_is_no_damage(killed: Crashed) -> None:
    assert complaints(killed.left) == []
    assert complaints(killed.live) == []


def test_files_are_as_long_as_they_were_made(killed: Crashed) -> None:
    """The active segment of the preallocated log, and all active indexes."""
    for topic, is_preallocated in (("plain", True), ("committed", False)):
        active = max((killed.left / f"{topic}-0").glob("*.log"))
        assert (active.stat().st_size == SEGMENT) == is_preallocated
        assert active.with_suffix(".index").stat().st_size == INDEX // 8 * 8
        assert active.with_suffix(".timeindex").stat().st_size == INDEX // 12 * 12
        codes = LogDirectory(active.parent).check().column("code").to_pylist()
        assert codes == ["zero_tail"] * is_preallocated
    assert len(list((killed.left / "plain-0").glob("*.log"))) > 1


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crashed]:
    root = tmp_path_factory.mktemp("full")
    disk, left = root / "disk", root / "left"
    config = {
        "log.dirs": disk,
        "metadata.log.dir": root / "metadata",
        "log.segment.bytes": 4 << 20,
        "log.index.size.max.bytes": 64 << 10,
    }
    broker = KraftBroker(root / "broker", config, heap_mb=256)
    broker.log_dir = disk
    with small_disk(disk, 16) as allowed:
        if not allowed:
            pytest.skip("a file system can be mounted by root alone, where the system lets it")
        try:
            broker.start()
            with broker.client() as client:
                write(Filler(broker, client, TIME), 30)
            fill_the_disk(broker)
        finally:
            broker.kill()
        shutil.copytree(disk, left)
    again = KraftBroker(root / "broker", config | {"log.dirs": root / "larger"}, heap_mb=256)
    again.log_dir = root / "larger"
    shutil.copytree(left, again.log_dir)
    try:
        again.start()
        yield Crashed(left, again.log_dir, consumed(again, PLACES))
    finally:
        again.kill()


@pytest.mark.soak
def test_a_full_disk(full: Crashed) -> None:
    """The broker loses a batch of which it could write a part, and so do we: it was never acknowledged."""
    assert_same_records(full.theirs, full.left)
    assert_same_records(full.theirs, full.live)
    assert complaints(full.left) == []
    assert complaints(full.live) == []
