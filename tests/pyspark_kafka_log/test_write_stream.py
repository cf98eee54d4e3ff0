"""``df.writeStream.format("kafka-log")``: each micro-batch once, also after a restart that writes it again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import kafka_log
from tests.support.spark_formats import format_of
from tests.support.written import files, rows


def run(spark: SparkSession, source: Path, target: Path, checkpoint: Path, **options: Any) -> None:
    """Write all that there is, a file of the source for each micro-batch."""
    stream = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(source))
    query = (
        stream.writeStream.format(format_of(spark))
        .options(topic="t", numPartitions=2, checkpointLocation=str(checkpoint), **options)
        .trigger(availableNow=True)
        .start(str(target))
    )
    query.awaitTermination()


def add(source: Path, name: str, *lines: int) -> None:
    source.mkdir(exist_ok=True)
    (source / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))


def values(target: Path) -> list[int]:
    return sorted(int(row["value"]) for row in rows(target, "value"))


@pytest.mark.python_lane
def test_micro_batches_come_once(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = (tmp_path / name for name in ("source", "target", "checkpoint"))
    add(source, "a", *range(100))
    add(source, "b", *range(100, 150))
    run(spark, source, target, checkpoint)
    assert values(target) == list(range(150))
    before = files(target)

    # The query ends after a micro-batch was written, and before Spark has noted that: it is written again.
    for path in (checkpoint / "commits").iterdir():
        if path.name.strip(".").startswith("1"):
            path.unlink()
    run(spark, source, target, checkpoint)
    assert files(target) == before

    add(source, "c", *range(150, 160))
    run(spark, source, target, checkpoint)
    assert values(target) == list(range(160))
    assert list(target.glob(".kafka-log-*.writing")) == []
    assert kafka_log.LogDirectory(target).check().num_rows == 0
    (said,) = json.loads((target / ".kafka-log-batches.json").read_text()).values()
    assert said == 2

    # Another query is another one, though its micro-batches have the same numbers.
    shutil.rmtree(checkpoint)
    run(spark, source, target, checkpoint)
    assert values(target) == sorted([*range(160)] * 2)


@pytest.mark.python_lane
def test_options_are_checked(spark: SparkSession, tmp_path: Path) -> None:
    add(tmp_path / "source", "a", 1)
    with pytest.raises(Exception, match="did you mean compression"):
        run(spark, tmp_path / "source", tmp_path / "t", tmp_path / "c", compresion="lz4")
