"""Queries of Spark on a log: the columnar connector, the Python source, and Spark on the same rows as Parquet.

    python -m benchmarks.spark [--mib 768] [--rounds 5] [--output benchmarks/results/spark.md]

One Spark with two cores; what is compared takes turns, round by round. Wall seconds. Needs Java 17 or newer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import kafka_log
from benchmarks import measure, shapes
from benchmarks.files import repeated
from benchmarks.measure import Report
from pyspark_kafka_log import DefaultSource, enable
from pyspark_kafka_log.java import find_java

ROOT = Path(__file__).resolve().parent.parent
SHAPES = (("A", "none"), ("A", "zstd"), ("A", "lz4"), ("J", "zstd"), ("J", "lz4"), ("C", "none"))
PARTITIONS = 4
BLOCK = 8 << 20
NOTES = """
A topic of four partitions, each with a segment, in batches of 16 KiB; the MiB are those of records before they are compressed. Medians of wall
seconds. *Parquet*: the same rows in four files (zstd) that Spark reads; *x*: how many times as fast as the Python source the connector
is, and as Parquet.
""".strip()


class PythonSource(DefaultSource):
    """The Python source, under a name that it does not share with the connector."""

    @classmethod
    def name(cls) -> str:
        return "kafka-log-python"


def queries(last: int) -> Mapping[str, Callable[[DataFrame], object]]:
    """What is asked. ``last``: the highest offset of a partition."""
    low = last // 2
    return {
        "all columns, noop": lambda f: f.write.format("noop").mode("overwrite").save(),
        "count()": lambda f: f.count(),
        "sum(offset)": lambda f: f.agg(F.sum("offset")).collect(),
        "partition = 1, noop": lambda f: (
            f.where("partition = 1").write.format("noop").mode("overwrite").save()
        ),
        "0.1% of offsets, noop": lambda f: (
            f.where(f"offset between {low} and {low + last // 1000}")
            .write.format("noop")
            .mode("overwrite")
            .save()
        ),
        "take(5)": lambda f: f.take(5),
    }


def session(scratch: Path, cores: int = 2) -> SparkSession:
    java = find_java(os.environ, scratch)
    roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline")]
    os.environ |= {
        "JAVA_HOME": str(java.home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([*roots, str(ROOT)]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.local.dir", str(scratch)).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(PythonSource)
    enable(spark)
    return spark


def written(folder: Path, shape: str, codec: str, mib: int) -> tuple[Path, Path, int]:
    """A log and its rows as Parquet; how many rows a partition has."""
    log, parquet = folder / f"{shape}-{codec}", folder / f"{shape}-{codec}-parquet"
    parquet.mkdir()
    block = shapes.segment(shape, 16 << 10, BLOCK, codec)
    rows = 0
    for number in range(PARTITIONS):
        path = log / f"records-{number}" / f"{0:020}.log"
        path.parent.mkdir(parents=True)
        rows = repeated(path, block, len(block) * max(1, (mib << 20) // BLOCK // PARTITIONS))
        columns = ["key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type"]
        table = kafka_log.read_table(path.parent, columns)
        at = table.schema.get_field_index("timestamp")
        table = table.set_column(
            at, "timestamp", table["timestamp"].cast(pa.timestamp("us", "UTC"))
        )
        pq.write_table(table, parquet / f"{number}.parquet", compression="zstd")
    return log, parquet, rows


def frames(spark: SparkSession, log: Path, parquet: Path) -> dict[str, DataFrame]:
    """What is compared."""
    return {
        "connector": spark.read.format("kafka-log").load(str(log)),
        "Python source": spark.read.format("kafka-log-python").load(str(log)),
        "Parquet": spark.read.parquet(str(parquet)),
    }


def timed(
    query: Callable[[DataFrame], object], asked: Mapping[str, DataFrame], rounds: int
) -> list[float]:
    """Median seconds of a query for each of the frames."""
    ways: dict[str, Any] = {
        which: lambda frame=frame: query(frame) for which, frame in asked.items()
    }
    found = measure.rounds(ways, rounds, clock=time.perf_counter)
    return [found[which].median for which in asked]


def worker_mib() -> int:
    """The most memory that a Python worker of this process has had; 0 where the system does not tell."""
    most = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, KeyError):
            if str(ROOT).encode() not in (process / "environ").read_bytes():
                continue
            if b"pyspark.daemon" in (process / "cmdline").read_bytes():
                text = (process / "status").read_text("utf-8")
                lines = dict(line.split(":", 1) for line in text.splitlines())
                most = max(most, int(lines["VmHWM"].split()[0]) >> 10)
    return most


def main() -> None:
    options = measure.parser(__doc__, rounds=5, mib=768).parse_args()
    report = Report("Spark", measure.command("benchmarks.spark", options))
    report.add(f"PySpark {pyspark.__version__}. {NOTES}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(folder)
        made = {}
        for shape, codec in SHAPES:
            log, parquet, rows = made[shape, codec] = written(folder, shape, codec, options.mib)
            asked = frames(spark, log, parquet)
            counts = {frame.count() for frame in asked.values()}
            assert counts == {rows * PARTITIONS}, counts
            report.add("", f"## {shapes.NAMES[shape]}, {codec}: {rows * PARTITIONS:,} rows")
            report.table("query", *asked, "x Python source", "x Parquet")
            for what, query in queries(rows - 1).items():
                ours, python, other = seconds = timed(query, asked, options.rounds)
                cells = [f"{s:.2f}" for s in seconds]
                report.row(what, *cells, measure.ratio(python, ours), measure.ratio(other, ours))
        mib = worker_mib()
        spark.stop()
        two_cores(report, made, options.rounds)
    if mib:
        report.add("", f"A Python worker has taken {mib} MiB at most.")
    report.write(options.output)


def two_cores(
    report: Report,
    made: Mapping[tuple[str, str], tuple[Path, Path, int]],
    rounds: int,
) -> None:
    """How much faster two processors are than one, for all that runs: a task has a thread in the JVM and a worker in Python."""
    if not hasattr(os, "sched_setaffinity"):
        return
    paths = [str(path) for log, parquet, _ in made.values() for path in (log, parquet)]
    seconds = []
    for cores in (1, 2):
        command = [sys.executable, "-m", "benchmarks.spark_cores", str(cores), str(rounds), *paths]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
        seconds.append([json.loads(line) for line in lines])
    report.add("", "## Two processors, and one: all columns, noop")
    report.table("rows", *(f"{which}, x" for which in ("connector", "Python source", "Parquet")))
    for (shape, codec), alone, both in zip(made, *seconds, strict=True):
        cells = [measure.ratio(one, two) for one, two in zip(alone, both, strict=True)]
        report.row(f"{shapes.NAMES[shape]}, {codec}", *cells)


if __name__ == "__main__":
    main()
