"""Three nodes and an unclean leader election: a replica that was behind becomes the leader, the other one loses what only it had. Each
directory is read as what its broker served, and no state in between is called damage."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kafka_codecs import LEADER_EPOCH_CHECKPOINT
from kafka_log import LogDirectory, read_table
from tests.brokers.answers import Place, administrator, assert_same_records, complaints, consumed
from tests.brokers.brokers import KraftBroker
from tests.brokers.filler import Filler
from tests.brokers.process import LineClient, wait_until
from tests.brokers.records import small

pytestmark = pytest.mark.broker
TOPIC = "diverged"
PLACE: Place = (TOPIC, 0)
TIME = 1_700_000_000_000
ELECTION_LIMIT_S = 60.0
# Who does not answer is soon taken for dead.
CONFIG = {"broker.session.timeout.ms": 2000, "broker.heartbeat.interval.ms": 500}
TOPIC_CONFIG = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}


@dataclass
class Election:
    """What consumers read, and copies of directories, by what happened last."""

    theirs: dict[str, dict[Place, dict[str, Any]]] = field(default_factory=dict)
    left: dict[str, Path] = field(default_factory=dict)


@pytest.fixture(scope="module")
def election(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Election]:
    root = tmp_path_factory.mktemp("election")
    with ExitStack() as stack:
        first = KraftBroker(root / "1", CONFIG, heap_mb=256)
        stack.callback(first.kill)
        first.start()
        others = {
            node: KraftBroker(
                root / str(node), CONFIG, node=node, controller=first.controller, heap_mb=256
            )
            for node in (2, 3)
        }
        for broker in others.values():
            stack.callback(broker.kill)
            broker.start()
        yield held(first, others, root)


def held(first: KraftBroker, others: dict[int, KraftBroker], root: Path) -> Election:
    """Holds the election, and tells what was to be seen at each step."""
    out = Election()

    def keep(node: int, name: str) -> None:
        out.left[name] = root / name
        shutil.copytree(others[node].log_dir, root / name)

    def write(name: str) -> None:
        with first.client() as client:
            send(Filler(first, client, TIME), name)

    with administrator(first) as admin:
        for topic, replicas, config in (
            ("__transaction_state", [1], {"cleanup.policy": "compact"}),
            (TOPIC, [2, 3], TOPIC_CONFIG),
        ):
            admin.ask("create_topic", topic=topic, assignments=[replicas], config=config)
        wait_for(admin, leader=2, isr=[2, 3])
        write("both")
        others[3].kill()
        keep(3, "behind")
        wait_for(admin, leader=2, isr=[2])
        write("only one")
        out.theirs["before"] = consumed(first, [PLACE])
        others[2].kill()
        keep(2, "ahead")
        others[3].start()
        wait_for(admin, leader=3, isr=[3])
        write("the other")
        out.theirs["after"] = consumed(first, [PLACE])
        keep(3, "elected")
        others[2].start()
        wait_for(admin, leader=3, isr=[2, 3])
        assert consumed(first, [PLACE]) == out.theirs["after"]
        # Until a broker writes its checkpoint again, the file has the high watermark of before it truncated.
        checkpoint = others[2].log_dir / "replication-offset-checkpoint"
        written = checkpoint.stat().st_mtime_ns
        wait_until(
            lambda: checkpoint.exists() and checkpoint.stat().st_mtime_ns != written,
            ELECTION_LIMIT_S,
            lambda: "the high watermark is not written again",
        )
        keep(2, "truncated")
    for broker in (others[2], others[3], first):
        broker.stop()
    keep(2, "stopped")
    out.left["controller"] = first.log_dir
    return out


def send(fill: Filler, name: str) -> None:
    with (
        closing(fill.idempotent(f"plain {name}", "zstd")) as plain,
        closing(fill.transactional("tx", "none")) as tx,
    ):
        for number in range(6):
            at = fill.time + number * 1000
            plain.send(TOPIC, 0, small(f"{name} {number}", 2 + len(name) % 3, at))
            tx.do("begin")
            tx.send(TOPIC, 0, small(f"{name} tx {number}", 3, at))
            tx.do("abort" if number % 2 else "commit")


def wait_for(admin: LineClient, leader: int, isr: list[int]) -> None:
    """Until a partition has a leader and replicas in sync."""
    said: Any = None

    def is_so() -> bool:
        nonlocal said
        said = admin.ask("topics").get(TOPIC, {"partitions": [None]})["partitions"][0]
        return said is not None and (said["leader"], sorted(said["isr"])) == (leader, isr)

    wait_until(is_so, ELECTION_LIMIT_S, lambda: f"leader and replicas in sync: {said}")


def test_what_the_first_leader_served_is_in_its_directory(election: Election) -> None:
    assert_same_records(election.theirs["before"], election.left["ahead"])


@pytest.mark.parametrize("name", ["elected", "truncated", "stopped"])
def test_what_the_second_leader_serves_is_in_both(election: Election, name: str) -> None:
    assert_same_records(election.theirs["after"], election.left[name])


def test_the_replicas_were_not_the_same(election: Election) -> None:
    """They agree up to where the second one was, and after that in no record."""
    behind, ahead, elected = (
        read_table(election.left[name], ["offset", "key"], topics=TOPIC).to_pylist()
        for name in ("behind", "ahead", "elected")
    )
    common = len(behind)
    assert ahead[:common] == elected[:common] == behind
    assert len(ahead) > common < len(elected)
    keys = {row["key"] for row in ahead[common:]}
    assert keys.isdisjoint(row["key"] for row in elected[common:])
    assert len(leader_epochs(election.left["truncated"])) >= 2


def leader_epochs(log_dir: Path) -> list[int]:
    """The epochs in which a replica's log was written, in order."""
    file = log_dir / f"{TOPIC}-0" / "leader-epoch-checkpoint"
    return [entry.epoch for entry in LEADER_EPOCH_CHECKPOINT.parse(file.read_bytes()).epochs or ()]


@pytest.mark.parametrize("name", ["behind", "ahead", "elected", "truncated", "stopped"])
def test_no_step_is_damage(election: Election, name: str) -> None:
    assert complaints(election.left[name]) == []


def test_the_metadata_tells_of_the_leaders(election: Election) -> None:
    log = LogDirectory(election.left["controller"], topics=TOPIC)
    changes = log.metadata_changes(kind="partitions").to_pylist()
    assert [row["change"] for row in changes] == ["added"]
    (row,) = log.metadata("partitions").to_pylist()
    assert row["replicas"] == [2, 3]
    # How many elections there were besides depends on how soon the controller misses a node.
    assert row["leader_epoch"] >= leader_epochs(election.left["truncated"])[-1] > 0


def test_diff_says_what_happened(election: Election) -> None:
    """Each step by its name. Where a broker truncated its log is what the leader epochs of both said before."""

    def difference(one: str, other: str) -> dict[str, Any]:
        (row,) = (
            LogDirectory(election.left[one], topics=TOPIC).diff(election.left[other]).to_pylist()
        )
        row["findings"] = [f for f in row["findings"] if f not in ("batches", "segments")]
        return row

    behind = difference("behind", "ahead")
    assert behind["findings"] == ["behind_a"]
    end = behind["end_a"]
    parted = difference("ahead", "elected")
    assert parted["findings"] == ["parted"]
    assert parted["first_offset"] == parted["common_offset"] == end
    assert parted["epoch_a"] < parted["epoch_b"]
    assert (parted["same"], parted["common_epoch"]) == (behind["same"], parted["epoch_a"])
    assert "unclean election" in parted["meaning"] and "Keep a copy of A" in parted["remedy"]
    assert difference("elected", "truncated")["findings"] == []
    assert difference("elected", "stopped")["findings"] == []
