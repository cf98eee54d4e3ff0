"""Rows of the log of a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka_log.options import parse
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.filters import parse_filters
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.splits.query_logs import QueryLogs
from pyspark_kafka_log.task_reader import read_splits
from tests.support.spark_logs import numbered, write

Row = tuple[str, int, str]


def rows(seen: QueryLogs, path: Path | str, *filters: Any, **options: str) -> list[Row]:
    """The rows of a scan, planned with what others have found, as it goes from one to the next."""
    scan = Scan(("topic", "partition", "offset", "value"), engine="construct")
    given = {"path": str(path), "engine": "construct", **options}
    out: list[Row] = []
    for task in plan(parse(given), parse_filters(filters), 2, seen):
        for found in read_splits(task, scan):
            columns = (column.to_pylist() for column in found.columns)
            for topic, partition, offset, value in zip(*columns, strict=True):
                out.append(
                    (f"{topic}-{partition}", offset, (value or b"").decode("utf-8", "replace"))
                )
    return sorted(out)


@pytest.fixture
def path(directory: Path) -> Path:
    write(directory, "t", 1, 0, numbered(2, 1))
    return write(directory, "t", 0, 0, numbered(2, 3))
