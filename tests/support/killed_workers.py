"""Log directories and lanes for queries whose Python workers are killed."""

from __future__ import annotations

from pathlib import Path

import kafka_log

LANES = ("kafka-log", "kafka-log-python")


ROWS = 6000


SLOWLY = (
    "SELECT CAST(id AS STRING) key, concat(repeat('x', 10000),"
    " substring(reflect('java.util.concurrent.locks.LockSupport', 'parkNanos', 500000L), 1, 0)) value"
    f" FROM range(0, {ROWS}, 1, 2)"
)
"""Rows that take two seconds and more, and megabytes, so that files are written meanwhile."""


def keys(path: Path) -> list[int]:
    """The keys of what was written, in their order."""
    return sorted(int(key) for key in kafka_log.read_table(path, ["key"])["key"].to_pylist())
