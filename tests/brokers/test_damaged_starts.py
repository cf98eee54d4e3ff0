"""What a broker does that starts on a directory with one file damaged, and what ``check`` says of it: an error where it does not start or does not
serve a partition, no more than a warning where it serves all records."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory
from kafka_log.logs.metadata_snapshots import list_snapshots
from tests.brokers import brokers
from tests.brokers.brokers import KraftBroker
from tests.brokers.filler import BYTES
from tests.brokers.maven import BrokerError
from tests.brokers.process import wait_until
from tests.brokers.records import small

pytestmark = pytest.mark.broker
METADATA = "__cluster_metadata-0"
STATE = f"{METADATA}/quorum-state"
IDS = "meta.properties"
PLACES = [("first", 0), ("first", 1), ("second", 0), ("second", 1)]
HANGS_S = 30.0
"""A broker that has not started by then waits for something that does not come: others take five seconds."""


@dataclass(frozen=True)
class Case:
    """What is done to a log directory, what the broker does (``starts``, ``serves``), what of its log says why (one of several texts), and the
    severity and code of what check finds; None: nothing."""

    name: str
    damage: Callable[[Path], None]
    starts: bool
    says: str | tuple[str, ...] = ""
    finding: tuple[str, str] | None = None
    serves: bool = True

    def told(self, log: str) -> bool:
        return any(
            text in log for text in ((self.says,) if isinstance(self.says, str) else self.says)
        )


def newest(logs: Path, i: int = 0) -> Path:
    return list_snapshots(logs / METADATA)[i].path


def edited(i: int, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """A change of the newest snapshot, or of the one before."""

    def damage(logs: Path) -> None:
        path = newest(logs, i)
        path.write_bytes(change(path.read_bytes()))

    return damage


def flipped(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def halved(data: bytes) -> bytes:
    return data[: len(data) // 2]


def without_end(data: bytes) -> bytes:
    return data[:-80]


def written(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda logs: (logs / name).write_bytes(data) and None


def state(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(logs: Path) -> None:
        found = json.loads((logs / STATE).read_text())
        change(found)
        (logs / STATE).write_text(json.dumps(found))

    return damage


def properties(change: Callable[[str], str]) -> Callable[[Path], None]:
    """Each line of meta.properties as another one; an empty one goes."""

    def damage(logs: Path) -> None:
        lines = (logs / IDS).read_text().splitlines()
        (logs / IDS).write_text("".join(f"{new}\n" for line in lines if (new := change(line))))

    return damage


def negative_epoch(logs: Path) -> None:
    path = logs / "first-0" / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[12:16] = (-2).to_bytes(4, "big", signed=True)
    path.write_bytes(data)


def copied(source: str, target: str) -> Callable[[Path], None]:
    def damage(logs: Path) -> None:
        copy = shutil.copytree if (logs / source).is_dir() else shutil.copyfile
        copy(logs / source, logs / target)

    return damage


DAMAGED = ("error", "metadata_snapshot_damaged")
CUT = ("error", "metadata_snapshot_incomplete")
QUORUM = ("error", "quorum_state")
PROPERTIES = ("error", "meta_properties")
MANDATORY = "which is mandatory in version 1"
NO_BROKER = "not registered", "no broker registration found"
"""What is said of a broker whose registration is gone, by what the first record after the snapshot asks for."""
UNREADABLE = "No readable meta.properties files found"
CASES = [
    Case("newest snapshot: a bit", edited(0, flipped), False, "Record is corrupt", DAMAGED),
    Case("newest snapshot: noise", edited(0, lambda _: b"\xff" * 300), False, "Record size -1 is less", DAMAGED),
    Case("newest snapshot: cut", edited(0, halved), False, NO_BROKER, DAMAGED),
    Case("newest snapshot: no footer", edited(0, without_end), False, NO_BROKER, DAMAGED),
    Case("newest snapshot: empty", edited(0, lambda _: b""), False, "", CUT),
    Case("newest snapshot: moved away", lambda logs: newest(logs).unlink(), True),
    Case("older snapshot: a bit", edited(1, flipped), True, "", ("warning", DAMAGED[1])),
    Case("older snapshot: empty", edited(1, lambda _: b""), True, "", ("warning", CUT[1])),
    Case("oldest snapshot: cut", edited(2, halved), True, "", ("warning", DAMAGED[1])),
    Case("quorum-state: empty", written(STATE, b""), False, "File ended prematurely", QUORUM),
    Case("quorum-state: noise", written(STATE, b"\xff\x00 nothing"), False, "Error while reading the Quorum status", QUORUM),
    Case("quorum-state: version 7", state(lambda s: s.update(data_version=7)), False, "not within the min (0) and max (1)", QUORUM),
    Case("quorum-state: no version", state(lambda s: s.pop("data_version")), False, "does not have data_version", QUORUM),
    Case("quorum-state: no leader", state(lambda s: s.pop("leaderId")), False, MANDATORY, QUORUM),
    Case("quorum-state: no epoch", state(lambda s: s.pop("leaderEpoch")), False, MANDATORY, QUORUM),
    Case("quorum-state: no vote", state(lambda s: s.pop("votedId")), False, MANDATORY, QUORUM),
    Case("quorum-state: no directory", state(lambda s: s.pop("votedDirectoryId")), False, MANDATORY, QUORUM),
    Case("quorum-state: a text", state(lambda s: s.update(leaderEpoch="x")), False, "expected an integer", QUORUM),
    Case("quorum-state: moved away", lambda logs: (logs / STATE).unlink(), True),
    Case("meta.properties: empty", written(IDS, b""), False, "node ID not found", PROPERTIES),
    Case("meta.properties: noise", written(IDS, bytes(range(128, 256))), False, "node ID not found", PROPERTIES),
    Case("meta.properties: no node", properties(lambda s: "" if "node.id" in s else s), False, UNREADABLE, PROPERTIES),
    Case("meta.properties: no cluster", properties(lambda s: "" if "cluster.id" in s else s), False, UNREADABLE, PROPERTIES),
    Case("meta.properties: no directory", properties(lambda s: "" if "directory.id" in s else s), False, "", PROPERTIES),
    Case("meta.properties: version 7", properties(lambda s: s.replace("version=1", "version=7")), False, UNREADABLE, PROPERTIES),
    Case("meta.properties: a text", properties(lambda s: s.replace("node.id=1", "node.id=one")), False, UNREADABLE, PROPERTIES),
    Case("a leader epoch of -2", negative_epoch, True, "", ("warning", "leader_epoch_negative")),
    Case("one id of two topics", copied("first-0/partition.metadata", "second-0/partition.metadata"), True, "Error applying topics delta", ("error", "topic_id"), serves=False),
    Case("two ids of one topic", copied("second-0/partition.metadata", "first-1/partition.metadata"), True, "Error applying topics delta", ("error", "topic_id"), serves=False),
    Case("a partition twice", copied("first-1", "first-01"), False, "Duplicate log directories for first-1", ("error", "partition_twice")),
]  # fmt: skip


class Damaged(KraftBroker):
    """A broker whose directory is never formatted anew."""

    def _format(self, config: str) -> None:
        pass


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a broker that was stopped in order, with three snapshots of its metadata."""
    broker = KraftBroker(tmp_path_factory.mktemp("stopped"), heap_mb=384)
    with broker, broker.client() as client:
        for topic in ("first", "second"):
            client.ask("create_topic", topic=topic, partitions=2, config={"retention.ms": "-1"})
        for i in range(30):
            client.ask("create_topic", topic=f"more-{i}", partitions=1, config={})
        config = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": "0"}
        config |= {"key.serializer": BYTES, "value.serializer": BYTES}
        client.ask("producer", producer="p", config=config)
        for topic, partition in PLACES:
            records = [record.to_json() for record in small(topic, 5, 1_700_000_000_000)]
            client.ask("send", producer="p", topic=topic, partition=partition, records=records)
    assert len(list_snapshots(broker.log_dir / METADATA)) >= 3
    assert LogDirectory(broker.log_dir).check().num_rows == 0
    return broker.directory


def first_of_each_finding() -> Iterator[Any]:
    """Yield the cases as parameters. CI starts a broker for the first case of each code of a finding, the soak for all cases.

    The soak alone waits for brokers that hang.
    """
    seen: set[str] = set()
    for case in CASES:
        code = case.finding[1] if case.finding else ""
        hangs = not case.starts and not case.says
        yield pytest.param(
            case, id=case.name, marks=[pytest.mark.soak] if hangs or code in seen else []
        )
        if not hangs:
            seen.add(code)


@pytest.mark.parametrize("case", first_of_each_finding())
def test_a_broker_starts_on_damage(
    stopped: Path, tmp_path: Path, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brokers, "START_LIMIT_S", HANGS_S)
    broker = Damaged(shutil.copytree(stopped, tmp_path / "broker"), heap_mb=384)
    case.damage(broker.log_dir)
    found = {(row["severity"], row["code"]) for row in LogDirectory(broker.log_dir).check().to_pylist()}  # fmt: skip
    assert found == ({case.finding} if case.finding else set())
    assert ("error" in {severity for severity, _ in found}) == (not case.starts or not case.serves)
    try:
        if not case.starts:
            with pytest.raises(BrokerError):
                broker.start()
            assert case.told(broker.last_log())
            return
        broker.start()
        if case.serves:
            with broker.client() as client:
                places = [{"topic": topic, "partition": n} for topic, n in PLACES]
                answer = client.ask("digest", partitions=places, limit_ms=1500)
            for topic, number in PLACES:
                ends = answer[f"{topic}-{number}"]["read_uncommitted"]
                assert ends["count"] == 5, ends
        wait_until(lambda: case.told(broker.log_text()), HANGS_S, lambda: f"no {case.says!r}")
    finally:
        broker.kill()
