"""What is shown of a streaming query does not end it, and stopping it is no error."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.spark_logs import batch, build, numbered, write
from tests.support.spark_processes import until
from tests.support.spark_streams import offsets, started

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="the worker's Python is a shell script"),
]

WORKERS = """
import os, pathlib, sys, time
TOLD = pathlib.Path({told!r})
def tell(name):
    with TOLD.open("a") as told:
        print(name, file=told)
if "pyspark.daemon" in sys.orig_argv:
    {change}
"""

REPORTS_FAIL = """
    from pyspark_kafka_log.stream.polling import LogStream
    def failing(name):
        def fail(*_):
            tell(name)
            {fails}
        return fail
    LogStream.report, LogStream.lag_metrics = failing("report"), failing("lag_metrics")
"""

SECOND_HANGS = """
    from pyspark_kafka_log.connector import worker
    from pyspark_kafka_log.stream.polling import LogStream
    def die(*_, **__):
        tell("latest")
        os._exit(9)
    def hang(*_):
        if "latest" in TOLD.read_text():
            tell("hello")
            time.sleep(60)
    LogStream.latest = die
    worker.ANSWERS["hello"] = hang
"""


def changed_workers(session: SparkSession, scratch: Path, change: str) -> Path:
    """Let workers of the driver begin with ``change``, and return the file of what they tell."""
    told, site, python = scratch / "told", scratch / "site", scratch / "python"
    site.mkdir()
    told.touch()
    code = WORKERS.format(told=str(told), change=change.strip())
    (site / "sitecustomize.py").write_text(code)
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{site}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    session.conf.set("spark.tests.format", "kafka-log")
    session.conf.set("spark.kafkaLog.driverPython", str(python))
    return told


@pytest.mark.parametrize(
    "fails",
    [
        pytest.param("raise OSError('no report')", id="error"),
        pytest.param("os._exit(9)", id="the worker dies", marks=pytest.mark.soak),
    ],
)
def test_a_query_whose_reports_fail_goes_on(
    session: SparkSession, directory: Path, tmp_path: Path, fails: str
) -> None:
    told = changed_workers(session, tmp_path, REPORTS_FAIL.format(fails=fails))
    path = write(directory, "t", 0, 0, numbered(2, 2))
    query = started(session, directory, tmp_path, {"processingTime": "0 seconds"})
    try:
        until(lambda: has_committed(tmp_path, 0) or not query.isActive, 120)
        with path.open("ab") as file:
            file.write(build(batch(4, [b"more"])))
        until(lambda: has_committed(tmp_path, 1) or not query.isActive, 120)
        until(lambda: len(query.recentProgress) > 1 or not query.isActive, 120)
        assert query.isActive, query.exception()
    finally:
        query.stop()
    assert query.exception() is None, str(query.exception())
    assert {*told.read_text().split()} == {"report", "lag_metrics"}
    sources = [json.loads(one.json)["sources"][0] for one in query.recentProgress]
    assert sources and all(not one.get("metrics") for one in sources)
    assert offsets(session, tmp_path) == list(range(5))


def test_a_query_that_is_stopped_while_a_worker_starts_has_no_error(
    session: SparkSession, directory: Path, tmp_path: Path
) -> None:
    write(directory, "t", 0, 0, numbered(2, 2))
    frame = session.readStream.format("kafka-log").load(str(directory))  # planned by other workers
    told = changed_workers(session, tmp_path, SECOND_HANGS)
    query = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        until(lambda: "hello" in told.read_text(), 120)
    finally:
        query.stop()
    assert query.exception() is None, str(query.exception())


def has_committed(scratch: Path, number: int) -> bool:
    return (scratch / "checkpoint" / "commits" / str(number)).exists()
