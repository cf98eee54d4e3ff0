"""Kafka log directories without a broker: a few answers, all records as a Spark table, and as Parquet.

Run by ``demo/run.py`` with the Python of ``.venv``. Nothing leaves the machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path

from next_steps import next_steps
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_log import discover
from kafka_log.logs.partitions import DirectoryError
from kafka_log.segment.kernels import ENGINES
from pyspark_kafka_log.answers import transactions
from pyspark_kafka_log.java import JavaNotFound, find_java
from pyspark_kafka_log.schema import TYPES

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "demo-output"
OURS = "made-by-make-demo.txt"
"""A file that says that a directory is the demo's own and may be replaced."""
QUESTIONS = (
    ("Which transactions are open, and do they hang?", ("txn", "--state", "open")),
    ("Is anything wrong?", ("check",)),
    ("How far are the groups?", ("groups", "--states")),
)
"""What is asked, and the command that answers it."""
LINES = 10
"""Of an answer; the rest is counted."""


class DemoError(Exception):
    """Why the demo cannot go on."""


def say(text: str = "") -> None:
    print(text, flush=True)


def title(text: str) -> None:
    say(f"\n== {text}")


# ---------------------------------------------------------------- the command line


def ask(question: str, command: Sequence[str], paths: Sequence[Path]) -> None:
    """Run ``kafka-log``, and show the first lines of what it says."""
    verb, *options = command
    shown = [os.path.relpath(p) if p.is_relative_to(Path.cwd()) else str(p) for p in paths]
    arguments = [verb, *shown, *options]
    title(question)
    say(f"$ kafka-log {' '.join(arguments)}")
    done = subprocess.run(
        [sys.executable, "-m", "kafka_log", *arguments],
        env={**os.environ, "COLUMNS": "100", "PYTHONUTF8": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    lines = done.stdout.splitlines()
    for line in lines[:LINES]:
        say(line)
    if len(lines) > LINES:
        say(f"... and {len(lines) - LINES} more lines")
    if done.returncode not in (0, 1):
        raise DemoError(f"kafka-log {verb} ended with {done.returncode}")


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


@contextmanager
def quietly(kept: Path) -> Iterator[None]:
    """What programs that are started here say on stderr goes to a file: the JVM warns of what Spark does to it.

    Raises what was raised, after it has shown the file.
    """
    sys.stderr.flush()
    real = os.dup(2)
    try:
        with kept.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    except BaseException:
        os.write(real, kept.read_bytes())
        raise
    finally:
        os.dup2(real, 2)
        os.close(real)


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
            f"{name}: {topics} topics, {len(partitions)} partitions,"
            f" {len(segments)} segments, {size:,} bytes"
        )


def largest_topics(records: DataFrame) -> None:
    title("The same logs as a table in Spark: the topics with the most records")
    data = records.where(~F.col("isControl"))
    data.groupBy("log", "topic").agg(
        F.count(F.lit(1)).alias("records"),
        F.countDistinct("segment", "position").alias("batches"),
        F.array_join(F.array_sort(F.collect_set("compression")), " ").alias("codecs"),
        F.min("timestamp").alias("from"),
        F.max("timestamp").alias("to"),
    ).orderBy(F.desc("records"), "log", "topic").limit(6).show(truncate=False)


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
    records.write.parquet(str(beside / "records"))
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
        default="auto",
        help="the codecs that decode (default %(default)s)",
    )
    options = parser.parse_args(arguments)
    output = options.output.absolute()
    scratch = Path(tempfile.mkdtemp(prefix=".demo-", dir=output.parent))
    try:
        check_output(output)
        paths = logs_of([path.absolute() for path in options.logs])
        say("Kafka's log directories, read without a broker:")
        sizes(names_of(paths))
        own = [path for path in paths if not path.is_relative_to(ROOT / "samples")]
        for question, command in QUESTIONS:
            ask(question, command, own or paths[-1:])  # the samples are of two clusters
        java = find_java(os.environ, Path(sys.prefix) / "java")
        os.environ["JAVA_HOME"] = str(java.home)
        as_table(names_of(paths), scratch, output, options.engine)
        shell = os.environ.get("SHELL", "")
        say()
        for line in next_steps(Path(sys.prefix), Path.cwd(), own, shell=shell):
            say(line)
    except (DemoError, JavaNotFound) as error:
        print(f"\ndemo: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


def as_table(names: dict[Path, str], scratch: Path, output: Path, engine: str) -> None:
    with quietly(scratch / "spark.txt"):
        session = start_spark(scratch)
    try:
        frames = (read(session, path, name, engine) for path, name in names.items())
        records = union(frames).cache()
        largest_topics(records)
        total = records.count()
        write(records, all_transactions(records, names.values()), scratch / "new", output)
        again = session.read.parquet(str(output / "records")).count()
        if again != total:
            raise DemoError(f"{again} records were read again from Parquet, not {total}")
        say(f"{total:,} records and their transactions are in {output.name}/, as Parquet.")
    finally:
        session.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
