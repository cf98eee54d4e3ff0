"""The worker on the driver that answers for a stream is killed: the connector starts another one. Spark ends a query of the Python source
with its worker."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.pyspark_kafka_log.conftest import PYTHON_LANE
from tests.support.spark_logs import batch, build, numbered, write
from tests.support.spark_processes import WORKER, below, command, until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for them in /proc"),
]

RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"
"""The module that Spark runs for a stream of a Python source: one process for each query."""

Trigger = dict[str, Any]
UNTIL_STOPPED: Trigger = {"processingTime": "0 seconds"}
AT_ONCE: Trigger = {"availableNow": True}


class Sink:
    """Keeps the offsets of each micro-batch. ``first`` is called in each before its rows are read."""

    def __init__(self, first: Callable[[int], None] = lambda _: None) -> None:
        self.first = first
        self.batches: dict[int, list[int]] = {}

    def __call__(self, rows: DataFrame, number: int) -> None:
        self.first(number)
        self.batches[number] = sorted(row.offset for row in rows.collect())

    @property
    def offsets(self) -> list[int]:
        return [offset for number in sorted(self.batches) for offset in self.batches[number]]


def start(
    session: SparkSession, lane: str, logs: Path, sink: Sink, trigger: Trigger, **options: str
) -> StreamingQuery:
    reader = session.readStream.format(lane).options(startingOffsets="earliest", **options)
    writer = reader.load(str(logs)).select("offset").writeStream.foreachBatch(sink)
    writer = writer.option("checkpointLocation", str(logs.parent / "checkpoint"))
    return writer.trigger(**trigger).start()


def is_there(logs: Path, name: str) -> bool:
    return (logs.parent / "checkpoint" / name).exists()


def kill(module: str) -> int:
    """Kill the Python processes of this Spark that run a module, and their daemons. How many they were.

    Workers of functions are none of these: Spark fails the next query that takes a worker whose daemon was killed.
    """
    found = [pid for pid in below(os.getpid()) if module in command(pid)]
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return len(found)


def append(path: Path, offset: int) -> None:
    with path.open("ab") as file:
        file.write(build(batch(offset, [b"more"])))


def test_the_connector_replaces_its_worker(session: SparkSession, directory: Path) -> None:
    """Before the rows of the first micro-batch are planned, and while the query waits for more."""
    path = write(directory, "t", 0, 0, numbered(2, 2))
    killed: list[int] = []

    def first(number: int) -> None:
        if number == 0:
            assert is_there(directory, "offsets/0") and not is_there(directory, "commits/0")
            killed.append(kill(WORKER))

    sink = Sink(first)
    query = start(session, "kafka-log", directory, sink, UNTIL_STOPPED)

    def read_up_to(offset: int) -> None:
        until(lambda: len(sink.offsets) == offset or not query.isActive, 120)
        assert query.isActive, query.exception()

    try:
        for offset in (4, 5):
            read_up_to(offset)
            killed.append(kill(WORKER))
            append(path, offset)
        read_up_to(6)
    finally:
        query.stop()
    assert sink.offsets == list(range(6))
    assert all(killed) and len(killed) == 3


def test_a_query_that_ends_keeps_its_end(session: SparkSession, directory: Path) -> None:
    """The trigger AvailableNow reads what was there when the query began, whichever worker of the connector plans it."""
    path = write(directory, "t", 0, 0, numbered(2, 3))

    def first(number: int) -> None:
        if number == 0:
            append(path, 6)
            assert kill(WORKER)

    sink = Sink(first)
    query = start(session, "kafka-log", directory, sink, AT_ONCE, maxOffsetsPerTrigger="2")
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    assert sink.offsets == list(range(6))


def test_a_query_of_the_python_source_ends_with_its_worker(
    session: SparkSession, directory: Path
) -> None:
    """Before its first micro-batch. The laws of streams show what restarts read, after any step."""
    write(directory, "t", 0, 0, numbered(2, 2))
    query = start(session, PYTHON_LANE, directory, Sink(), UNTIL_STOPPED)
    try:
        until(lambda: bool(kill(RUNNER)) or not query.isActive)
        with pytest.raises(StreamingQueryException, match="STREAM_FAILED"):
            query.awaitTermination(120)
        assert not query.isActive
    finally:
        query.stop()
    assert not is_there(directory, "offsets/0")
