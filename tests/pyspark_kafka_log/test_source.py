"""The data source in a real Spark."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from kafka_log import SegmentReader, discover
from pyspark_kafka_log.columns import COLUMNS, DEFAULT_COLUMNS
from pyspark_kafka_log.connector.worker import error_text
from pyspark_kafka_log.options import OptionError, parse
from pyspark_kafka_log.reader import KafkaLogReader
from pyspark_kafka_log.source import DefaultSource
from tests.paths import SAMPLES, VECTORS
from tests.support.arrow_limits import LARGEST
from tests.support.spark_logs import (
    TIME,
    batch,
    build,
    flipped,
    milliseconds,
    numbered,
    vector,
    write,
)
from tests.support.spark_queries import column, load
from tests.support.spark_schemas import HEADERS, KAFKA
from tests.support.tiers import IDS, TIER

pytestmark = pytest.mark.spark


# ---------------------------------------------------------------- schema


@pytest.mark.python_lane
def test_the_columns_of_sparks_own_kafka_source(spark: SparkSession) -> None:
    logs = SAMPLES / "kafka-4.x" / "features-0"
    assert load(spark, logs).schema == KAFKA
    assert load(spark, logs, includeHeaders=True).schema == StructType([*KAFKA.fields, HEADERS])
    wide = load(spark, logs, includeHeaders=True, includeMetadata=True)
    assert wide.columns == list(COLUMNS)
    assert load(spark, logs, columns="magic,offset").columns == ["magic", "offset"]


def test_headers_are_null_when_there_are_none(spark: SparkSession, directory: Path) -> None:
    vector(directory, "t", "features/v2-lz4-headers")
    found = column(load(spark, directory, includeHeaders=True), "headers")
    path = directory / "t-0" / f"{0:020}.log"
    ours = [record.headers for one in SegmentReader(path) for record in one.records]
    assert [h and [(pair["key"], pair["value"]) for pair in h] for h in found] == [
        list(headers) or None for headers in ours
    ]
    assert found[-1] is None


# ---------------------------------------------------------------- rows


def every_row(directory: Path) -> list[dict[str, Any]]:
    """What SegmentReader gives, as rows."""
    out = []
    for partition in discover(directory):
        for segment in partition.segments:
            for found in SegmentReader(segment.path):
                out += [
                    {
                        "key": record.key,
                        "value": record.value,
                        "topic": segment.topic,
                        "partition": segment.partition,
                        "offset": record.offset,
                        "timestamp": record.timestamp,
                        "timestampType": found.timestamp_type,
                        "headers": [{"key": k, "value": v} for k, v in record.headers] or None,
                        "baseOffset": found.base_offset,
                        "position": found.position,
                        "magic": found.magic,
                        "compression": found.compression,
                        "producerId": found.producer_id,
                        "producerEpoch": found.producer_epoch,
                        "sequence": record.sequence,
                        "partitionLeaderEpoch": found.partition_leader_epoch,
                        "isTransactional": found.is_transactional,
                        "isControl": found.is_control,
                        "controlType": record.control and record.control.type,
                        "segment": str(segment.path),
                        "problem": None,
                    }
                    for record in found.records
                ]
    return out


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Formats, codecs, headers, control records, compaction: a topic each."""
    directory = tmp_path_factory.mktemp("mixture")
    names = [*VECTORS.glob("matrix/*.log"), *VECTORS.glob("compacted/*.log")]
    names += [
        VECTORS / "features" / f"{n}.log"
        for n in ("mixed-magic-interleaved", "v2-lz4-headers", "v2-empty-batches")
    ]
    names += [VECTORS / "control" / "txn-flow.log", VECTORS / "control" / "snapshot-file.log"]
    for path in names:
        vector(directory, path.stem, path.relative_to(VECTORS).with_suffix("").as_posix())
    return directory


@pytest.mark.python_lane
@pytest.mark.share(2)
@pytest.mark.parametrize("split", [1 << 25, 2000])
def test_rows_are_those_of_the_reader(spark: SparkSession, mixture: Path, split: int) -> None:
    frame = load(
        spark,
        mixture,
        includeHeaders=True,
        includeMetadata=True,
        includeControlRecords=True,
        splitBytes=split,
        batchRows=11,
    )
    found = frame.toArrow()
    rows = found.drop_columns("timestamp").to_pylist()
    for row, timestamp in zip(rows, milliseconds(found), strict=True):
        row["timestamp"] = timestamp
    assert rows == every_row(mixture)
    assert len(rows) > 1000


def test_timestamps_that_do_not_fit(spark: SparkSession, directory: Path) -> None:
    late = batch(0, [b"fits", b"does not"], base_timestamp=LARGEST, max_timestamp=LARGEST + 1)
    write(directory, "t", 0, 0, build(late, batch(2, [b"after"])))
    with pytest.raises(PySparkException, match=rf"{LARGEST + 1} ms of offset 1"):
        load(spark, directory).toArrow()
    found = load(spark, directory, mode="PERMISSIVE").selectExpr(
        "offset", "unix_micros(timestamp) t"
    )
    assert [tuple(r) for r in found.collect()] == [(0, LARGEST * 1000), (1, None), (2, TIME * 1000)]
    assert column(load(spark, directory, mode="DROPMALFORMED"), "offset") == [0, 2]


# ---------------------------------------------------------------- projection


@pytest.mark.python_lane
def test_a_schema_of_the_users_own_is_the_projection(spark: SparkSession, directory: Path) -> None:
    """A column that is not asked for is not made: the timestamp here would be an error."""
    write(directory, "t", 0, 0, build(batch(0, [b"v"], base_timestamp=LARGEST + 1)))
    frame = (
        spark.read.format(str(spark.conf.get("spark.tests.format")))
        .schema("magic int, value binary")
        .load(str(directory))
    )
    assert frame.schema.simpleString() == "struct<magic:int,value:binary>"
    assert [tuple(r) for r in frame.collect()] == [(2, bytearray(b"v"))]
    with pytest.raises(PySparkException, match="more than a timestamp"):
        load(spark, directory).select("value").collect()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("offset long, valu binary", "there is no column 'valu'; did you mean value"),
        ("offset int", "column offset is bigint, the schema asks for int"),
    ],
)
def test_a_schema_that_asks_for_something_else(
    spark: SparkSession, directory: Path, schema: str, message: str
) -> None:
    write(directory, "t", 0, 0, numbered(1, 1))
    with pytest.raises(PySparkException, match=message):
        spark.read.format(str(spark.conf.get("spark.tests.format"))).schema(schema).load(
            str(directory)
        ).collect()


# ---------------------------------------------------------------- paths and views


def test_several_paths(spark: SparkSession, directory: Path) -> None:
    write(directory, "a", 0, 0, numbered(2, 1))
    write(directory, "b", 0, 0, numbered(3, 1))
    both = load(spark, [str(directory / "a-0"), str(directory / "b-0")], columns="topic")
    assert column(both, "topic") == ["a"] * 2 + ["b"] * 3
    pattern = load(spark, directory / "*-0", columns="topic")
    assert column(pattern, "topic") == ["a"] * 2 + ["b"] * 3


def test_empty_directories(spark: SparkSession, directory: Path) -> None:
    frame = load(spark, directory)
    assert (frame.count(), frame.schema) == (0, KAFKA)
    write(directory, "t", 0, 0, b"")
    assert load(spark, directory).collect() == []


@pytest.mark.python_lane
def test_a_view(spark: SparkSession, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(4, 1))
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW records USING `{spark.conf.get('spark.tests.format')}` OPTIONS (path '{directory.as_posix()}')"
    )
    assert spark.sql("SELECT sum(offset) s, count(value) c FROM records").collect() == [(6, 4)]


def test_aggregates_and_filters(spark: SparkSession, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(10, 10))
    frame = load(spark, directory, splitBytes=300)
    assert frame.rdd.getNumPartitions() > 3
    assert frame.where("offset >= 90 AND topic = 't'").count() == 10
    assert frame.limit(3).collect()[2]["offset"] == 2


# ---------------------------------------------------------------- damage


@pytest.fixture
def damaged(directory: Path) -> Path:
    """The second of three batches has a flipped bit; after a few bytes of nothing there is a fourth."""
    good = numbered(3, 3, pad=10)
    size = len(good) // 3
    data = flipped(good, 2 * size - 5) + b"\xff" * 40 + build(batch(20, [b"last"]))
    return write(directory, "t", 0, 0, data)


@pytest.mark.python_lane
def test_failfast_names_file_byte_and_field(spark: SparkSession, damaged: Path) -> None:
    with pytest.raises(PySparkException) as caught:
        load(spark, damaged).count()
    text = str(caught.value)
    assert re.search(r"stored checksum \d+, computed \d+", text)
    assert str(damaged) in text
    assert "crc, byte" in text
    assert "record_batch.yaml" in text


@pytest.mark.python_lane
def test_dropmalformed(spark: SparkSession, damaged: Path) -> None:
    rest = [0, 1, 2, 6, 7, 8]
    assert column(load(spark, damaged, mode="DROPMALFORMED"), "offset") == [*rest, 20]
    assert column(load(spark, damaged, mode="DROPMALFORMED", policy="kafka"), "offset") == rest


@pytest.mark.python_lane
def test_permissive(spark: SparkSession, damaged: Path) -> None:
    plain = load(spark, damaged, mode="PERMISSIVE")
    assert column(plain, "offset") == [*range(9), 20]
    kafka = load(spark, damaged, mode="PERMISSIVE", policy="kafka", columns="offset,problem")
    rows = [tuple(row) for row in kafka.collect()]
    assert [row[0] for row in rows] == [0, 1, 2, 3, 4, 5, 6, 7, 8, None]
    assert [bool(row[1]) for row in rows] == [False] * 3 + [True] * 3 + [False] * 3 + [True]
    salvaged = load(spark, damaged, mode="PERMISSIVE", columns="offset,position,problem")
    lost = [row for row in salvaged.collect() if row["problem"]]
    assert [row["offset"] for row in lost] == [3, 4, 5, None]
    assert all("checksum" in row["problem"] for row in lost[:3])
    assert (
        lost[0]["position"] == (damaged.stat().st_size - 40 - len(build(batch(20, [b"last"])))) // 3
    )


def test_policies(spark: SparkSession, directory: Path) -> None:
    """An unfinished batch at the end is what a live broker leaves; strict does not take it."""
    write(directory, "t", 0, 0, numbered(2, 2)[:-3])
    assert load(spark, directory).count() == 2
    with pytest.raises(PySparkException, match="not a complete batch"):
        load(spark, directory, policy="strict").count()


def test_a_bound_on_decompressed_bytes(spark: SparkSession, directory: Path) -> None:
    vector(directory, "t", "large/v2-lz4-8mib-zeros")
    assert load(spark, directory, maxDecompressedBytes=9 << 20, columns="offset").count() == 1
    with pytest.raises(
        PySparkException, match="decompresses to more than the limit of 1048576 bytes"
    ):
        load(spark, directory, maxDecompressedBytes=1 << 20).select("offset").collect()


def test_a_file_that_is_gone_when_its_task_runs(spark: SparkSession, directory: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(2, 2))
    planned = load(spark, directory, columns="offset").rdd
    assert planned.getNumPartitions() == 1
    path.unlink()
    with pytest.raises(Exception, match="No such file or directory: it cannot be read") as caught:
        planned.count()
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("kept", ["batches", "half of one", "nothing"])
def test_a_file_that_is_cut_before_its_task_runs(
    spark: SparkSession, directory: Path, kept: str
) -> None:
    """Not even where whole batches are left is there a result without the others."""
    data = numbered(2, 10)
    path = write(directory, "t", 0, 0, data)
    planned = load(spark, directory, columns="offset").rdd
    assert planned.getNumPartitions() == 1
    size = {"batches": len(numbered(2, 5)), "half of one": len(data) - 30, "nothing": 0}[kept]
    path.write_bytes(data[:size])
    said = f"it had {len(data)} bytes when it was found, and has {size} now"
    with pytest.raises(Exception, match=said) as caught:
        planned.count()
    assert str(path) in str(caught.value)


def test_what_its_broker_moves_before_its_task_is_read_where_it_is(
    spark: SparkSession, directory: Path
) -> None:
    """Brokers rename what they delete first; what tiered storage has they delete at once."""
    renamed = write(directory, "r", 0, 0, numbered(2, 2))
    copied = write(directory, "t", 0, 0, numbered(3, 2))
    write(directory, "t", 0, 6, build(batch(6, [b"last"])))
    planned = load(spark, directory, columns="topic,offset", include="remote").rdd
    assert planned.getNumPartitions()
    renamed.rename(renamed.with_name(renamed.name + ".deleted"))
    copy = directory / TIER / f"t-0-{IDS[0]}" / f"{copied.stem}-{IDS[0]}.log"
    copy.parent.mkdir(parents=True)
    copied.rename(copy)
    rows = sorted((row.topic, row.offset) for row in planned.collect())
    assert rows == [*(("r", i) for i in range(4)), *(("t", i) for i in range(7))]


# ---------------------------------------------------------------- options


@pytest.mark.python_lane
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscrbe": "t"}, "option subscrbe: there is no such option; did you mean subscribe"),
        ({"subscribe": "x"}, "option subscribe: no topic x in the path; there are: t"),
        (
            {"subscribe": "t*"},
            "subscribe takes names: write a regular expression with subscribePattern",
        ),
        ({"startingTimestamp": "x"}, "startingTimestamp: "),
        ({"mode": "LENIENT"}, "mode: one of FAILFAST, PERMISSIVE, DROPMALFORMED"),
    ],
)
def test_refused_options(
    spark: SparkSession, directory: Path, options: dict[str, str], message: str
) -> None:
    write(directory, "t", 0, 0, numbered(1, 1))
    with pytest.raises(PySparkException, match=message):
        load(spark, directory, **options).collect()


def test_no_path_is_said(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="say what to read"):
        spark.read.format(str(spark.conf.get("spark.tests.format"))).load().collect()


@pytest.mark.python_lane
def test_wrong_values_fail_in_load(spark: SparkSession, directory: Path) -> None:
    """No action is needed, in a batch query either."""
    write(directory, "t", 0, 0, numbered(1, 1))
    assert load(spark, directory, maxOffsetsPerTrigger=5).count() == 1
    with pytest.raises(PySparkException, match="maxOffsetsPerTrigger: a number from 1 on"):
        load(spark, directory, maxOffsetsPerTrigger="x")
    source = spark.read.format(str(spark.conf.get("spark.tests.format")))
    for path in ("", [""]):
        with pytest.raises(PySparkException, match="path: it is empty; say what to read"):
            source.load(path)


def test_errors_that_are_for_users_are_short(session: SparkSession, directory: Path) -> None:
    """The connector tells them without the stack of its worker, and the name of the source once."""
    session.conf.set("spark.tests.format", "kafka-log")
    data = numbered(3, 1)
    write(directory, "t", 0, 0, flipped(data, len(data) - 3))
    (directory / "empty").mkdir()
    (directory / "empty" / "notes.txt").touch()

    def said(fails: Callable[[], object]) -> str:
        with pytest.raises(PySparkException) as caught:
            fails()
        return str(caught.value)

    of_schema = session.read.format("kafka-log").schema("key string")
    writer = session.range(1).selectExpr("cast(id as string) value").write.format("kafka-log")
    found = [
        said(lambda: load(session, directory, startingOffset="earliest")),
        said(lambda: load(session, directory / "not" / "there").collect()),
        said(lambda: load(session, directory / "empty").collect()),
        said(lambda: load(session, directory).collect()),
        said(lambda: of_schema.load(str(directory)).collect()),
        said(lambda: writer.mode("append").save(str(directory))),
        said(lambda: writer.mode("append").option("includemetadata", 1).save(str(directory))),
    ]
    wanted = [
        "option startingOffset: there is no such option; did you mean startingOffsets?",
        str(directory / "not" / "there"),
        "no segments",
        "checksum",
        "column key is binary, the schema asks for string",
        "there is no topic: give the option topic",
        "option includeMetadata: there is no such option for writing",
    ]
    for text, part in zip(found, wanted, strict=True):
        assert part in text
        assert "Traceback" not in text
        assert text.count("kafka-log: ") == 1


def test_other_errors_say_where_they_come_from() -> None:
    """Theirs are words for whoever mends us."""
    for error in (ZeroDivisionError("x"), OSError("x"), KeyError("x")):
        assert "Traceback" not in error_text(OptionError("mode", "x"))
        assert error_text(error).startswith(f"{error}\n\n")
        assert type(error).__name__ in error_text(error).splitlines()[-1]
    gone = FileNotFoundError(2, "No such file or directory", "/x/y")
    assert error_text(gone) == "[Errno 2] No such file or directory: '/x/y'"


def test_topics_and_offsets(spark: SparkSession, mixture: Path) -> None:
    one = load(spark, mixture, subscribePattern="txn-.*", columns="topic,offset")
    assert {row["topic"] for row in one.collect()} == {"txn-flow"}
    some = load(
        spark,
        mixture,
        assign='{"txn-flow":[0]}',
        startingOffsets='{"txn-flow":{"0":3}}',
        endingOffsets='{"txn-flow":{"0":8}}',
        columns="offset",
    )
    assert column(some, "offset") == [3, 4, 5, 6, 7]


# ---------------------------------------------------------------- what is sent to tasks


def test_readers_and_tasks_are_small(mixture: Path) -> None:
    reader = DefaultSource({"path": str(mixture), "splitBytes": "2000"}).reader(KAFKA)
    assert isinstance(reader, KafkaLogReader)
    assert len(pickle.dumps(reader)) < 3000
    tasks = reader.partitions()
    assert isinstance(tasks, list)
    assert len(tasks) > 10
    assert max(len(pickle.dumps(task)) for task in tasks) < 3000
    again = pickle.loads(pickle.dumps(reader))
    rows = sum(b.num_rows for task in tasks for b in again.read(pickle.loads(pickle.dumps(task))))
    assert rows == len([row for row in every_row(mixture) if not row["isControl"]])


def test_the_defaults_are_those_columns() -> None:
    assert (*KAFKA.fieldNames(), "headers") == DEFAULT_COLUMNS
    assert DefaultSource({"path": "x"}).schema() == KAFKA
    assert parse({"path": "x"}).paths == ("x",)
