"""What Spark writes: tables of Parquet from a log, by our tasks and by its own writer; and logs from rows.

    python -m benchmarks.spark_tables [--mib 1536] [--rounds 3] [--output benchmarks/results/spark_tables.md]

One Spark with two cores; what is compared takes turns, round by round. Wall seconds. Needs Java 17 or newer.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame

from benchmarks import measure, shapes
from benchmarks.measure import Report
from benchmarks.spark import PARTITIONS, session, written
from pyspark_kafka_log.export import export

SHAPES = (("A", "none"), ("A", "zstd"), ("J", "zstd"))
NOTES = """
A topic of four partitions, each with a segment, in batches of 16 KiB; the MiB are those of records before they are compressed. Medians of wall
seconds; *x*: how many times as fast as Spark's own writer of Parquet (`df.write.parquet`, the rows from the connector, its own snappy and with zstd as
ours has it).
""".strip()


def main() -> None:
    options = measure.parser(__doc__, rounds=3, mib=1536).parse_args()
    report = Report(
        "Tables and logs that Spark writes", measure.command("benchmarks.spark_tables", options)
    )
    report.add(f"PySpark {pyspark.__version__}. {NOTES}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(folder)
        for shape, codec in SHAPES:
            log, _, rows = written(folder, shape, codec, options.mib)
            frame = spark.read.format("kafka-log").load(str(log))
            assert frame.count() == rows * PARTITIONS
            ways = {
                "df.write.parquet": lambda out, f=frame: f.write.parquet(out),
                "df.write.parquet, zstd": lambda out, f=frame: zstd(f, out),
                "export, Parquet": lambda out, log=log: export(spark, log, out),
                "export, Parquet, lz4": lambda out, log=log: export(
                    spark, log, out, compression="lz4"
                ),
                "export, Delta": lambda out, log=log: export(spark, log, out, "delta"),
                "df.write.format(kafka-log), none": lambda out, f=frame: logs(f, out, "none"),
                "df.write.format(kafka-log), zstd": lambda out, f=frame: logs(f, out, "zstd"),
            }
            made = folder / "made"
            made.mkdir()
            found = measure.rounds(
                {what: fresh(way, made) for what, way in ways.items()},
                options.rounds,
                clock=time.perf_counter,
            )
            shutil.rmtree(made)
            report.add("", f"## {shapes.NAMES[shape]}, {codec}: {rows * PARTITIONS:,} rows")
            report.table("way", "seconds", "million rows/s", "x")
            base = found["df.write.parquet"].median
            for what, timed in found.items():
                seconds = timed.median
                speed = f"{rows * PARTITIONS / seconds / 1e6:.2f}"
                report.row(what, f"{seconds:.2f}", speed, measure.ratio(base, seconds))
        spark.stop()
    report.write(options.output)


def fresh(way: Callable[[str], object], folder: Path) -> Callable[[], object]:
    """A way that writes into a directory of its own each time."""
    return lambda: way(tempfile.mkdtemp(dir=folder) + "/out")


def zstd(frame: DataFrame, out: str) -> None:
    frame.write.option("compression", "zstd").parquet(out)


def logs(frame: DataFrame, out: str, codec: str) -> None:
    rows = frame.select("key", "value", "topic", "partition", "timestamp")
    rows.write.format("kafka-log").mode("append").option("compression", codec).save(out)


if __name__ == "__main__":
    main()
