"""Streams over the directory of a broker that is writing it: rows as its consumers have them."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.task_reader import read_splits
from tests.brokers.answers import ISOLATIONS, Place, consumed, plain, summed
from tests.brokers.brokers import KraftBroker
from tests.brokers.filler import Filler, Producer
from tests.brokers.records import small
from tests.support.spark_streams import started
from tests.support.stream_laws import stream

pytestmark = [pytest.mark.broker, pytest.mark.spark]

TIME = 1_700_000_000_000
TOPICS: dict[str, dict[str, object]] = {
    "rolling": {"internal.segment.bytes": 16384},
    "prealloc": {"internal.segment.bytes": 65536, "preallocate": "true"},
    "transactions": {"internal.segment.bytes": 32768, "index.interval.bytes": 512},
}
PLACES: list[Place] = [("rolling", 0), ("rolling", 1), ("prealloc", 0), ("transactions", 0)]
COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftBroker]:
    with KraftBroker(tmp_path_factory.mktemp("broker"), heap_mb=384) as running:
        yield running


def write(broker: KraftBroker, filler: Filler, rounds: int) -> None:
    """Plain batches, and transactions of two producers that interleave."""
    r = random.Random(rounds)
    codecs = {name: filler.plain(f"plain-{name}", name) for name in ("none", "zstd")}
    pair = [filler.transactional(f"pair-{i}", "lz4") for i in range(2)]
    begun: set[Producer] = set()
    for i in range(rounds):
        topic, partition = r.choice(PLACES[:3])
        records = small(f"{i}", r.randrange(1, 40), TIME + i)
        codecs[r.choice(["none", "zstd"])].send(topic, partition, records)
        producer = r.choice(pair)
        if producer in begun and r.random() < 0.5:
            producer.do(r.choice(["commit", "abort"]))
            begun.remove(producer)
            continue
        if producer not in begun:
            producer.do("begin")
            begun.add(producer)
        producer.send("transactions", 0, small(f"t{i}", r.randrange(1, 20), TIME + i))
    for producer in begun:
        producer.do("commit")


def test_as_consumers_have_them(session: SparkSession, broker: KraftBroker, tmp_path: Path) -> None:
    with broker.client() as client:
        filler = Filler(broker, client, TIME)
        for topic, config in TOPICS.items():
            filler.topic(topic, 2 if topic == "rolling" else 1, config)
        session.conf.set("spark.tests.format", "kafka-log")
        names = "rolling,prealloc,transactions"
        query = started(
            session,
            broker.log_dir,
            tmp_path,
            {"processingTime": "100 milliseconds"},
            subscribe=names,
            isolationLevel="read_committed",
            maxOffsetsPerTrigger="300",
        )
        writer = threading.Thread(target=write, args=(broker, filler, 150))
        writer.start()
        got: dict[str, list[pa.RecordBatch]] = {isolation: [] for isolation in ISOLATIONS}
        polled: dict[str, int] = dict.fromkeys(ISOLATIONS, 0)
        at: dict[str, Any] = {}
        last = False
        while True:
            done = last
            last = not writer.is_alive()
            for isolation in ISOLATIONS:
                # A restart at each poll: all that it has is the checkpoint.
                now = stream(broker.log_dir, subscribe=names, isolationLevel=isolation)
                start = at.get(isolation) or json.loads(json.dumps(now.initial()))
                end = json.loads(json.dumps(now.latest(start, limited=True)))
                scan = Scan(COLUMNS, engine="construct")
                for task in now.tasks(start, end):
                    got[isolation] += read_splits(task, scan)
                polled[isolation] += end != start
                at[isolation] = end
            if done:
                break
            time.sleep(0.05)
        writer.join()
        query.processAllAvailable()
        query.stop()
    theirs = consumed(broker, PLACES)
    assert min(polled.values()) > 5
    for isolation in ISOLATIONS:
        table = pa.Table.from_batches(got[isolation])
        for place in PLACES:
            mine = [
                row | {"headers": row["headers"] or []}
                for row in plain(table_in_ms(table))
                if (row["topic"], row["partition"]) == place
            ]
            assert summed(mine)["sha256"] == theirs[place][isolation]["sha256"], (place, isolation)
    rows = session.read.parquet(str(tmp_path / "out")).collect()
    assert len({(row.topic, row.partition, row.offset) for row in rows}) == len(rows)
    assert len(rows) == sum(theirs[place]["read_committed"]["count"] for place in PLACES)


def table_in_ms(table: pa.Table) -> pa.Table:
    at = table.column_names.index("timestamp")
    return table.set_column(at, "timestamp", table.column(at).cast(pa.timestamp("ms", "UTC")))
