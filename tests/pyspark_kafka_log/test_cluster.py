"""A standalone cluster whose Pythons do not have the package until it is shipped: whole environments, zips, and neither."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import kafka_log
from pyspark_kafka_log.java import JavaNotFound, find_java
from tests.paths import ROOT, SAMPLES
from tests.support.spark_clusters import (
    SPARK_HOME,
    Environments,
    clean,
    cluster,
    environments,
    ran,
    zip_packages,
)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="a cluster's scripts are run by sh"),
]
LOGS = SAMPLES / "kafka-4.x"
PAGE = ROOT / "docs" / "how-to" / "a-cluster.md"

BOTH_WAYS = """
import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import pyspark_kafka_log

logs, out, registers = sys.argv[1], Path(sys.argv[2]), "register" in sys.argv[3:]
spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")


def rows(path, **options):
    frame = spark.read.format("kafka-log").options(**options).load(str(path))
    names = ["topic", "partition", "offset", "value"]
    found = frame.select(names).collect()
    return sorted([r.topic, r.partition, r.offset, (r.value or b"").hex()] for r in found)


def streamed(here):
    stream = spark.readStream.format("kafka-log").option("startingOffsets", "earliest")
    query = (
        stream.option("subscribe", "transactions").option("maxOffsetsPerTrigger", 20).load(logs)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(here / "checkpoint")).trigger(availableNow=True)
        .start(str(here / "streamed"))
    )
    query.awaitTermination()
    batches = sum(1 for one in query.recentProgress if one["numInputRows"])
    count = spark.read.parquet(str(here / "streamed")).count()
    return {"batches": batches, "streamed": count}


def all_of(here, streams):
    told = {}
    frame = spark.read.format("kafka-log").load(logs)
    told["rows"] = rows(logs)
    told["count"] = frame.count()
    told["filtered"] = frame.where("topic = 'transactions' and offset >= 5").count()
    if streams:
        told |= streamed(here)
    kept = frame.where("topic = 'transactions'")
    kept.write.format("kafka-log").mode("append").save(str(here / "written"))
    told["written"] = rows(here / "written")
    plans[here.name] = frame._jdf.queryExecution().executedPlan().toString()
    return told


if registers:
    spark.dataSource.register(pyspark_kafka_log.DefaultSource)
plans = {}
told = {"lanes": plans, "python": all_of(out / "python", not registers)}
pyspark_kafka_log.enable(spark)
told["connector"] = all_of(out / "connector", True)

from pyspark_kafka_log.export import export

export(spark, logs, str(out / "records"))
where = spark.range(2).repartition(2).rdd.map(lambda _: pyspark_kafka_log.__file__)
told["where"] = sorted(set(where.collect()))
print(json.dumps(told))
"""

READS = """
import json
import sys

from pyspark.sql import SparkSession

import pyspark_kafka_log

spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
spark.dataSource.register(pyspark_kafka_log.DefaultSource)
rows = spark.read.format("kafka-log").load(sys.argv[1]).select("offset").collect()
where = spark.range(1).rdd.map(lambda _: pyspark_kafka_log.__file__).collect()
print(json.dumps({"offsets": sorted(row.offset for row in rows), "where": where}))
"""

OTHER_DRIVER = """
import json
import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import pyspark_kafka_log

logs, bare, archive = sys.argv[1:]
builder = SparkSession.builder.config("spark.archives", archive + "#environment")
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
pyspark_kafka_log.enable(spark)
frame = spark.read.format("kafka-log").load(logs)
told = {"rows": len(frame.select("offset").collect())}
for name, python in ("bare", bare), ("gone", "./nothing/bin/python"):
    spark.conf.set("spark.kafkaLog.python", python)
    try:
        frame.select("offset").collect()
    except Exception as error:
        told[name] = str(error)
spark.conf.unset("spark.kafkaLog.python")
spark.conf.set("spark.kafkaLog.driverPython", "./nothing/bin/python")
try:
    spark.read.format("kafka-log").load(logs)
except Exception as error:
    told["driver"] = str(error)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Environments:
    return environments(tmp_path_factory.mktemp("environments"))


@pytest.fixture(scope="module")
def java_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return find_java(os.environ, tmp_path_factory.mktemp("java")).home
    except JavaNotFound as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster"), java_home) as url:
        yield url


def shown(master: str, ships: str) -> tuple[list[str], dict[str, str]]:
    """The command of the page that ships something in this way, for this master, and its variables."""
    (line,) = re.findall(rf"^.*--master spark://.* {ships} .*$", PAGE.read_text("utf-8"), re.M)
    words = shlex.split(line.replace("spark://master:7077", master))
    at = words.index("spark-submit")
    assert words.pop() == "job.py"
    variables = dict(word.split("=", 1) for word in words[:at])
    return [str(SPARK_HOME / "bin" / "spark-submit"), *words[at + 1 :]], variables


def expected() -> list[list[Any]]:
    """The rows, read without Spark."""
    table = kafka_log.read_table(LOGS, ["topic", "partition", "offset", "value"])
    return sorted(
        [str(r["topic"]), r["partition"], r["offset"], (r["value"] or b"").hex()]
        for r in table.to_pylist()
    )


def is_right(told: dict[str, Any], out: Path, streams: Sequence[str]) -> None:
    rows = expected()
    of_transactions = [row for row in rows if row[0] == "transactions"]
    for lane in ("python", "connector"):
        found = told[lane]
        assert found["rows"] == rows
        assert found["count"] == len(rows)
        assert found["filtered"] == sum(row[2] >= 5 for row in of_transactions)
        assert found["written"] == of_transactions
    for lane in streams:
        assert told[lane]["streamed"] == len(of_transactions)
        assert told[lane]["batches"] > 1
    assert [lane for lane in told["lanes"] if "(Python)" in told["lanes"][lane]] == ["python"]
    assert sum(pq.read_metadata(one).num_rows for one in out.rglob("part-*.parquet")) == len(rows)


def test_executors_read_with_a_zip_that_is_shipped(java_home: Path, tmp_path: Path) -> None:
    """One executor in a process of its own, without a standalone cluster: its Python takes the project from the zip."""
    command, _ = shown("local-cluster[1,1,1024]", "--py-files")
    zip_packages(tmp_path / "kafka_codecs.zip")
    quick = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    env = clean(java_home, PYSPARK_PYTHON=sys.executable, HOME=str(tmp_path), **quick)
    log = LOGS / "transactions-0"
    told = ran(command, READS, tmp_path, env, str(log))
    assert told["offsets"] == kafka_log.read_table(log, ["offset"])["offset"].to_pylist()
    (where,) = told["where"]
    assert where.endswith("/kafka_codecs.zip/pyspark_kafka_log/__init__.py")


@pytest.mark.soak
def test_an_environment_that_is_shipped(
    master: str, made: Environments, java_home: Path, tmp_path: Path
) -> None:
    """The same relative path is right on the driver, which runs beside the environment, and in executors."""
    command, variables = shown(master, "--archives")
    env = clean(java_home, **variables, HOME=str(tmp_path))
    told = ran(command, BOTH_WAYS, made.whole, env, str(LOGS), str(tmp_path))
    is_right(told, tmp_path / "records", ["python", "connector"])
    assert told["where"]
    assert all("/work-" in path and "/environment/lib/" in path for path in told["where"])


@pytest.mark.soak
def test_a_zip_that_is_shipped(
    master: str, made: Environments, java_home: Path, tmp_path: Path
) -> None:
    """It does where the Pythons have what the project depends on; but Spark plans streams of Python sources without such files."""
    command, variables = shown(master, "--py-files")
    assert not variables
    env = clean(java_home, PYSPARK_PYTHON=str(made.bare / "bin" / "python"), HOME=str(tmp_path))
    told = ran(command, BOTH_WAYS, made.package.parent, env, str(LOGS), str(tmp_path), "register")
    is_right(told, tmp_path / "records", ["connector"])
    assert told["where"] == ["./kafka_codecs.zip/pyspark_kafka_log/__init__.py"]


@pytest.mark.soak
def test_a_driver_of_another_python(
    master: str, made: Environments, java_home: Path, tmp_path: Path
) -> None:
    """A notebook: the driver has the package otherwise than executors. Those that have it not say what to do."""
    roots = os.pathsep.join(str(ROOT / name) for name in ("generator", "generated", "pipeline"))
    env = clean(java_home, PYSPARK_PYTHON="./environment/bin/python", PYTHONPATH=roots)
    env["PYSPARK_SUBMIT_ARGS"] = f"--master {master} pyspark-shell"
    bare = str(made.bare / "bin" / "python")
    arguments = (str(LOGS), bare, str(made.whole / "environment.tar.gz"))
    told = ran([sys.executable], OTHER_DRIVER, tmp_path, env, *arguments)
    assert told["rows"] == len(expected())
    for name, why in (("bare", "No module named 'pyspark_kafka_log'"), ("gone", "No such file")):
        assert why in told[name]
        assert "--archives environment.tar.gz#environment" in told[name]
    assert "No such file" in told["driver"] and "spark.kafkaLog.driverPython" in told["driver"]
