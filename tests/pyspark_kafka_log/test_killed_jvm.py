"""The JVM of a driver is killed, and nothing else: its Python processes end, and nothing is seen of what they wrote."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

import kafka_log
from pyspark_kafka_log.export import export
from tests.support.killed_workers import LANES, ROWS, SLOWLY, keys
from tests.support.spark_processes import below, command, driver, holders, parents, until
from tests.support.written import files, records

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for them in /proc"),
]

PATIENCE_S = 15
"""In which processes end whose JVM is gone."""

RUN = f'''
    import sys, time
    from pyspark.sql import SparkSession
    import pyspark_kafka_log
    from pyspark_kafka_log.export import export
    from tests.pyspark_kafka_log.conftest import PythonSource
    what, lane, source, target = sys.argv[1:]
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "200").getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(PythonSource)
    pyspark_kafka_log.enable(spark)
    try:
        if what == "export":
            export(spark, source, target, options={{"engine": "construct"}})
        elif what == "write":
            frame = spark.sql("""{SLOWLY}""").write.format(lane).mode("append").option("topic", "t")
            frame.save(target)
        else:
            frame = spark.read.format(lane).option("engine", "construct").load(source)
            frame.write.format("noop").mode("overwrite").save()
    except Exception as error:
        print(f"{{type(error).__name__}}: {{error}}", flush=True)
    else:
        print("done", flush=True)
    time.sleep(600)
'''


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of two partitions that takes seconds to read by the Construct codecs."""
    path = tmp_path_factory.mktemp("log")
    for topic in ("a", "b"):
        kafka_log.write_log(path, records(60_000), topic=topic)
    return path


def kill_the_jvm(process: subprocess.Popen[str], directory: Path, *, stopped_s: float = 0) -> None:
    """As soon as a process below it has a file in the directory open. The Python processes below it end.

    A JVM that was stopped for a while leaves commands that it has not read: its end is then a connection that
    is reset, not one that is closed.
    """

    def jvm() -> int | None:
        programs = ((pid, command(pid)[:1]) for pid in below(process.pid))
        return next((pid for pid, name in programs if name and "java" in name[0]), None)

    def busy() -> bool:
        assert process.poll() is None
        java = jvm()
        return java is not None and bool(holders(below(java), directory))

    until(busy, 120)
    java = jvm()
    assert java is not None
    others = below(java)
    assert len(others) > 1, "a daemon, and a worker"
    os.kill(java, signal.SIGSTOP)
    time.sleep(stopped_s)
    os.kill(java, signal.SIGKILL)
    until(lambda: not others & parents().keys(), PATIENCE_S)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.soak
@pytest.mark.parametrize("lane", LANES)
def test_while_tasks_read(log: Path, lane: str, tmp_path: Path) -> None:
    with driver("-c", textwrap.dedent(RUN), "read", lane, log, tmp_path) as process:
        kill_the_jvm(process, log)
        assert not said(process).startswith("done")


@pytest.mark.share(ci=2)
@pytest.mark.parametrize("lane", LANES)
def test_while_tasks_write(session: SparkSession, tmp_path: Path, lane: str) -> None:
    target = tmp_path / "target"
    kafka_log.write_log(target, records(0), topic="t", partitions=2)
    before = files(target)
    with driver("-c", textwrap.dedent(RUN), "write", lane, "", target) as process:
        kill_the_jvm(process, target)
        assert not said(process).startswith("done")
    assert files(target) == before
    writer = session.sql(SLOWLY).write.format(lane).mode("append").option("topic", "t")
    writer.save(str(target))
    assert keys(target) == list(range(ROWS))


@pytest.mark.soak
def test_while_tasks_export(session: SparkSession, tmp_path: Path, log: Path) -> None:
    target = tmp_path / "out"
    with driver("-c", textwrap.dedent(RUN), "export", "", log, target) as process:
        kill_the_jvm(process, target)
        assert not said(process).startswith("done")
    assert exported(target) == 0
    assert export(session, log, target).rows == 120_000
    assert exported(target) == 120_000


@pytest.mark.soak
@pytest.mark.parametrize("stopped_s", [0, 2], ids=["at once", "stopped before"])
def test_while_the_command_exports(session: SparkSession, tmp_path: Path, stopped_s: float) -> None:
    """It says so, and ends."""
    target = tmp_path / "out"
    large = tmp_path / "large"  # kernels read it
    kafka_log.write_log(large, pa.concat_tables([records(20_000)] * 100), topic="t", partitions=2)
    arguments = ["export", "--spark", "--out", target, large]
    with driver("-m", "kafka_log", *arguments, stderr=subprocess.PIPE) as process:
        kill_the_jvm(process, target, stopped_s=stopped_s)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "kafka-log: Spark: its JVM ended" in told and "Traceback" not in told
    assert exported(target) == 0
    assert export(session, large, target).rows == 2_000_000


def exported(target: Path) -> int:
    """Rows that are seen. Arrow passes over what is beside them, as Spark does."""
    return int(ds.dataset(target, format="parquet").count_rows()) if target.is_dir() else 0
