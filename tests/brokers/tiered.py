"""A broker with tiered storage: Kafka's own LocalTieredStorage, which keeps remote segments in a directory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from .brokers import KraftBroker
from .filler import Filler
from .maven import KAFKA_4_TIERED
from .process import wait_until
from .records import small

TOPIC = "tiered"
STORAGE = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
COPY_LIMIT_S = 45.0
TOPIC_CONFIG: dict[str, object] = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": 3000,
    "segment.index.bytes": 4096,
    "index.interval.bytes": 300,
    "local.retention.bytes": 3000,
    "retention.ms": -1,
    "file.delete.delay.ms": 0,
}


def config(tier: Path) -> dict[str, object]:
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": STORAGE,
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "remote.log.manager.task.interval.ms": 500,
        "rsm.config.dir": tier,
        "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
        "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
        "log.initial.task.delay.ms": 500,
        "log.retention.check.interval.ms": 500,
        "log.flush.start.offset.checkpoint.interval.ms": 500,
    }


@contextmanager
def tiered_broker(directory: Path) -> Iterator[tuple[KraftBroker, Path]]:
    """A running broker whose older segments are in the tier alone, and the directory of the tier."""
    tier = directory / "tier"
    broker = KraftBroker(directory / "broker", config(tier), build=KAFKA_4_TIERED, heap_mb=256)
    with broker:
        with broker.client() as client:
            fill(Filler(broker, client, (int(time.time()) - 86_400) * 1000))
        wait_until(
            lambda: len(segments(broker)) <= 2,
            COPY_LIMIT_S,
            lambda: f"local segments remain: {segments(broker)}; see {broker.log_file}",
        )
        yield broker, tier


def segments(broker: KraftBroker) -> list[str]:
    return sorted(path.name for path in (broker.log_dir / f"{TOPIC}-0").glob("*.log"))


def fill(fill: Filler) -> None:
    """Two producers: one whose transactions end each time, and one with a transaction over many segments."""
    fill.topic(TOPIC, 1, TOPIC_CONFIG)
    with (
        closing(fill.transactional("tx-tiered", "none")) as short,
        closing(fill.transactional("tx-long", "lz4")) as long,
        closing(fill.idempotent("plain", "zstd")) as plain,
    ):
        for number in range(18):
            at = fill.time + number * 10_000
            if number in (4, 14):
                long.do("begin")
            if 4 <= number < 10 or number >= 14:
                long.send(TOPIC, 0, small(f"long {number}", 2, at))
            short.do("begin")
            short.send(TOPIC, 0, small(f"short {number}", 8, at + 1000))
            short.do("abort" if number % 3 == 0 else "commit")
            plain.send(TOPIC, 0, small(f"plain {number}", 3, at + 2000))
            if number == 10:
                long.do("abort")
        long.do("commit")
