"""Disks that are full while Spark's tasks write: nothing of the query is there then, and all of it once there is room."""

from __future__ import annotations

import contextlib
import os
import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import kafka_log
from pyspark_kafka_log.export import TaskError, export
from tests.support.small_disks import small_disk
from tests.support.spark_formats import format_of
from tests.support.written import files, records

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS, BYTES = 8_000, 1_000
DISK_MB, BALLAST = 32, 28 << 20
FULL = "No space left on device"

Sums = tuple[int, int]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for half of the records."""
    path = tmp_path / "disk"
    with small_disk(path, DISK_MB) as allowed:
        if not allowed:
            pytest.skip("nobody lets us mount a small disk")
        (path / "ballast").write_bytes(b"\1" * BALLAST)
        yield path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Records that no codec makes smaller."""
    noise = random.Random(1)
    values = [noise.randbytes(BYTES) for _ in range(ROWS)]
    table = pa.table({"key": [b"%d" % i for i in range(ROWS)], "value": values})
    kafka_log.write_log(tmp_path / "logs", table, topic="t", partitions=2)
    return tmp_path / "logs"


def sums(values: pa.ChunkedArray) -> Sums:
    return len(values), sum(zlib.crc32(value or b"") for value in values.to_pylist())


def of_log(path: Path) -> Sums:
    return sums(kafka_log.read_table(path, ["value"]).column("value"))


def holders(path: Path) -> list[str]:
    """Files below a directory that some process has open."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            target = os.readlink(link)  # noqa: PTH115 (what was deleted is no path)
            if target.startswith(str(path)):
                found.append(target)
    return found


def fails_and_then_not(
    disk: Path, write: Callable[[], object], kind: type[Exception], there: Callable[[], object]
) -> None:
    """What is there stays as it is while the disk is full, and the same query writes all when it is not."""
    before, room = there(), os.statvfs(disk).f_bavail
    with pytest.raises(kind) as caught:
        write()
    assert FULL in str(caught.value)
    assert there() == before
    assert holders(disk) == []
    assert os.statvfs(disk).f_bavail == room
    (disk / "ballast").unlink()
    write()


def in_target(target: Path) -> Callable[[], object]:
    return lambda: (files(target), sorted(p.name for p in target.rglob("*")))


def test_a_query_that_writes_a_log(spark: SparkSession, disk: Path, logs: Path) -> None:
    target = disk / "target"
    kafka_log.write_log(target, records(30), topic="t")
    had = of_log(target)

    def write() -> None:
        frame = spark.read.format(str(spark.conf.get("spark.tests.format"))).load(str(logs))
        some = frame.select("key", "value").repartition(2)
        some.write.format(format_of(spark)).option("topic", "t").mode("append").save(str(target))

    fails_and_then_not(disk, write, Exception, in_target(target))
    wanted = of_log(logs)
    assert of_log(target) == (had[0] + wanted[0], had[1] + wanted[1])
    assert list(target.glob(".kafka-log*")) == []


@pytest.mark.soak
def test_a_stream_that_writes_a_log(
    spark: SparkSession, disk: Path, logs: Path, tmp_path: Path
) -> None:
    """The micro-batch that failed comes again, from the same checkpoint."""
    target = disk / "target"
    kafka_log.write_log(target, records(30), topic="t")
    had = of_log(target)

    def write() -> None:
        name = str(spark.conf.get("spark.tests.format"))
        stream = spark.readStream.format(name).option("startingOffsets", "earliest")
        query = (
            stream.load(str(logs))
            .select("key", "value")
            .writeStream.format(format_of(spark))
            .options(topic="t", checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(target))
        )
        query.awaitTermination()

    fails_and_then_not(disk, write, Exception, in_target(target))
    wanted = of_log(logs)
    assert of_log(target) == (had[0] + wanted[0], had[1] + wanted[1])
    write()
    assert of_log(target) == (had[0] + wanted[0], had[1] + wanted[1])


@pytest.mark.soak
def test_an_export_to_parquet(session: SparkSession, disk: Path, logs: Path) -> None:
    table = disk / "records"

    def seen() -> list[Path]:
        return sorted(table.rglob("*.parquet"))

    fails_and_then_not(disk, lambda: export(session, logs, table), TaskError, seen)
    found = session.read.parquet(str(table)).toArrow().column("value")
    assert sums(found) == of_log(logs)
    assert export(session, logs, table).rows == 0
