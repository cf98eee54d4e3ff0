"""What the sample brokers are filled with. samples/README.md says what each topic is for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass

from .brokers import Broker, KraftBroker, ZookeeperBroker
from .filler import Filler
from .maven import CLIENT_0_9, CLIENT_0_10
from .process import LineClient
from .records import CODECS, Rec, keyed, large, noise, rejected, small, tombstones

LEGACY_CODECS = CODECS[:4]
V0 = {"message.format.version": "0.9.0"}
V1 = {"message.format.version": "0.10.2"}
# Kafka 4 takes no less than 1 MB for segment.bytes; its own tests use this name.
SMALL_4 = {"internal.segment.bytes": 3000, "index.interval.bytes": 300, "segment.index.bytes": 4096}
SMALL_2_8 = {"segment.bytes": 3000, "index.interval.bytes": 300, "segment.index.bytes": 4096}


@dataclass(frozen=True)
class Scenario:
    """A broker and how it is filled; `name` is the folder in samples/."""

    name: str
    broker: type[Broker]
    fill: Callable[[Broker, int], None]


def fill_kafka_4(broker: Broker, time: int) -> None:
    with broker.client() as client:
        fill = Filler(broker, client, time)
        _codecs(fill, CODECS)
        _features(fill)
        _append_time(fill, {}, ("none", "zstd"))
        _idempotent(fill)
        _transactions(fill)
        _segments(fill, SMALL_4)
        _trimmed(fill)
        fill.topic("empty", 1)
        _groups(fill, {"classic": {}, "consumer": {"group.protocol": "consumer"}})
        fill.topic("compacted", 2, SMALL_4)
        for partition, codec in enumerate(("none", "lz4")):
            _compacted(fill, "compacted", partition, codec)
        fill.clean("compacted", 2)
        # The marker of an abort gets its delete horizon in the pass after the one that drops the aborted records.
        for partition in range(2):
            _write_over(fill, "compacted", partition, "over")
        fill.clean("compacted", 2)
        _compacted_again(fill, SMALL_4)
    # A second leader epoch, and producer state that has been through a snapshot.
    broker.restart()
    with broker.client() as client:
        fill = Filler(broker, client, time + 3_600_000)
        _after_restart(fill)


def fill_kafka_2_8(broker: Broker, time: int) -> None:
    with ExitStack() as stack:
        fill = Filler(broker, stack.enter_context(broker.client()), time)
        log = broker.directory / "old-producers.log"
        old = stack.enter_context(LineClient(CLIENT_0_9, [], log))
        newer = stack.enter_context(LineClient(CLIENT_0_10, [], log))
        _legacy(fill, "v0", V0, old)
        _legacy(fill, "v1", V1, newer)
        _append_time(fill, V1, ("none", "gzip"))
        _mixed(fill, old, newer)
        _codecs(fill, CODECS)
        _transactions(fill)
        _segments(fill, SMALL_2_8)
        _trimmed(fill)
        _groups(fill, {"classic": {}})
        fill.topic("v1-compacted", 2, {**V1, **SMALL_2_8})
        fill.topic("compacted", 1, SMALL_2_8)
        for partition, codec in enumerate(("none", "gzip")):
            _compacted_v1(fill, partition, codec)
        _compacted(fill, "compacted", 0, "none")
        fill.clean("v1-compacted", 2)
        fill.clean("compacted", 1)
    broker.restart()
    with broker.client() as client:
        _after_restart(Filler(broker, client, time + 3_600_000))


KAFKA_4_SCENARIO = Scenario("kafka-4.x", KraftBroker, fill_kafka_4)
KAFKA_2_8_SCENARIO = Scenario("kafka-2.8", ZookeeperBroker, fill_kafka_2_8)
SCENARIOS = (KAFKA_4_SCENARIO, KAFKA_2_8_SCENARIO)


def _codecs(fill: Filler, codecs: tuple[str, ...]) -> None:
    """One partition for each codec: a batch of one record, a batch of many, a batch of large ones."""
    fill.topic("codecs", len(codecs))
    for partition, codec in enumerate(codecs):
        with closing(fill.plain(f"codecs-{codec}", codec)) as producer:
            producer.send("codecs", partition, small(codec, 1, fill.time))
            producer.send("codecs", partition, small(f"{codec}-many", 60, fill.time + 1000))
            producer.send("codecs", partition, large(codec, fill.time + 100_000))


def _features(fill: Filler) -> None:
    """The odd records, in batches of one and all in one batch."""
    fill.topic("features", 2)
    for partition, codec in enumerate(("none", "zstd")):
        with closing(fill.plain(f"features-{codec}", codec)) as producer:
            producer.send("features", partition, rejected(fill.time))
            for record in rejected(fill.time + 60_000):
                producer.send("features", partition, [record])


def _append_time(fill: Filler, config: dict[str, str], codecs: tuple[str, ...]) -> None:
    fill.topic("append-time", len(codecs), {**config, "message.timestamp.type": "LogAppendTime"})
    for partition, codec in enumerate(codecs):
        with closing(fill.plain(f"append-time-{codec}", codec)) as producer:
            for batch in range(3):
                records = small(f"append {batch}", 4, fill.time, headers=False)
                producer.send("append-time", partition, records)


def _idempotent(fill: Filler) -> None:
    """Two producers whose batches alternate, each with its own sequence."""
    fill.topic("idempotent", 2)
    with (
        closing(fill.idempotent("idempotent-a", "gzip")) as a,
        closing(fill.idempotent("idempotent-b", "none")) as b,
    ):
        for batch in range(4):
            for partition in range(2):
                at = fill.time + batch * 10_000
                a.send("idempotent", partition, small(f"a{batch}", 3 + partition, at))
                b.send("idempotent", partition, small(f"b{batch}", 2, at + 5000))


def _transactions(fill: Filler) -> None:
    """Commits and aborts, alone and interleaved, over several partitions; partition 2 is for the hanging one."""
    topic = "transactions"
    fill.topic(topic, 3)
    with (
        closing(fill.plain("outside", "none")) as outside,
        closing(fill.transactional("tx-one", "none")) as one,
        closing(fill.transactional("tx-two", "snappy")) as two,
    ):
        for partition in range(3):
            outside.send(topic, partition, small(f"before {partition}", 2, fill.time))
        for round_, end in enumerate(("commit", "abort", "commit", "abort")):
            at = fill.time + 10_000 * (round_ + 1)
            one.do("begin")
            for partition in range(2):
                one.send(topic, partition, small(f"one {end} {round_}", 3, at))
            two.do("begin")
            two.send(topic, 0, small(f"two {round_}", 2, at + 1000))
            outside.send(topic, 0, small(f"between {round_}", 1, at + 2000))
            one.send(topic, 0, small(f"one {end} {round_} again", 2, at + 3000))
            one.do(end)
            two.send(topic, 0, small(f"two {round_} again", 2, at + 4000))
            # The one that began later ends later, and otherwise.
            two.do("abort" if round_ == 2 else "commit")
        one.do("begin")
        last = one.send(topic, 2, small("with offsets", 2, fill.time + 60_000))
        one.send_offsets("tx-group", topic, 2, last + 1)
        one.do("commit")


def _after_restart(fill: Filler) -> None:
    """More records in the second leader epoch; last a transaction that nobody ends."""
    with closing(fill.idempotent("idempotent-c", "lz4")) as late:
        late.send("codecs", 0, small("after restart", 3, fill.time))
        late.send("compacted", 0, keyed("k0 r0", "after restart", fill.time))
        late.send("transactions", 1, small("after restart", 2, fill.time))
    hanging = fill.transactional("tx-hanging", "none")
    hanging.do("begin")
    hanging.send("transactions", 2, small("hanging", 3, fill.time))
    with closing(fill.plain("after-hanging", "none")) as outside:
        outside.send("transactions", 2, small("after hanging", 2, fill.time + 1000))
    hanging.abandon()


def _segments(fill: Filler, config: dict[str, int]) -> None:
    """Many small segments with entries in every index: partition 0 plain, partition 1 transactional."""
    topic = "segments.small"
    fill.topic(topic, 2, config)
    with (
        closing(fill.plain("segments", "none")) as plain,
        closing(fill.transactional("tx-segments", "none")) as tx,
    ):
        for batch in range(24):
            at = fill.time + batch * 30_000
            plain.send(topic, 0, small(f"plain {batch}", 6, at))
            if batch % 2 == 0:
                tx.do("begin")
                tx.send(topic, 1, small(f"tx {batch}", 8, at))
                tx.do("abort" if batch % 4 == 0 else "commit")


def _trimmed(fill: Filler) -> None:
    """The log starts inside a batch: the records before are on disk, and no consumer sees them."""
    fill.topic("trimmed", 1)
    with closing(fill.plain("trimmed", "none")) as producer:
        for batch in range(3):
            producer.send("trimmed", 0, small(f"trimmed {batch}", 5, fill.time + batch * 10_000))
    fill.delete_records("trimmed", 0, 7)


def _groups(fill: Filler, groups: dict[str, dict[str, str]]) -> None:
    for name, config in groups.items():
        fill.group(f"group-{name}", "codecs", config)


def _compacted(fill: Filler, topic: str, partition: int, codec: str) -> None:
    """What leaves each mark of a compaction: see the comments."""
    at = fill.time
    names = f"{topic}-{partition}"
    with (
        closing(fill.idempotent(f"{names}-a", codec)) as a,
        closing(fill.idempotent(f"{names}-b", codec)) as b,
        closing(fill.transactional(f"tx-{names}", codec)) as tx,
        closing(fill.plain(f"{names}-c", codec)) as c,
    ):
        # Gaps: later batches replace some of these keys. The batch of b stays as it is.
        a.send(topic, partition, keyed("k0 k1 k2 k3 k4 k5 k6 k7", "first", at))
        b.send(topic, partition, keyed("b0 b1", "only", at + 1000))
        # Tombstones: a delete horizon in Kafka 4.
        c.send(topic, partition, tombstones("k3 k5", at + 2000))
        tx.do("begin")
        tx.send(topic, partition, keyed("t0 t1", "committed", at + 3000))
        tx.do("commit")
        # The cleaner drops the records of an aborted transaction.
        tx.do("begin")
        tx.send(topic, partition, keyed("t0 t2 k6", "aborted", at + 4000))
        tx.do("abort")
        # Retained empty: the last batch of a, whose keys all come again. It keeps a's sequence.
        a.send(topic, partition, keyed("k0 k1", "second", at + 5000))
        c.send(topic, partition, keyed("k0 k1 k7", "third", at + 6000))
        for more in range(8):
            c.send(topic, partition, keyed("f0 f1 f2 f3 f4 f5", f"filler {more}", at + 7000 + more))
        # No cleaner touches the active segment: what ends up there stays whole.
        c.send(topic, partition, keyed("k2 k4", "last", at + 8000))


def _compacted_again(fill: Filler, config: dict[str, int]) -> None:
    """Several passes, a delete horizon of 1 ms: tombstones go, and an end marker loses its record."""
    topic = "compacted-again"
    fill.topic(topic, 1, config)
    _compacted(fill, topic, 0, "gzip")
    for batch in range(3):
        fill.clean(topic, 1, horizon_ms=1)
        _write_over(fill, topic, 0, f"again {batch}")


def _write_over(fill: Filler, topic: str, partition: int, version: str) -> None:
    """Enough for a new segment, so that the cleaner has a next pass to make."""
    with closing(fill.plain(f"{topic}-{partition}-over", "none")) as producer:
        for more in range(8):
            records = keyed("f0 f1 f2 f3 f4 f5", f"{version} {more}", fill.time + 20_000 + more)
            producer.send(topic, partition, records)


def _compacted_v1(fill: Filler, partition: int, codec: str) -> None:
    """Wrappers that lose some of their inner messages."""
    topic = "v1-compacted"
    with closing(fill.plain(f"{topic}-{partition}", codec)) as producer:
        producer.send(topic, partition, keyed("k0 k1 k2 k3 k4 k5 k6 k7", "first", fill.time))
        producer.send(topic, partition, tombstones("k3", fill.time + 1000))
        producer.send(topic, partition, keyed("k1 k2 k6", "second", fill.time + 2000))
        for more in range(12):
            records = keyed(f"f{more % 3} g{more} h{more % 2}", "filler", fill.time + 3000 + more)
            producer.send(topic, partition, [*records, _padding(f"p{more % 2}", fill.time)])


def _padding(key: str, time: int) -> Rec:
    """Enough bytes to roll segments even when they are compressed."""
    return Rec(time, key.encode(), noise(key, 1000))


def _legacy(fill: Filler, topic: str, config: dict[str, str], client: LineClient) -> None:
    """First a client of that age, which writes the format itself, then a 2.8 client, for which the broker converts."""
    fill.topic(topic, len(LEGACY_CODECS), config)
    for partition, codec in enumerate(LEGACY_CODECS):
        with closing(fill.plain(f"{topic}-{codec}", codec, client)) as producer:
            producer.send(topic, partition, small(f"{topic} one", 1, fill.time, headers=False))
            producer.send(topic, partition, small(f"{topic} many", 20, fill.time, headers=False))
            producer.send(topic, partition, rejected(fill.time, headers=False))
        with closing(fill.plain(f"{topic}-{codec}", codec)) as producer:
            producer.send(topic, partition, rejected(fill.time + 60_000, headers=False))
            producer.send(topic, partition, large(codec, fill.time + 100_000))


def _mixed(fill: Filler, old: LineClient, newer: LineClient) -> None:
    """v0, v1 and v2 one after another in one file, as the format of the topic goes up."""
    topic = "mixed"
    fill.topic(topic, 2, V0)
    steps = ((V0, old), (V1, newer), ({"message.format.version": "2.8"}, None))
    for step, (config, client) in enumerate(steps):
        if step > 0:
            fill.alter_in_zookeeper(topic, config)
        for partition, codec in enumerate(("none", "gzip")):
            at = fill.time + step * 10_000
            with closing(fill.plain(f"mixed-{step}-{codec}", codec, client)) as producer:
                producer.send(topic, partition, small(f"mixed {step}", 3, at, headers=False))
                producer.send(topic, partition, small(f"mixed {step} again", 5, at, headers=False))
