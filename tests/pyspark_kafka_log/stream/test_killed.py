"""A query that is killed at random moments and started again: every row once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.growing_logs import Growing
from tests.support.spark_processes import below, command, environment, until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = 10
"""How often in the soak. A start of Spark takes five seconds and more."""

EXECUTOR = "CoarseGrainedExecutorBackend"
EXECUTORS_KILLED = 5

QUERY = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
import pyspark_kafka_log
from tests.pyspark_kafka_log.conftest import PythonSource
path, scratch, name, how, master = sys.argv[1:]
spark = (
    SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1").config("spark.local.dir", scratch).getOrCreate()
)
spark.dataSource.register(PythonSource)
pyspark_kafka_log.enable(spark)
out = Path(scratch) / "out"
def write(df, batch):
    # A batch that runs again takes the place of the one that was killed.
    df.coalesce(1).write.mode("overwrite").parquet(str(out / f"batch={batch}"))
    if how == "held":
        time.sleep(600)  # the end of the batch is logged, and it is not committed
query = (
    spark.readStream.format(name).option("startingOffsets", "earliest")
    # The last one reads all that others have left: the log grows while Spark starts.
    .option("maxOffsetsPerTrigger", "4000" if how == "last" else "40")
    .option("isolationLevel", "read_committed").load(path)
    .selectExpr("concat(topic, '-', partition) name", "offset", "cast(value as string) value")
    .writeStream.foreachBatch(write).option("checkpointLocation", f"{scratch}/checkpoint")
    .trigger(**({"availableNow": True} if how == "last" else {"processingTime": "0 seconds"})).start()
)
print("started", flush=True)
query.awaitTermination()
"""


@contextmanager
def running(
    logs: Path, scratch: Path, lane: str, how: str = "", master: str = "local[2]"
) -> Iterator[subprocess.Popen[bytes]]:
    """A query in a process of its own. In the end it is killed, with its JVM, executors and workers: they are of the same session."""
    with (scratch / "ready").open("wb") as told, (scratch / "errors").open("wb") as errors:
        query = subprocess.Popen(
            [sys.executable, "-c", QUERY, *map(str, (logs, scratch, lane, how, master))],
            env=environment(),
            stdout=told,
            stderr=errors,
            start_new_session=True,
        )
    try:
        yield query
    finally:
        with suppress(ProcessLookupError):
            os.killpg(query.pid, signal.SIGKILL)
        query.wait()


def finish(logs: Path, scratch: Path, lane: str) -> None:
    """Read what is left."""
    with running(logs, scratch, lane, "last") as query:
        assert query.wait(240) == 0, (scratch / "errors").read_text()


def wanted(logs: list[Growing]) -> Counter[tuple[str, int, str]]:
    """What a consumer gets of logs."""
    return Counter((log.name, *row) for log in logs for row in log.committed())


@pytest.mark.soak
@pytest.mark.parametrize(
    ("lane", "kills"),
    [
        ("kafka-log", 1),
        pytest.param("kafka-log", KILLS, marks=pytest.mark.soak),
        pytest.param("kafka-log-python", KILLS, marks=pytest.mark.soak),
    ],
)
def test_every_row_once(session: SparkSession, tmp_path: Path, lane: str, kills: int) -> None:
    """The first kill comes between the log of the first micro-batch and its commit, the others at any moment."""
    r = random.Random(lane)
    place, scratch = tmp_path / "logs", tmp_path / "scratch"
    logs = [Growing(place / f"t-{i}", r) for i in range(2)]
    while not all(log.committed() for log in logs):
        r.choice(logs).append()
    scratch.mkdir()
    with running(place, scratch, lane, "held") as query:
        grow(logs, r, query, 240, partial(has_written, scratch, 1))
        until(lambda: (scratch / "out" / "batch=0" / "_SUCCESS").exists())
        assert query.poll() is None, (scratch / "errors").read_text()
    checkpoint = scratch / "checkpoint"
    assert (checkpoint / "offsets" / "0").exists() and not (checkpoint / "commits" / "0").exists()
    logs.append(Growing(place / "t-2", r))
    for _ in range(kills):
        with running(place, scratch, lane) as query:
            grow(logs, r, query, 240, partial(says_started, scratch / "ready"))
            # Some micro-batches on, and at any moment of the next one.
            written = batches(scratch) + r.randrange(4)
            grow(logs, r, query, 60, partial(has_written, scratch, written))
            grow(logs, r, query, r.uniform(0, 1.5), lambda: False)
            assert query.poll() is None, (scratch / "errors").read_text()
    finish(place, scratch, lane)
    assert rows(scratch / "out") == wanted(logs)
    assert wanted(logs).total() > 20 * kills


@pytest.mark.soak
@pytest.mark.parametrize("lane", ["kafka-log", "kafka-log-python"])
def test_executors_that_are_killed(session: SparkSession, tmp_path: Path, lane: str) -> None:
    """A query goes on without them: their tasks run again on others."""
    r = random.Random(lane)
    place, scratch = tmp_path / "logs", tmp_path / "scratch"
    logs = [Growing(place / f"t-{i}", r) for i in range(2)]
    scratch.mkdir()
    with running(place, scratch, lane, master="local-cluster[2,1,1024]") as query:
        grow(logs, r, query, 240, partial(has_written, scratch, 1))
        for _ in range(EXECUTORS_KILLED):
            until(lambda: len(executors(query.pid)) == 2)
            os.kill(r.choice(executors(query.pid)), signal.SIGKILL)
            grow(logs, r, query, 60, partial(has_written, scratch, batches(scratch) + 2))
            grow(logs, r, query, r.uniform(0, 1.5), lambda: False)
            assert query.poll() is None, (scratch / "errors").read_text()
    finish(place, scratch, lane)
    assert rows(scratch / "out") == wanted(logs)
    assert batches(scratch) > 2 * EXECUTORS_KILLED


def executors(pid: int) -> list[int]:
    """The processes of executors below another one."""
    return sorted(p for p in below(pid) if any(EXECUTOR in word for word in command(p)))


def batches(scratch: Path) -> int:
    """How many micro-batches have written something."""
    return len(list((scratch / "out").glob("batch=*")))


def says_started(ready: Path) -> bool:
    return "started" in ready.read_text()


def has_written(scratch: Path, least: int) -> bool:
    return batches(scratch) >= least


def grow(
    logs: list[Growing],
    r: random.Random,
    query: subprocess.Popen[bytes],
    limit_s: float,
    done: Callable[[], bool],
) -> None:
    """Append to logs for a while."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and query.poll() is None and not done():
        log = r.choice(logs)
        r.choices([log.append, log.roll, log.tear], [10, 1, 1])[0]()
        time.sleep(r.uniform(0, 0.2))


def rows(out: Path) -> Counter[tuple[str, int, str]]:
    """What the sink holds, without what a batch left that was killed."""
    found: Counter[tuple[str, int, str]] = Counter()
    for path in out.glob("batch=*/*.parquet"):
        table: pa.Table = pq.ParquetFile(path).read()
        columns = (table[name].to_pylist() for name in ("name", "offset", "value"))
        found.update(zip(*columns, strict=True))
    return found
