"""Load on a running broker: topics that roll, lose segments and are compacted while they are read."""

from __future__ import annotations

import os
import threading
import time

from tests.brokers.brokers import KraftBroker
from tests.brokers.filler import Filler
from tests.brokers.records import Rec
from tests.brokers.scenarios import SMALL_4

SECONDS = float(os.environ.get("CHECK_SECONDS", "20"))
"""Duration of the load: 600 in a soak."""

CONFIG = {
    "log.retention.check.interval.ms": 300,
    "log.initial.task.delay.ms": 100,
    "offsets.topic.segment.bytes": 1 << 20,
}
"""Settings of a broker that deletes and rolls within a second."""


class LoadThread(threading.Thread):
    """Thread that writes into topics that the broker deletes from and compacts, and in transactions.

    Set ``is_stopped`` to stop it. An exception ends the thread and is kept in ``error``.

    Args:
        broker: A running broker without the topics ``deleted``, ``cleaned`` and ``orders``.
        delay_ms: ``file.delete.delay.ms`` of the topics.
    """

    def __init__(self, broker: KraftBroker, delay_ms: int) -> None:
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
        small = {**SMALL_4, "file.delete.delay.ms": self.delay_ms}
        filler.topic("deleted", 1, {**small, "retention.bytes": 9000})
        filler.topic("cleaned", 1, {**small, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})  # fmt: skip
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
