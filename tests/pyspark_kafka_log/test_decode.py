"""Typed columns in Spark: the rows of ``kafka_log.scan(decode=...)``, in batch queries and streams."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import kafka_log
from kafka_codecs import OFFSET_COMMIT_VALUE
from kafka_log import write_log
from pyspark_kafka_log import decode_values
from pyspark_kafka_log.decode import spark_types, to_spark
from tests.paths import SAMPLES
from tests.support.avro_engines import framed
from tests.support.spark_queries import load, to_plain_value

SAMPLE = SAMPLES / "schema-registry"
TOPICS = ["orders", "customers", "events", "clicks", "payments"]
NAMES = ["offset", "key", "value", "headers"]


def expected(topic: str, **options: Any) -> list[Any]:
    """The rows of a scan, with maps as Spark has them."""
    table = kafka_log.read_table(SAMPLE, NAMES, topics=topic, decode="auto", **options)
    rows = table.to_pylist()
    for row in rows:
        if row["value"] and isinstance(row["value"].get("tags"), list) and topic == "customers":
            row["value"]["tags"] = dict(row["value"]["tags"])
        row["headers"] = row["headers"] or None
    return [to_plain_value(row) for row in rows]


@pytest.mark.share(ci=3)
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("topic", TOPICS)
def test_rows_are_those_of_scan(spark: SparkSession, topic: str) -> None:
    """Tombstones, undecodable rows and several versions included."""
    frame = load(spark, SAMPLE, subscribe=topic, includeHeaders="true").select(NAMES)
    decoded = decode_values(frame, topic, SAMPLE).orderBy("offset")
    wanted = expected(topic)
    assert [to_plain_value(row) for row in decoded.collect()] == wanted
    assert decoded.columns == list(wanted[0])


@pytest.mark.spark
@pytest.mark.slow
def test_a_topic_in_tiered_storage(spark: SparkSession, tmp_path: Path) -> None:
    """Its rows are decoded by the schemas whose ids they have, wherever the segments lie."""
    root = tmp_path / "log"
    shutil.copytree(SAMPLE, root)
    id = "AAAAAAAAAAAAAAAAAAAAAA"
    tier = root / "kafka-tiered-storage" / f"orders-0-{id}"
    tier.mkdir(parents=True)
    for segment in (root / "orders-0").glob("*.log"):
        shutil.move(segment, tier / f"{segment.stem}-{id}.log")
    shutil.rmtree(root / "orders-0")
    frame = load(spark, root, subscribe="orders", include="remote", includeHeaders="true")
    decoded = decode_values(frame.select(NAMES), "orders", root).orderBy("offset")
    assert [to_plain_value(row) for row in decoded.collect()] == expected("orders")


@pytest.mark.spark
@pytest.mark.slow
def test_a_stream_and_a_version(spark: SparkSession, tmp_path: Path) -> None:
    source = spark.readStream.format(str(spark.conf.get("spark.tests.format")))
    source = source.option("subscribe", "orders").option("startingOffsets", "earliest")
    frame = source.option("includeHeaders", "true").load(str(SAMPLE))
    decoded = decode_values(frame.select(NAMES), "orders", SAMPLE, decode="avro", schema_version=1)
    query = (
        decoded.writeStream.format("memory")
        .queryName("typed_orders")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = [to_plain_value(row) for row in spark.table("typed_orders").orderBy("offset").collect()]
    assert rows == expected("orders", schema_version=1)


@pytest.mark.spark
@pytest.mark.slow
def test_other_sources_and_schemas(session: SparkSession, tmp_path: Path) -> None:
    """Rows of any source, without headers, and schemas of files."""
    (tmp_path / "t-value.7.avsc").write_text('{"type": "map", "values": "long"}')
    rows = [(bytearray(framed(7, b"\2\2k\4\0")),), (None,), (bytearray(b"text"),)]
    frame = session.createDataFrame(rows, "value binary")
    found = decode_values(frame, "t", schemas=tmp_path).collect()
    assert [row["value"] for row in found] == [{"k": 2}, None, None]
    assert [row["value_undecoded"] for row in found] == [None, None, b"text"]
    assert found[2]["value_problem"].startswith("it does not begin with the id of a schema: ")
    query = decode_values(frame, "t", schemas=tmp_path).select(
        F.element_at("value", "k").alias("k")
    )
    assert query.where("k > 1").count() == 1


@pytest.mark.spark
@pytest.mark.slow
def test_a_layout_of_a_generated_package(session: SparkSession) -> None:
    """It needs no schemas; what it refuses keeps its bytes."""
    commit: Any = {
        "version": 3,
        "offset": 7,
        "leader_epoch": -1,
        "metadata": "m",
        "commit_timestamp": 5,
    }
    data = OFFSET_COMMIT_VALUE.build(commit)
    rows = [(bytearray(data),), (None,), (bytearray(data + b"x"),)]
    frame = session.createDataFrame(rows, "value binary")
    found = decode_values(frame, "t", decode="kafka_codecs:offset_commit_value").collect()
    assert [None if row["value"] is None else row["value"]["offset"] for row in found] == [
        *(7, None, None)
    ]
    assert [row["value_undecoded"] for row in found] == [None, None, data + b"x"]
    assert "1 byte follows the offset_commit_value" in found[2]["value_problem"]
    with pytest.raises(ValueError, match="there is no package nowhere_codecs"):
        decode_values(frame, "t", decode="nowhere_codecs:reading")
    with pytest.raises(ValueError, match="are for values of a schema registry"):
        decode_values(frame, "t", decode="kafka_codecs:offset_commit_value", schemas="x")


@pytest.mark.spark
@pytest.mark.slow
def test_what_cannot_be_decoded_is_refused(session: SparkSession, tmp_path: Path) -> None:
    session.conf.set("spark.tests.format", "kafka-log")
    frame = load(session, SAMPLE, subscribe="orders")
    for wrong, arguments, message in (
        (frame, {"topic": "orders"}, "needs the schemas: give path"),
        (frame, {"topic": "order", "path": SAMPLE}, "has no topic 'order'; it has: "),
        (frame, {"topic": "orders", "path": SAMPLE, "decode": "x"}, "must be one of auto"),
        (frame, {"topic": "orders", "path": SAMPLE, "decode": "protobuf"}, "of another type"),
        (frame, {"topic": "orders", "path": SAMPLE, "schema_version": 9}, "no version 9"),
        (frame, {"topic": "x", "schemas": SAMPLE}, "of topic 'x' is known"),
        (frame.select("offset"), {"topic": "orders", "path": SAMPLE}, "no column key or value"),
        (frame.selectExpr("'a' value"), {"topic": "orders", "path": SAMPLE}, "value has the type string"),
        (frame.selectExpr("value", "1 value_problem"), {"topic": "orders", "path": SAMPLE}, "has a column value_problem"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            decode_values(wrong, **arguments)
    mixed = load(session, SAMPLE, subscribe="orders,clicks")
    with pytest.raises(PySparkException, match="a row is of 'clicks'"):
        decode_values(mixed, "orders", SAMPLE).collect()


# ---------------------------------------------------------------- without Spark

KINDS = [
    (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), 1 << 62),
    (pa.timestamp("ns"), pa.timestamp("us"), None),
    (pa.time32("ms"), pa.int32(), None),
    (pa.time64("us"), pa.int64(), None),
    (pa.uint64(), pa.decimal128(20, 0), None),
    (pa.decimal256(50, 1), pa.string(), None),
    (pa.null(), pa.string(), None),
    (pa.date32(), pa.date32(), None),
]


@pytest.mark.parametrize(("kind", "there", "beyond"), KINDS, ids=str)
@pytest.mark.parametrize("nested", [False, True])
def test_types_of_spark(kind: Any, there: Any, beyond: Any, nested: bool) -> None:
    """Only the row that the type cannot hold becomes null, and keeps its bytes."""
    good = None if pa.types.is_null(kind) else Decimal(7) if pa.types.is_decimal(kind) else 7
    values = [good, good, None] if beyond is None else [good, beyond, None, good]
    if nested:
        kind = pa.map_(pa.string(), pa.list_(pa.field("element", pa.struct([("a", kind)]))))
        there = pa.map_(pa.string(), pa.list_(pa.field("element", pa.struct([("a", there)]))))
        values = [[("k", [{"a": value}, {"a": good}])] for value in values]
    raw = pa.array([b"%d" % i for i in range(len(values))])
    rows = pa.record_batch({"value": raw})
    nothing = pa.nulls(len(values), pa.binary()), pa.nulls(len(values), pa.string())
    columns = [pa.array(values, kind), pa.array(range(len(values))), *nothing]
    names = ["value", "value_schema_id", "value_undecoded", "value_problem"]
    decoded = pa.RecordBatch.from_arrays(columns, names=names)
    found = to_spark(rows, decoded, ["value"])
    assert found.schema.field("value").type == there
    assert found.schema.equals(spark_types(decoded.schema))
    found.validate(full=True)
    bad = [] if beyond is None else [1]
    assert [i for i, text in enumerate(found["value_problem"].to_pylist()) if text] == bad
    assert [i for i, data in enumerate(found["value_undecoded"].to_pylist()) if data] == bad
    for i in bad:
        assert found["value"][i].as_py() is None
        assert "Spark cannot hold the value" in found["value_problem"][i].as_py()
        assert found["value_undecoded"][i].as_py() == raw[i].as_py()
    assert found["value"][0].is_valid or good is None


@pytest.mark.spark
@pytest.mark.slow
def test_types_arrive_in_spark(session: SparkSession, tmp_path: Path) -> None:
    """Logical types of Avro, in a log with its registry."""
    session.conf.set("spark.tests.format", "kafka-log")
    names = ["time-millis", "date", "timestamp-millis", "local-timestamp-micros", "time-micros"]
    kinds = ["int", "int", "long", "long", "long"]
    fields = [
        {"name": name.replace("-", "_"), "type": {"type": kind, "logicalType": name}}
        for name, kind in zip(names, kinds, strict=True)
    ]
    schema = {"type": "record", "name": "R", "fields": fields}
    value = json.dumps({"subject": "t-value", "version": 1, "id": 7, "schema": json.dumps(schema)})
    key = json.dumps({"keytype": "SCHEMA", "subject": "t-value", "version": 1})
    far = b"\0\0" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" + b"\0\0"
    rows = [
        {"topic": "_schemas", "key": key.encode(), "value": value.encode()},
        {"topic": "t", "key": None, "value": framed(7, b"\2\2\2\2\2")},
        {"topic": "t", "key": None, "value": framed(7, far)},
    ]
    there = pa.schema([("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary())])
    write_log(tmp_path, pa.Table.from_pylist(rows, there))
    frame = load(session, [str(tmp_path)], subscribe="t").select("value")
    decoded = decode_values(frame, "t", tmp_path)
    shown = "struct<time_millis:int,date:date,timestamp_millis:timestamp,local_timestamp_micros:timestamp_ntz,time_micros:bigint>"
    assert decoded.schema["value"].dataType.simpleString() == shown
    time = F.col("value.local_timestamp_micros").cast("string").alias("time")
    first, second = decoded.select("value_problem", "value_undecoded", time).collect()
    assert first["time"] == "1970-01-01 00:00:00.000001"
    assert first["value_problem"] is None
    assert "out of bounds" in second["value_problem"] and second["value_undecoded"] == framed(
        7, far
    )
