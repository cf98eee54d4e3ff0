"""Spark's own Kafka source, of a broker that runs, beside ours, of its log directory: the same topic, the same rows.

    python -m benchmarks.spark_kafka [--mib 768] [--rounds 5] [--output benchmarks/results/spark_kafka.md]

One Spark with two cores, on the machine of the broker; the sources take turns, round by round. Wall seconds. Needs Java 17 or newer,
and Maven.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from functools import partial
from pathlib import Path

import pyspark

from benchmarks import measure, shapes
from benchmarks.files import repeated
from benchmarks.measure import Report
from benchmarks.spark import PARTITIONS, queries, session
from tests.brokers.load import load_into_broker
from tests.brokers.maven import KAFKA_4, SPARK_SOURCE
from tests.support.spark_peer import add_spark_source

SHAPES = {"100 B values": ("A", 1.0), "1 KiB values": ("C", 4 / 3)}
"""Shapes of records, and how many times the MiB that are told."""

QUERIES = ("all columns, noop", "count()")
NOTES = f"""
Records with a 16-byte key in batches of 16 KiB, not compressed; a topic of {PARTITIONS} partitions, each with a segment, in the memory of the
system. Kafka {KAFKA_4.version}, Spark's connector {SPARK_SOURCE.spark_source} with kafka-clients {SPARK_SOURCE.version}. Medians of wall seconds; *x*: how
many times as fast as Spark's Kafka source. The broker has its share of the two cores while that source reads.
""".strip()


def written(folder: Path, shape: str, total: int) -> tuple[dict[str, Path], int]:
    """The partitions of a topic, by their names; how many records there are."""
    block = shapes.segment(shape, 16 << 10, 8 << 20)
    found, rows = {}, 0
    for number in range(PARTITIONS):
        path = folder / f"records-{number}" / f"{0:020}.log"
        path.parent.mkdir(parents=True)
        rows += repeated(path, block, total // PARTITIONS)
        found[path.parent.name] = path.parent
    return found, rows


def main() -> None:
    options = measure.parser(__doc__, rounds=5, mib=768).parse_args()
    report = Report(
        "Spark's Kafka source, and ours", measure.command("benchmarks.spark_kafka", options)
    )
    report.add(f"PySpark {pyspark.__version__}. {NOTES}")
    report.table("rows", "query", "connector", "Python source", "Spark's Kafka source", "x", "x")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(folder)
        add_spark_source(spark)
        for what, (shape, times) in SHAPES.items():
            partitions, rows = written(folder / shape, shape, int(options.mib * times) << 20)
            with load_into_broker(folder / f"broker-{shape}", partitions) as broker:
                shutil.rmtree(folder / shape)
                log, servers = str(broker.log_dir), broker.bootstrap_servers
                theirs = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
                frames = {
                    source: spark.read.format(source).option("subscribe", "records").load(log)
                    for source in ("kafka-log", "kafka-log-python")
                } | {"kafka": theirs.option("subscribe", "records").load()}
                counts = {frame.count() for frame in frames.values()}
                assert counts == {rows}, counts
                for query in QUERIES:
                    ask = queries(rows)[query]
                    found = measure.rounds(
                        {source: partial(ask, frame) for source, frame in frames.items()},
                        options.rounds,
                        clock=time.perf_counter,
                    )
                    ours, python, other = (found[source].median for source in frames)
                    cells = [f"{seconds:.2f}" for seconds in (ours, python, other)]
                    ratios = measure.ratio(other, ours), measure.ratio(other, python)
                    report.row(f"{rows:,}, {what}", query, *cells, *ratios)
            shutil.rmtree(folder / f"broker-{shape}")
        spark.stop()
    report.write(options.output)


if __name__ == "__main__":
    main()
