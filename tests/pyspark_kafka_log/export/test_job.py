"""Which options an export takes, what it asks of the next one, and what a whole log comes to."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_kafka_log.export import Exported, ExportError
from pyspark_kafka_log.export.job import _check_options, _export_definition, _table_errors
from pyspark_kafka_log.export.writing import Job
from pyspark_kafka_log.options import default_columns, parse
from pyspark_kafka_log.splits.filters import EVERY_ROW, RowRanges
from tests.support.spark_logs import numbered, write
from tests.support.spark_tables import Table


@pytest.mark.parametrize(
    ("options", "by", "in_files", "message"),
    [
        ({}, ("topic", "offset"), False, "unknown partition column 'offset'; known: topic, partition, date"),
        ({}, ("topic", "date", "topic"), False, "the partition column topic is named twice"),
        ({"view": "stat"}, (), False, "has no option view"),
        ({"view": "group_epochs"}, (), False, "has no option view"),
        ({"startingOffsets": "earliest"}, (), False, "leave out startingOffsets"),
        ({"ignoreCorruptFiles": "true"}, (), False, "use mode, not ignoreCorruptFiles"),
        ({"ignoreMissingFiles": "true"}, (), False, "leave out ignoreMissingFiles"),
        ({"replicas": "keep"}, (), False, "set replicas to newest"),
        ({"columns": "topic,offset"}, ("date",), True, "column date needs timestamp among the columns"),
        ({"columns": "offset"}, ("topic",), True, "column topic needs topic among the columns"),
        ({"columns": "topic"}, ("topic", "date"), False, "all columns are partition columns"),
    ],
)  # fmt: skip
def test_options_that_an_export_refuses(
    options: dict[str, str], by: tuple[str, ...], in_files: bool, message: str
) -> None:
    given = parse({"path": "x"} | options)
    target: Any = SimpleNamespace(name="table", in_files=in_files)
    with pytest.raises(ExportError, match=message) as caught:
        _check_options(target, given, default_columns(given), by)
    assert caught.value.target == "table"


@pytest.mark.parametrize(
    ("columns", "by", "in_files"),
    [
        ("topic,timestamp", ("topic", "date"), True),
        ("topic,offset", ("topic", "date"), False),
        ("value", (), False),
    ],
)
def test_options_that_an_export_takes(columns: str, by: tuple[str, ...], in_files: bool) -> None:
    given = parse({"path": "x", "columns": columns})
    target: Any = SimpleNamespace(name="table", in_files=in_files)
    _check_options(target, given, default_columns(given), by)


def test_the_definition_has_what_is_asked_and_no_more() -> None:
    columns, by = ("offset", "value"), ("topic",)
    plain = _export_definition(parse({"path": "x", "mode": "PERMISSIVE"}), EVERY_ROW, columns, by)
    assert plain["columns"] == ["offset", "value"] and plain["partition_by"] == ["topic"]
    assert not plain["filters"].keys() & {
        "policy",
        "on_damage",
        "offsets",
        "timestamps",
        "ending_offsets",
    }
    ends = parse({"path": "x", "endingOffsets": '{"t":{"1":9,"0":5}}'})
    query = RowRanges(offsets=(1, None), timestamps=(None, 7))
    limited = _export_definition(ends, query, columns, by)["filters"]
    assert {k: v for k, v in limited.items() if k not in plain["filters"]} == {
        "offsets": [1, None],
        "timestamps": [None, 7],
        "ending_offsets": {"t-0": 5, "t-1": 9},
    }


def test_a_whole_log_has_nothing_missed_lost_or_damaged(tmp_path: Path, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(5, 2))
    table = Table("parquet", tmp_path)
    done = table.export(directory)
    size = sum(path.stat().st_size for path in table.files())
    place = str(tmp_path / "table")
    assert done == Exported(place, 10, 1, size, {}, {("t", 0): 10}, (), 0, 0, 0, ())
    assert table.export(directory) == Exported(place, 0, 0, 0, {("t", 0): 10}, {("t", 0): 10})


def test_lost_bytes_are_counted(tmp_path: Path, directory: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(5, 2))
    good = path.read_bytes()
    path.write_bytes(good + b"\xff" * 300)
    with pytest.warns(UserWarning, match="300 bytes in 1 place"):
        done = Table("parquet", tmp_path).export(directory, mode="DROPMALFORMED")
    assert (done.rows, done.damaged, done.lost_bytes, done.lost_places) == (10, 0, 300, 1)
    assert len(done.lost) == 1 and f"bytes {len(good)} to {len(good) + 300}" in done.lost[0]


def test_errors_of_a_table_are_errors_of_the_export() -> None:
    target: Any = SimpleNamespace(name="table", secrets={"key": "swordfish"})
    with pytest.raises(ExportError, match=r"^table: ") as caught, _table_errors(target):
        raise RuntimeError("no answer with swordfish")
    assert "swordfish" not in str(caught.value)
    with pytest.raises(ExportError, match=r"^table: RuntimeError"), _table_errors(target):
        raise RuntimeError
    with pytest.raises(ExportError, match=r"^table: "), _table_errors(target):
        raise OSError(5, "of the store")
    for passes in (ExportError("other", "x"), FileNotFoundError(2, "x", "file")):
        with pytest.raises(type(passes)) as same, _table_errors(target):
            raise passes
        assert same.value is passes


def test_columns_of_files_leave_out_those_of_directories() -> None:
    job: Any = SimpleNamespace(columns=("topic", "offset"), partition_by=("topic",), in_files=False)
    assert Job.file_columns.fget(job) == ("offset",)  # type: ignore[attr-defined]
    job.in_files = True
    assert Job.file_columns.fget(job) == ("topic", "offset")  # type: ignore[attr-defined]
