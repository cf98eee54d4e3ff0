"""``query.stop()`` while a stream writes: what stays of the micro-batch that it ends, and that each row comes once."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import kafka_log
from tests.support.spark_processes import until
from tests.support.written import rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LINES = 100
SLOWLY = (
    "concat(value, repeat('x', 50000),"
    " substring(reflect('java.util.concurrent.locks.LockSupport', 'parkNanos', 5000000L), 1, 0)) value"
)


def left(target: Path) -> list[Path]:
    return list(target.glob(".kafka-log-*.writing"))


def commits(target: Path) -> bool:
    """Whether a micro-batch is committed right now."""
    return any(target.glob(".kafka-log-*.writing/new")) or any(
        target.glob(".kafka-log-*.writing/added")
    )


@pytest.mark.parametrize(
    ("lane", "stops", "files"),
    [
        ("kafka-log", 2, 5),
        pytest.param("kafka-log", 12, 30, marks=pytest.mark.soak),
        pytest.param("kafka-log-python", 12, 30, marks=pytest.mark.soak),
    ],
)
def test_stops_at_any_moment(
    session: SparkSession, tmp_path: Path, lane: str, stops: int, files: int
) -> None:
    """Half of them in the middle of a commit. The connector leaves nothing; what the Python source leaves the query removes when it goes on."""
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "20")
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    for i in range(files):
        lines = (f"{i * LINES + line}\n" for line in range(LINES))
        (source / f"{i:03}.txt").write_text("".join(lines))
    stream = session.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(source))

    def start(**trigger: bool | str) -> StreamingQuery:
        writer = stream.selectExpr("value key", SLOWLY).writeStream.format(lane)
        writer = writer.options(topic="t", checkpointLocation=str(tmp_path / "checkpoint"))
        return writer.trigger(**trigger).start(str(target))  # type: ignore[arg-type]

    r = random.Random(lane)
    stopped = 0
    for number in range(stops):
        query = start(processingTime="0 seconds")
        if number % 2:
            until(lambda: bool(left(target)))
            time.sleep(r.uniform(0, 1))
        else:
            until(lambda: commits(target), 120)
        stopped += bool(left(target))
        query.stop()
        if lane == "kafka-log":
            assert left(target) == []
    assert stopped >= max(1, stops // 3)
    query = start(availableNow=True)
    query.awaitTermination()
    assert left(target) == []
    found = [int(row["key"]) for row in rows(target, "key")]
    assert sorted(found) == list(range(files * LINES))
    assert kafka_log.LogDirectory(target).check().num_rows == 0
