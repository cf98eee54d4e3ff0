"""Spark Connect: a client without a JVM, and a server on this machine that finds the source by its name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import kafka_log
from pyspark_kafka_log.connector.jars import find_or_compile_jar
from tests.paths import SAMPLES
from tests.support.spark_downloads import downloaded, with_packages

pytestmark = [pytest.mark.spark, pytest.mark.slow]
LOGS = SAMPLES / "kafka-4.x"
NEEDED = ("grpcio>=1.76", "grpcio-status>=1.76", "googleapis-common-protos>=1.71")
READS = """
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

from pyspark.sql import SparkSession

import pyspark_kafka_log
from pyspark_kafka_log.export import export

logs, out, jars = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
for jar in jars:
    builder = builder.config("spark.jars", jar)
spark = builder.getOrCreate()
frame = spark.read.format("kafka-log").load(logs)
some = frame.where("topic = 'transactions'")
told = {"session": type(spark).__module__, "count": frame.count()}
told["offsets"] = sorted(row.offset for row in some.collect())
with redirect_stdout(io.StringIO()) as shown:
    frame.explain()
told["plan"] = shown.getvalue()
"""
WRITES = """
stream = spark.readStream.format("kafka-log").option("startingOffsets", "earliest")
query = (
    stream.option("subscribe", "transactions").load(logs).writeStream.format("parquet")
    .option("checkpointLocation", str(out / "checkpoint")).trigger(availableNow=True)
    .start(str(out / "streamed"))
)
told["ended"] = query.awaitTermination(120)
told["streamed"] = sorted(row.offset for row in spark.read.parquet(str(out / "streamed")).collect())
some.write.format("kafka-log").mode("append").save(str(out / "written"))
written = spark.read.format("kafka-log").load(str(out / "written"))
told["written"] = sorted(row.offset for row in written.collect())
told["exported"] = export(spark, logs, str(out / "exported")).rows
for name, does in {
    "enable": lambda: pyspark_kafka_log.enable(spark),
    "option": lambda: spark.read.format("kafka-log").option("colour", "red").load(logs).count(),
}.items():
    try:
        does()
    except Exception as error:
        told[name] = str(error)
"""
PRINTS = """
print("told", json.dumps(told))
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return downloaded(tmp_path_factory.mktemp("connect"), *NEEDED)


def told_by(job: str, client: Path, logs: Path, out: Path, jars: list[str]) -> dict[str, Any]:
    """Run a job with a Python that has the client, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", job + PRINTS, str(logs), str(out), *jars],
        env=with_packages(client) | {"JAVA_HOME": os.environ["JAVA_HOME"]},
        cwd=out,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    told: dict[str, Any] = json.loads(done.stdout.rpartition("told ")[2])
    assert told["session"] == "pyspark.sql.connect.session"
    return told


@pytest.mark.usefixtures("session")
def test_rows_through_a_server(client: Path, tmp_path: Path) -> None:
    log = LOGS / "transactions-0"
    told = told_by(READS, client, log, tmp_path, [])
    assert told["offsets"] == kafka_log.read_table(log, ["offset"])["offset"].to_pylist()
    assert told["count"] == len(told["offsets"]) > 0
    assert "(Python)" in told["plan"]


@pytest.mark.soak
@pytest.mark.parametrize("connector", [False, True], ids=["python-source", "jar-of-the-server"])
def test_everything_through_a_server(
    session: SparkSession, client: Path, tmp_path: Path, connector: bool
) -> None:
    jars = [str(find_or_compile_jar(session._jvm))] if connector else []
    told = told_by(READS + WRITES, client, LOGS, tmp_path, jars)
    table = kafka_log.read_table(LOGS, ["topic", "offset"]).to_pylist()
    offsets = sorted(row["offset"] for row in table if str(row["topic"]) == "transactions")
    assert told["count"] == told["exported"] == len(table)
    assert told["ended"]
    assert told["offsets"] == told["streamed"] == told["written"] == offsets
    assert ("(Python)" in told["plan"]) is not connector
    assert "Spark Connect" in told["enable"]
    assert "colour" in told["option"]
