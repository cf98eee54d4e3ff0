"""Transactions as a DataFrame."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_kafka_log.answers import TRANSACTION_COLUMNS, transactions
from tests.paths import SAMPLES
from tests.support.spark_logs import vector
from tests.support.spark_queries import load

pytestmark = pytest.mark.spark


def found(spark: SparkSession, logs: Path) -> list[dict[str, object]]:
    columns = ",".join(TRANSACTION_COLUMNS)
    records = load(spark, logs, includeControlRecords=True, columns=columns)
    rows = transactions(records).orderBy("topic", "partition", "firstOffset").collect()
    return [row.asDict() for row in rows]


def test_one_of_each(spark: SparkSession, directory: Path) -> None:
    vector(directory, "t", "control/txn-flow")
    names = (
        "producerId",
        "producerEpoch",
        "outcome",
        "records",
        "firstOffset",
        "lastOffset",
        "markerOffset",
    )
    rows = found(spark, directory)
    assert [tuple(row[name] for name in names) for row in rows] == [
        (1, 0, "COMMIT", 3, 0, 2, 9),
        (2, 5, "ABORT", 4, 3, 6, 10),
        (1, 0, "OPEN", 1, 11, 11, None),
    ]
    assert {(row["topic"], row["partition"]) for row in rows} == {("t", 0)}


def test_samples_agree_with_what_a_consumer_does_not_get(spark: SparkSession) -> None:
    """Aborted records, and those after the first that is open, are what read_committed leaves out."""
    rows = found(spark, SAMPLES / "kafka-4.x")
    partitions = json.loads((SAMPLES / "expected.json").read_text())["kafka-4.x"]["partitions"]
    for name, facts in partitions.items():
        if "read_committed" not in facts:
            continue
        topic, _, number = name.rpartition("-")
        mine = [row for row in rows if (row["topic"], row["partition"]) == (topic, int(number))]
        aborted = sum(int(str(row["records"])) for row in mine if row["outcome"] == "ABORT")
        missing = facts["read_uncommitted"]["count"] - facts["read_committed"]["count"]
        opened = [row["firstOffset"] for row in mine if row["outcome"] == "OPEN"]
        if opened:
            assert min(map(int, map(str, opened))) == facts["read_committed"]["end_offset"]
        else:
            assert aborted == missing, name
