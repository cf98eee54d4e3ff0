"""Tiered storage, as a real broker writes it: what the tier has is listed, read under its own name, and makes the log whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory, discover, read_table
from kafka_log.logs.discovery import survey
from tests.brokers.answers import ISOLATIONS, complaints, consumed, plain, summed
from tests.brokers.brokers import KraftBroker
from tests.brokers.tiered import TOPIC, segments, tiered_broker

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
