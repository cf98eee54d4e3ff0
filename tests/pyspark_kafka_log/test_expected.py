"""The directories that real brokers wrote, as the brokers' consumers and Kafka's own classes read them: both lanes, as batch queries and as
streams into each kind of sink."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.paths import SAMPLES
from tests.support.spark_logs import digest

pytestmark = pytest.mark.spark

EXPECTED: dict[str, Any] = json.loads((SAMPLES / "expected.json").read_text("utf-8"))
BROKERS = sorted(EXPECTED)
ISOLATIONS = ["read_uncommitted", "read_committed"]
WHOLE = {"includeHeaders": "true", "includeMetadata": "true"}
ON_DISK = {**WHOLE, "includeControlRecords": "true", "includeDeletedRecords": "true"}
"""All that lies in files, whoever may read it."""


def facts(broker: str, kind: str) -> dict[str, dict[str, Any]]:
    """What is known of each partition: what a consumer with an isolation level got, or what lies ``on_disk``."""
    partitions = EXPECTED[broker]["partitions"]
    found = {name: told[kind] for name, told in partitions.items() if kind in told}
    assert len(found) > 20
    return found


def given(broker: str, kind: str) -> dict[str, str]:
    """The options that read it. No consumer reads the log of the controllers."""
    if kind == "on_disk":
        return ON_DISK
    topics = {name.rpartition("-")[0] for name in facts(broker, kind)}
    return {**WHOLE, "isolationLevel": kind, "subscribe": ",".join(sorted(topics))}


def check(table: pa.Table, broker: str, kind: str) -> None:
    """That rows are the ones that are known, in each partition in the order that they have in ``table``."""
    parts = dict(by_partition(table))
    wanted = facts(broker, kind)
    assert parts.keys() <= wanted.keys()
    for name, told in wanted.items():
        rows = parts.get(name, table.slice(0, 0))
        found = on_disk(rows) if kind == "on_disk" else consumed(rows)
        assert (name, found) == (name, {key: told[key] for key in found})


def by_partition(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    names = pc.binary_join_element_wise(
        table["topic"].cast(pa.string()), table["partition"].cast(pa.string()), "-"
    )
    for name in pc.unique(names).to_pylist():
        yield name, table.filter(pc.equal(names, name))


def consumed(rows: pa.Table) -> dict[str, Any]:
    offsets = rows["offset"].to_pylist()
    return {
        "count": len(offsets),
        "first_offset": offsets[0] if offsets else None,
        "last_offset": offsets[-1] if offsets else None,
        "sha256": digest(rows),
    }


def on_disk(rows: pa.Table) -> dict[str, Any]:
    data = rows.filter(pc.invert(rows["isControl"]))
    return {
        "control_records": dict(Counter(rows["controlType"].drop_null().to_pylist())),
        "records": data.num_rows,
        "records_by_codec": dict(Counter(data["compression"].to_pylist())),
        "records_by_magic": dict(Counter(map(str, data["magic"].to_pylist()))),
        "sha256": digest(data),
    }


# ---------------------------------------------------------------- batch


@pytest.mark.share(3)
@pytest.mark.parametrize("kind", [*ISOLATIONS, "on_disk"])
@pytest.mark.parametrize("broker", BROKERS[::-1])
def test_a_batch_query(spark: SparkSession, broker: str, kind: str) -> None:
    lane = str(spark.conf.get("spark.tests.format"))
    frame = spark.read.format(lane).options(**given(broker, kind)).load(str(SAMPLES / broker))
    check(frame.toArrow(), broker, kind)


@pytest.mark.slow
def test_batches(spark: SparkSession) -> None:
    """What no row tells: how many batches there are, and which are empty."""
    for broker in BROKERS:
        reader = spark.read.format(str(spark.conf.get("spark.tests.format")))
        frame = reader.option("view", "batches").load(str(SAMPLES / broker))
        found = frame.selectExpr("topic || '-' || partition", "record_count").collect()
        batches = Counter(name for name, _ in found)
        empty = Counter(name for name, count in found if count == 0)
        for name, told in facts(broker, "on_disk").items():
            wanted = told["batches"], told["empty_batches"]
            assert (name, batches[name], empty[name]) == (name, *wanted)


def test_snapshots_of_the_metadata_log(spark: SparkSession) -> None:
    found = 0
    for broker in BROKERS:
        for name, told in EXPECTED[broker]["partitions"].items():
            for file, wanted in told.get("snapshots", {}).items():
                reader = spark.read.format(str(spark.conf.get("spark.tests.format")))
                path = SAMPLES / broker / name / file
                rows = reader.options(**ON_DISK, include="snapshot").load(str(path)).toArrow()
                have = on_disk(rows)
                assert (file, have) == (file, {key: wanted[key] for key in have})
                found += 1
    assert found == 2


# ---------------------------------------------------------------- streams

Sink = Callable[[DataFrame, Path], tuple[StreamingQuery, Callable[[], pa.Table]]]
"""Starts a query, and gives what it has written."""


def to_parquet(frame: DataFrame, scratch: Path) -> tuple[StreamingQuery, Callable[[], pa.Table]]:
    out = str(scratch / "out")
    writer = frame.writeStream.format("parquet").option("path", out)
    return start(writer, scratch), lambda: frame.sparkSession.read.parquet(out).toArrow()


def to_memory(frame: DataFrame, scratch: Path) -> tuple[StreamingQuery, Callable[[], pa.Table]]:
    name = f"of_{scratch.name}".replace("-", "_")
    query = start(frame.writeStream.format("memory").queryName(name), scratch)
    return query, lambda: frame.sparkSession.table(name).toArrow()


def to_each_batch(frame: DataFrame, scratch: Path) -> tuple[StreamingQuery, Callable[[], pa.Table]]:
    seen: dict[int, pa.Table] = {}

    def take(rows: DataFrame, batch_id: int) -> None:
        seen[batch_id] = rows.toArrow()

    query = start(frame.writeStream.foreachBatch(take), scratch)
    return query, lambda: pa.concat_tables([seen[number] for number in sorted(seen)])


def start(writer: Any, scratch: Path) -> StreamingQuery:
    query: StreamingQuery = (
        writer.option("checkpointLocation", str(scratch / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    return query


def streamed(
    spark: SparkSession, sink: Sink, broker: str, options: Mapping[str, str], scratch: Path
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """What a stream writes that reads all there is, and its progress."""
    reader = spark.readStream.format(str(spark.conf.get("spark.tests.format")))
    frame = reader.options(startingOffsets="earliest", **options).load(str(SAMPLES / broker))
    query, written = sink(frame, scratch)
    try:
        assert query.awaitTermination(300)
        error = query.exception()
        if error is not None:
            raise error
        return written(), [json.loads(one.json) for one in query.recentProgress]
    finally:
        query.stop()


@pytest.mark.share(4, ci=4)
@pytest.mark.parametrize("kind", ISOLATIONS[::-1])
@pytest.mark.parametrize("broker", BROKERS[::-1])
def test_a_stream(spark: SparkSession, broker: str, kind: str, tmp_path: Path) -> None:
    """Each micro-batch has the records of a partition in their order, and the micro-batches go on with each other. It ends where the
    broker said that a consumer ends: read_committed at the last stable offset."""
    # 2,100 records in three micro-batches or so.
    options = {**given(broker, kind), "maxOffsetsPerTrigger": "800"}
    found, progress = streamed(spark, to_each_batch, broker, options, tmp_path)
    check(found, broker, kind)
    assert sum(one["numInputRows"] > 0 for one in progress) > 1
    ends = progress[-1]["sources"][0]["endOffset"]
    for name, told in facts(broker, kind).items():
        topic, _, number = name.rpartition("-")
        assert (name, ends[topic][number]) == (name, told["end_offset"])


@pytest.mark.slow
@pytest.mark.share(ci=6)
@pytest.mark.parametrize("sink", [to_parquet, to_memory], ids=lambda sink: sink.__name__)
@pytest.mark.parametrize("kind", [*ISOLATIONS, "on_disk"])
@pytest.mark.parametrize("broker", BROKERS)
def test_a_stream_into_files_and_memory(
    spark: SparkSession, broker: str, kind: str, sink: Sink, tmp_path: Path
) -> None:
    """Files of a sink have no order: that of offsets is given back."""
    found, _ = streamed(spark, sink, broker, given(broker, kind), tmp_path)
    check(found.sort_by([("offset", "ascending")]), broker, kind)
