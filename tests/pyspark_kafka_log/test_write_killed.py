"""A driver that is killed while its tasks write."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import kafka_log
from tests.support.written import files, records

pytestmark = pytest.mark.slow

RUN = """
    import sys
    from pyspark.sql import SparkSession
    import pyspark_kafka_log
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    if sys.argv[2] == "connector":
        pyspark_kafka_log.enable(spark)
    df = spark.sql("select cast(id as string) key, repeat('x', 1000) value from range(0, 100000000, 1, 2)")
    df.write.format("kafka-log").option("topic", "t").mode("append").save(sys.argv[1])
"""
LIMIT_S = 120


@pytest.mark.share(ci=2)
@pytest.mark.parametrize("source", ["connector", "python"])
def test_nothing_is_seen_of_a_driver_that_was_killed(source: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    kafka_log.write_log(target, records(30), topic="t")
    before = files(target)
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(RUN), str(target), source],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    ) as driver:
        try:
            end = time.monotonic() + LIMIT_S
            while not any(path.stat().st_size for path in target.glob(".kafka-log-*/*/t-0/*.log")):
                assert driver.poll() is None
                assert time.monotonic() < end
                time.sleep(0.1)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
    assert files(target) == before
    assert len(kafka_log.discover(target)) == 1
    kafka_log.write_log(target, records(30), topic="t")
    assert kafka_log.read_table(target).num_rows == 60
