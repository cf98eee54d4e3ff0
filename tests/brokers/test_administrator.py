"""What kafka_log says of the directory of a running broker is what the Admin client says of the broker: topics, settings, transactions,
producers and groups of every kind. Its transactions are of version 2: each has an epoch of its own."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from kafka_log import LogDirectory, read_table
from tests.brokers import internal_topics
from tests.brokers.answers import administrator, assert_same_records, complaints, consumed
from tests.brokers.brokers import KraftBroker
from tests.brokers.filler import Filler
from tests.brokers.process import LineClient
from tests.brokers.records import small

pytestmark = pytest.mark.broker
TOPIC = "epochs"
TIME = 1_700_000_000_000
COMMITS = 5
"""Transactions of one producer that have ended; one more is open."""


@dataclass(frozen=True)
class Running:
    broker: KraftBroker
    admin: LineClient

    @property
    def log(self) -> LogDirectory:
        """Anew each time: it is written to."""
        return LogDirectory(self.broker.log_dir)

    def places(self) -> list[tuple[str, int]]:
        return [
            (p.topic, p.partition) for p in self.log.partitions if p.topic != "__cluster_metadata"
        ]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    broker = KraftBroker(
        tmp_path_factory.mktemp("administrator") / "broker", internal_topics.CONFIG, heap_mb=256
    )
    broker.start()
    try:
        internal_topics.fill(broker)
        with broker.client() as client, administrator(broker) as admin:
            fill(Filler(broker, client, TIME))
            yield Running(broker, admin)
    finally:
        broker.kill()


def fill(fill: Filler) -> None:
    fill.topic(TOPIC, 2, {"retention.ms": 864_000_000_000, "compression.type": "producer"})
    tx = fill.transactional("tx-epochs", "none")
    for number in range(COMMITS + 1):
        tx.do("begin")
        for partition in range(2):
            records = small(f"{number}", 2 + partition, TIME + number * 1000)
            tx.send(TOPIC, partition, records)
        if number < COMMITS:
            tx.do("abort" if number % 2 else "commit")
    with closing(fill.idempotent("plain", "zstd")) as plain:
        for number in range(3):
            plain.send(TOPIC, 0, small(f"plain {number}", 4, TIME + number))
    fill.group("group-classic", TOPIC, {"group.protocol": "classic"})


def test_records(running: Running) -> None:
    places = running.places()
    theirs = consumed(running.broker, places)
    assert_same_records(theirs, running.broker.log_dir)


def test_the_directory_of_a_broker_that_runs_is_healthy(running: Running) -> None:
    assert complaints(running.broker.log_dir) == []


def test_topics_and_partitions(running: Running) -> None:
    theirs = running.admin.ask("topics")
    assert {
        row["topic"]: java_uuid(row["topic_id"]) for row in running.log.metadata().to_pylist()
    } == {name: said["topic_id"] for name, said in theirs.items()}
    ours = {
        (row["topic"], row["partition"]): (row["leader"], row["replicas"], row["isr"])
        for row in running.log.metadata("partitions").to_pylist()
    }
    assert ours == {
        (name, number): (one["leader"], one["replicas"], one["isr"])
        for name, said in theirs.items()
        for number, one in enumerate(said["partitions"])
    }


def java_uuid(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def test_settings(running: Running) -> None:
    names = list(running.admin.ask("topics"))
    theirs = running.admin.ask("configs", topics=names)
    ours: dict[str, dict[str, str]] = {name: {} for name in names}
    for row in running.log.metadata("configs").to_pylist():
        if row["resource_type"] == "topic":
            ours[row["resource_name"]][row["name"]] = row["value"]
    assert ours == theirs
    assert ours[TOPIC]["retention.ms"] == "864000000000"


def test_transactional_ids(running: Running) -> None:
    last = {
        row["transactional_id"]: row
        for row in read_table(running.broker.log_dir, view="transactions").to_pylist()
    }
    for theirs in running.admin.ask("transactions")["transactions"]:
        ours = last.pop(theirs["transactional_id"])
        assert ours["producer_id"] == theirs["producer_id"]
        assert ours["producer_epoch"] == theirs["producer_epoch"]
        assert ours["timeout_ms"] == theirs["timeout_ms"]
        partitions = {
            f"{of['topic']}-{number}"
            for of in ours["partitions"] or []
            for number in of["partition_ids"]
        }
        assert partitions == set(theirs["partitions"])
        is_open = theirs["state"] == "Ongoing"
        assert (ours["status"] == 1) == is_open == (theirs["transactional_id"] == "tx-epochs")
    assert last == {}


def test_producers_and_open_transactions(running: Running) -> None:
    places = running.places()
    wanted = [{"topic": topic, "partition": number} for topic, number in places]
    theirs = running.admin.ask("producers", partitions=wanted)
    assert sum(map(len, theirs.values())) >= 3
    newest: dict[tuple[str, int, int], dict[str, Any]] = {}
    for row in running.log.producers().to_pylist():
        key = row["topic"], row["partition"], row["producer_id"]
        if key not in newest or row["producer_epoch"] > newest[key]["producer_epoch"]:
            newest[key] = row
    begun = {
        (row["topic"], row["partition"], row["producer_id"]): row["first_offset"]
        for row in running.log.txn(states="open").to_pylist()
    }
    for topic, number in places:
        for said in theirs[f"{topic}-{number}"]:
            key = topic, number, said["producer_id"]
            ours = newest.pop(key)
            assert ours["producer_epoch"] == said["producer_epoch"], key
            assert begun.pop(key, None) == said["open_since"], key
            # After the marker of a transaction of version 2 the broker knows no sequence of the new epoch.
            if said["last_sequence"] >= 0:
                assert ours["last_sequence"] == said["last_sequence"], key
    assert begun == {}
    assert newest == {}


def test_each_transaction_has_an_epoch_of_its_own(running: Running) -> None:
    levels = running.log.metadata("features").to_pylist()
    assert {"feature": "transaction.version", "level": 2} in levels
    (of_id,) = [
        row["producer_id"]
        for row in running.admin.ask("transactions")["transactions"]
        if row["transactional_id"] == "tx-epochs"
    ]
    log = LogDirectory(running.broker.log_dir, topics=TOPIC)
    for partition in range(2):
        found = [
            row
            for row in log.txn().to_pylist()
            if (row["partition"], row["producer_id"]) == (partition, of_id)
        ]
        by_offset = sorted(found, key=lambda row: row["first_offset"])
        assert [row["state"] for row in by_offset] == ["committed", "aborted"] * 2 + [
            "committed",
            "open",
        ]
        epochs = [row["producer_epoch"] for row in by_offset]
        assert epochs == sorted(set(epochs))


def test_groups(running: Running) -> None:
    theirs: dict[str, dict[tuple[str, str, int], Any]] = {}
    for group in running.admin.ask("groups")["groups"]:
        of_type = theirs.setdefault(group["type"], {})
        for place, at in group["offsets"].items():
            topic, _, number = place.rpartition("-")
            of_type[group["group"], topic, int(number)] = at
    assert set(theirs) == {"Classic", "Consumer", "Share", "Streams"}
    shared = theirs.pop("Share")
    ours = {
        (row["group"], row["topic"], row["partition"]): row
        for row in running.log.groups().to_pylist()
    }
    for of_type in theirs.values():
        assert of_type
        for key, at in of_type.items():
            row = ours.pop(key)
            assert (row["committed_offset"], row["metadata"]) == (at["offset"], at["metadata"])
            assert row["leader_epoch"] in (at["leader_epoch"], -1)
    assert ours == {}
    ids = {row["topic_id"]: row["topic"] for row in running.log.metadata().to_pylist()}
    starts: dict[tuple[str, str, int], int] = {}
    for row in read_table(running.broker.log_dir, view="share_states").to_pylist():
        if row["start_offset"] is not None and row["start_offset"] >= 0:
            starts[row["group"], ids[row["topic_id"]], row["partition"]] = row["start_offset"]
    assert starts == {key: at["offset"] for key, at in shared.items()}


def test_kinds_of_groups(running: Running) -> None:
    theirs = {group["group"]: group["type"] for group in running.admin.ask("groups")["groups"]}
    ours = {row["group"]: row["group_type"] for row in running.log.groups(states=True).to_pylist()}
    # Of this one the only offset was deleted: its coordinator remembers it, and no record does.
    del theirs["of-transactions"]
    assert ours == {name: kind.lower() for name, kind in theirs.items()}
