"""``df.write.format("kafka-log")``: what was written is what is read, and nothing else changes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import kafka_log
from tests.paths import SAMPLES
from tests.support.spark_formats import FORMAT, format_of
from tests.support.written import CODE_PATHS, CODECS, files, records, rows


def save(df: DataFrame, path: Path, mode: str = "append", **options: Any) -> None:
    spark = df.sparkSession
    df.write.format(format_of(spark)).options(**options).mode(mode).save(str(path))


def load(spark: SparkSession, path: Path, **options: Any) -> list[Any]:
    """All rows that Spark reads, in order."""
    df = spark.read.format(format_of(spark)).options(**options).load(str(path))
    return df.orderBy("topic", "partition", "offset").collect()


def contents(found: list[Any], names: list[str]) -> list[Any]:
    """Rows without their places, in some order. No headers are null, as Spark has it."""
    return sorted(
        repr([(row[name] or None) if name == "headers" else row[name] for name in names])
        for row in found
    )


def made(spark: SparkSession, count: int = 300, tasks: int = 3) -> DataFrame:
    return spark.createDataFrame(records(count)).repartition(tasks)


@pytest.mark.parametrize(
    "kinds", [CODE_PATHS, pytest.param(CODECS, marks=pytest.mark.soak)], ids=["code paths", "all"]
)
def test_spark_to_segments_to_spark(
    spark: SparkSession, kinds: list[tuple[int, str]], tmp_path: Path
) -> None:
    """Versions and codecs are a topic each of one directory."""
    given = made(spark)
    before, again = tmp_path / "a", tmp_path / "b"
    topics = {f"v{magic}-{codec}": (magic, codec) for magic, codec in kinds}
    for topic, (magic, codec) in topics.items():
        options: dict[str, Any] = {"topic": topic, "numPartitions": 3, "segmentBytes": 5000}
        kept = given.drop(*NOT_IN[magic])
        save(kept, before, compression=codec, formatVersion=magic, batchBytes=1000, **options)
    first = load(spark, before, includeHeaders="true", includeMetadata="true")
    rows = given.collect()
    for topic, kind in topics.items():
        names = [name for name in given.columns if name not in NOT_IN[kind[0]]]
        found = [row for row in first if row.topic == topic]
        assert contents(found, names) == contents(rows, names), topic
        assert {(row.magic, row.compression) for row in found} == {kind}
    # Read by Spark, written by Spark: the same log again, also where it comes in other tasks.
    reader = spark.read.format(format_of(spark)).option("includeHeaders", "true")
    for topic, (magic, codec) in topics.items():
        read = reader.option("subscribe", topic).load(str(before))
        save(read, again, compression=codec, formatVersion=magic)
    ours, theirs = (load(spark, path, includeHeaders="true") for path in (again, before))
    assert ours == theirs


NOT_IN: dict[int, tuple[str, ...]] = {0: ("timestamp", "headers"), 1: ("headers",), 2: ()}
"""Columns that a version does not have."""


@pytest.mark.slow
def test_samples_are_written_again(spark: SparkSession, tmp_path: Path) -> None:
    source = SAMPLES / "kafka-4.x"
    read = spark.read.format(format_of(spark)).option("includeHeaders", "true").load(str(source))
    save(read, tmp_path)
    ours, theirs = (
        load(spark, tmp_path, includeHeaders="true"),
        load(spark, source, includeHeaders="true"),
    )
    assert ours == theirs
    # The cluster's metadata came along and tell the ids of the topics that were read, not of those written.
    shutil.rmtree(tmp_path / "__cluster_metadata-0")
    assert kafka_log.LogDirectory(tmp_path).check().num_rows == 0


@pytest.mark.python_lane
def test_appending_and_overwriting(spark: SparkSession, tmp_path: Path) -> None:
    save(made(spark, 100), tmp_path, topic="t", numPartitions=2)
    save(made(spark, 60), tmp_path, topic="t")
    save(made(spark, 10), tmp_path, topic="u")
    assert len(load(spark, tmp_path)) == 170
    before = files(tmp_path)
    save(made(spark, 30, 2), tmp_path, "overwrite", topic="t")
    assert len(load(spark, tmp_path, subscribe="t")) == 30
    after = files(tmp_path)
    assert {n: d for n, d in after.items() if n.startswith("u-")} == {
        n: d for n, d in before.items() if n.startswith("u-")
    }
    assert {n.split("/")[0] for n in after} == {"t-0", "t-1", "u-0"}


def test_a_column_topic_and_null_partitions(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql(
        "select cast(id as string) key, cast(id as string) value, concat('t', id % 3) topic,"
        " if(id % 2 = 0, 7, null) partition from range(0, 90, 1, 4)"
    )
    save(df, tmp_path)
    found = rows(tmp_path, "topic", "partition", "value")
    assert sorted(int(row["value"]) for row in found) == list(range(90))
    for row in found:
        number = int(row["value"])
        assert row["topic"] == f"t{number % 3}"
        assert row["partition"] == (7 if number % 2 == 0 else 0)


def fails(told: str, df: DataFrame, path: Path, **options: Any) -> None:
    with pytest.raises(Exception) as caught:
        save(df, path, **options)
    assert told in str(caught.value)


def test_what_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    value = spark.sql("select 'x' value")
    fails("there is no topic: give the option topic, or a column topic", value, tmp_path)
    fails("there is no column value", spark.sql("select 'x' key"), tmp_path, topic="t")
    fails("did you mean numPartitions?", value, tmp_path, topic="t", numPartition=2)
    fails("option compression: one of none, gzip", value, tmp_path, topic="t", compression="zip")
    fails(
        "message format 1 (magic) does not have zstd",
        value,
        tmp_path,
        topic="t",
        compression="zstd",
        formatVersion=1,
    )
    fails(
        "column vaule: no record has such a column; did you mean value?",
        spark.sql("select 'x' value, 'y' vaule"),
        tmp_path,
        topic="t",
    )
    fails(
        "column timestamp: timestamp_ntz has no time zone: CAST(timestamp AS TIMESTAMP)",
        spark.sql("select 'x' value, timestamp_ntz'2024-01-01 00:00:00' timestamp"),
        tmp_path,
        topic="t",
    )
    fails(
        "it is int32, it must be binary or a string",
        spark.sql("select 1 value"),
        tmp_path,
        topic="t",
    )
    late = spark.sql(
        "select cast(id as string) value, if(id = 4000, 'a/b', 't') topic from range(0, 5000, 1, 2)"
    )
    fails("column topic: 'a/b' is not a topic name", late, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.python_lane
def test_a_task_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    save(made(spark, 20), tmp_path, topic="t")
    before = files(tmp_path)
    df = (
        spark.sql(
            "select cast(id as string) value,"
            " if(id = 99999, raise_error('halted here'), 1) = 1 ok from range(0, 100000, 1, 2)"
        )
        .where("ok")
        .drop("ok")
    )
    fails("halted here", df, tmp_path, topic="t")
    assert files(tmp_path) == before
    assert list(tmp_path.glob(".kafka-log*")) == []


def test_many_rows(session: SparkSession, tmp_path: Path) -> None:
    """More than one batch of Arrow for each task, on the connector."""
    session.conf.set(FORMAT, "kafka-log")
    df = session.sql(
        "select cast(id as string) key, repeat(cast(id as string), 20) value from range(0, 100000, 1, 3)"
    )
    save(df, tmp_path, topic="t", numPartitions=4, compression="lz4")
    found = kafka_log.read_table(tmp_path, ["key", "value"])
    assert sorted(int(key) for key in found["key"].to_pylist()) == list(range(100000))
    assert kafka_log.LogDirectory(tmp_path).check().num_rows == 0
