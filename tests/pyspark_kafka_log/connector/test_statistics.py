"""What the connector tells Spark of sizes: a small log goes to all tasks of a join by itself, a large one does not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.spark_logs import batch, build, numbered, write
from tests.support.spark_queries import load

pytestmark = pytest.mark.spark

UNKNOWN = 2**63 - 1
"""What Spark takes for the size of what says none."""

ROW = 8 + 100 + 100 + 20 + 4 + 8 + 8 + 4
"""A row with the columns of Spark's Kafka source, as Spark reckons."""

CONFS = (
    "spark.sql.adaptive.enabled",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.sources.fileCompressionFactor",
)


@pytest.fixture
def spark(session: SparkSession) -> Iterator[SparkSession]:
    session.conf.set("spark.tests.format", "kafka-log")
    yield session
    for name in CONFS:
        session.conf.unset(name)


@pytest.fixture
def small(directory: Path) -> Path:
    """One segment of a topic, two of another."""
    write(directory, "t", 0, 0, numbered(4, 5))
    write(directory, "u", 0, 0, numbered(4, 25))
    write(directory, "u", 0, 100, build(batch(100, [b"x"])))
    return directory


def optimized(frame: DataFrame) -> Any:
    jdf: Any = frame._jdf
    return jdf.queryExecution().optimizedPlan()


def size(frame: DataFrame) -> int:
    """What Spark knows of a scan, with all that is pushed to it."""
    plan = optimized(frame)
    while plan.children().size():
        plan = plan.children().head()
    assert not plan.stats().rowCount().isDefined()
    return int(str(plan.stats().sizeInBytes()))


def join(frame: DataFrame) -> str:
    """How Spark joins it with something large, before it has run anything."""
    spark = frame.sparkSession
    other = spark.range(10**9)
    plan: Any = other.join(frame, other["id"] == frame["offset"])._jdf
    text = str(plan.queryExecution().executedPlan())
    (found,) = {name for name in ("BroadcastHashJoin", "SortMergeJoin") if name in text}
    return found


def bytes_of(path: Path, name: str) -> int:
    return sum(one.stat().st_size for one in path.glob(f"{name}/*.log"))


def test_of_the_segments_that_are_read(spark: SparkSession, small: Path) -> None:
    """Filters and options that choose segments, and parts of them."""
    t, u = bytes_of(small, "t-0"), bytes_of(small, "u-0")
    frame = load(spark, small)
    assert size(frame) == (t + u) * 10
    assert size(frame.where("topic = 't'")) == t * 10
    assert size(frame.where("partition = 1")) == 1
    newest = (small / "u-0" / f"{100:020}.log").stat().st_size
    assert size(frame.where("topic = 'u' and offset >= 100")) == newest * 10
    assert size(load(spark, small, subscribe="t")) == t * 10
    assert 0 < size(frame.where("topic = 'u' and offset < 8")) < u


def test_of_the_columns_that_are_read(spark: SparkSession, small: Path) -> None:
    """By the same measure, whether a query chooses them or a schema."""
    whole = size(load(spark, small))
    thin = size(load(spark, small).select("offset"))
    assert thin == whole * 16 // ROW
    assert size(load(spark, small, columns="offset")) == thin
    assert size(spark.read.format("kafka-log").schema("offset bigint").load(str(small))) == thin
    assert thin < size(load(spark, small).select("offset", "value")) < whole
    assert size(load(spark, small, includeHeaders=True, includeMetadata=True)) > whole
    assert size(load(spark, small).select("offset", "_metadata.file_size")) > thin


def test_by_the_factor_of_sparks_file_sources(spark: SparkSession, small: Path) -> None:
    before = size(load(spark, small))
    spark.conf.set("spark.sql.sources.fileCompressionFactor", "2.5")
    assert size(load(spark, small)) == before * 2.5


def test_aggregates_of_tasks_are_few_rows(spark: SparkSession, small: Path) -> None:
    log = small / "u-0" / f"{100:020}.log"
    os.truncate(log, 64 << 20)
    frame = load(spark, small, splitBytes=8 << 20)
    tasks = 9  # the log is cut where bytes are, at most each 8 MiB
    assert size(frame) > 64 << 20
    assert size(frame.groupBy("topic", "partition").count()) <= (2 + tasks) * (8 + 20 + 4 + 8)
    assert size(frame.groupBy().max("offset")) <= (2 + tasks) * 16


def test_views_are_of_unknown_size(spark: SparkSession, small: Path) -> None:
    assert size(load(spark, small, view="batches")) == UNKNOWN
    assert size(load(spark, small, view="stat")) == UNKNOWN


def test_nothing_is_planned_before_filters_are_known(spark: SparkSession, small: Path) -> None:
    """Rules of the optimizer ask for sizes before they tell what is wanted of a scan."""
    jdf: Any = load(spark, small, subscribe="t")._jdf
    assert int(str(jdf.queryExecution().analyzed().stats().sizeInBytes())) == UNKNOWN


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_join(spark: SparkSession, small: Path, adaptive: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    frame = load(spark, small)
    assert join(frame) == "BroadcastHashJoin"
    assert join(frame.selectExpr("offset", "topic")) == "BroadcastHashJoin"
    all_columns = size(frame)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(all_columns - 1))
    assert join(load(spark, small)) == "SortMergeJoin"
    assert join(load(spark, small).select("offset")) == "BroadcastHashJoin"
    assert join(load(spark, small).where("topic = 't'")) == "BroadcastHashJoin"
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    assert join(load(spark, small)) == "SortMergeJoin"
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    os.truncate(small / "u-0" / f"{100:020}.log", 20 << 20)
    assert join(load(spark, small)) == "SortMergeJoin"
    assert join(load(spark, small).where("topic = 't'")) == "BroadcastHashJoin"


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_table_of_sql_joins_as_it_should(spark: SparkSession, small: Path, adaptive: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    spark.sql(f"CREATE TABLE log USING `kafka-log` OPTIONS (path '{small}')")
    spark.sql(f"CREATE TEMPORARY VIEW seen USING `kafka-log` OPTIONS (path '{small}')")
    try:
        for name in ("log", "seen"):
            frame = spark.sql(
                f"SELECT count(*), sum(id) FROM range(0, 200) JOIN {name} ON id = offset WHERE topic = 'u'"
            )
            assert join(spark.table(name)) == "BroadcastHashJoin"
            assert [tuple(row) for row in frame.collect()] == [(101, sum(range(101)))]
    finally:
        spark.sql("DROP TABLE log")
        spark.sql("DROP VIEW seen")


def test_the_plan_for_the_size_is_that_of_the_tasks(spark: SparkSession, small: Path) -> None:
    """A query plans once: what is appended after Spark has asked is not read."""
    frame = load(spark, small).where("topic = 't'").select("offset")
    before = size(frame)
    log = small / "t-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + build(batch(20, [b"later"])))
    assert [row.offset for row in frame.collect()] == list(range(20))
    assert size(frame) == before
    again = load(spark, small).where("topic = 't'").select("offset")
    assert len(again.collect()) == 21 and size(again) > before


def test_an_empty_log(spark: SparkSession, directory: Path) -> None:
    write(directory, "t", 0, 0, b"")
    frame = load(spark, directory)
    assert size(frame) == 1
    assert join(frame) == "BroadcastHashJoin"
    other = spark.range(5)
    assert other.join(frame, other["id"] == frame["offset"]).collect() == []


def test_the_static_side_of_a_stream(spark: SparkSession, small: Path, tmp_path: Path) -> None:
    """A stream says no size; a log that it is joined with does, for each micro-batch."""
    source = spark.readStream.format("kafka-log").option("startingOffsets", "earliest")
    stream = source.option("subscribe", "u").load(str(small))
    names = load(spark, small, subscribe="t").selectExpr("offset", "value name")
    query = (
        stream.select("offset", "value")
        .join(names, "offset")
        .writeStream.format("memory")
        .queryName("joined")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    query.awaitTermination()
    done: Any = query
    plan = str(done._jsq.explainInternal(False))
    assert spark.sql("select count(*), sum(`offset`) from joined").collect() == [
        (20, sum(range(20)))
    ]
    assert "BroadcastHashJoin" in plan
