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
from tests.support.spark_processes import below, command, environment, parents, until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = 10
"""How often in the soak. A start of Spark takes five seconds and more."""

EXECUTOR = "CoarseGrainedExecutorBackend"
EXECUTORS_KILLED = 5
JVM = "org.apache.spark.deploy.SparkSubmit"
PATIENCE_S = 15
"""In which processes end whose JVM is gone."""

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
def hold(batches):
    # Rows of the first micro-batch wait in a task, which says who it is.
    import os, pathlib, time
    here, go = pathlib.Path(scratch, f"task-{os.getpid()}"), pathlib.Path(scratch, "go")
    for rows in batches:
        here.touch()
        while not go.exists():
            time.sleep(0.02)
        yield rows
def write(df, batch):
    if how == "tasks held":
        df = df.mapInArrow(hold, df.schema)
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


def moved(place: Path, r: random.Random) -> list[Growing]:
    """Two logs whose first segments retention has deleted, and whose rows a consumer gets."""
    logs = [Growing(place / f"t-{i}", r) for i in range(2)]
    while left := [log for log in logs if not (log.start and log.committed())]:
        log = r.choice(left)
        r.choices([log.append, log.roll, log.delete], [8, 2, 0 if log.start else 1])[0]()
    return logs


def is_in_first_batch(scratch: Path) -> bool:
    """Return whether a query has logged the end of its first micro-batch, and has not committed it."""
    checkpoint = scratch / "checkpoint"
    ends = [one.name for one in (checkpoint / "offsets").glob("[0-9]*")]
    return ends == ["0"] and not list((checkpoint / "commits").glob("[0-9]*"))


@pytest.mark.parametrize(
    "lane", ["kafka-log", pytest.param("kafka-log-python", marks=pytest.mark.soak)]
)
def test_a_jvm_that_is_killed_in_the_first_batch(
    session: SparkSession, tmp_path: Path, lane: str
) -> None:
    """Its Python processes are not killed, and end. Rows of the batch are in the sink, and come there once more.

    Retention has moved the start of the logs, and a partition is added before the restart.
    """
    r = random.Random(lane)
    place, scratch = tmp_path / "logs", tmp_path / "scratch"
    logs = moved(place, r)
    scratch.mkdir()
    with running(place, scratch, lane, "held") as query:
        until(lambda: (scratch / "out" / "batch=0" / "_SUCCESS").exists(), 120)
        (jvm,) = (pid for pid in below(query.pid) if JVM in command(pid))
        others = below(jvm)
        assert others, "a daemon, and a worker"
        assert query.poll() is None and is_in_first_batch(scratch)
        os.kill(jvm, signal.SIGKILL)
        until(lambda: not others & parents().keys(), PATIENCE_S)
    assert is_in_first_batch(scratch) and rows(scratch / "out")
    logs.append(Growing(place / "t-2", r))
    for log in logs:
        while len(log.committed()) < 5:
            log.append()
    finish(place, scratch, lane)
    assert rows(scratch / "out") == wanted(logs)


@pytest.mark.soak
@pytest.mark.parametrize("lane", ["kafka-log", "kafka-log-python"])
def test_an_executor_that_is_killed_in_the_first_batch(
    session: SparkSession, tmp_path: Path, lane: str
) -> None:
    """The one whose task holds rows. The task runs again on another one; a partition is added meanwhile."""
    r = random.Random(lane)
    place, scratch = tmp_path / "logs", tmp_path / "scratch"
    logs = moved(place, r)
    scratch.mkdir()

    def holding() -> set[int]:
        return {int(path.name.removeprefix("task-")) for path in scratch.glob("task-*")}

    with running(place, scratch, lane, "tasks held", "local-cluster[2,1,1024]") as query:
        until(lambda: bool(holding()), 120)
        (task,) = holding()
        (executor,) = (pid for pid in executors(query.pid) if task in below(pid))
        assert query.poll() is None and is_in_first_batch(scratch)
        os.kill(executor, signal.SIGKILL)
        logs.append(Growing(place / "t-2", r))
        until(lambda: len(holding()) == 2, 120)
        assert query.poll() is None and is_in_first_batch(scratch)
        (scratch / "go").touch()
        until(partial(has_written, scratch, 1), 120)
        grow(logs, r, query, 10, lambda: all(log.committed() for log in logs))
        assert query.poll() is None, (scratch / "errors").read_text()
    finish(place, scratch, lane)
    assert rows(scratch / "out") == wanted(logs)
    assert all(log.committed() for log in logs)


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
