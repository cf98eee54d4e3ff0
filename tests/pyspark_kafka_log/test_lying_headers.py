"""No row of a query is lost because a batch header says something else than the records."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from kafka_log import discover, read_table
from kafka_log.logs.replicas import read_end_offset
from kafka_log.segment.ranges import MAX_OFFSET
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
    lies_about,
    lying_segments,
    lying_vector,
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


@pytest.mark.slow
@settings(max_examples=4)
@given(data=st.data())
def test_two_halves_are_all_rows(data: st.DataObject) -> None:
    check_halves(data)


@pytest.mark.soak
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


def lying_topics(directory: Path, *, every: bool) -> dict[str, tuple[Path, list[Row]]]:
    """Write each reference segment, changed, as a topic: with each lie, or with the lies in turn. Return files and rows of topics.

    Those whose times do not fit Spark's microseconds are left out, and those with the largest offset, whose log has no end.
    """
    turn = count()
    found = {}
    for vector in VECTORS:
        lies = lies_about(vector)
        for lie in lies if every else [lies[next(turn) % len(lies)]]:
            name = f"{lie}.{vector.parent.name}.{vector.stem}"
            path = file_of(str(directory), lying_vector(vector, lie), name)
            rows, _ = rows_and_lies(path)
            if all(-(1 << 53) < time < 1 << 53 and at < MAX_OFFSET for at, time in rows):
                found[name] = path, rows
            else:
                shutil.rmtree(path.parent)
    return found


def by_topic(frame: DataFrame) -> dict[str, list[Row]]:
    """Return the rows of each topic, timestamps in milliseconds. As many are counted."""
    table = frame.selectExpr("topic", "offset", "unix_millis(timestamp) time").toArrow()
    assert frame.count() == table.num_rows
    found: dict[str, list[Row]] = {}
    for topic, *row in zip(*(values.to_pylist() for values in table.columns), strict=True):
        found.setdefault(topic, []).append((row[0], row[1]))
    return found


def halves_by_options(
    spark: SparkSession, directory: Path, at: Mapping[str, int]
) -> Iterator[dict[str, list[Row]]]:
    """Yield the rows below an offset of each topic, and those from it on, by the options of offsets."""
    offsets = json.dumps({topic: {"0": value} for topic, value in at.items()})
    for name in ("endingOffsets", "startingOffsets"):
        yield by_topic(load(spark, directory, **{name: offsets}))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["lies in turn", "all lies"]
)
def test_two_halves_of_all_vectors(spark: SparkSession, directory: Path, every: bool) -> None:
    """Each half of each topic has the rows that scan reads, and both together are all rows, each once."""
    topics = lying_topics(directory, every=every)
    assert len(topics) > len(VECTORS) // 2
    frame = load(spark, directory)
    assert by_topic(frame) == {topic: rows for topic, (_, rows) in topics.items() if rows}

    def assert_topics(halves: list[dict[str, list[Row]]], by: int, at: Mapping[str, int]) -> None:
        """Assert both for each topic. At least a twentieth of them have rows in both halves."""
        name = ("offsets", "timestamps")[by]
        split = 0
        for topic, (path, _) in topics.items():
            cut = at[topic]
            found = [half.get(topic, []) for half in halves]
            for rows, ranges in zip(found, ((None, cut), (cut, None)), strict=True):
                only: dict[str, Any] = {name: ranges}
                scanned = read_table(path, ("offset", "timestamp"), **only)
                assert rows == rows_of(scanned), (topic, name, ranges)
            assert_halves(found, path, by, cut)
            split += all(found)
        assert split > len(topics) // 20, (name, split)

    rows = [row for _, found in topics.values() for row in found]
    for part in (1 / 4, 1 / 2, 3 / 4) if every else (1 / 2,):
        middles = {
            topic: cut_of_options(path, [offset for offset, _ in found], part)
            for topic, (path, found) in topics.items()
        }
        assert_topics(list(halves_by_options(spark, directory, middles)), 0, middles)
        for by, name in enumerate(("offset", "timestamp")):
            cut = quantile([row[by] for row in rows], part)
            value = cut if by == 0 else f"timestamp_millis({cut})"
            halves = [by_topic(frame.where(f"{name} {op} {value}")) for op in ("<", ">=")]
            assert_topics(halves, by, dict.fromkeys(topics, cut))


def cut_of_options(path: Path, offsets: list[int], part: float) -> int:
    """Return an offset of a partition that options may name: not above the end of its log.

    It is not 0 either: the name of the segment and its first and last batch exclude offsets below 0, which one vector has between them.
    """
    (partition,) = discover(path.parent)
    return min(max(quantile(offsets or [0], part), 1), read_end_offset(partition.segments))


def quantile(values: list[int], part: float) -> int:
    """Return the value above so large a part of the others."""
    return sorted(values)[int(len(values) * part)]


def rows_of(table: pa.Table) -> list[Row]:
    """Return the rows of a table of scan."""
    return [(row["offset"], row["timestamp"]) for b in table.to_batches() for row in unpacked(b)]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.share(ci=2)
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
