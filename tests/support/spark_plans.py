"""A broker directory, and the splits of a planned query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_log.read.plan import Split
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.task_reader import read_split
from tests.support.spark_logs import batch, build, numbered, write


def slices(**options: Any) -> list[Split]:
    return [part for task in plan(parse(options)) for part in task]


def offsets(parts: list[Split]) -> list[int]:
    scan = Scan(columns=("offset",))
    return [o for part in parts for b in read_split(part, scan) for o in b.column(0).to_pylist()]


@pytest.fixture
def broker(directory: Path) -> Path:
    """Two topics; one partition has three segments with ten records each."""
    for base in (0, 10, 20):
        write(directory, "a", 0, base, build(batch(base, [b"v"] * 4), batch(base + 4, [b"v"] * 6)))
    write(directory, "a", 1, 0, numbered(2, 1))
    write(directory, "b.c", 0, 0, numbered(2, 1))
    return directory
