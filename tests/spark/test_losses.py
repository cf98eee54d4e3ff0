"""Rows that are not there for damage are told: a warning where the task's logs go, and metrics of the scan."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_kafka_log.losses import SAID, Losses
from pyspark_kafka_log.options import default_columns, parse
from pyspark_kafka_log.source import KafkaLogReader

from .logs import TIME, flipped, numbered, write


def three(directory: Path) -> tuple[int, int]:
    """A log of three batches, the second with a wrong checksum. Where that lies."""
    ends = [len(numbered(4, n)) for n in (1, 2)]
    write(directory, "t", 0, 0, flipped(numbered(4, 3), ends[1] - 3))
    return ends[0], ends[1]


def said(directory: Path, mode: str, view: str | None = None) -> list[str]:
    options = parse({"path": str(directory), "mode": mode})
    reader = KafkaLogReader(options, default_columns(options))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for task in reader.partitions():
            list(reader.read(task))
    return [str(one.message) for one in found]


def test_a_batch_that_is_left_out(directory: Path) -> None:
    start, end = three(directory)
    (told,) = said(directory, "DROPMALFORMED")
    assert told.startswith(
        f"kafka-log: {end - start} bytes in 1 places could not be read whole, or are left out: "
    )
    assert f": bytes {start} to {end}: a batch that is left out: stored checksum" in told


def test_bytes_that_are_no_batch(directory: Path) -> None:
    good = numbered(4, 2)
    middle = len(good) // 2
    write(directory, "t", 0, 0, good[:middle] + b"\xff" * 100 + good[middle:])
    for mode in ("PERMISSIVE", "DROPMALFORMED"):
        (told,) = said(directory, mode)
        assert told.startswith(
            "kafka-log: 100 bytes in 1 places could not be read whole, or are left out: "
        )
        assert f": bytes {middle} to {middle + 100}: " in told


def test_what_is_good_says_nothing(directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(4, 2))
    for mode in ("FAILFAST", "PERMISSIVE", "DROPMALFORMED"):
        assert said(directory, mode) == []


def test_many_places_are_counted() -> None:
    from kafka_log.segment.model import Lost

    losses = Losses()
    for i in range(SAID + 5):
        losses.add(Path("x.log"), Lost(i, i + 1, f"why {i}"))
    with pytest.warns(
        UserWarning, match=rf"^kafka-log: {SAID + 5} bytes in .*; and 5 places more$"
    ):
        losses.warn()


def metrics(frame: Any) -> dict[str, int]:
    """Those of the scan that a query has run."""
    execution = frame._jdf.queryExecution()
    frame._jdf.queryExecution().toRdd().count()
    plan = execution.executedPlan()
    while not plan.children().isEmpty():
        plan = plan.children().head()
    found = plan.metrics()
    names = ("lostBytes", "lostRanges", "readBytes", "skippedBatches")
    return {name: found.apply(name).value() for name in names}


@pytest.mark.spark
def test_metrics_of_the_scan(session: SparkSession, directory: Path) -> None:
    start, end = three(directory)
    source = session.read.format("kafka-log").option("mode", "DROPMALFORMED")
    size = len(numbered(4, 3))
    for frame in (source.load(str(directory)), source.load(str(directory)).select("value")):
        lost = {"lostBytes": end - start, "lostRanges": 1}
        assert metrics(frame) == {**lost, "readBytes": size, "skippedBatches": 0}
    good = session.read.format("kafka-log").option("mode", "PERMISSIVE").load(str(directory))
    assert metrics(good)["lostRanges"] in (0, 1)


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["construct", "arrow"])
def test_what_counting_reads(
    session: SparkSession, directory: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    session.conf.set("spark.sql.adaptive.enabled", "false")  # whose plans show no scans
    request.addfinalizer(lambda: session.conf.unset("spark.sql.adaptive.enabled"))
    write(directory, "t", 0, 0, numbered(4, 40, pad=4096))
    source = session.read.format("kafka-log").option("engine", engine).load(str(directory))
    size = len(numbered(4, 40, pad=4096))
    counted = metrics(source.groupBy().count())
    assert counted == {"lostBytes": 0, "lostRanges": 0, "readBytes": size, "skippedBatches": 0}
    # Times that producers set are not in headers: batches are read for them once more.
    assert size <= metrics(source.groupBy().agg({"timestamp": "max"}))["readBytes"] <= 2 * size


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["construct", "arrow"])
def test_batches_that_no_row_can_come_from(
    session: SparkSession, directory: Path, engine: str
) -> None:
    """A run of batches that is long enough to be worth it to either engine."""
    write(directory, "t", 0, 0, numbered(4, 40, pad=4096))
    source = session.read.format("kafka-log").option("engine", engine).load(str(directory))
    none = metrics(source.where(f"timestamp > timestamp_millis({TIME + 100})"))
    assert none["skippedBatches"] == 40
    first = metrics(source.where(f"timestamp <= timestamp_millis({TIME + 1})"))
    assert first["skippedBatches"] == 0


@pytest.mark.spark
def test_the_ui_has_the_metrics(session: SparkSession, directory: Path) -> None:
    """Spark makes them by their names in a thread of its own, with the application's class loader."""
    write(directory, "t", 0, 0, numbered(4, 3))
    mark = f"ui {directory}"
    session.sparkContext.setJobDescription(mark)
    session.read.format("kafka-log").load(str(directory)).select("value").collect()
    session.sparkContext.setJobDescription(None)
    context: Any = session.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    spark: Any = session._jsparkSession
    store = spark.sharedState().statusStore()
    executions = store.executionsList()
    told: dict[str, str] = {}
    for i in range(executions.size()):
        execution = executions.apply(i)
        if execution.description() != mark:
            continue
        names = {
            one.accumulatorId(): one.name()
            for one in (execution.metrics().apply(k) for k in range(execution.metrics().size()))
        }
        values = store.executionMetrics(execution.executionId()).iterator()
        while values.hasNext():
            value = values.next()
            told[names[value._1()]] = value._2()
    assert told["bytes of segments that were read"] == str(len(numbered(4, 3)))
    assert told["places that could not be read whole, or were left out"] == "0"
