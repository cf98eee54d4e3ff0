"""Streams in Spark, on both lanes: offsets in a checkpoint, limits, what is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.paths import SAMPLES
from tests.support.spark_logs import batch, build, numbered, write
from tests.support.spark_streams import offsets, ran

pytestmark = pytest.mark.spark


def is_told_limits(spark: SparkSession) -> bool:
    """Whether the lane knows with the trigger AvailableNow how much a micro-batch is to have: Spark 4.1 tells no Python source."""
    version = tuple(int(part) for part in spark.version.split(".")[:2])
    return version >= (4, 2) or spark.conf.get("spark.tests.format") == "kafka-log"


@pytest.mark.python_lane
@pytest.mark.slow
def test_restarts_go_on_where_the_checkpoint_says(
    spark: SparkSession, directory: Path, tmp_path: Path
) -> None:
    path = write(directory, "t", 0, 0, numbered(3, 4))
    progress = ran(spark, directory, tmp_path, maxOffsetsPerTrigger=5)
    taken = [one["numInputRows"] for one in progress if one["numInputRows"]]
    assert taken == ([5, 5, 2] if is_told_limits(spark) else [12])
    assert progress[-1]["sources"][0]["endOffset"]["t"] == {"0": 12}
    assert offsets(spark, tmp_path) == list(range(12))
    more = build(batch(12, [b"12", b"13"]))
    with path.open("ab") as file:
        file.write(more + build(batch(14, [b"torn"]))[:-3])
    write(directory, "t", 1, 0, numbered(2, 1))
    ran(spark, directory, tmp_path)
    assert offsets(spark, tmp_path) == sorted([*range(14), 0, 1])
    ran(spark, directory, tmp_path)
    assert offsets(spark, tmp_path) == sorted([*range(14), 0, 1])


@pytest.mark.slow
def test_what_is_gone_fails_the_query(spark: SparkSession, directory: Path, tmp_path: Path) -> None:
    write(directory, "t", 0, 0, numbered(3, 2))
    ran(spark, directory, tmp_path)
    (directory / "t-0" / f"{0:020}.log").unlink()
    write(directory, "t", 0, 10, build(batch(10, [b"10"])))
    with pytest.raises(
        StreamingQueryException,
        match="partition t-0: the log begins at offset 10, offsets 6 to 9 are gone",
    ) as caught:
        ran(spark, directory, tmp_path)
    assert "kafka-log: kafka-log: " not in str(caught.value)
    if spark.conf.get("spark.tests.format") == "kafka-log":
        assert "Traceback" not in str(caught.value)
    ran(spark, directory, tmp_path, failOnDataLoss="false")
    assert offsets(spark, tmp_path) == [*range(6), 10]


@pytest.mark.slow
def test_samples_as_a_batch_query_has_them(spark: SparkSession, tmp_path: Path) -> None:
    path = SAMPLES / "kafka-4.x"
    options = {"isolationLevel": "read_committed", "subscribePattern": "transactions|codecs|empty"}
    ran(spark, path, tmp_path, maxOffsetsPerTrigger=40, **options)
    found = spark.read.parquet(str(tmp_path / "out"))
    reader = spark.read.format(spark.conf.get("spark.tests.format") or "").options(**options)
    wanted = reader.load(str(path)).selectExpr(*found.columns[:3], "cast(value as string) value")
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, wanted.collect()))


@pytest.mark.slow
def test_lag_is_told(spark: SparkSession, directory: Path, tmp_path: Path) -> None:
    write(directory, "t", 0, 0, numbered(3, 4))
    (source,) = ran(spark, directory, tmp_path, maxOffsetsPerTrigger=5)[0]["sources"]
    assert source["latestOffset"]["t"] == {"0": 12}
    if spark.conf.get("spark.tests.format") == "kafka-log":
        assert source["metrics"] == {
            "minOffsetsBehindLatest": "7",
            "maxOffsetsBehindLatest": "7",
            "avgOffsetsBehindLatest": "7.0",
        }


@pytest.mark.slow
def test_options_of_streams(spark: SparkSession, directory: Path, tmp_path: Path) -> None:
    write(directory, "t", 0, 0, numbered(3, 4))
    for options, message in (
        ({"endingOffsets": "latest"}, "a stream does not end"),
        ({"maxOffsetsPerTrigger": "0"}, "a number from 1 on"),
        ({"maxTriggerDelay": "soon"}, "a duration such as 15m"),
        ({"startingOffsets": '{"t":{"1":0}}'}, "startingOffsets"),
        ({"startingTimestamp": "99999999999999"}, "has no record with the timestamp"),
    ):
        with pytest.raises(Exception, match=message):
            ran(spark, directory, tmp_path, **options)
    shutil.rmtree(tmp_path / "checkpoint")
    late = {"startingTimestamp": "1700000000001", "startingOffsetsByTimestampStrategy": "latest"}
    ran(spark, directory, tmp_path, **late)
