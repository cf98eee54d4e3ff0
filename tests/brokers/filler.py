"""What the two scenarios share: topics, producers and batches by way of a Java client."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from kafka_codecs import OFFSET_CHECKPOINT

from .brokers import Broker
from .process import LineClient, wait_until
from .records import Rec

CLEANER_LIMIT_S = 60.0
CONFIG_LIMIT_S = 30.0
BYTES = "org.apache.kafka.common.serialization.ByteArraySerializer"


class Filler:
    """Sends each list of records as one batch: only the flush after the last one sends."""

    def __init__(self, broker: Broker, client: LineClient, start: int) -> None:
        self.broker = broker
        self.client = client
        self.time = start

    def topic(self, name: str, partitions: int, config: Mapping[str, object] | None = None) -> None:
        text = {key: str(value) for key, value in (config or {}).items()}
        self.client.ask("create_topic", topic=name, partitions=partitions, config=text)

    def alter(self, name: str, config: Mapping[str, object]) -> None:
        text = {key: str(value) for key, value in config.items()}
        self.client.ask("alter_topic", topic=name, config=text)

    def alter_in_zookeeper(self, name: str, config: Mapping[str, object]) -> None:
        """The same for a broker that hears of it from ZooKeeper, some time after the answer."""
        mark = f"entityPath: topics/{name} with config"
        before = self.broker.log_text().count(mark)
        self.alter(name, config)
        wait_until(
            lambda: self.broker.log_text().count(mark) > before,
            CONFIG_LIMIT_S,
            lambda: f"the broker has not heard of {config} for {name}; see {self.broker.log_file}",
        )
        # It logs this first and carries it out next.
        time.sleep(0.5)

    def plain(self, name: str, codec: str, client: LineClient | None = None) -> Producer:
        return self._producer(name, codec, {"enable.idempotence": "false"}, client or self.client)

    def idempotent(self, name: str, codec: str) -> Producer:
        return self._producer(name, codec, {"enable.idempotence": "true"}, self.client)

    def transactional(self, name: str, codec: str) -> Producer:
        config = {"transactional.id": name, "transaction.timeout.ms": "900000"}
        producer = self._producer(name, codec, config, self.client)
        producer.do("init_transactions")
        return producer

    def _producer(
        self, name: str, codec: str, more: Mapping[str, str], client: LineClient
    ) -> Producer:
        config = {
            "bootstrap.servers": self.broker.bootstrap_servers,
            "client.id": name,
            "acks": "all",
            "compression.type": codec,
            "linger.ms": "60000",
            "batch.size": "1000000",
            "key.serializer": BYTES,
            "value.serializer": BYTES,
            **more,
        }
        client.ask("producer", producer=name, config=config)
        return Producer(client, name)

    def group(self, group: str, topic: str, config: Mapping[str, str] | None = None) -> None:
        """A consumer group that reads, commits and leaves."""
        self.client.ask(
            "commit_group",
            topic=topic,
            config={"group.id": group, "client.id": group, **(config or {})},
        )

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self.client.ask("delete_records", topic=topic, partition=partition, before=before)

    def clean(self, topic: str, partitions: int, horizon_ms: int = 30 * 86_400_000) -> None:
        """Turns compaction on, waits until the cleaner has come up to the active segments, turns it off.

        So each pass goes over all there is, whatever time the producers took, and none comes unasked.
        """
        self.alter(
            topic,
            {
                "cleanup.policy": "compact",
                "min.cleanable.dirty.ratio": "0.01",
                "delete.retention.ms": horizon_ms,
                "file.delete.delay.ms": 0,
            },
        )
        for partition in range(partitions):
            self._wait_until_clean(topic, partition)
        self.alter(topic, {"cleanup.policy": "delete"})

    def _wait_until_clean(self, topic: str, partition: int) -> None:
        wait_until(
            lambda: self._is_clean(topic, partition),
            CLEANER_LIMIT_S,
            lambda: f"{topic}-{partition} is not compacted; see {self.broker.log_file}",
        )

    def _is_clean(self, topic: str, partition: int) -> bool:
        directory = self.broker.log_dir / f"{topic}-{partition}"
        segments = [path.stem for path in directory.glob("*.log")]
        checkpoint = self.broker.log_dir / "cleaner-offset-checkpoint"
        if not segments or not checkpoint.is_file():
            return False
        active = int(max(segments))
        left_over = [
            *directory.glob("*.cleaned"),
            *directory.glob("*.swap"),
            *directory.glob("*.deleted"),
        ]
        for entry in OFFSET_CHECKPOINT.parse(checkpoint.read_bytes()).entries or ():
            if (entry.topic, entry.partition) == (topic, partition):
                return bool(entry.offset >= active and not left_over)
        return False


class Producer:
    """A Java producer by its name."""

    def __init__(self, client: LineClient, name: str) -> None:
        self._client = client
        self.name = name

    def do(self, op: str) -> None:
        self._client.ask(op, producer=self.name)

    def send(self, topic: str, partition: int, records: Iterable[Rec]) -> int:
        """Sends one batch; the offset of its last record."""
        answer = self._client.ask(
            "send",
            producer=self.name,
            topic=topic,
            partition=partition,
            records=[record.to_json() for record in records],
        )
        last: int = answer["last_offset"]
        return last

    def send_offsets(self, group: str, topic: str, partition: int, offset: int) -> None:
        self._client.ask(
            "send_offsets",
            producer=self.name,
            group=group,
            topic=topic,
            partition=partition,
            offset=offset,
        )

    def close(self) -> None:
        self._client.ask("close", producer=self.name, wait_ms=10_000)

    def abandon(self) -> None:
        """Goes away as a crashed producer does: what is open stays open."""
        self._client.ask("close", producer=self.name, wait_ms=0)
