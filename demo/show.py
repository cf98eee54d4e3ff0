"""Kafka log directories through Spark: what is in them, a few answers, and all records as Parquet.

Run by ``demo/run.py`` with the Python of ``.venv``. No broker runs, nothing leaves the machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_log import discover
from kafka_log.disk.directory import DirectoryError
from kafka_log.segment.kernels import ENGINES
from pyspark_kafka_log.answers import transactions
from pyspark_kafka_log.java import JavaNotFound, find_java
from pyspark_kafka_log.schema import TYPES

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "demo-output"
OURS = "made-by-make-demo.txt"
"""A file that says that a directory is the demo's own and may be replaced."""


class DemoError(Exception):
    """Why the demo cannot go on."""


def say(text: str = "") -> None:
    print(text, flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Say what is being done, and how long it took."""
    say(f"  {text} ...")
    begun = time.monotonic()
    yield
    say(f"  ... {time.monotonic() - begun:.1f} s")


def title(text: str) -> None:
    say(f"\n== {text}")


# ---------------------------------------------------------------- Spark


def start_spark(scratch: Path) -> SparkSession:
    """A Spark of this process that listens on loopback only and writes below ``scratch`` only."""
    options = f"-XX:-UsePerfData -Djava.io.tmpdir={scratch}"
    options += f" -Dlog4j2.configurationFile={(ROOT / 'demo' / 'log4j2.properties').as_uri()}"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LAUNCHER_OPTS"] = "-XX:-UsePerfData"
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["TMPDIR"] = str(scratch)
    return (
        SparkSession.builder.master("local[2]")
        .appName("kafka-log demo")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", options)
        .config("spark.local.dir", str(scratch))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
        .getOrCreate()
    )


# ---------------------------------------------------------------- reading


def logs_of(paths: list[Path]) -> list[Path]:
    """The directories to read. Raises DemoError when one of them holds no log."""
    for path in paths:
        try:
            discover([path])
        except DirectoryError as error:
            raise DemoError(str(error)) from None
    return paths


def names_of(paths: list[Path]) -> dict[Path, str]:
    """A short name for each directory."""
    names = [path.name for path in paths]
    return {path: path.name if names.count(path.name) == 1 else str(path) for path in paths}


def read(session: SparkSession, path: Path, name: str, engine: str) -> DataFrame:
    """All records of a directory, markers too, with every column there is."""
    source = session.read.format("kafka-log").option("columns", ",".join(TYPES))
    source = source.option("engine", engine)
    return (
        source.option("includeControlRecords", True).load(str(path)).withColumn("log", F.lit(name))
    )


def sizes(names: dict[Path, str]) -> None:
    for path, name in names.items():
        partitions = discover([path])
        segments = [s for p in partitions for s in p.segments]
        topics = len({p.topic for p in partitions})
        size = sum(s.size for s in segments)
        say(
            f"  {name}: {topics} topics, {len(partitions)} partitions,"
            f" {len(segments)} segments, {size:,} bytes"
        )


# ---------------------------------------------------------------- answers


def answers(records: DataFrame) -> None:
    data = records.where(~F.col("isControl"))

    title("All records have these columns")
    records.printSchema()

    title("A few records")
    data.orderBy("log", "topic", "partition", "offset").selectExpr(
        "log",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "make_valid_utf8(CAST(key AS STRING)) AS key",
        "make_valid_utf8(CAST(substring(value, 1, 24) AS STRING)) AS value",
        "transform(headers, h -> h.key) AS headers",
        "compression",
    ).where("topic NOT LIKE '\\\\_\\\\_%'").show(12, truncate=28)

    title("How many, where, and from when to when")
    data.groupBy("log", "topic", "partition").agg(
        F.count(F.lit(1)).alias("records"),
        F.countDistinct("segment", "position").alias("batches"),
        F.min("offset").alias("first"),
        F.max("offset").alias("last"),
        F.min("timestamp").alias("from"),
        F.max("timestamp").alias("to"),
    ).orderBy("log", "topic", "partition").show(100, truncate=False)

    title("Formats and codecs")
    data.groupBy("log", "magic", "compression").agg(
        F.count(F.lit(1)).alias("records"),
        F.countDistinct("segment", "position").alias("batches"),
        F.sum(F.coalesce(F.length("value"), F.lit(0))).alias("value bytes"),
    ).orderBy("log", "magic", "compression").show(100, truncate=False)

    title("Producers that give their records sequence numbers")
    data.where("producerId >= 0").groupBy("log", "topic", "producerId", "producerEpoch").agg(
        F.count(F.lit(1)).alias("records"),
        F.min("sequence").alias("first sequence"),
        F.max("sequence").alias("last sequence"),
        F.bool_or("isTransactional").alias("transactional"),
    ).orderBy("log", "topic", "producerId", "producerEpoch").show(100, truncate=False)

    title("Records that brokers wrote themselves")
    records.where("isControl").groupBy("log", "topic", "controlType").count().orderBy(
        "log", "topic", "controlType"
    ).show(100, truncate=False)


def show_transactions(found: DataFrame) -> None:
    title("Transactions")
    found.groupBy("log", "topic", "outcome").agg(
        F.count(F.lit(1)).alias("transactions"), F.sum("records").alias("records")
    ).orderBy("log", "topic", "outcome").show(100, truncate=False)

    title("Transactions that were aborted, and those that never ended (OPEN)")
    found.where("outcome != 'COMMIT'").orderBy("log", "topic", "partition", "firstOffset").show(
        100, truncate=False
    )


def union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


def all_transactions(records: DataFrame, names: Iterable[str]) -> DataFrame:
    """Each directory by itself: two clusters may use the same names and producer ids."""
    return union(
        transactions(records.where(F.col("log") == name)).select(F.lit(name).alias("log"), "*")
        for name in names
    )


# ---------------------------------------------------------------- Parquet


def check_output(output: Path) -> None:
    if output.exists() and not (output / OURS).is_file():
        raise DemoError(f"{output} is not the demo's own (it has no {OURS}): move it away")


def write(records: DataFrame, found: DataFrame, beside: Path, output: Path) -> None:
    """Write beside the place, and only when all is there put it into the place."""
    with step("records as Parquet"):
        records.write.parquet(str(beside / "records"))
    with step("transactions as Parquet"):
        found.write.parquet(str(beside / "transactions"))
    (beside / OURS).write_text("Written by `make demo`, which may replace this directory.\n")
    old = beside.with_name("replaced")
    if output.exists():
        output.rename(old)
    beside.rename(output)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, help="broker or partition directories")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the Parquet goes")
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="arrow" if find_spec("numba") else "auto",
        help="the codecs that decode (default %(default)s)",
    )
    options = parser.parse_args(arguments)
    output = options.output.absolute()
    scratch = Path(tempfile.mkdtemp(prefix=".demo-", dir=output.parent))
    try:
        check_output(output)
        names = names_of(logs_of([path.absolute() for path in options.logs]))
        java = find_java(os.environ, Path(sys.prefix) / "java")
        os.environ["JAVA_HOME"] = str(java.home)
        say(f"Reading log directories with Spark on {java}")
        sizes(names)
        run(names, scratch, output, options.engine)
    except (DemoError, JavaNotFound) as error:
        print(f"\ndemo: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


def run(names: dict[Path, str], scratch: Path, output: Path, engine: str) -> None:
    with step("starting Spark"):
        session = start_spark(scratch)
    try:
        with step(f"decoding every record (engine {engine})"):
            frames = (read(session, path, name, engine) for path, name in names.items())
            records = union(frames).cache()
            total = records.count()
        say(f"  {total:,} records")
        answers(records)
        found = all_transactions(records, names.values()).cache()
        show_transactions(found)
        title(f"Parquet in {output.name}/")
        write(records, found, scratch / "new", output)
        with step("reading it again"):
            again = session.read.parquet(str(output / "records")).count()
        if again != total:
            raise DemoError(f"{again} records were read again from Parquet, not {total}")
        say(f"  {again:,} records, the same number as in the logs")
    finally:
        session.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
