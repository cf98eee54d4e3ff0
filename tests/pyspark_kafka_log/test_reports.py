"""Answers about logs as data frames: the same rows as :class:`kafka_log.LogDirectory` gives."""

from __future__ import annotations

import errno
import os
import shutil
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from crc32c import crc32c
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import kafka_log
from codecgen.runtime.errors import CodecError
from kafka_log import LogDirectory
from kafka_log.logs import discovery
from kafka_log.read.internal_topics import VIEWS
from kafka_log.segment.times import MS_MAX
from pyspark_kafka_log.options import KNOWN, OptionError, default_columns, parse
from pyspark_kafka_log.options.reports import REPORTS
from pyspark_kafka_log.reader import Task
from pyspark_kafka_log.report_rows import (
    BATCH_COLUMNS,
    _cast_array,
    _now_ms,
    _spark_type,
    report_schema,
)
from pyspark_kafka_log.reports import ReportReader, report_types
from pyspark_kafka_log.splits.filters import RowRanges
from pyspark_kafka_log.stream.options import parse_stream
from tests.paths import SAMPLES
from tests.support.spark_logs import batch, build, flipped, write
from tests.support.spark_queries import load
from tests.support.spark_reports import read_here

pytestmark = pytest.mark.spark

NEW = SAMPLES / "kafka-4.x"

ANSWERS: Mapping[str, Callable[[Path], pa.Table]] = {
    "batches": lambda path: kafka_log.scan_batches(path, list(BATCH_COLUMNS)).read_all(),
    "stat": lambda path: LogDirectory(path).stat(),
    "segments": lambda path: LogDirectory(path).ls(segments=True),
    "log_transactions": lambda path: LogDirectory(path).txn(),
    "producers": lambda path: LogDirectory(path).producers(),
    "keys": lambda path: LogDirectory(path).keys(),
    "findings": lambda path: LogDirectory(path).check(),
}
OF_NOW = ("duration_ms",)
"""What is not the same a moment later."""


def rows(table: pa.Table) -> list[str]:
    """The rows in an order that does not hang on tasks."""
    kept = [name for name in table.column_names if name not in OF_NOW]
    return sorted(repr(row) for row in table.select(kept).to_pylist())


def of(frame: DataFrame) -> list[str]:
    return rows(frame.toArrow())


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker's directory with a wrong byte, a torn tail, a lost index, and a checkpoint that is none."""
    path = tmp_path_factory.mktemp("damaged") / "logs"
    shutil.copytree(NEW, path)
    wrong = path / "codecs-1" / f"{0:020}.log"
    data = bytearray(wrong.read_bytes())
    data[len(data) // 2] ^= 1
    wrong.write_bytes(data)
    torn = path / "transactions-0" / f"{0:020}.log"
    torn.write_bytes(torn.read_bytes()[:-7])
    (path / "features-0" / f"{0:020}.index").unlink(missing_ok=True)
    (path / "recovery-point-offset-checkpoint").write_text("none\n")
    return path


# ---------------------------------------------------------------- rows


@pytest.mark.slow
@pytest.mark.parametrize("view", REPORTS)
def test_tasks_have_the_rows_of_the_answer(directory: Path, view: str) -> None:
    """Each task has a partition, or the directories for findings, and its batches have at most the wanted rows. No Java is needed."""
    for name in ("transactions-0", "__transaction_state-0", "codecs-0", "codecs-1"):
        shutil.copytree(NEW / name, directory / name)
    wrong = directory / "codecs-1" / f"{0:020}.log"
    wrong.write_bytes(flipped(wrong.read_bytes(), wrong.stat().st_size // 2))
    (directory / "recovery-point-offset-checkpoint").write_text("none\n")
    found = read_here(directory, view, splitBytes="1", batchRows="1")
    every = pa.Table.from_batches(found)
    assert rows(every) == rows(ANSWERS[view](directory))
    assert max(batch.num_rows for batch in found) == 1 < every.num_rows
    wanted = [row for row in every["topic"].to_pylist() if row in ("codecs", None)]
    filtered = read_here(directory, view, RowRanges(topics=frozenset(["codecs"])))
    assert [row for batch in filtered for row in batch["topic"].to_pylist()] == wanted
    chosen = read_here(directory, view, subscribe="codecs")
    assert [row for batch in chosen for row in batch["topic"].to_pylist()] == wanted


def test_findings_of_directories_come_first_in_a_task_of_their_own(damaged: Path) -> None:
    options = parse({"path": str(damaged), "view": "findings"})
    first, *others = ReportReader(options, default_columns(options)).partitions()
    assert isinstance(first, Task) and others
    assert [(one.partition, one.directories, one.size) for one in first.splits] == [
        (None, (damaged,), 0)
    ]
    of_partitions = [one for task in others if isinstance(task, Task) for one in task.splits]
    assert all(one.partition is not None and not one.directories for one in of_partitions)
    sizes = {one.partition.key: one.size for one in of_partitions}
    assert sizes["compacted", 0] == sum(
        path.stat().st_size for path in (damaged / "compacted-0").glob("*.log")
    )


@pytest.mark.parametrize("view", ["batches", "stat", "log_transactions", "producers", "keys"])
def test_offsets_choose_rows_without_spark(directory: Path, view: str) -> None:
    for name in ("transactions-0", "__transaction_state-0"):
        shutil.copytree(NEW / name, directory / name)
    (directory / "empty-0").mkdir()
    bounds = '{"transactions":{"0":20},"empty":{"0":-2}}'
    some = read_here(directory, view, subscribe="transactions,empty", startingOffsets=bounds)
    log = LogDirectory(directory, topics=["transactions", "empty"])
    offsets = (20, None)
    wanted = {
        "batches": lambda: kafka_log.scan_batches(
            directory, list(BATCH_COLUMNS), topics=["transactions"], offsets=offsets
        ).read_all(),
        "stat": lambda: log.stat(offsets=offsets),
        "log_transactions": lambda: log.txn(offsets=offsets),
        "producers": lambda: log.producers(offsets=offsets),
        "keys": lambda: log.keys(offsets=offsets),
    }[view]()
    assert rows(pa.Table.from_batches(some)) == rows(wanted)
    assert wanted.num_rows > 0


@pytest.mark.parametrize("view", ["batches", "log_transactions", "producers"])
def test_damage_is_an_error_or_a_warning_without_spark(directory: Path, view: str) -> None:
    good = (NEW / "transactions-0" / f"{0:020}.log").read_bytes()
    write(directory, "t", 0, 0, good[:100] + b"\xff" * 300 + good)
    with pytest.raises(CodecError, match=r"00000000000000000000\.log"):
        read_here(directory, view)
    with pytest.warns(UserWarning, match=r"kafka-log: .*00000000000000000000\.log"):
        assert read_here(directory, view, mode="DROPMALFORMED")


def test_types_are_those_of_spark() -> None:
    types = report_types("batches")
    assert tuple(types) == BATCH_COLUMNS
    assert (types["magic"].typeName(), types["topic"].typeName()) == ("integer", "string")


def test_open_transactions_last_until_now() -> None:
    assert abs(_now_ms() / 1000 - time.time()) < 60


def test_times_beyond_microseconds_are_null() -> None:
    times = pa.array([MS_MAX, MS_MAX + 1, -MS_MAX, -MS_MAX - 1, None], pa.timestamp("ms", "UTC"))
    found = _cast_array(times, _spark_type(times.type)).cast(pa.int64())
    assert found.to_pylist() == [MS_MAX * 1000, None, -MS_MAX * 1000, None, None]


@pytest.mark.share(3)
@pytest.mark.parametrize("view", REPORTS)
def test_rows_are_those_of_the_answer(spark: SparkSession, view: str, damaged: Path) -> None:
    found = of(load(spark, NEW, view=view))
    assert found == rows(ANSWERS[view](NEW))
    assert bool(found) == (view != "findings")
    if view in ("stat", "segments", "keys", "findings"):
        assert of(load(spark, damaged, view=view)) == rows(ANSWERS[view](damaged)) != found


@pytest.mark.parametrize("view", ["stat", "findings"])
def test_every_record_is_decoded_if_asked(spark: SparkSession, view: str, directory: Path) -> None:
    """A record that its batch's checksum does not give away: only who decodes it sees what is wrong."""
    whole = build(batch(0, [b"a" * 50] * 4))
    wrong = bytearray(whole)
    wrong[whole.index(b"a" * 50) - 1] += 2  # the length of the first value
    struct.pack_into(">I", wrong, 17, crc32c(bytes(wrong[21:])))
    write(directory, "t", 0, 0, bytes(wrong))
    log = LogDirectory(directory)
    deep, shallow = (
        (log.stat(deep=True), log.stat()) if view == "stat" else (log.check(deep=True), log.check())
    )
    assert rows(deep) != rows(shallow)
    assert of(load(spark, directory, view=view, deep="true")) == rows(deep)
    assert of(load(spark, directory, view=view, deep="false")) == rows(shallow)
    with pytest.raises(
        PySparkException, match="option deep: it applies only to the views stat and findings"
    ):
        load(spark, directory, deep="true")


def test_columns_that_are_chosen_and_counted(spark: SparkSession) -> None:
    frame = load(spark, NEW, view="batches")
    assert tuple(frame.columns) == BATCH_COLUMNS
    assert dict(frame.dtypes)["magic"] == "int"
    assert dict(frame.dtypes)["topic"] == "string"
    every = kafka_log.scan_batches(NEW, ["size", "base_offset", "topic"]).read_all()
    assert of(frame.select("size", "base_offset", "topic")) == rows(every)
    assert frame.count() == every.num_rows
    assert load(spark, NEW, view="stat", columns="records,topic").columns == ["records", "topic"]
    with pytest.raises(Exception, match="there is no column 'record'; did you mean records"):
        load(spark, NEW, view="stat", columns="record")


def test_filters_leave_what_they_mean(spark: SparkSession, damaged: Path) -> None:
    batches = load(spark, NEW, view="batches")
    some = kafka_log.scan_batches(NEW, list(BATCH_COLUMNS), topics="codecs", partitions=[1, 2])
    assert of(batches.where("topic = 'codecs' AND partition IN (1, 2)")) == rows(some.read_all())
    assert batches.where("partition > 1000").count() == 0
    findings = load(spark, damaged, view="findings")
    every = LogDirectory(damaged).check().to_pylist()
    for topic in (None, "codecs"):
        where = findings.where("topic IS NULL" if topic is None else f"topic = '{topic}'")
        assert of(where) == sorted(repr(row) for row in every if row["topic"] == topic) != []


def test_tasks_are_of_partitions(spark: SparkSession) -> None:
    found = LogDirectory(NEW).partitions
    frame = load(spark, NEW, view="stat", splitBytes=1)
    assert frame.rdd.getNumPartitions() == len(found)
    assert of(frame) == rows(LogDirectory(NEW).stat())
    assert load(spark, NEW, view="stat", subscribe="codecs").count() == sum(
        p.topic == "codecs" for p in found
    )


# ---------------------------------------------------------------- options


def test_offsets_and_topics_choose(spark: SparkSession) -> None:
    bounds = '{"transactions":{"0":5,"1":-2,"2":-2}}'
    frame = load(spark, NEW, view="stat", subscribe="transactions", startingOffsets=bounds)
    wanted = [
        LogDirectory(NEW, topics="transactions", partitions=number).stat(offsets=(first, None))
        for number, first in ((0, 5), (1, None), (2, None))
    ]
    assert of(frame) == rows(pa.concat_tables(wanted))
    # What coordinators say is known, whatever topics are chosen.
    frame = load(spark, NEW, view="log_transactions", subscribe="transactions")
    found = LogDirectory(NEW, topics="transactions").txn()
    assert of(frame) == rows(found)
    assert set(found.column("coordinator_state").to_pylist()) - {None}
    at = int(
        kafka_log.read_table(NEW, ["timestamp"], topics="compacted")
        .to_pylist()[-1]["timestamp"]
        .timestamp()
        * 1000
    )
    late = load(
        spark,
        NEW,
        view="batches",
        subscribe="compacted",
        startingTimestamp=at,
        startingOffsetsByTimestampStrategy="latest",
    )
    assert 0 < late.count() < load(spark, NEW, view="batches", subscribe="compacted").count()


def test_damage_is_an_error_or_a_warning(spark: SparkSession, directory: Path) -> None:
    log = directory / "t-0" / f"{0:020}.log"
    log.parent.mkdir()
    good = (NEW / "transactions-0" / log.name).read_bytes()
    log.write_bytes(good[:100] + b"\xff" * 300 + good)
    for view in ("batches", "log_transactions", "producers"):
        with pytest.raises(Exception, match=r"00000000000000000000\.log"):
            load(spark, directory, view=view).collect()
        assert load(spark, directory, view=view, mode="DROPMALFORMED").count() > 0
    salvaged = load(spark, directory, view="stat", policy="salvage")
    assert of(salvaged) == rows(LogDirectory(directory).stat(policy="salvage"))
    assert salvaged.first()["problems"] > 0


@pytest.mark.slow
def test_places_that_are_unusual(spark: SparkSession, directory: Path) -> None:
    for view in REPORTS:
        assert load(spark, directory, view=view).count() == 0, view
    segment = NEW / "features-0" / f"{0:020}.log"
    assert load(spark, segment, view="batches").count() == (
        kafka_log.scan_batches(segment).read_all().num_rows
    )
    (directory / "empty-0").mkdir()
    (directory / "empty-1").mkdir()
    (directory / "empty-1" / segment.name).touch()
    for view in REPORTS:
        assert of(load(spark, directory, view=view)) == rows(ANSWERS[view](directory)), view


@pytest.mark.parametrize("view", REPORTS)
def test_a_partition_that_cannot_be_read(
    directory: Path, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an error, said in a row, or warned of: never passed over. No Java is needed."""
    shutil.copytree(NEW / "features-0", directory / "features-0")
    plain = discovery.list_directory

    def files_of(path: Path) -> Any:
        if path.name == "features-0":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
        return plain(path)

    monkeypatch.setattr(discovery, "list_directory", files_of)

    def read(**given: str) -> list[dict[str, Any]]:
        return [row for batch in read_here(directory, view, **given) for row in batch.to_pylist()]

    if view in ("stat", "findings"):
        (row,) = read()
        assert "Permission denied" in (row["first_problem"] if view == "stat" else row["meaning"])
        return
    if view != "segments":
        with pytest.raises(OSError, match="Permission denied"):
            read()
    if view != "keys":
        dropping = {} if view == "segments" else {"mode": "DROPMALFORMED"}
        with pytest.warns(UserWarning, match="Permission denied"):
            assert not read(**dropping)


def test_replicas(spark: SparkSession, directory: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(NEW / "features-0", directory / name / "features-0")
    both = [str(directory / "a"), str(directory / "b")]
    assert load(spark, both, view="stat", replicas="keep").count() == 2
    assert load(spark, both, view="stat", replicas="newest").count() == 1
    with pytest.raises(Exception, match="its records would be read twice"):
        load(spark, both, view="stat").collect()


@pytest.mark.parametrize("view", REPORTS)
def test_every_option_is_taken_or_refused(view: str) -> None:
    assert set(REPORTS[view]) <= set(KNOWN)
    examples = {
        "engine": "arrow",
        "deep": "true",
        "mode": "PERMISSIVE",
        "policy": "salvage",
        "includeHeaders": "true",
    }
    examples |= {
        "includeDeletedRecords": "true",
        "isolationLevel": "read_committed",
        "include": "all",
    }
    taken = 0
    for name, value in examples.items():
        given = {"path": "x", "view": view, name: value}
        if name == "policy" and "mode" in REPORTS[view]:
            given["mode"] = "PERMISSIVE"
        if name in REPORTS[view]:
            assert parse(given).report == view
            taken += 1
        else:
            with pytest.raises(
                OptionError, match=f"option {name}: the view {view} does not support it"
            ):
                parse(given)
    assert taken < len(examples)
    with pytest.raises(OptionError, match="read it in a batch query"):
        parse_stream({"path": "x", "view": view})


def test_names_are_of_one_thing() -> None:
    assert not REPORTS.keys() & VIEWS.keys()
    assert REPORTS.keys() == ANSWERS.keys()
    assert {name for view in REPORTS for name in report_schema(view).names} > {"topic", "partition"}
    with pytest.raises(OptionError, match=r"one of acls, .*batches, .*findings, .*transactions"):
        parse({"path": "x", "view": "batch"})


def test_numbers_of_64_bits_without_a_sign() -> None:
    """Spark has no integers for them: they are decimals with all their digits."""
    assert _spark_type(pa.uint64()) == pa.decimal128(20, 0)
    found = _cast_array(pa.array([0, (1 << 64) - 1, None], pa.uint64()), _spark_type(pa.uint64()))
    assert found.to_pylist() == [0, (1 << 64) - 1, None]
