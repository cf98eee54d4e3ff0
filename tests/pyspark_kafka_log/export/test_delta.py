"""Delta tables of exports: statistics of files, the names under which a table keeps the state, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka_log.export import ExportError
from pyspark_kafka_log.export.delta import statistics
from pyspark_kafka_log.export.state import State
from pyspark_kafka_log.export.writing import File
from tests.support.spark_logs import numbered, write
from tests.support.spark_tables import Table, here

deltalake = pytest.importorskip("deltalake")

YEAR_10000_US = 253_402_300_800_000_000


def stats(least: dict[str, int], greatest: dict[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(statistics(File("a", 7, 100, (), least, greatest)))
    return found


def test_times_are_rounded_outwards_to_milliseconds() -> None:
    assert stats({"offset": 3, "timestamp": 1_999}, {"offset": 9, "timestamp": 86_400_001_001}) == {
        "numRecords": 7,
        "minValues": {"offset": 3, "timestamp": "1970-01-01T00:00:00.001Z"},
        "maxValues": {"offset": 9, "timestamp": "1970-01-02T00:00:00.002Z"},
    }
    same = {"timestamp": 5_000}
    found = stats(same, same)
    assert found["minValues"] == found["maxValues"] == {"timestamp": "1970-01-01T00:00:00.005Z"}


def test_times_after_year_9999_have_no_statistics() -> None:
    found = stats({"timestamp": 0}, {"offset": 1, "timestamp": YEAR_10000_US})
    assert found["minValues"] == {"timestamp": "1970-01-01T00:00:00.000Z"}
    assert found["maxValues"] == {"offset": 1}


def test_partition_columns_are_not_in_statistics(tmp_path: Path, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(5, 2))
    table = Table("delta", tmp_path)
    table.export(directory, by=("partition",))
    (added,) = pa.table(deltalake.DeltaTable(table.place).get_add_actions(flatten=True)).to_pylist()
    assert (added["num_records"], added["partition.partition"]) == (10, 0)
    assert (added["min.offset"], added["max.offset"]) == (0, 9)


def test_state_is_in_the_metadata_of_the_commit(tmp_path: Path, directory: Path) -> None:
    """These names are in tables of users: later versions must find the state by them."""
    write(directory, "t", 0, 0, numbered(5, 2))
    table = Table("delta", tmp_path)
    begun = time.time_ns() // 1_000_000
    table.export(directory)
    found = deltalake.DeltaTable(table.place)
    (modified,) = found.get_add_actions()["modification_time"].to_pylist()
    assert begun <= modified <= begun + 600_000
    state = State.from_json("table", found.history(1)[0]["kafkaLog.state"])
    assert (state.number, state.ends) == (1, {("t", 0): 10})
    assert found.transaction_version("kafka-log-export") == 1


def test_a_table_whose_log_has_lost_the_last_export_is_refused(
    tmp_path: Path, directory: Path
) -> None:
    """Delta removes old commits after a checkpoint. Nobody knows then where to continue."""
    write(directory, "t", 0, 0, numbered(5, 2))
    table = Table("delta", tmp_path)
    table.export(directory)
    deltalake.DeltaTable(table.place).create_checkpoint()
    (Path(table.place) / "_delta_log" / f"{0:020}.json").unlink()
    write(directory, "t", 0, 0, numbered(5, 3))
    for _ in range(2):
        with pytest.raises(ExportError, match="no longer has the commit of the last export"):
            table.export(directory)
    assert len(table.rows()) == 10


def test_a_directory_is_made_or_taken_if_it_is_empty(tmp_path: Path, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(5, 1))
    for name, there in (("made", False), ("taken", True)):
        scratch = tmp_path / name
        scratch.mkdir()
        table = Table("delta", scratch)
        if there:
            Path(table.place).mkdir()
        else:
            warehouse = scratch / "warehouse"
            warehouse.rmdir()
            scratch.rmdir()
        assert table.export(directory).rows == 5


def test_a_delta_table_without_an_export_is_refused(tmp_path: Path, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(5, 1))
    table = Table("delta", tmp_path)
    deltalake.write_deltalake(table.place, pa.table({"a": [1]}))
    with pytest.raises(ExportError) as caught:
        table.export(directory)
    told = f"{table.place}: the Delta table was not made by an export"
    assert str(caught.value).startswith(told)
    assert caught.value.target == table.place


@pytest.mark.parametrize(
    "text", ['{"commitInfo":', '{"protocol":{"minReaderVersion":99,"minWriterVersion":2}}']
)
def test_a_table_that_cannot_be_opened_is_named(text: str, tmp_path: Path, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(5, 1))
    table = Table("delta", tmp_path)
    table.export(directory)
    (Path(table.place) / "_delta_log" / f"{0:020}.json").write_text(text)
    with pytest.raises(ExportError) as caught:
        table.export(directory)
    assert caught.value.target == table.place
    assert "unknown" not in str(caught.value)


LIMITED = """
import resource, signal, sys
from pathlib import Path
from pyspark_kafka_log.export import ExportError
from pyspark_kafka_log.export.delta import DeltaTarget
from tests.support.spark_tables import Table

class Full(DeltaTarget):
    def commit(self, *arguments):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
        super().commit(*arguments)

class FullTable(Table):
    def target(self):
        target = super().target()
        target.__class__ = Full
        return target

try:
    FullTable("delta", Path(sys.argv[1])).export(Path(sys.argv[2]))
except ExportError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_commit_that_cannot_be_written_names_the_table(tmp_path: Path, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(5, 1))
    command = [sys.executable, "-c", LIMITED, str(tmp_path), str(directory)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"{tmp_path / 'table'}: ")
    assert "\x1b" not in said


@pytest.mark.slow
def test_a_catalog_that_cannot_be_read_names_the_table(tmp_path: Path, directory: Path) -> None:
    pytest.importorskip("pyiceberg")
    write(directory, "t", 0, 0, numbered(5, 1))
    table = Table("iceberg", tmp_path)
    table.export(directory)
    (tmp_path / "catalog.db").write_bytes(b"garbage" * 1000)
    with pytest.raises(
        ExportError, match=r"^logs\.records: the catalog cannot be used: .*not a database"
    ):
        table.export(directory)


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("by", [(), ("topic", "date")])
def test_a_failed_job_leaves_no_directory_that_it_made(
    tmp_path: Path, directory: Path, by: tuple[str, ...], is_there: bool
) -> None:
    write(directory, "t", 0, 0, numbered(5, 1))
    table = Table("delta", tmp_path)
    place = Path(table.place)
    if is_there:
        place.mkdir()

    def fail_late(tasks: Any, job: Any) -> Any:
        here(tasks, job)
        raise OSError("the executor is gone")

    def fail_early(tasks: Any, job: Any) -> Any:
        raise OSError("there is no executor")

    for fail in (fail_early, fail_late):
        with pytest.raises(OSError, match="executor"):
            table.export(directory, fail, by)
        assert place.exists() == is_there
    assert table.export(directory, by=by).rows == 5
