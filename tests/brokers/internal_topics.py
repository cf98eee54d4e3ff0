"""A broker whose own topics hold what groups of all kinds, transactions and administrators leave there."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from .brokers import KraftBroker
from .maven import ADMINISTRATOR, INTERNAL_TOPICS, STREAMS_MEMBER, BrokerError
from .process import LineClient

CONFIG: dict[str, object] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "group.coordinator.rebalance.protocols": "classic,consumer,share,streams",
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
}


STREAMS = "streaming"
STREAMS_LIMIT_S = 60.0


def make(directory: Path) -> Path:
    """The log directory of a broker that was filled, restarted and stopped."""
    broker = KraftBroker(directory, CONFIG)
    with broker:
        fill(broker)
        broker.restart()
    return broker.log_dir


def fill(broker: KraftBroker) -> None:
    """Groups of all kinds, transactions, and what administrators do."""
    log = broker.directory / "internal-topics.log"
    with LineClient(INTERNAL_TOPICS, [broker.bootstrap_servers], log) as client:
        client.ask("fill")
    streams_group(broker)


def streams_group(broker: KraftBroker) -> None:
    """Two members of a streams group share the tasks of a topic of two partitions, each with a copy of what the other one does."""
    log = broker.directory / "streams.log"
    with (
        LineClient(ADMINISTRATOR, [broker.bootstrap_servers], log) as admin,
        LineClient(STREAMS_MEMBER, [broker.bootstrap_servers], log) as client,
    ):
        standby = {"streams.num.standby.replicas": "1"}
        admin.ask("set", type="GROUP", name=STREAMS, config=standby)
        members = {f"member-{i}": _Member(client, f"member-{i}") for i in range(2)}
        end = time.monotonic() + STREAMS_LIMIT_S
        while any(len(m.tasks["active"]) != 1 or not m.tasks["standby"] for m in members.values()):
            if time.monotonic() > end:
                raise BrokerError(f"tasks: {[m.tasks for m in members.values()]}; see {log}")
            for member in members.values():
                member.heartbeat()
            time.sleep(0.2)
        for member in members.values():
            member.leave()
        for partition in range(2):
            place = {"topic": "orders", "partition": partition, "offset": 3 + partition}
            admin.ask("commit_for_streams", group=STREAMS, **place)


class _Member:
    """A member of the streams group, which does the tasks that it is given."""

    def __init__(self, client: LineClient, name: str) -> None:
        self._client = client
        self._name = name
        self._epoch = 0
        self.tasks: dict[str, list[int]] = {"active": [], "standby": [], "warmup": []}

    def heartbeat(self) -> None:
        said = self._ask(self._epoch, topic="orders", **self.tasks)
        self._epoch = said["epoch"]
        self.tasks |= {name: said[name] for name in self.tasks if said[name] is not None}

    def leave(self) -> None:
        self._ask(-1)

    def _ask(self, epoch: int, **more: Any) -> Any:
        return self._client.ask("beat", group=STREAMS, member=self._name, epoch=epoch, **more)
