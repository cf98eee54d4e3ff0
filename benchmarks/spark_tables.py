"""What Spark writes: tables of Parquet from a log, by our tasks and by its own writer; and logs from rows.

    python -m benchmarks.spark_tables [--mib 1024] [--rounds 2] [--output benchmarks/results/spark_tables.md]

One Spark with two cores; what is compared takes turns, round by round. Wall seconds. Needs Java 17 or newer.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession

from benchmarks import measure, shapes
from benchmarks.measure import Report
from benchmarks.spark import PARTITIONS, session, written
from benchmarks.table_limits import Limits
from kafka_log.read.parquet import Compression
from pyspark_kafka_log.export import export

SHAPES = (("A", "none"), ("A", "zstd"), ("J", "zstd"))
CODECS: tuple[Compression, ...] = ("none", "snappy", "lz4", "zstd")
NOTES = """
A topic of four partitions, each with a segment, in batches of 16 KiB; the MiB are those of records before they are compressed. Medians of wall
seconds. *x*: how many times as fast as Spark's own writer of Parquet, `df.write.parquet`, with the same codec, the rows from the connector: snappy is its own
choice, and of zstd both have level 1, ours. *Python source*: the rows from there, as they come without the connector. *MiB*: of the files. Below the
line is what no export can do without, on two processors: *Arrow to Parquet* writes rows that are decoded, in memory; *codecs alone* decompresses the log's
batches, and compresses keys and values.
""".strip()


def main() -> None:
    options = measure.parser(__doc__, rounds=2, mib=1024).parse_args()
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
            python = spark.read.format("kafka-log-python").load(str(log))
            ways: dict[str, Callable[[str], object]] = {}
            for one in CODECS:
                ways[f"df.write.parquet, {one}"] = partial(parquet, frame, one)
                ways[f"export, {one}"] = partial(exported, spark, log, one)
            ways |= {
                "df.write.parquet, snappy, Python source": partial(parquet, python, "snappy"),
                "export, zstd, Delta": lambda out, log=log: export(spark, log, out, "delta"),
                "df.write.format(kafka-log), none": partial(logs, frame, "none"),
                "df.write.format(kafka-log), zstd": partial(logs, frame, "zstd"),
            }
            made = folder / "made"
            made.mkdir()
            sizes: dict[str, int] = {}
            found = measure.rounds(
                {what: fresh(way, made, what, sizes) for what, way in ways.items()},
                options.rounds,
                clock=time.perf_counter,
            )
            shutil.rmtree(made)
            seconds = {what: timed.median for what, timed in found.items()}
            with closing(Limits(log, codec)) as limits:
                for way, limit in (
                    ("Arrow to Parquet", limits.of_arrow),
                    ("codecs alone", limits.of_codecs),
                ):
                    for one in CODECS:
                        limit(one)  # what is kept in memory comes to be
                        seconds[f"{way}, {one}"] = min(limit(one) for _ in range(options.rounds))
            report.add("", f"## {shapes.NAMES[shape]}, {codec}: {rows * PARTITIONS:,} rows")
            report.table("way", "seconds", "million rows/s", "x", "MiB")
            for what, taken in seconds.items():
                own = next((one for one in CODECS if f", {one}" in what), "snappy")
                base = seconds[f"df.write.parquet, {own}"]
                speed = f"{rows * PARTITIONS / taken / 1e6:.2f}" if taken >= 0.01 else ""
                times = measure.ratio(base, taken) if taken >= 0.01 else ""
                size = f"{sizes[what] >> 20:,}" if what in sizes else ""
                report.row(what, f"{taken:.2f}", speed, times, size)
            shutil.rmtree(log)
    spark.stop()
    report.write(options.output)


def fresh(
    way: Callable[[str], object], folder: Path, what: str, sizes: dict[str, int]
) -> Callable[[], object]:
    """A way that writes into a directory of its own each time, which is removed before it is measured again."""
    place = Path(tempfile.mkdtemp(dir=folder))

    def run() -> measure.Seconds:
        out = place / "out"
        begin = time.perf_counter()
        way(str(out))
        taken = time.perf_counter() - begin
        sizes[what] = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        shutil.rmtree(out)
        return measure.Seconds(taken)

    return run


def parquet(frame: DataFrame, codec: Compression, out: str) -> None:
    """Spark's writer. What Arrow calls lz4 is Parquet's lz4_raw: its lz4 is Hadoop's."""
    writer = frame.write.option("compression", {"lz4": "lz4_raw"}.get(codec, codec))
    writer.option("parquet.compression.codec.zstd.level", "1").parquet(out)


def exported(spark: SparkSession, log: Path, codec: Compression, out: str) -> None:
    export(spark, log, out, compression=codec)


def logs(frame: DataFrame, codec: str, out: str) -> None:
    rows = frame.select("key", "value", "topic", "partition", "timestamp")
    rows.write.format("kafka-log").mode("append").option("compression", codec).save(out)


if __name__ == "__main__":
    main()
