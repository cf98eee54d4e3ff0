"""Load on a running broker: topics that roll, lose segments and are compacted while they are read."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping

import pytest

from tests.brokers.brokers import Broker, KraftBroker, ZookeeperBroker
from tests.brokers.filler import Filler
from tests.brokers.records import Rec
from tests.brokers.scenarios import SMALL_2_8, SMALL_4, V1

SECONDS = float(os.environ.get("CHECK_SECONDS", "20"))
"""Duration of the load: 600 in a soak."""

CONFIG = {
    "log.retention.check.interval.ms": 300,
    "log.initial.task.delay.ms": 100,
    "offsets.topic.segment.bytes": 1 << 20,
}
"""Settings of a broker that deletes and rolls within a second."""

BROKERS = [KraftBroker, pytest.param(ZookeeperBroker, marks=pytest.mark.soak)]
"""The newest broker, and in the soak the oldest one."""

SMALL_SEGMENTS: Mapping[type[Broker], Mapping[str, object]] = {
    KraftBroker: SMALL_4,
    ZookeeperBroker: SMALL_2_8,
}
FORMAT: Mapping[type[Broker], Mapping[str, object]] = {KraftBroker: {}, ZookeeperBroker: V1}
"""Settings of the topics without transactions: the oldest broker writes message sets v1 to them."""

FIRST_DELETION_S = {KraftBroker: 0, ZookeeperBroker: 30}
"""Seconds from the start of a broker to its first deletion. Kafka 2.8 has no setting for this delay."""


class LoadThread(threading.Thread):
    """Thread that writes into topics that the broker deletes from and compacts, and in transactions.

    Set ``is_stopped`` to stop it. An exception ends the thread and is kept in ``error``.

    Args:
        broker: A running broker without the topics ``deleted``, ``cleaned`` and ``orders``.
        delay_ms: ``file.delete.delay.ms`` of the topics.
    """

    def __init__(self, broker: Broker, delay_ms: int) -> None:
        super().__init__()
        self.delay_ms = delay_ms
        self.broker = broker
        self.is_stopped = threading.Event()
        self.rounds = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with self.broker.client() as client:
                self._write(Filler(self.broker, client, 0))
        except Exception as error:  # the test reports it
            self.error = error

    def _write(self, filler: Filler) -> None:
        small = {**SMALL_SEGMENTS[type(self.broker)], "file.delete.delay.ms": self.delay_ms}
        plain_topic = {**small, **FORMAT[type(self.broker)]}
        filler.topic("deleted", 1, {**plain_topic, "retention.bytes": 9000})
        filler.topic("cleaned", 1, {**plain_topic, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})  # fmt: skip
        filler.topic("orders", 1, {**small, "retention.bytes": 30000})
        plain = filler.plain("plain", "none")
        transactional = filler.transactional("transactional", "lz4")
        while not self.is_stopped.is_set():
            now = int(time.time() * 1000)
            records = [Rec(now, b"key %d" % (self.rounds % 7), os.urandom(60)) for _ in range(5)]
            for topic in ("deleted", "cleaned"):
                plain.send(topic, 0, records)
            transactional.do("begin")
            last = transactional.send("orders", 0, records)
            transactional.send_offsets("group", "orders", 0, self.rounds)
            transactional.do("abort" if self.rounds % 3 == 0 else "commit")
            if self.rounds % 50 == 49:
                filler.delete_records("orders", 0, last - 20)
            self.rounds += 1
