"""Queries of Spark on a log: the columnar connector, the Python source, and Spark on the same rows as Parquet.

    python -m benchmarks.spark [--mib 96] [--rounds 5] [--output benchmarks/results/spark.md]

One Spark with two cores; what is compared takes turns, round by round. Wall seconds. Needs Java 17 or newer.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
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
CODECS = ("none", "zstd", "lz4")
PARTITIONS = 4
NOTES = """
Records with a 16-byte key and a 100-byte value in batches of 16 KiB; a topic of four partitions, each with a segment. Medians of wall
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


def session(scratch: Path) -> SparkSession:
    java = find_java(os.environ, scratch)
    roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline")]
    os.environ |= {
        "JAVA_HOME": str(java.home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([*roots, str(ROOT)]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.local.dir", str(scratch)).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(PythonSource)
    enable(spark)
    return spark


def written(folder: Path, codec: str, mib: int) -> tuple[Path, Path, int]:
    """A log and its rows as Parquet; how many rows a partition has."""
    log, parquet = folder / codec, folder / f"{codec}-parquet"
    parquet.mkdir()
    block = shapes.segment("A", 16 << 10, 8 << 20, codec)
    rows = 0
    for number in range(PARTITIONS):
        path = log / f"records-{number}" / f"{0:020}.log"
        path.parent.mkdir(parents=True)
        rows = repeated(path, block, (mib << 20) // PARTITIONS)
        columns = ["key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type"]
        table = kafka_log.read_table(path.parent, columns)
        at = table.schema.get_field_index("timestamp")
        table = table.set_column(
            at, "timestamp", table["timestamp"].cast(pa.timestamp("us", "UTC"))
        )
        pq.write_table(table, parquet / f"{number}.parquet", compression="zstd")
    return log, parquet, rows


def main() -> None:
    options = measure.parser(__doc__, rounds=5, mib=96).parse_args()
    report = Report("Spark", measure.command("benchmarks.spark", options))
    report.add(f"PySpark {pyspark.__version__}. {NOTES}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(folder)
        for codec in CODECS:
            log, parquet, rows = written(folder, codec, options.mib)
            frames = {
                "connector": spark.read.format("kafka-log").load(str(log)),
                "Python source": spark.read.format("kafka-log-python").load(str(log)),
                "Parquet": spark.read.parquet(str(parquet)),
            }
            counts = {frame.count() for frame in frames.values()}
            assert counts == {rows * PARTITIONS}, counts
            report.add("", f"## {codec}, {options.mib} MiB, {rows * PARTITIONS:,} rows")
            report.table("query", *frames, "x Python source", "x Parquet")
            for what, query in queries(rows - 1).items():
                asked: dict[str, Any] = {
                    which: lambda query=query, frame=frame: query(frame)
                    for which, frame in frames.items()
                }
                found = measure.rounds(asked, options.rounds, clock=time.perf_counter)
                ours, python, other = (found[which].median for which in frames)
                cells = [f"{seconds:.2f}" for seconds in (ours, python, other)]
                report.row(what, *cells, measure.ratio(python, ours), measure.ratio(other, ours))
        spark.stop()
    report.write(options.output)


if __name__ == "__main__":
    main()
