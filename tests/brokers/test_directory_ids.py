"""Brokers whose meta.properties has no ``directory.id``, which are no voters of a dynamic quorum by it: what becomes of their partitions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory
from kafka_log.logs.broker_files import read_meta_properties
from tests.brokers.brokers import KraftBroker
from tests.brokers.filler import BYTES
from tests.brokers.process import wait_until
from tests.brokers.records import small

pytestmark = pytest.mark.broker
TOPICS, COUNT = ("first", "second", "third", "fourth"), 5


class StaticBroker(KraftBroker):
    """A node whose voters stand in its properties, as all had them before 3.9."""

    def _write(self, name: str, values: Mapping[str, object]) -> str:
        own = {k: v for k, v in values.items() if k != "controller.quorum.bootstrap.servers"}
        return super()._write(name, own | {"controller.quorum.voters": f"1@{self.controller}"})

    def _format(self, config: str) -> None:
        self._joins = True  # it is no standalone one, which is a dynamic quorum
        try:
            super()._format(config)
        finally:
            self._joins = False


def written(broker: KraftBroker) -> None:
    with broker, broker.client() as client:
        config = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": "0"}
        config |= {"key.serializer": BYTES, "value.serializer": BYTES}
        client.ask("producer", producer="p", config=config)
        for topic in TOPICS:
            client.ask("create_topic", topic=topic, partitions=1, config={"retention.ms": "-1"})
            records = [record.to_json() for record in small(topic, COUNT, 1_700_000_000_000)]
            client.ask("send", producer="p", topic=topic, partition=0, records=records)


def without_id(directory: Path) -> str:
    """Take the id of a log directory out of its file. It is returned."""
    path = directory / "meta.properties"
    lines = path.read_text().splitlines(keepends=True)
    (said,) = (line for line in lines if line.startswith("directory.id="))
    path.write_text("".join(line for line in lines if line != said))
    return said


def directories(broker: KraftBroker) -> set[bytes]:
    """Ids to which the metadata on the disk assigns the partitions."""
    rows = LogDirectory(broker.log_dir).metadata("partitions").to_pylist()
    return {found for row in rows if row["topic"] in TOPICS for found in row["directories"]}


def disk_id(directory: Path) -> bytes:
    properties = read_meta_properties(directory)
    assert properties is not None
    assert properties.directory_id is not None
    return properties.directory_id.bytes


def starts_twice(broker: KraftBroker, *disks: Path) -> None:
    """After the first start the partitions have a leader if the broker assigns them to its new id
    before the controller lets it lead, which is up to their speed. After the second they have one.
    """
    with broker:
        wait_until(lambda: directories(broker) == {disk_id(d) for d in disks}, 60.0, lambda: "ids")
    with broker, broker.client() as client:
        places = [{"topic": topic, "partition": 0} for topic in TOPICS]
        answer: dict[str, Any] = client.ask("digest", partitions=places, limit_ms=1500)
    for topic in TOPICS:
        assert answer[f"{topic}-0"]["read_uncommitted"]["count"] == COUNT


def told(*directories: Path) -> list[Any]:
    rows = LogDirectory(directories).check().to_pylist()
    return [(row["severity"], row["code"], row["file"]) for row in rows]


def test_voters_that_stand_in_the_properties(tmp_path: Path) -> None:
    broker = StaticBroker(tmp_path, heap_mb=384)
    written(broker)
    state = json.loads((broker.log_dir / "__cluster_metadata-0" / "quorum-state").read_text())
    assert state["data_version"] == 0
    assert told(broker.log_dir) == []
    before = without_id(broker.log_dir)
    path = broker.log_dir / "meta.properties"
    assert told(broker.log_dir) == [("warning", "meta_properties", str(path))]
    starts_twice(broker, broker.log_dir)
    assert told(broker.log_dir) == []
    assert without_id(broker.log_dir) != before  # it has made a new one


@pytest.mark.soak
def test_a_second_log_directory(tmp_path: Path) -> None:
    """Nothing in it says that there are ids."""
    disks = [tmp_path / name for name in ("a", "b")]
    broker = KraftBroker(tmp_path, {"log.dirs": ",".join(map(str, disks))}, heap_mb=384)
    broker.log_dir = disks[0]
    written(broker)
    without_id(disks[1])
    there = [path.name.removesuffix("-0") for path in disks[1].glob("*-0")]
    assert there
    assert told(*disks) == []
    starts_twice(broker, *disks)
