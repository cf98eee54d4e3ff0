"""Brokers that are killed while they write, and brokers whose disk is full."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from kafka_log import LogDirectory
from tests.brokers.brokers import KraftBroker
from tests.brokers.filler import BYTES, Filler
from tests.brokers.maven import BrokerError
from tests.brokers.process import wait_until
from tests.brokers.records import Rec, noise, small

TIME = 1_700_000_000_000
PLACES = [("plain", 0), ("committed", 0)]
STORM = {
    "key.serializer": BYTES,
    "value.serializer": BYTES,
    "delivery.timeout.ms": "3000",
    "request.timeout.ms": "1500",
    "linger.ms": "0",
    "batch.size": "20000",
}
WRITE_LIMIT_S = 60.0


def write(fill: Filler, rounds: int) -> None:
    """Rounds of records, plain (in a preallocated log) and in transactions; the last transaction stays open."""
    for topic, _ in PLACES:
        fill.topic(topic, 1, {"preallocate": str(topic == "plain").lower()})
    plain = fill.idempotent("plain", "none")
    tx = fill.transactional("tx-crash", "lz4")
    for number in range(rounds):
        at = fill.time + number * 60_000
        plain.send("plain", 0, [Rec(at, b"k%d" % number, noise(f"plain {number}", 90_000))])
        tx.do("begin")
        tx.send("committed", 0, small(f"tx {number}", 20, at))
        if number < rounds - 1:
            tx.do("abort" if number % 3 == 0 else "commit")


@contextlib.contextmanager
def storm(broker: KraftBroker, count: int, size: int) -> Iterator[None]:
    """A producer that sends small batches as fast as it can, to a broker that may go away meanwhile; and then ends."""
    records = [Rec(TIME + i, b"s", noise(f"storm {i}", size)).to_json() for i in range(count)]
    client = broker.client()
    config = {"bootstrap.servers": broker.bootstrap_servers, **STORM}
    client.ask("producer", producer="storm", config=config)

    def send() -> None:
        with contextlib.suppress(BrokerError):  # not all of it arrives
            client.ask("send", producer="storm", topic="plain", partition=0, records=records)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        client.kill()
        sender.join()


def kill_in_a_storm(broker: KraftBroker) -> None:
    """Ends the broker with SIGKILL while it appends."""
    before = rows(broker)
    with storm(broker, 6_000, 1_500):
        wait_until(lambda: rows(broker) > before + 50, WRITE_LIMIT_S, lambda: "nothing is written")
        broker.kill()


def rows(broker: KraftBroker) -> int:
    """Records of the plain topic that have arrived."""
    table = LogDirectory(broker.log_dir, topics="plain").stat()
    return int(sum(table.column("records").to_pylist()))


def fill_the_disk(broker: KraftBroker) -> None:
    """Writes more than there is room for, until the broker, which has one log directory, gives up."""
    with storm(broker, 1_000, 15_000):
        wait_until(
            lambda: "No space left on device" in broker.log_text(),
            WRITE_LIMIT_S,
            lambda: f"the disk is not full; see {broker.log_file}",
        )
    broker.kill()
