"""Processes that write logs, killed at random moments: each job is there as a whole, or not at all."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

import kafka_log
from kafka_log import LogDirectory
from tests.support.written import records, rows

pytestmark = pytest.mark.slow

RUN = """
    import sys
    import pyarrow as pa
    import kafka_log
    target, run = sys.argv[1], int(sys.argv[2])
    for job in range(1000):
        value = b"%d %d" % (run, job)
        table = pa.table({"key": [b"%d" % i for i in range(200)], "value": [value] * 200})
        kafka_log.write_log(target, table, topic="t", partitions=3, batch_bytes=500, segment_bytes=3000)
        print(run, job, flush=True)
"""


def test_jobs_are_whole(tmp_path: Path) -> None:
    made = random.Random(7)
    done: set[bytes] = set()
    for run in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(RUN), str(tmp_path), str(run)],
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            done.add(process.stdout.readline().strip())  # libraries are loaded now
            time.sleep(made.uniform(0.1, 1.5))
            process.kill()
            done |= set(process.stdout.read().splitlines())
    kafka_log.write_log(tmp_path, records(1), topic="u")  # which makes the last one whole
    found = Counter(row["value"] for row in rows(tmp_path / "t-0", "value"))
    for partition in (1, 2):
        found += Counter(row["value"] for row in rows(tmp_path / f"t-{partition}", "value"))
    assert set(found.values()) == {200}
    assert done <= set(found)
    assert len(found) <= len(done) + 8
    assert LogDirectory(tmp_path).check().num_rows == len(list(tmp_path.glob(".kafka-log-*")))
