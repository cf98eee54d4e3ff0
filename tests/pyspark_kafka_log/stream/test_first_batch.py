"""The first micro-batch of a stream: a query that dies in it begins again where it began, on both lanes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.spark_logs import batch, build, numbered, write

pytestmark = pytest.mark.spark

Sink = Callable[[DataFrame, int], None]


class Rows:
    """A sink that keeps offsets by partition, and fails at the first micro-batch if it is told to."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.batches: dict[int, list[tuple[int, int]]] = {}

    def __call__(self, rows: DataFrame, number: int) -> None:
        if self.fails:
            raise OSError("the sink is full")
        self.batches[number] = sorted((row.partition, row.offset) for row in rows.collect())

    @property
    def all(self) -> list[tuple[int, int]]:
        return sorted(row for rows in self.batches.values() for row in rows)


def start(
    spark: SparkSession, path: Path, checkpoint: Path, sink: Sink, **options: str
) -> StreamingQuery:
    reader = spark.readStream.format(spark.conf.get("spark.tests.format") or "")
    rows = reader.options(**{"startingOffsets": "earliest", **options}).load(str(path))
    stream = rows.select("partition", "offset").writeStream.foreachBatch(sink)
    return stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def run(
    spark: SparkSession, path: Path, checkpoint: Path, sink: Sink, **options: str
) -> StreamingQuery:
    query = start(spark, path, checkpoint, sink, **options)
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    return query


def die_in_first_batch(spark: SparkSession, path: Path, checkpoint: Path, **options: str) -> None:
    """Run a query that has logged the end of its first micro-batch, and does not commit it."""
    with pytest.raises(StreamingQueryException, match="the sink is full"):
        run(spark, path, checkpoint, Rows(fails=True), **options)
    assert [one.name for one in (checkpoint / "offsets").glob("[0-9]*")] == ["0"]
    assert not list((checkpoint / "commits").glob("[0-9]*"))


@pytest.mark.slow
def test_what_retention_deletes_before_a_restart_is_told(
    spark: SparkSession, directory: Path, tmp_path: Path
) -> None:
    first = write(directory, "t", 0, 0, numbered(3, 2))
    write(directory, "t", 0, 6, build(batch(6, [b"6", b"7"])))
    checkpoint = tmp_path / "checkpoint"
    die_in_first_batch(spark, directory, checkpoint)
    first.unlink()
    with pytest.raises(
        StreamingQueryException, match="partition t-0: the log begins at offset 6, offsets 0 to 5"
    ):
        run(spark, directory, checkpoint, Rows())
    rows = Rows()
    run(spark, directory, checkpoint, rows, failOnDataLoss="false")
    assert rows.all == [(0, 6), (0, 7)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "given", ["earliest", pytest.param('{"t": {"0": 1}}', marks=pytest.mark.soak)]
)
def test_a_partition_that_comes_before_a_restart_is_read(
    spark: SparkSession, directory: Path, tmp_path: Path, given: str
) -> None:
    write(directory, "t", 0, 0, numbered(2, 2))
    checkpoint = tmp_path / "checkpoint"
    die_in_first_batch(spark, directory, checkpoint, startingOffsets=given)
    write(directory, "t", 1, 0, numbered(1, 2))
    with (directory / "t-0" / f"{0:020}.log").open("ab") as file:
        file.write(build(batch(4, [b"4"])))
    rows = Rows()
    run(spark, directory, checkpoint, rows, startingOffsets=given)
    begins = 0 if given == "earliest" else 1
    assert rows.batches[0] == [(0, offset) for offset in range(begins, 4)]
    assert rows.all == [*((0, offset) for offset in range(begins, 5)), (1, 0), (1, 1)]


@pytest.mark.slow
def test_initial_offsets_lie_where_sparks_kafka_source_has_them(
    session: SparkSession, directory: Path, tmp_path: Path
) -> None:
    """``KafkaSourceInitialOffsetWriter`` writes a zero byte, ``v1``, and the JSON of the offsets to sources/0/0."""
    session.conf.set("spark.tests.format", "kafka-log")
    write(directory, "t", 0, 0, numbered(2, 2))
    checkpoint = tmp_path / "checkpoint"
    file = checkpoint / "sources" / "0" / "0"
    run(session, directory, checkpoint, Rows(), startingOffsets='{"t": {"0": 3}}')
    head, _, text = file.read_bytes().partition(b"\n")
    assert head == b"\0v1"
    assert json.loads(text)["t"] == {"0": 3}
    assert [one.name for one in file.parent.iterdir() if one.suffix != ".crc"] == ["0"]
    other = tmp_path / "other"
    (other / "sources" / "0").mkdir(parents=True)
    (other / "sources" / "0" / "0").write_bytes(b'\0v1\n{"t":{"0":1}}')
    rows = Rows()
    run(session, directory, other, rows)
    assert rows.all == [(0, 1), (0, 2), (0, 3)]
    (tmp_path / "new" / "sources" / "0").mkdir(parents=True)
    (tmp_path / "new" / "sources" / "0" / "0").write_bytes(b'\0v2\n{"t":{"0":1}}')
    with pytest.raises(
        StreamingQueryException, match="does not hold initial offsets of version v1"
    ):
        run(session, directory, tmp_path / "new", Rows())
