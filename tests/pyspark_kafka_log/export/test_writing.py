"""The files of one task of an export."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka_log.export.locations import Location
from pyspark_kafka_log.export.writing import split_by_day, write_task
from tests.support.spark_logs import flipped, numbered, write
from tests.support.spark_tables import Table


def test_null_timestamps_are_of_no_day() -> None:
    last = datetime(9999, 12, 31, tzinfo=UTC)
    times = pa.array([last, None, datetime(1970, 1, 2, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    batch = pa.RecordBatch.from_arrays([times, pa.array([0, 1, 2])], ["timestamp", "offset"])
    found = [(day, rows.column("offset").to_pylist()) for day, rows in split_by_day(batch)]
    assert found == [("1970-01-02", [2]), ("9999-12-31", [0]), (None, [1])]


def test_a_task_that_fails_removes_its_files(tmp_path: Path, directory: Path) -> None:
    """Of the first topic a file is complete or open by then."""
    write(directory, "a", 0, 0, numbered(5, 2))
    data = numbered(5, 2)
    write(directory, "b", 0, 0, flipped(data, len(data) - 3))
    out = tmp_path / "out"

    def failing(tasks: Any, job: Any) -> Any:
        splits = tuple(split for task in tasks for split in task)
        with pytest.raises(Exception, match="stored checksum"):
            write_task(0, splits, replace(job, place=Location(str(out))))
        assert out.is_dir() and not [path for path in out.rglob("*") if path.is_file()]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Table("parquet", tmp_path).export(directory, failing)
