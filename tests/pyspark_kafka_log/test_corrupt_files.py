"""``ignoreCorruptFiles``: what was read of a file before damage stays, the rest of it is skipped, and the query goes on."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_log.segment import regular_files
from kafka_log.segment.kernels import Engine
from pyspark_kafka_log.export.job import run_export
from pyspark_kafka_log.export.state import ExportError
from pyspark_kafka_log.options import OptionError, parse
from pyspark_kafka_log.reader import KafkaLogReader
from pyspark_kafka_log.splits.filters import parse_filters
from pyspark_kafka_log.stream.options import parse_stream
from tests.support.made_topics import marker
from tests.support.spark_damage import (
    DAMAGES,
    ENGINES,
    PER,
    a_record_that_is_none,
    checksum,
    damaged,
    data,
    noise,
    segment,
)
from tests.support.spark_logs import TIME, batch, build, flipped, numbered, write
from tests.support.unreadable_files import bad


def read(
    directory: Path, *columns: str, told: list[str] | None = None, filters: Any = (), **options: Any
) -> list[Any]:
    given = {"path": str(directory), "ignoreCorruptFiles": "true"} | options
    reader = KafkaLogReader(parse(given), columns or ("offset",), parse_filters(filters))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        rows = [
            tuple(row.values())
            for task in reader.partitions()
            for rows in reader.read(task)
            for row in rows.to_pylist()
        ]
    if told is not None:
        told += [str(warning.message) for warning in found]
    return [row[0] for row in rows] if len(columns) < 2 else rows


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bad", [0, 2])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_the_rest_of_the_file_is_skipped(
    directory: Path, damage: Callable[[bytes, int], bytes], bad: int, engine: Engine
) -> None:
    path = damaged(directory, damage, bad)
    with pytest.raises(Exception, match=re.escape(str(path))):
        read(directory, "offset", "timestamp", ignoreCorruptFiles="false", engine=engine)
    told: list[str] = []
    rows = read(directory, "topic", "offset", "value", "timestamp", engine=engine, told=told)
    whole = [n for n in range(12 * PER) if not 4 * PER + bad * PER <= n < 8 * PER]
    assert [(topic, offset) for topic, offset, *_ in rows] == [
        *(("t", n) for n in whole),
        *(("u", n) for n in range(4 * PER)),
    ]
    assert all(value.rstrip(b".") == b"%d" % offset for _, offset, value, _ in rows)
    (warning,) = [text for text in told if "the rest of a corrupt file" in text]
    at, size = len(segment(4 * PER, bad)), path.stat().st_size
    assert f"{path}: bytes {at} to {size}: the rest of a corrupt file: " in warning
    assert f"{size - at} bytes in 1 place" in warning


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("damage", [checksum, noise, a_record_that_is_none])
def test_the_same_rows_however_they_are_asked_for(
    directory: Path, damage: Callable[[bytes, int], bytes], engine: Engine
) -> None:
    """Tasks, filters and columns neither hide damage nor cut a file where it goes on."""
    damaged(directory, damage, 1)
    every = read(directory, "topic", "offset", engine=engine)
    for options in (
        {"splitBytes": "100"},
        {"minPartitions": "50"},
        {"maxRecordsPerPartition": "3"},
        {"batchRows": "2"},
    ):
        assert read(directory, "topic", "offset", engine=engine, **options) == every
    low, high = 4 * PER + 3 * PER, 8 * PER + 3
    filters = [("offset", ">=", low), ("offset", "<", high), ("topic", "=", "t")]
    some = read(directory, "topic", "offset", engine=engine, filters=filters)
    inside = [row for row in every if row[0] == "t" and low <= row[1] < high]
    assert [row for row in some if low <= row[1] < high] == inside
    late = read(
        directory, "offset", engine=engine, filters=[("timestamp", ">", TIME * 1000 + 10**9)]
    )
    assert set(late) <= {offset for _, offset in every}
    for column in ("key", "value", "headers", "timestamp", "segment", "baseOffset", "problem"):
        assert len(read(directory, column, engine=engine)) == len(every)
    assert set(read(directory, "problem", engine=engine)) == {None}


def test_offsets_and_times_of_options_look_past_damage(directory: Path) -> None:
    damaged(directory, checksum, 1)
    path = {"subscribe": "t", "startingOffsets": '{"t":{"0":23}}'}
    assert read(directory, **path) == [23, 24, *range(40, 60)]
    # What would be found behind the damage is not read, what lies before is.
    times = {"subscribe": "t", "startingTimestamp": str(TIME + 3)}
    assert read(directory, **times) == [*range(3, 25), *range(40, 60)]


@pytest.mark.parametrize(
    "options", [{"ignoreCorruptFiles": "true"}, {"mode": "PERMISSIVE"}], ids=str
)
def test_what_is_lost_before_a_starting_time_is_reported(
    directory: Path, options: dict[str, str]
) -> None:
    """No task reads a segment before the first record that was found, although a record of the time may have been in it."""
    damaged(directory, lambda data, at: data, 0)
    path = directory / "t-0" / f"{0:020}.log"
    size = path.stat().st_size
    path.write_bytes(b"\xa5" * size)
    told: list[str] = []
    given = {"subscribe": "t", "startingTimestamp": str(TIME + 3)} | options
    rows = read(directory, told=told, **given)
    assert rows == [*range(4 * PER + 3, 12 * PER)]
    (warning,) = told
    assert f"data is lost: {path}: bytes 0 to {size} before the first record" in warning


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sector_that_cannot_be_read(directory: Path, engine: Engine) -> None:
    damaged(directory, lambda data, at: data, 0)
    path = directory / "t-0" / f"{4 * PER:020}.log"
    at, size = len(segment(4 * PER, 2)), path.stat().st_size
    told: list[str] = []
    with bad(path, [(at + 10, at + 20)]):
        rows = read(directory, subscribe="t", engine=engine, told=told)
    assert rows == [*range(30), *range(40, 60)]
    assert (
        f"{path}: bytes {at} to {size}: the rest of a corrupt file: Input/output error" in told[0]
    )


@pytest.mark.parametrize("policy", ["kafka", "strict"])
def test_with_policies(directory: Path, policy: str) -> None:
    damaged(directory, checksum, 1)
    assert read(directory, subscribe="t", policy=policy) == [*range(25), *range(40, 60)]


def test_other_modes_are_what_they_are(directory: Path) -> None:
    """They go on after damage in a file."""
    damaged(directory, checksum, 1)
    for mode in ("PERMISSIVE", "DROPMALFORMED"):
        with_it = read(directory, "offset", "problem", mode=mode)
        assert with_it == read(
            directory, "offset", "problem", mode=mode, ignoreCorruptFiles="false"
        )
        assert (35, None) in with_it


@pytest.mark.parametrize("committed", [False, True])
def test_transactions_whose_end_is_not_read_are_not_believed(
    directory: Path, committed: bool
) -> None:
    """The marker that ends one lies in a damaged batch: nothing of it comes, and nothing from the last stable offset on."""
    options = {"isolationLevel": "read_committed"} if committed else {}
    first = data(0, 7) + marker(2, 7, "commit") + data(3, 8) + marker(5, 8, "abort") + data(6, 9)
    end = marker(8, 9, "abort")
    write(directory, "t", 0, 0, first)
    broken = write(directory, "t", 0, 8, flipped(end, len(end) - 8) + data(9, 7))
    write(directory, "t", 0, 11, marker(11, 7, "commit") + data(12, 7) + marker(14, 7, "commit"))
    assert read(directory, **options) == ([0, 1] if committed else [0, 1, 3, 4, 6, 7, 12, 13])
    # A whole marker behind damage ends its transaction.
    other = build(batch(8, [b"v"], pad=40))
    broken.write_bytes(flipped(other, len(other) - 8) + marker(9, 9, "commit"))
    assert read(directory, **options) == (
        [0, 1, 6, 7, 12, 13] if committed else [0, 1, 3, 4, 6, 7, 12, 13]
    )


def test_what_is_no_damage_fails(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is gone, or may not be read: not for this option."""
    path = damaged(directory, checksum, 1)
    reader = KafkaLogReader(
        parse({"path": str(directory), "ignoreCorruptFiles": "true"}), ("offset",)
    )
    tasks = reader.partitions()
    path.unlink()
    with pytest.raises(OSError, match="No such file"):
        [list(reader.read(task)) for task in tasks]

    def refused(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    write(directory, "t", 0, 4 * PER, segment(4 * PER))
    monkeypatch.setattr(regular_files, "_open_descriptor", refused)
    with pytest.raises(OSError, match="Permission denied"):
        [list(reader.read(task)) for task in tasks]


def test_where_it_is_refused() -> None:
    with pytest.raises(OptionError, match="option ignoreCorruptFiles: a stream continues in files"):
        parse_stream({"path": "/x", "ignoreCorruptFiles": "true"})
    for view in ("batches", "stat", "findings"):
        with pytest.raises(
            OptionError, match=f"ignoreCorruptFiles: the view {view} does not support"
        ):
            parse({"path": "/x", "view": view, "ignoreCorruptFiles": "true"})


def test_exports_go_on_where_the_last_one_ended() -> None:
    class Target:
        name = "there"
        in_files = True

    options = parse({"path": "/x", "ignoreCorruptFiles": "true"})
    with pytest.raises(ExportError, match="use mode, not ignoreCorruptFiles"):
        run_export(None, options, Target(), ("topic",), parallelism=1)


# ---------------------------------------------------------------- in Spark


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    source = spark.conf.get("spark.tests.format")
    assert source is not None
    return (
        spark.read.format(source)
        .options(**{"ignoreCorruptFiles": "true"} | options)
        .load(str(path))
    )


@pytest.mark.spark
def test_in_both_lanes(spark: SparkSession, directory: Path) -> None:
    damaged(directory, checksum, 1)
    frame = load(spark, directory)
    rows = frame.select("topic", "offset").collect()
    assert sorted(rows) == [
        *(("t", n) for n in [*range(25), *range(40, 60)]),
        *(("u", n) for n in range(20)),
    ]
    # What is counted and pushed is what is there.
    assert frame.count() == len(rows) == frame.agg(F.count("offset")).collect()[0][0]
    numbers = frame.agg(F.min("offset"), F.max("offset"), F.max("timestamp"))
    assert tuple(numbers.collect()[0])[:2] == (0, 59)
    by_topic = frame.groupBy("topic").count().orderBy("topic").collect()
    assert [tuple(row) for row in by_topic] == [("t", 45), ("u", 20)]
    hidden = frame.where("topic = 't' and offset >= 35 and offset < 42")
    assert sorted(row.offset for row in hidden.collect()) == [40, 41]
    assert hidden.count() == 2
    assert len(frame.limit(3).collect()) == 3
    assert sorted(load(spark, directory, splitBytes="200").select("topic", "offset").collect()) == (
        sorted(rows)
    )


@pytest.mark.spark
def test_a_stream_refuses_it(spark: SparkSession, directory: Path, tmp_path: Path) -> None:
    write(directory, "t", 0, 0, numbered(2, 1))
    source = spark.conf.get("spark.tests.format")
    assert source is not None
    with pytest.raises(Exception, match="ignoreCorruptFiles: a stream continues in files"):
        frame = spark.readStream.format(source).option("ignoreCorruptFiles", "true")
        query = (
            frame.load(str(directory))
            .writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        try:
            query.processAllAvailable()
        finally:
            query.stop()
