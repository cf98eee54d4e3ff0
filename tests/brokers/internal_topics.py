"""A broker whose own topics hold what groups of all kinds, transactions and administrators leave there."""

from __future__ import annotations

from pathlib import Path

from .brokers import KraftBroker
from .maven import INTERNAL_TOPICS
from .process import LineClient

CONFIG: dict[str, object] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "group.coordinator.rebalance.protocols": "classic,consumer,share",
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
}


def make(directory: Path) -> Path:
    """The log directory of a broker that was filled, restarted and stopped."""
    broker = KraftBroker(directory, CONFIG)
    with broker:
        log = directory / "internal-topics.log"
        with LineClient(INTERNAL_TOPICS, [broker.bootstrap_servers], log) as client:
            client.ask("fill")
        broker.restart()
    return broker.log_dir
