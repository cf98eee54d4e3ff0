"""The connector's Python workers: killed in the middle, not needed to the end, cancelled; and the memory of their answers."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_kafka_log.connector.worker import first_rows
from tests.support.paused_queries import Query, paused, until_paused
from tests.support.spark_logs import flipped, numbered, write
from tests.support.spark_processes import WORKER, below, command, holders, parents, until
from tests.support.spark_queries import column, load

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for them in /proc"),
]
BATCHES, RECORDS = 40, 10


@pytest.fixture
def spark(session: SparkSession) -> SparkSession:
    session.conf.set("spark.tests.format", "kafka-log")
    return session


@pytest.fixture
def large(directory: Path) -> Path:
    """A log of one task with more bytes than sockets hold on their way."""
    write(directory, "t", 0, 0, numbered(RECORDS, BATCHES, pad=200_000))
    return directory


def workers() -> set[int]:
    """The processes that answer; not the daemon that forks them."""
    tree = parents()
    answer = {pid for pid in below(os.getpid()) if WORKER in command(pid)}
    return {pid for pid in answer if tree.get(pid) in answer}


def in_the_middle(spark: SparkSession, large: Path) -> Query:
    """A query whose worker waits for its answer to be taken."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    query = Query(paused(load(spark, large, columns="offset,value", batchRows=10), large))
    query.start()
    until_paused(query, large)
    return query


@pytest.mark.slow
def test_a_worker_that_is_killed_fails_its_query(spark: SparkSession, large: Path) -> None:
    query = in_the_middle(spark, large)
    until(lambda: bool(holders(workers(), large)))
    for pid in workers():
        os.kill(pid, signal.SIGKILL)
    (large / "go").touch()
    query.join(60)
    assert not query.is_alive()
    assert query.rows == -1
    assert query.error
    assert column(load(spark, large), "offset") == list(range(BATCHES * RECORDS))


@pytest.mark.slow
def test_a_query_that_is_cancelled_leaves_no_worker(spark: SparkSession, large: Path) -> None:
    column(load(spark, large), "offset")
    query = in_the_middle(spark, large)
    busy = workers()
    assert busy
    spark.sparkContext.cancelAllJobs()
    (large / "go").touch()
    query.join(60)
    assert query.error
    until(lambda: len(workers()) < len(busy))
    assert column(load(spark, large), "offset") == list(range(BATCHES * RECORDS))


def memory(spark: SparkSession) -> tuple[int, int]:
    """Bytes of Arrow in the JVM, and allocators of ours."""
    jvm: Any = spark._jvm
    root = jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()
    ours = [a for a in root.getChildAllocators() if a.getName() == "kafka-log"]
    return sum(a.getAllocatedMemory() for a in ours), len(ours)


@pytest.mark.soak
def test_stopping_early_breaks_nothing(spark: SparkSession, large: Path) -> None:
    """A limit that Spark keeps to itself stops in the middle of an answer."""
    frame = load(spark, large, batchRows=10)
    for _ in range(3):
        some = frame.where("length(value) > 3").limit(3).collect()
        assert [row["offset"] for row in some] == [0, 1, 2]
        assert [row["offset"] for row in frame.take(12)] == list(range(12))
    assert frame.count() == BATCHES * RECORDS
    assert column(frame, "offset") == list(range(BATCHES * RECORDS))
    until(lambda: memory(spark) == (0, 0))
    assert len(workers()) <= 4


def test_errors_keep_no_memory_and_the_worker(spark: SparkSession, directory: Path) -> None:
    data = numbered(3, 3)
    path = write(directory, "t", 0, 0, flipped(data, len(data) - 3))
    frame = load(spark, directory, batchRows=1)
    with pytest.raises(Exception, match="checksum"):
        frame.collect()
    until(lambda: memory(spark) == (0, 0))
    kept = workers()
    with pytest.raises(Exception, match="checksum"):
        frame.count()
    assert workers() == kept
    path.write_bytes(data)
    assert column(load(spark, directory), "offset") == list(range(9))


def test_a_limit_reads_no_further(spark: SparkSession, directory: Path) -> None:
    """Damage behind it is not met."""
    data = numbered(5, 3)
    write(directory, "t", 0, 0, flipped(data, len(data) - 3))
    frame = load(spark, directory)
    assert [row["offset"] for row in frame.take(5)] == [0, 1, 2, 3, 4]
    assert frame.limit(7).count() == 7
    kept = workers()
    for _ in range(3):
        assert len(frame.take(5)) == 5
    assert workers() == kept, "they go back into the pool"
    with pytest.raises(Exception, match="checksum"):
        frame.take(11)


@pytest.mark.parametrize("limit", [0, 1, 3, 4, 7, 100])
def test_first_rows(limit: int) -> None:
    pa = pytest.importorskip("pyarrow")
    taken: list[int] = []

    def batches() -> Iterator[Any]:
        for start in (0, 3, 6):
            taken.append(start)
            yield pa.record_batch({"n": range(start, start + 3)})

    found = [n for b in first_rows(batches(), limit) for n in b.column(0).to_pylist()]
    assert found == list(range(9))[:limit]
    assert len(taken) == min(3, -(-limit // 3))
