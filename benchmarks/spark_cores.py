"""Seconds of a query on so many processors: a part of benchmarks.spark, in a process of its own as a JVM keeps those that it starts with.

    python -m benchmarks.spark_cores CORES ROUNDS LOG PARQUET [LOG PARQUET ...]

Prints a line of JSON for each pair: median wall seconds by what is compared. Linux.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.spark import frames, queries, session, timed


def main() -> None:
    cores, rounds, *paths = sys.argv[1:]
    processors = sorted(os.sched_getaffinity(0))[: int(cores)]
    os.sched_setaffinity(0, processors)
    query = queries(1)["all columns, noop"]
    with tempfile.TemporaryDirectory() as scratch:
        spark = session(Path(scratch), int(cores))
        for log, parquet in zip(paths[::2], paths[1::2], strict=True):
            asked = frames(spark, Path(log), Path(parquet))
            timed(query, asked, 2)  # until it is compiled
            print(json.dumps(timed(query, asked, int(rounds))), flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
