"""A query that is killed at random moments and started again: every row once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.spark.processes import environment
from tests.support.growing_logs import Growing

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = int(os.environ.get("KAFKA_LOG_STREAM_KILLS", "10"))
"""How often. A start of Spark takes five seconds and more."""

QUERY = """
import os, shutil, sys
from pathlib import Path
from pyspark.sql import SparkSession
import pyspark_kafka_log
from tests.spark.conftest import PythonSource
path, scratch, name, last = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1").config("spark.local.dir", scratch).getOrCreate()
)
spark.dataSource.register(PythonSource)
pyspark_kafka_log.enable(spark)
out = Path(scratch) / "out"
def write(df, batch):
    # A batch that runs again takes the place of the one that was killed.
    df.coalesce(1).write.mode("overwrite").parquet(str(out / f"batch={batch}"))
query = (
    spark.readStream.format(name).option("startingOffsets", "earliest")
    # The last one reads all that others have left: the log grows while Spark starts.
    .option("maxOffsetsPerTrigger", "4000" if last == "last" else "40")
    .option("isolationLevel", "read_committed").load(path)
    .selectExpr("concat(topic, '-', partition) name", "offset", "cast(value as string) value")
    .writeStream.foreachBatch(write).option("checkpointLocation", f"{scratch}/checkpoint")
    .trigger(**({"availableNow": True} if last == "last" else {"processingTime": "0 seconds"})).start()
)
print("started", flush=True)
query.awaitTermination()
"""


@pytest.mark.share(ci=2)
@pytest.mark.parametrize("lane", ["kafka-log", "kafka-log-python"])
def test_every_row_once(session: SparkSession, tmp_path: Path, lane: str) -> None:
    r = random.Random(lane)
    logs = [Growing(tmp_path / "logs" / f"t-{i}", r) for i in range(2)]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for kill in range(KILLS + 1):
        last = kill == KILLS
        ready = scratch / "ready"
        with ready.open("wb") as told, (scratch / "errors").open("wb") as errors:
            query = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    QUERY,
                    *map(str, (tmp_path / "logs", scratch, lane, "last" if last else "")),
                ],
                env=environment(),
                stdout=told,
                stderr=errors,
                start_new_session=True,
            )
        try:
            if last:
                assert query.wait(240) == 0, (scratch / "errors").read_text()
                break
            grow(logs, r, query, 240, partial(says_started, ready))
            # Some micro-batches on, and at any moment of the next one.
            written = batches(scratch) + r.randrange(4)
            grow(logs, r, query, 60, partial(has_written, scratch, written))
            grow(logs, r, query, r.uniform(0, 1.5), lambda: False)
            assert query.poll() is None, (scratch / "errors").read_text()
        finally:
            # The JVM and its workers are of the query's own session.
            os.killpg(query.pid, signal.SIGKILL)
            query.wait()
    wanted = Counter((log.name, *row) for log in logs for row in log.committed())
    assert rows(scratch / "out") == wanted
    assert wanted.total() > 20 * KILLS


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
