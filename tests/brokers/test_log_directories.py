"""A broker with two log directories, while a partition moves from one to the other: the copy is a -future directory until it has
come up."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory, discover, read_table
from tests.brokers.answers import administrator, assert_same_records, complaints, consumed, plain
from tests.brokers.brokers import KraftBroker
from tests.brokers.filler import Filler
from tests.brokers.process import wait_until
from tests.brokers.records import Rec, noise, small

pytestmark = pytest.mark.broker
TOPIC = "moved"
PLACES = [(TOPIC, 0), (TOPIC, 1)]
TIME = 1_700_000_000_000
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
MOVE_LIMIT_S = 60.0


@dataclass
class Moved:
    """Copies of both directories while the partition moved, after a kill in the middle, and after its end."""

    theirs: dict[tuple[str, int], dict[str, Any]]
    states: dict[str, list[Path]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    root = tmp_path_factory.mktemp("directories")
    disks = [root / "one", root / "two"]
    config = {"log.dirs": ",".join(map(str, disks)), "log.segment.bytes": 1 << 20}
    broker = KraftBroker(root / "broker", config, heap_mb=256)
    broker.log_dir = disks[0]
    broker.start()
    try:
        with broker.client() as client:
            fill(Filler(broker, client, TIME))
        result = Moved(consumed(broker, PLACES))

        def keep(name: str) -> None:
            result.states[name] = [root / name / disk.name for disk in disks]
            for disk, target in zip(disks, result.states[name], strict=True):
                shutil.copytree(disk, target)

        with administrator(broker) as admin:
            admin.ask("set", type="BROKER", name="1", config={THROTTLE: "100000"})
            source = disks[0] if (disks[0] / f"{TOPIC}-0").is_dir() else disks[1]
            target = next(disk for disk in disks if disk != source)
            admin.ask("move", topic=TOPIC, partition=0, broker=1, directory=str(target))
            wait_until(
                lambda: any(s.size > 1 << 18 for s in copied(target)),
                MOVE_LIMIT_S,
                lambda: "no copy",
            )
            keep("moving")
        broker.kill()
        keep("killed")
        broker.start()
        with administrator(broker) as admin:
            admin.ask("set", type="BROKER", name="1", config={THROTTLE: ""})
            wait_until(
                lambda: (target / f"{TOPIC}-0").is_dir() and not copied(target),
                MOVE_LIMIT_S,
                lambda: f"the partition has not moved; see {broker.log_file}",
            )
        assert consumed(broker, PLACES) == result.theirs
        keep("moved")
        broker.stop()
        yield result
    finally:
        broker.kill()


def fill(fill: Filler) -> None:
    fill.topic(TOPIC, 2)
    with closing(fill.idempotent("plain", "none")) as plain:
        for number in range(40):
            records = [Rec(fill.time + number, b"k%d" % number, noise(f"{number}", 60_000))]
            plain.send(TOPIC, 0, records)
    with closing(fill.transactional("tx", "zstd")) as tx:
        for number in range(6):
            tx.do("begin")
            for partition in range(2):
                tx.send(TOPIC, partition, small(f"tx {number}", 10, fill.time + number * 1000))
            tx.do("abort" if number % 2 else "commit")


def copied(disk: Path) -> list[Any]:
    """The segments of the copy in a directory."""
    found = discover(disk, ["future"]) if any(disk.glob("*-future")) else []
    return [s for p in found if p.state == "future" for s in p.segments]


@pytest.mark.parametrize("state", ["moving", "killed", "moved"])
def test_both_directories_are_one_broker(moved: Moved, state: str) -> None:
    assert_same_records(moved.theirs, moved.states[state])


@pytest.mark.parametrize("state", ["moving", "killed", "moved"])
def test_a_move_is_no_damage(moved: Moved, state: str) -> None:
    assert complaints(*moved.states[state]) == []
    for directory in moved.states[state]:
        assert complaints(directory) == []
    codes = LogDirectory(moved.states[state]).check().column("code").to_pylist()
    assert ("future_directory" in codes) == (state != "moved")


@pytest.mark.parametrize("state", ["moving", "killed"])
def test_the_copy_has_the_beginning_of_the_log(moved: Moved, state: str) -> None:
    columns = ["offset", "timestamp", "key", "value", "headers", "state"]
    table = read_table(moved.states[state], columns, topics=TOPIC, partitions=0, include=["future"])
    rows = plain(table)
    kept: dict[str, list[Any]] = {"live": [], "future": []}
    for row in rows:
        kept[row.pop("state")].append(row)
    assert 0 < len(kept["future"]) < len(kept["live"])
    assert kept["future"] == kept["live"][: len(kept["future"])]


def test_a_broker_that_was_moved_has_one_directory_of_it(moved: Moved) -> None:
    found = [p for p in discover(moved.states["moved"]) if p.topic == TOPIC]
    assert [(p.topic, p.partition) for p in found] == PLACES
