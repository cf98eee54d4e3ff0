"""``kafka-log metadata``: what the records add up to, against Kafka's own snapshots, and a reader of one record after the other."""

from __future__ import annotations

import copy
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_log import SegmentReader
from kafka_log.inspect.metadata.table import KINDS
from kafka_log.log_directory import LogDirectory
from kafka_log.logs.metadata_snapshots import list_snapshots
from kafka_log.read.internal_topics import internal_topic
from tests.paths import SAMPLES
from tests.shares import draw_seeds
from tests.support.made_topics import log, metadata, uuid

SAMPLE = SAMPLES / "kafka-4.x" / "__cluster_metadata-0"
NEWEST = list_snapshots(SAMPLE)[0]


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """The log of the sample without its snapshots."""
    target = tmp_path / SAMPLE.name
    return shutil.copytree(SAMPLE, target, ignore=shutil.ignore_patterns("*-*.checkpoint"))


@pytest.mark.share(4)
@pytest.mark.parametrize("what", KINDS)
def test_the_log_says_what_the_snapshot_of_kafka_says(alone: Path, what: str) -> None:
    as_of = NEWEST.end_offset - 1
    snapshot = LogDirectory(NEWEST.path).metadata(what)
    assert LogDirectory(alone).metadata(what, as_of=as_of) == snapshot
    assert LogDirectory(SAMPLE).metadata(what) == LogDirectory(alone).metadata(what)
    held = what not in ("quotas", "acls", "scram", "tokens")
    assert bool(snapshot.num_rows) == held


def test_the_topics_of_the_sample_are_those_on_its_disk() -> None:
    found = LogDirectory(SAMPLE).metadata("partitions").to_pylist()
    names = {f"{row['topic']}-{row['partition']}" for row in found}
    assert names == {p.name for p in SAMPLE.parent.iterdir() if p.is_dir()} - {SAMPLE.name}


# ---------------------------------------------------------------- histories

IDS = [uuid(i) for i in range(1, 4)]
KINDS_OF_RECORDS = [*["topic"] * 3, "remove", *["partition"] * 5, *["change"] * 9, *["config"] * 4, "clear", *["begin"] * 3, *["end"] * 2, "abort"]  # fmt: skip


def records_of(seed: int) -> list[tuple[Any, ...]]:
    """Records about few things, so that much of it meets."""
    r = random.Random(seed)

    def brokers() -> list[int]:
        return r.sample(range(1, 5), r.randrange(4))

    def record() -> tuple[Any, ...]:
        kind, topic = r.choice(KINDS_OF_RECORDS), r.randrange(2)
        if kind == "partition":
            return kind, topic, r.randrange(2), brokers()
        if kind == "change":
            changes = {name: brokers() for name in CHANGED if not r.randrange(3)}
            return (
                kind,
                topic,
                r.randrange(2),
                changes | r.choice([{}, {"leader": r.randrange(-1, 3)}]),
            )
        if kind == "config":
            return kind, topic, r.choice(["x", "y", None])
        if kind == "clear":
            return kind, r.choice(["", "t0", "t1"])
        return (kind, topic) if kind in ("topic", "remove") else (kind,)

    return [record() for _ in range(r.randrange(1, 80))]


CHANGED = ("isr", "replicas", "eligible_leader_replicas", "last_known_elr")


def built(offset: int, kind: str, *said: Any) -> bytes:
    if kind == "topic":
        return metadata(offset, "TOPIC_RECORD", name=f"t{said[0]}", topic_id=IDS[said[0]])
    if kind == "remove":
        return metadata(offset, "REMOVE_TOPIC_RECORD", topic_id=IDS[said[0]])
    if kind == "partition":
        place = {"topic_id": IDS[said[0]], "partition_id": said[1]}
        epochs = {"leader": 1, "leader_epoch": 0, "partition_epoch": 0}
        lists = {"removing_replicas": [], "adding_replicas": [], "directories": []}
        return metadata(offset, "PARTITION_RECORD", 2, **place, **epochs, **lists, replicas=said[2], isr=said[2])  # fmt: skip
    if kind == "change":
        place = {"topic_id": IDS[said[0]], "partition_id": said[1]}
        return metadata(offset, "PARTITION_CHANGE_RECORD", 2, **place, **said[2])
    if kind == "config":
        name = {"resource_type": 2, "resource_name": f"t{said[0]}", "name": "n"}
        return metadata(offset, "CONFIG_RECORD", **name, value=said[1])
    if kind == "clear":
        return metadata(offset, "CLEAR_ELR_RECORD", topic_name=said[0])
    return metadata(offset, f"{kind.upper()}_TRANSACTION_RECORD")


class Image:
    """What Kafka's classes of the same names do with JSON of the records: a transaction is kept apart until it ends."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.partitions: dict[tuple[str, int], dict[str, Any]] = {}
        self.configs: dict[tuple[str, str], str] = {}

    def apply(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "TOPIC_RECORD":
            self.names[data["topicId"]] = data["name"]
        elif kind == "REMOVE_TOPIC_RECORD":
            name = self.names.pop(data["topicId"], None)
            self.partitions = {k: v for k, v in self.partitions.items() if k[0] != data["topicId"]}
            self.configs = {k: v for k, v in self.configs.items() if k[0] != name}
        elif kind == "PARTITION_RECORD":
            self.partitions[data["topicId"], data["partitionId"]] = {
                "leader": data["leader"],
                "leader_epoch": data["leaderEpoch"],
                "partition_epoch": data["partitionEpoch"],
                "replicas": data["replicas"],
                "isr": data["isr"],
                "eligible_leader_replicas": data.get("eligibleLeaderReplicas") or [],
                "last_known_elr": data.get("lastKnownElr") or [],
            }
        elif kind == "PARTITION_CHANGE_RECORD":
            self.merge(self.partitions.get((data["topicId"], data["partitionId"])), data)
        elif kind == "CONFIG_RECORD":
            if data["value"] is None:
                self.configs.pop((data["resourceName"], data["name"]), None)
            else:
                self.configs[data["resourceName"], data["name"]] = data["value"]
        elif kind == "CLEAR_ELR_RECORD":
            for (topic_id, _), row in self.partitions.items():
                named = topic_id in self.names and data["topicName"] in ("", self.names[topic_id])
                if named and row["eligible_leader_replicas"] + row["last_known_elr"]:
                    self.merge(row, {"eligibleLeaderReplicas": [], "lastKnownElr": []})

    def merge(self, row: dict[str, Any] | None, data: dict[str, Any]) -> None:
        if row is None:
            return
        if data.get("leader", -2) != -2:
            row["leader"] = data["leader"]
            row["leader_epoch"] += 1
        for name, ours in (
            ("replicas", "replicas"),
            ("isr", "isr"),
            ("eligibleLeaderReplicas", "eligible_leader_replicas"),
            ("lastKnownElr", "last_known_elr"),
        ):
            if data.get(name) is not None:
                row[ours] = data[name]
        row["partition_epoch"] += 1


def images(path: Path) -> list[Image]:
    """What there is after each record, by its offset."""
    decoder = internal_topic("__cluster_metadata")
    assert decoder is not None
    now = Image()
    pending: Image | None = None
    out = []
    for batch in SegmentReader(path):
        for record in batch.records:
            said = decoder.decode(record.key, record.value, strict=True).value
            assert said is not None
            kind, data = said["type"], said["data"]
            if kind == "BEGIN_TRANSACTION_RECORD":
                pending = pending or copy.deepcopy(now)
            elif kind == "END_TRANSACTION_RECORD":
                now, pending = pending or now, None
            elif kind == "ABORT_TRANSACTION_RECORD":
                pending = None
            else:
                (pending or now).apply(kind, data)
            out.append(copy.deepcopy(now))
    return out


@pytest.mark.share(40, ci=9)
@pytest.mark.parametrize("seed", draw_seeds(40))
def test_what_one_record_after_the_other_makes(tmp_path: Path, seed: int) -> None:
    records = records_of(seed)
    path = log(tmp_path, "__cluster_metadata-0", *(built(i, *r) for i, r in enumerate(records)))
    expected = images(path / f"{0:020}.log")
    directory = LogDirectory(path)
    for as_of in {0, len(records) // 3, len(records) // 2, len(records) - 1}:
        image = expected[as_of]
        topics = directory.metadata("topics", as_of=as_of).to_pylist()
        assert sorted(row["topic"] for row in topics) == sorted(image.names.values())
        partitions = directory.metadata("partitions", as_of=as_of).to_pylist()
        assert len(partitions) == len(image.partitions)
        by_name = {
            (image.names.get(topic_id), number): row
            for (topic_id, number), row in image.partitions.items()
        }
        for row in partitions:
            if row["topic"] is not None:
                wanted = by_name[row["topic"], row["partition"]]
                assert {name: row[name] for name in wanted} == wanted
        found = directory.metadata("configs", as_of=as_of).to_pylist()
        assert {(row["resource_name"], row["name"]): row["value"] for row in found} == image.configs
        first = as_of // 2
        changes = directory.metadata_changes(first, as_of, "topics").to_pylist()
        before, after = set(expected[first].names.values()), set(image.names.values())
        for change, names in (("added", after - before), ("removed", before - after)):
            assert {row["topic"] for row in changes if row["change"] == change} == names
