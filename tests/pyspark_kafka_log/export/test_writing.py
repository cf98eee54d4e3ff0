"""The files of one task of an export."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_kafka_log.export import writing
from pyspark_kafka_log.export.locations import Location
from pyspark_kafka_log.export.writing import (
    File,
    TaskFiles,
    TaskResult,
    _statistics,
    split_by_day,
    write_task,
)
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


def test_results_add_up_from_nothing() -> None:
    assert TaskResult() == TaskResult([], [], 0, 0, 0, [])
    assert File("a", 1, 2, ()) == File("a", 1, 2, (), {}, {})
    total = TaskResult()
    one = TaskResult([File("a", 1, 2, ("t",))], [("t", 0, 5)], 1, 10, 2, ["here"])
    other = TaskResult([], [("t", 0, 3), ("u", 1, 0)], 2, 20, 3, ["there"])
    for result in (one, other):
        total.add(TaskResult.from_dict(json.loads(json.dumps(result.to_dict()))))
    ends = [("t", 0, 5), ("t", 0, 3), ("u", 1, 0)]
    assert total == TaskResult(one.files, ends, 3, 30, 5, ["here", "there"])
    assert total.next_offsets == {("t", 0): 5, ("u", 1): 0}


def test_statistics_are_of_all_row_groups_or_none(tmp_path: Path) -> None:
    path = tmp_path / "file"
    times = pa.array([7, 5, 6], pa.timestamp("us", "UTC"))
    table = pa.table({"offset": [3, 1, 2], "timestamp": times, "value": ["a", "b", "c"]})
    pq.write_table(table, path, row_group_size=2)
    assert _statistics(pq.read_metadata(path)) == (
        {"offset": 1, "timestamp": 5},
        {"offset": 3, "timestamp": 7},
    )
    pq.write_table(table, path, row_group_size=2, write_statistics=["timestamp"])
    assert _statistics(pq.read_metadata(path)) == ({"timestamp": 5}, {"timestamp": 7})
    nulls = pa.table({"offset": pa.array([3, None], pa.int64())})
    pq.write_table(nulls, path, row_group_size=1)
    assert _statistics(pq.read_metadata(path)) == ({}, {})
    pq.write_table(table.slice(0, 0), path)
    assert _statistics(pq.read_metadata(path)) == ({}, {})


def test_the_file_without_rows_for_longest_is_closed_at_the_limit(
    tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three topics go into two open files: the rows of the first topic, which come again, are in two files."""
    monkeypatch.setattr(writing, "MAX_OPEN_FILES", 2)
    for topic in "abc":
        write(directory, topic, 0, 0, numbered(2, 1))
    counts: list[int] = []

    def watched(tasks: Any, job: Any) -> Any:
        plain = TaskFiles.write

        def write_and_count(self: TaskFiles, values: Any, rows: Any) -> None:
            plain(self, values, rows)
            counts.append(len(self._open))

        monkeypatch.setattr(TaskFiles, "write", write_and_count)
        splits = tuple(split for task in tasks for split in task)
        return [write_task(0, (*splits, splits[0]), job)]

    done = Table("parquet", tmp_path).export(directory, watched, ("topic",))
    assert (done.rows, done.files, counts) == (8, 4, [1, 2, 2, 2])
