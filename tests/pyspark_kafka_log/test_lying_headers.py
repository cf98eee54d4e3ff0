"""No row of a query is lost because a batch header says something else than the records."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kafka_log import read_table
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.filters import Filter, parse_filters
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.task_reader import read_splits
from tests.shares import examples
from tests.support.header_files import VECTORS, batch_of, file_of
from tests.support.lying_headers import (
    START,
    Row,
    assert_halves,
    cuts,
    lying_segments,
    rows_and_lies,
)
from tests.support.misplaced_segments import cuts_of, misplaced_log
from tests.support.scanned_rows import unpacked
from tests.support.spark_queries import column, load


def planned(path: Path, query: Filter, engine: Any, split_bytes: int) -> list[Row]:
    """The rows of a query as the connector reads them, after the filter that Spark applies itself."""
    options = {"path": str(path.parent), "splitBytes": str(split_bytes)}
    scan = Scan(columns=("offset", "timestamp"), timestamp_unit="ms", engine=engine)
    name, operator, value = query
    at = ("offset", "timestamp").index(name)
    found = [
        (r["offset"], r["timestamp"])
        for task in plan(parse(options), parse_filters([query]))
        for batch in read_splits(task, scan)
        for r in unpacked(batch)
    ]
    value = value if at == 0 else value // 1000
    return [row for row in found if (row[at] < value) == (operator == "<")]


def check_halves(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = file_of(folder, data.draw(lying_segments(VECTORS)))
        rows, _ = rows_and_lies(path)
        if not all(-(1 << 53) < time < 1 << 53 for _, time in rows):
            return  # more milliseconds than fit microseconds, which is an error
        engine = data.draw(st.sampled_from(["construct", "arrow"]))
        split_bytes = data.draw(st.sampled_from([50, 500, 1 << 20]))
        for at, name in enumerate(("offset", "timestamp")):
            cut = data.draw(cuts(rows, at))
            value = cut if at == 0 else cut * 1000
            halves = [planned(path, (name, op, value), engine, split_bytes) for op in ("<", ">=")]
            assert_halves(halves, path, at, cut)


@settings(max_examples=4)
@given(data=st.data())
def test_two_halves_are_all_rows(data: st.DataObject) -> None:
    check_halves(data)


@pytest.mark.slow
@examples(100)
@given(data=st.data())
def test_two_halves_are_all_rows_at_length(data: st.DataObject) -> None:
    check_halves(data)


@pytest.mark.slow
@pytest.mark.spark
def test_two_halves_in_spark(spark: SparkSession, directory: Path) -> None:
    """Whether filters are taken or not; with counts, and offsets that options name."""
    small, unset = {"last_offset_delta": 0}, {"max_timestamp": -1}
    order: list[tuple[int, dict[str, int]]] = [
        (0, small),
        (9, unset),
        (3, {}),
        (6, unset),
        (12, small),
    ]
    path = directory / "t-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(b"".join(batch_of(base, **fields) for base, fields in order))
    every = [base + i for base, _ in order for i in range(3)]
    frame = load(spark, directory)
    assert column(frame, "offset") == every and frame.count() == 15
    for cut in (5, 14):
        for condition in (f"offset < {cut}", f"offset >= {cut}"):
            wanted = [o for o in every if (o < cut) == ("<" in condition)]
            assert column(frame.where(condition), "offset") == wanted
        halves = [{"endingOffsets": cut}, {"startingOffsets": cut}]
        read = [
            column(
                load(spark, directory, **{n: f'{{"t": {{"0": {v}}}}}' for n, v in half.items()}),
                "offset",
            )
            for half in halves
        ]
        assert read == [[o for o in every if o < cut], [o for o in every if o >= cut]]
    for second in (1, 2):
        time = f"timestamp_millis({START + 1000 * second})"
        read = [column(frame.where(f"timestamp {op} {time}"), "offset") for op in ("<", ">=")]
        assert read == [
            [o for o in every if o % 3 < second],
            [o for o in every if o % 3 >= second],
        ]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", ["renamed to a lower offset", "of transactions, exchanged"])
def test_two_halves_of_misplaced_segments_in_spark(
    name: str, spark: SparkSession, directory: Path
) -> None:
    """Names of segments that are wrong leave out no rows."""
    log = misplaced_log(directory, name)
    every = read_table(log, ["offset"])["offset"].to_pylist()
    frame = load(spark, directory)
    assert sorted(column(frame, "offset")) == sorted(every)
    for cut in cuts_of(log)[1::3]:
        for condition in (f"offset < {cut}", f"offset >= {cut}"):
            wanted = sorted(o for o in every if (o < cut) == ("<" in condition))
            assert sorted(column(frame.where(condition), "offset")) == wanted
            assert frame.where(condition).count() == len(wanted)
