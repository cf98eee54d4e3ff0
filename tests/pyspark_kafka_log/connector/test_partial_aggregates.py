"""Aggregates of tasks from batch headers, without Spark: the same values as all rows give, of each group, in Spark's types."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_log.segment.row_selection import RowSelection
from pyspark_kafka_log.connector.worker import Aggregates
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.task_reader import read_splits
from tests.support.spark_logs import batch, build, numbered, write

FUNCTIONS = [
    ["count", "*"],
    ["count", "offset"],
    ["min", "offset"],
    ["max", "offset"],
    ["min", "timestamp"],
    ["max", "timestamp"],
]
SCAN = Scan(("topic", "partition", "offset", "timestamp"))


def asked(*functions: list[str], groups: tuple[str, ...] = ()) -> Aggregates:
    found = Aggregates.from_request({"aggregates": functions, "groups": list(groups)})
    assert found is not None
    return found


def naive(parts: Any, groups: tuple[str, ...]) -> list[tuple[Any, ...]]:
    rows: dict[tuple[Any, ...], list[tuple[int, int]]] = {} if groups else {(): []}
    for found in read_splits(parts, SCAN):
        for row in found.to_pylist():
            key = tuple(row[name] for name in groups)
            rows.setdefault(key, []).append((row["offset"], row["timestamp"]))
    out: list[tuple[Any, ...]] = []
    for key, values in rows.items():
        offsets, times = zip(*values, strict=True) if values else ((), ())
        extremes = [f(of, default=None) for of in (offsets, times) for f in (min, max)]
        out.append((*key, len(values), len(values), *extremes))
    return sorted(out)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [(), ("topic",), ("partition", "topic"), ("partition",)])
def test_values_are_those_of_all_rows(groups: tuple[str, ...], directory: Path) -> None:
    for topic, partition, first in (("a", 0, 0), ("a", 1, 7), ("b", 0, 100), ("b", 3, 3)):
        data = numbered(2, 3) if not first else build(batch(first, [b"x"] * (partition + 1)))
        write(directory, topic, partition, first, data)
    tasks = plan(parse({"path": str(directory)}), parallelism=1)
    (parts,) = tasks
    rows = asked(*FUNCTIONS, groups=groups).compute(parts, SCAN)
    assert sorted(tuple(row.values()) for row in rows.to_pylist()) == naive(parts, groups)
    assert rows.num_rows == {(): 1, ("topic",): 2, ("partition",): 3}.get(groups, 4)


def test_without_rows_there_is_one_row_or_no_group() -> None:
    (row,) = asked(*FUNCTIONS).compute([], SCAN).to_pylist()
    assert list(row.values()) == [0, 0, None, None, None, None]
    assert asked(*FUNCTIONS, groups=("topic",)).compute([], SCAN).num_rows == 0


@pytest.mark.slow
def test_a_log_without_rows_that_are_wanted_is_no_group(directory: Path) -> None:
    for partition in range(2):
        write(directory, "t", partition, 0, numbered(2, 3))
    (parts,) = plan(parse({"path": str(directory)}), parallelism=1)
    nothing = replace(parts[1], rows=RowSelection(offsets=(1000, None), control_records=False))
    rows = asked(["count", "*"], groups=("partition",)).compute([parts[0], nothing], SCAN)
    assert rows.to_pylist() == [{"partition": 0, "count(*)": 6}]
    assert asked(["count", "*"]).compute([nothing], SCAN).to_pylist() == [{"count(*)": 0}]


def test_types() -> None:
    time = pa.timestamp("us", "UTC")
    found = asked(*FUNCTIONS, ["count", "timestamp"], groups=("partition", "topic")).schema
    assert [(field.name, field.type) for field in found] == [
        ("partition", pa.int32()),
        ("topic", pa.string()),
        ("count(*)", pa.int64()),
        ("count(offset)", pa.int64()),
        ("min(offset)", pa.int64()),
        ("max(offset)", pa.int64()),
        ("min(timestamp)", time),
        ("max(timestamp)", time),
        ("count(timestamp)", pa.int64()),
    ]


def test_what_headers_can_tell() -> None:
    assert Aggregates.from_request({}) is None
    assert Aggregates.from_request({"aggregates": None}) is None
    for functions, groups, is_known in [
        (FUNCTIONS, ("topic", "partition"), True),
        ([["count", "timestamp"]], (), True),
        ([], (), True),
        ([["count", "key"]], (), False),
        ([["max", "*"]], (), False),
        ([["max", "partition"]], (), False),
        ([["count", "*"], ["min", "value"]], (), False),
        ([["count", "*"]], ("topic", "offset"), False),
    ]:
        assert asked(*functions, groups=groups).can_compute(SCAN) is is_known, functions
    strict = Scan(SCAN.columns, "strict")
    assert not asked(["count", "*"]).can_compute(strict)
