"""The Python source as a stream, asked as Spark asks it, without Spark."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka_log.losses import DataLossError
from pyspark_kafka_log.options import OptionError
from pyspark_kafka_log.stream.offsets import INITIAL, initial_offsets
from pyspark_kafka_log.stream.reader import KafkaLogStreamReader, limits
from tests.support.spark_logs import batch, build, flipped, numbered, write

needs_limits = pytest.mark.skipif(limits is None, reason="Spark 4.1 asks for no limits")


def reader(directory: Path, **options: str) -> KafkaLogStreamReader:
    given = {"path": str(directory), "startingOffsets": "earliest", **options}
    return KafkaLogStreamReader(given, ("partition", "offset"))


def told(offsets: Any) -> Any:
    """Offsets after a checkpoint."""
    return json.loads(json.dumps(offsets))


def rows(of: KafkaLogStreamReader, start: Any, end: Any) -> list[tuple[int, int]]:
    """The rows of a micro-batch. Tasks have a copy of the reader."""
    task = pickle.loads(pickle.dumps(of))
    return [
        (row["partition"], row["offset"])
        for part in of.partitions(told(start), told(end))
        for found in task.read(pickle.loads(pickle.dumps(part)))
        for row in found.to_pylist()
    ]


def test_micro_batches_follow_each_other(directory: Path) -> None:
    """The end of the first one says where the query began, that of no other does."""
    write(directory, "t", 0, 0, numbered(3, 2))
    now = reader(directory)
    start = now.initialOffset()
    assert start == {"t": {"0": 0}}
    first = now.latestOffset(start)
    assert initial_offsets(told(first)) == start
    assert rows(now, start, first) == [(0, offset) for offset in range(6)]
    assert now.latestOffset(told(first)) == told(first)
    write(directory, "t", 0, 6, build(batch(6, [b"6", b"7"])))
    second = now.latestOffset()  # Spark 4.1 says no start
    assert INITIAL not in second
    assert rows(now, first, second) == [(0, 6), (0, 7)]
    assert now.reportLatestOffset() == {"t": {"0": 8}}
    assert rows(reader(directory), start, first) == [(0, offset) for offset in range(6)]


def test_a_query_of_a_spark_that_says_no_start_misses_nothing(directory: Path) -> None:
    """Spark 4.1 does not say where a micro-batch begins: it begins where the one before ended."""
    path = write(directory, "t", 0, 0, numbered(1, 6))
    now = reader(directory, maxOffsetsPerTrigger="4")
    start = now.initialOffset()
    first = now.latestOffset()
    assert initial_offsets(told(first)) == start
    assert rows(now, start, first) == [(0, offset) for offset in range(4)]
    second = now.latestOffset()
    assert rows(now, first, second) == [(0, 4), (0, 5)]
    path.write_bytes(numbered(1, 5))
    with pytest.raises(DataLossError, match=r"t-0 was read up to offset 6 .* was truncated"):
        now.latestOffset()


def test_an_empty_first_micro_batch_says_where_the_query_began(directory: Path) -> None:
    """Spark logs its end. A restart does not begin where the log ends by then, and misses no partition that came meanwhile."""
    write(directory, "t", 0, 0, numbered(2, 2))
    now = reader(directory, startingOffsets="latest")
    start = told(now.initialOffset())
    end = told(now.latestOffset(start))
    assert start == initial_offsets(end) == {"t": {"0": 4}}
    write(directory, "t", 0, 4, build(batch(4, [b"4"])))
    write(directory, "t", 1, 0, numbered(1, 2))
    again = reader(directory, startingOffsets="latest")
    assert rows(again, again.initialOffset(), end) == []
    assert rows(again, end, again.latestOffset(end)) == [(0, 4), (1, 0), (1, 1)]


def test_a_query_that_began_without_partitions_reads_those_that_come(directory: Path) -> None:
    now = reader(directory, startingOffsets="latest")
    start = told(now.initialOffset())
    end = told(now.latestOffset(start))
    assert (start, end, initial_offsets(end)) == ({}, {INITIAL: {}}, {})
    write(directory, "t", 0, 0, numbered(2, 2))
    again = reader(directory, startingOffsets="latest")
    assert rows(again, again.initialOffset(), end) == []
    assert rows(again, end, again.latestOffset(end)) == [(0, offset) for offset in range(4)]


def test_options_that_do_not_fit_matter_to_new_queries_only(directory: Path) -> None:
    """A checkpoint says where a query began, whatever its options say of a log that has changed since."""
    write(directory, "t", 0, 0, numbered(3, 2))
    begun = reader(directory)
    start = told(begun.initialOffset())
    end = told(begun.latestOffset(start))
    changed = reader(directory, startingOffsets='{"t":{"5":0}}')
    assert changed.initialOffset() == {}
    with pytest.raises(OptionError, match="t-0"):
        changed.latestOffset()
    with pytest.raises(OptionError, match="t-0"):
        changed.partitions(start, {"t": {"0": 6}})
    assert rows(changed, {}, end) == [(0, offset) for offset in range(6)]
    assert changed.latestOffset(end) == end


@needs_limits
@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, "ReadAllAvailable()"),
        ({"maxOffsetsPerTrigger": "5"}, "ReadMaxRows(max_rows=5)"),
        ({"minOffsetsPerTrigger": "7"}, "ReadMinRows(min_rows=7)"),
        ({"minOffsetsPerTrigger": "7", "maxOffsetsPerTrigger": "9"}, "ReadMaxRows(max_rows=9)"),
    ],
)
def test_limits_are_those_of_the_options(
    options: dict[str, str], limit: str, directory: Path
) -> None:
    write(directory, "t", 0, 0, numbered(1, 1))
    assert repr(reader(directory, **options).getDefaultReadLimit()) == limit


@needs_limits
def test_a_limit_holds_unless_all_is_asked_for(directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(1, 9))
    now = reader(directory, maxOffsetsPerTrigger="4")
    start = now.initialOffset()
    assert now.latestOffset(start, now.getDefaultReadLimit())["t"] == {"0": 4}
    assert now.latestOffset(start, limits.ReadAllAvailable())["t"] == {"0": 9}
    waiting = reader(directory, minOffsetsPerTrigger="10")
    start = told(waiting.latestOffset(waiting.initialOffset(), waiting.getDefaultReadLimit()))
    write(directory, "t", 0, 9, build(batch(9, [b"9"] * 3)))
    assert waiting.latestOffset(start, waiting.getDefaultReadLimit()) == start
    assert waiting.latestOffset(start, limits.ReadAllAvailable())["t"] == {"0": 12}


def test_what_is_gone_is_left_out_or_fails(directory: Path) -> None:
    for fails in (False, True):
        path = write(directory, "t", 0, 0, numbered(3, 2))
        now = reader(directory, failOnDataLoss=str(fails).lower())
        start = now.initialOffset()
        (task,) = now.partitions(start, now.latestOffset(start))
        path.unlink()
        if fails:
            with pytest.raises(Exception, match="No such file"):
                list(now.read(task))
        else:
            with pytest.warns(UserWarning, match="data is lost: .* is gone"):
                assert list(now.read(task)) == []


@needs_limits
def test_available_now_ends_where_the_logs_did(directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(3, 2))
    now = reader(directory)
    now.prepareForTriggerAvailableNow()
    start = now.initialOffset()
    write(directory, "t", 0, 6, build(batch(6, [b"6"])))
    first = now.latestOffset(start, limits.ReadAllAvailable())
    assert rows(now, start, first) == [(0, offset) for offset in range(6)]
    assert now.latestOffset(told(first), limits.ReadAllAvailable()) == told(first)


def test_what_is_left_out_is_said(directory: Path) -> None:
    data = numbered(4, 3)
    write(directory, "t", 0, 0, flipped(data, len(data) // 2))
    now = reader(directory, mode="DROPMALFORMED")
    start = now.initialOffset()
    (task,) = now.partitions(start, now.latestOffset(start))
    with pytest.warns(UserWarning, match="1 place could not be read"):
        found = [row["offset"] for part in now.read(task) for row in part.to_pylist()]
    assert found == [0, 1, 2, 3, 8, 9, 10, 11]
