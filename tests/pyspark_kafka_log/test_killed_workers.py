"""Python workers that are killed while they write or export: no row is lost or comes twice, and nothing stays of what they wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

import kafka_log
from pyspark_kafka_log.export import ExportError, export
from tests.support.killed_workers import LANES, ROWS, SLOWLY, keys
from tests.support.spark_processes import below, driver, holders, parents, until
from tests.support.written import files, records

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for them in /proc"),
]

KILLED = "the Python worker ended in the middle of its work: it was killed|Python worker exited unexpectedly"

RUN = f'''
    import json, sys
    from pyspark.sql import SparkSession
    import pyspark_kafka_log
    from pyspark_kafka_log.export import export
    from tests.pyspark_kafka_log.conftest import PythonSource
    spark = (
        SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "200").getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(PythonSource)
    pyspark_kafka_log.enable(spark)
    for line in sys.stdin:
        lane, source, target = json.loads(line)
        if lane == "export":
            done = export(spark, source, target, options={{"engine": "construct"}}).rows
        else:
            frame = spark.sql("""{SLOWLY}""").write.format(lane).mode("append").option("topic", "t")
            done = frame.save(target)
        print(json.dumps(done), flush=True)
'''


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of two partitions that takes seconds to read by the Construct codecs."""
    path = tmp_path / "log"
    for topic in ("a", "b"):
        kafka_log.write_log(path, records(30_000), topic=topic)
    return path


@contextmanager
def killing(target: Path) -> Iterator[None]:
    """One of this Spark's processes is killed while it writes into the target."""
    done: list[int] = []
    killer = threading.Thread(target=lambda: done.append(kill_a_writer(os.getpid(), target)))
    killer.start()
    try:
        yield
    finally:
        killer.join()
    assert done


def kill_a_writer(pid: int, target: Path) -> int:
    """Kill one process below another one that has a file in the target open. Which one it was."""
    found: set[int] = set()

    def writes() -> bool:
        found.update(holders(below(pid) - {pid}, target))
        return bool(found)

    until(writes)
    killed = found.pop()
    os.kill(killed, signal.SIGKILL)
    until(lambda: killed not in parents(), 10)
    return killed


def left(target: Path) -> list[str]:
    """What does not belong to a log directory or to an export that is done."""
    return [
        str(path.relative_to(target))
        for path in sorted(target.rglob("*"))
        if ".writing" in path.name or (path.is_dir() and "_kafka_log_export" in path.parent.name)
    ]


def asked(spark: subprocess.Popen[str], *line: object) -> None:
    assert spark.stdin is not None
    spark.stdin.write(json.dumps([str(one) for one in line]) + "\n")
    spark.stdin.flush()


def told(spark: subprocess.Popen[str]) -> Any:
    assert spark.stdout is not None
    return json.loads(spark.stdout.readline())


@pytest.mark.parametrize(
    "lanes", [LANES[:1], pytest.param(LANES[1:], marks=pytest.mark.soak)], ids=LANES
)
def test_tasks_that_run_again(
    session: SparkSession, tmp_path: Path, log: Path, lanes: tuple[str, ...]
) -> None:
    """All rows are there, each once."""
    with driver("-c", textwrap.dedent(RUN)) as spark:
        for lane in lanes:
            target = tmp_path / lane
            kafka_log.write_log(target, records(0), topic="t", partitions=3)
            asked(spark, lane, "", target)
            kill_a_writer(spark.pid, target)
            assert told(spark) is None
            assert keys(target) == list(range(ROWS))
            assert left(target) == []
        target = tmp_path / "export"
        asked(spark, "export", log, target)
        kill_a_writer(spark.pid, target)
        assert told(spark) == 60_000
        assert ds.dataset(target, format="parquet").count_rows() == 60_000
        assert left(target) == []


@pytest.mark.soak
@pytest.mark.parametrize("lane", LANES)
def test_a_write_without_another_try(session: SparkSession, tmp_path: Path, lane: str) -> None:
    target = tmp_path / "target"
    kafka_log.write_log(target, records(30), topic="t")
    before = files(target)
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "200")

    def save() -> None:
        writer = session.sql(SLOWLY).write.format(lane).mode("append").option("topic", "u")
        writer.save(str(target))

    with killing(target), pytest.raises(Exception, match=KILLED):
        save()
    until(lambda: left(target) == [], 10)
    assert files(target) == before
    save()
    assert sorted(
        int(key) for key in kafka_log.read_table(target, ["key"], topics=["u"])["key"].to_pylist()
    ) == list(range(ROWS))


@pytest.mark.soak
def test_an_export_without_another_try(session: SparkSession, tmp_path: Path, log: Path) -> None:
    target = tmp_path / "out"

    def work() -> int:
        return export(session, log, target, options={"engine": "construct"}).rows

    with killing(target), pytest.raises(ExportError, match="a Python worker ended"):
        work()
    assert list(target.rglob("*.parquet")) == [] and left(target) == []
    assert work() == 60_000
    assert ds.dataset(target, format="parquet").count_rows() == 60_000
