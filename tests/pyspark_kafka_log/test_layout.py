"""Directories above log directories, and the same partition in several of them, through Spark."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.spark_logs import batch, build, numbered, write


@pytest.fixture
def disks(directory: Path) -> Path:
    """Two log directories, as Strimzi lays them out."""
    for number in (0, 1):
        (directory / f"data-{number}" / "kafka-log0").mkdir(parents=True)
        log = directory / f"data-{number}" / "kafka-log0"
        write(log, "orders", number, 0, numbered(3, 2))
    return directory


def load(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    source = str(spark.conf.get("spark.tests.format"))
    return spark.read.format(source).options(**options).load(str(path))


def test_a_directory_above_log_directories_means_all_of_them(
    spark: SparkSession, disks: Path
) -> None:
    rows = load(spark, disks).select("topic", "partition", "offset").collect()
    assert sorted(rows) == [("orders", p, o) for p in (0, 1) for o in range(6)]
    assert load(spark, disks / "data-0").count() == 6
    (disks / "data-0" / "kafka-log0" / "meta.properties").write_bytes(b"version=x\n")
    found = load(spark, disks, view="findings").where("code = 'meta_properties'").collect()
    assert [Path(row["file"]).parent for row in found] == [disks / "data-0" / "kafka-log0"]
    # Nothing is read, and segments lie below.
    shutil.move(disks / "data-1" / "kafka-log0" / "orders-1", disks / "empty-0" / "monday")
    with pytest.raises(Exception, match=r"segments lie in .*empty-0/monday .*pass these paths"):
        load(spark, disks / "empty-0").count()


def test_the_same_partition_in_two_directories_is_refused(spark: SparkSession, disks: Path) -> None:
    """In every view; as batches are read, too."""
    shutil.copytree(
        disks / "data-0" / "kafka-log0" / "orders-0", disks / "data-1" / "copy" / "orders-0"
    )
    for view in (None, "batches", "stat", "segments", "keys", "producers", "findings"):
        options = {} if view is None else {"view": view}
        with pytest.raises(Exception, match="set replicas to newest or keep"):
            load(spark, disks, **options).count()
    assert load(spark, disks, replicas="newest").count() == 12


def test_records_before_the_log_start_do_not_come_back(
    spark: SparkSession, directory: Path
) -> None:
    """DeleteRecords has moved the start into a segment that lies in tiered storage by now."""
    name = "WTscIl6vTOe-sFdJ50q0_w"
    path = directory / "kafka-tiered-storage" / f"orders-0-{name}" / f"{0:020}-{name}.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(numbered(3, 4))
    (directory / "orders-0").mkdir()
    (directory / "orders-0" / f"{12:020}.log").write_bytes(build(batch(12, [b"12", b"13"])))
    (directory / "log-start-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    rows = load(spark, directory, include="remote").select("offset").collect()
    assert sorted(row["offset"] for row in rows) == list(range(5, 14))
    every = load(spark, directory, include="remote", includeDeletedRecords=True)
    assert every.count() == 14
