"""Streams over a broker with tiered storage that is writing: segments roll, are copied into the tier, are deleted locally and then there."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.brokers.answers import consumed, summed
from tests.brokers.brokers import KraftBroker
from tests.brokers.filler import Filler
from tests.brokers.maven import KAFKA_4_TIERED
from tests.brokers.process import wait_until
from tests.brokers.records import small
from tests.brokers.tiered import COPY_LIMIT_S, TOPIC, TOPIC_CONFIG, config

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

LANES = {"kafka-log": "read_committed", "kafka-log-python": "read_uncommitted"}
PLACE = (TOPIC, 0)
ROUNDS = 40
RESTARTS = 2
PAUSE_S = 0.2
GONE = 6
"""Segments that have to leave the disk meanwhile."""
COLUMNS = "topic,partition,offset,timestamp,key,value,headers,segment"
LIMIT_S = 150.0
"""For a machine that does much else."""


class Tiered:
    """A running broker with a tier, its client, and the segments of the topic that are in each place."""

    def __init__(self, broker: KraftBroker, tier: Path, filler: Filler) -> None:
        self.broker = broker
        self.tier = tier
        self.filler = filler

    @property
    def local(self) -> set[str]:
        return {path.stem for path in (self.broker.log_dir / f"{TOPIC}-0").glob("*.log")}

    @property
    def remote(self) -> set[str]:
        return {path.name[:20] for path in self.tier.rglob("*.log")}

    def write(self, least: int, enough: threading.Event) -> None:
        """A transaction that ends, and one over many segments, between plain batches: for so many rounds, and on until it is enough."""
        fill = self.filler
        short = fill.transactional("short", "lz4")
        long = fill.transactional("long", "none")
        plain = fill.idempotent("plain", "zstd")
        for number in count():
            if number >= least and enough.is_set():
                break
            time.sleep(PAUSE_S)
            at = fill.time + number * 10_000
            if number % 15 == 0:
                long.do("begin")
            if number % 15 < 10:
                long.send(TOPIC, 0, small(f"long {number}", 2, at))
            if number % 15 == 10:
                long.do("abort" if number % 2 else "commit")
            short.do("begin")
            short.send(TOPIC, 0, small(f"short {number}", 6, at + 1000))
            short.do("abort" if number % 3 == 0 else "commit")
            plain.send(TOPIC, 0, small(f"plain {number}", 3, at + 2000))
        for producer in (short, long, plain):
            producer.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiered]:
    directory = tmp_path_factory.mktemp("tiered")
    tier = directory / "tier"
    broker = KraftBroker(directory / "broker", config(tier), build=KAFKA_4_TIERED, heap_mb=256)
    with broker, broker.client() as client:
        filler = Filler(broker, client, (int(time.time()) - 86_400) * 1000)
        filler.topic(TOPIC, 1, TOPIC_CONFIG)
        yield Tiered(broker, tier, filler)


def started(
    session: SparkSession, of: Tiered, scratch: Path, lane: str, **options: Any
) -> StreamingQuery:
    """A query that appends what it reads to Parquet files, as fast as it can."""
    given = {
        "paths": json.dumps([str(of.broker.log_dir), str(of.tier)]),
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
        "include": "remote",
        "isolationLevel": LANES[lane],
        "columns": COLUMNS,
        **options,
    }
    reader = session.readStream.format(lane)
    for name, value in given.items():
        reader = reader.option(name, value)
    return (
        reader.load()
        .writeStream.format("parquet")
        .option("checkpointLocation", str(scratch / lane / "checkpoint"))
        .option("path", str(scratch / lane / "out"))
        .trigger(processingTime="50 milliseconds")
        .start()
    )


def has_rows(query: StreamingQuery) -> bool:
    """Whether the query reads; an error of its own is raised."""
    if (error := query.exception()) is not None:
        raise error
    return any(progress.numInputRows for progress in query.recentProgress)


def written(session: SparkSession, scratch: Path, lane: str) -> list[Row]:
    """What the query has written, in the order of offsets."""
    frame = session.read.parquet(str(scratch / lane / "out"))
    return frame.selectExpr("*", "unix_millis(timestamp) ms").orderBy("offset").collect()


def plain(rows: list[Row]) -> list[dict[str, Any]]:
    """Rows as digests take them."""
    return [
        {
            "offset": row.offset,
            "timestamp": row.ms,
            "key": row.key,
            "value": row.value,
            "headers": [one.asDict() for one in row.headers or ()],
        }
        for row in rows
    ]


def assert_reads_what_consumers_read(
    session: SparkSession, running: Tiered, scratch: Path, lane: str
) -> None:
    """Compare what a query has written with a consumer's records; both places must have given some of them."""
    theirs = consumed(running.broker, [PLACE])[PLACE][LANES[lane]]
    rows = written(session, scratch, lane)
    ours = summed(plain(rows))
    assert ours == {name: theirs[name] for name in ours}, lane
    assert {str(running.tier) in row.segment for row in rows} == {True, False}, lane


def test_each_record_once_of_segments_that_were_copied(
    session: SparkSession, running: Tiered, tmp_path: Path
) -> None:
    enough = threading.Event()
    enough.set()
    running.write(12, enough)
    wait_until(
        lambda: bool(running.remote) and f"{0:020}" not in running.local,
        COPY_LIMIT_S,
        lambda: f"local segments remain: {running.local}; see {running.broker.log_file}",
    )
    query = started(session, running, tmp_path, "kafka-log", maxOffsetsPerTrigger="60")
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert_reads_what_consumers_read(session, running, tmp_path, "kafka-log")


@pytest.mark.soak
def test_each_record_once_while_segments_move(
    session: SparkSession, running: Tiered, tmp_path: Path
) -> None:
    r = random.Random(5)
    enough = threading.Event()
    writer = threading.Thread(target=running.write, args=(ROUNDS, enough))
    local: set[str] = set()
    queries: dict[str, StreamingQuery] = {}
    restarts = dict.fromkeys(LANES, 0)
    try:
        writer.start()
        for lane in LANES:
            queries[lane] = started(session, running, tmp_path, lane, maxOffsetsPerTrigger="60")
        deadline = time.monotonic() + LIMIT_S
        while min(restarts.values()) < RESTARTS or len(local - running.local) < GONE:
            assert writer.is_alive() and time.monotonic() < deadline, (restarts, local)
            local |= running.local
            time.sleep(r.uniform(0.1, 0.5))
            lane = r.choice(list(LANES))
            if restarts[lane] < RESTARTS and has_rows(queries[lane]):
                queries[lane].stop()  # in the middle of whatever it does
                queries[lane] = started(
                    session, running, tmp_path, lane, maxOffsetsPerTrigger="250"
                )
                restarts[lane] += 1
        enough.set()
        writer.join()
        for query in queries.values():
            query.processAllAvailable()
    finally:
        enough.set()
        writer.join()
        for query in queries.values():
            query.stop()
    for lane in LANES:
        assert_reads_what_consumers_read(session, running, tmp_path, lane)


@pytest.mark.soak
def test_what_the_tier_loses_is_lost(
    session: SparkSession, running: Tiered, tmp_path: Path
) -> None:
    """Retention deletes in the tier what streams have not read yet."""
    enough = threading.Event()
    enough.set()
    if not running.remote:
        running.write(30, enough)
    for lane in LANES:
        query = started(session, running, tmp_path, lane, maxOffsetsPerTrigger="20")
        wait_until(partial(has_rows, query), LIMIT_S, partial("{} does not begin".format, lane))
        query.stop()
    before = {lane: written(session, tmp_path, lane) for lane in LANES}
    first = min(running.remote)
    running.filler.alter(TOPIC, {"retention.bytes": 6000})
    wait_until(
        lambda: len(running.remote) <= 4 and first not in running.remote,
        COPY_LIMIT_S,
        lambda: f"the tier keeps {sorted(running.remote)}; see {running.broker.log_file}",
    )
    theirs = consumed(running.broker, [PLACE])[PLACE]
    for lane, isolation in LANES.items():
        query = started(session, running, tmp_path, lane)
        with pytest.raises(StreamingQueryException, match="data is lost: partition tiered-0"):
            query.processAllAvailable()
        with suppress(StreamingQueryException):
            query.stop()
        assert written(session, tmp_path, lane) == before[lane]
        query = started(session, running, tmp_path, lane, failOnDataLoss="false")
        query.processAllAvailable()
        query.stop()
        rows = written(session, tmp_path, lane)
        assert len({row.offset for row in rows}) == len(rows)
        there = theirs[isolation]
        ours = summed(plain([row for row in rows if row.offset >= there["start_offset"]]))
        assert ours == {name: there[name] for name in ours}, lane
        assert [row for row in rows if row.offset < there["start_offset"]] == before[lane]
