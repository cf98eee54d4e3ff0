"""Aggregates that the connector has from batch headers, beside those that Spark makes of all rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.paths import SAMPLES
from tests.support.spark_logs import flipped, numbered, write

pytestmark = pytest.mark.spark


def every() -> list[Column]:
    return [
        F.count(F.lit(1)),
        F.count("offset"),
        F.min("offset"),
        F.max("offset"),
        F.min("timestamp"),
        F.max("timestamp"),
    ]


def load(session: SparkSession, path: Path, **options: Any) -> DataFrame:
    return session.read.format("kafka-log").options(**options).load(str(path))


def is_pushed(frame: DataFrame) -> bool:
    text = frame._jdf.queryExecution().executedPlan().toString()
    return "aggregated by tasks" in text


def of_rows(frame: DataFrame, *groups: str) -> list[Any]:
    """The same of rows that Spark has, and cannot ask anybody about."""
    rows = frame.select("topic", "partition", "offset", "timestamp")
    again = rows.sparkSession.createDataFrame(rows.collect(), rows.schema)
    return sorted(again.groupBy(*groups).agg(*every()).collect(), key=str)


@pytest.mark.share(4, ci=4)
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("broker", ["kafka-2.8", "kafka-4.x"])
def test_samples(session: SparkSession, broker: str, isolation: str) -> None:
    frame = load(session, SAMPLES / broker, isolationLevel=isolation)
    for groups in ((), ("topic",), ("partition", "topic")):
        found = frame.groupBy(*groups).agg(*every())
        assert is_pushed(found)
        assert sorted(found.collect(), key=str) == of_rows(frame, *groups), groups
    chosen = frame.where("topic in ('transactions', 'codecs') and partition > 0")
    assert is_pushed(chosen.agg(*every()))
    assert chosen.agg(*every()).collect() == of_rows(chosen)
    assert frame.count() == len(frame.select("offset").collect())


@pytest.mark.slow
def test_what_is_left_to_spark(session: SparkSession) -> None:
    path = SAMPLES / "kafka-4.x"
    frame = load(session, path)
    for query in (
        frame.agg(F.sum("offset")),
        frame.agg(F.max("value")),
        frame.agg(F.count_distinct("offset")),
        frame.groupBy("timestampType").agg(F.count(F.lit(1))),
        frame.where("offset > 5").agg(F.count(F.lit(1))),
        load(session, path, mode="PERMISSIVE").agg(F.count(F.lit(1))),
        load(session, path, policy="strict").agg(F.count(F.lit(1))),
        load(session, path, view="offsets").agg(F.count(F.lit(1))),
    ):
        assert not is_pushed(query)
        assert query.collect()


def test_nothing_is_counted_as_nothing(session: SparkSession, directory: Path) -> None:
    (directory / "t-0").mkdir()
    frame = load(session, directory)
    assert [tuple(row) for row in frame.agg(*every()).collect()] == [(0, 0, None, None, None, None)]
    assert frame.groupBy("topic").count().collect() == []
    write(directory, "t", 0, 0, b"")
    assert load(session, directory).count() == 0
    assert frame.where("topic = 'other'").count() == 0


def test_damage_fails_the_query(session: SparkSession, directory: Path) -> None:
    data = numbered(4, 3)
    write(directory, "t", 0, 0, flipped(data, len(data) - 2))
    with pytest.raises(Exception, match=r"stored checksum .* byte"):
        load(session, directory).count()
