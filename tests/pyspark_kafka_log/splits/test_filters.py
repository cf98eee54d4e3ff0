"""Filters of queries: what they leave out holds no row that a query wants."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, InputPartition
from pyspark.sql.types import StructType

from kafka_log import Segment
from kafka_log.read.selection import Selection
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.cuts import find_selected_runs
from pyspark_kafka_log.splits.filters import Filter, RowRanges, intersect_ranges, parse_filters
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.task_reader import read_splits
from tests.paths import SAMPLES
from tests.support.spark_logs import TIME, batch, build, flipped, numbered, write
from tests.support.spark_queries import column, load

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda a, b: a in b,
}
SMALL = st.integers(-3, 5)
MAX, MIN = (1 << 63) - 1, -1 << 63
OFFSETS = SMALL | st.sampled_from([MIN, MIN + 1, MAX - 1, MAX])
TIMES = st.integers(-3000, 5000) | st.sampled_from([MIN, MIN + 1, MAX - 1, MAX])
TOPICS = st.sampled_from(["a", "b", "c"])


def one_filter(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Filter]:
    plain = st.tuples(st.just(name), st.sampled_from(["=", "<", "<=", ">", ">="]), values)
    several = st.tuples(st.just(name), st.just("in"), st.lists(values, max_size=3))
    return plain | several


FILTERS = st.lists(
    one_filter("topic", TOPICS)
    | one_filter("partition", SMALL)
    | one_filter("offset", OFFSETS)
    | one_filter("timestamp", TIMES)
    | one_filter("key", st.just("a")),
    max_size=4,
)


@given(FILTERS, TOPICS, SMALL, OFFSETS, SMALL)
def test_no_row_that_is_wanted_is_left_out(
    filters: list[Filter], topic: str, partition: int, offset: int, timestamp: int
) -> None:
    row = {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp": timestamp * 1000,
        "key": "a",
    }
    left = parse_filters(filters)
    if all(OPERATORS[how](row[name], value) for name, how, value in filters):
        assert left.may_contain(topic, partition)
        for value, (low, high) in ((offset, left.offsets), (timestamp, left.timestamps)):
            assert low is None or value >= low
            assert high is None or value < high
        assert left.only_offsets is None or offset in left.only_offsets


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([], RowRanges()),
        ([("key", "=", 3), ("key", "in", [1])], RowRanges()),
        ([("offset", "=", 5)], RowRanges(offsets=(5, 6))),
        ([("offset", ">", 5)], RowRanges(offsets=(6, None))),
        ([("offset", ">=", 5), ("offset", "<", 9)], RowRanges(offsets=(5, 9))),
        ([("offset", "<=", 9)], RowRanges(offsets=(None, 10))),
        (
            [("offset", "in", [9, 5, 7])],
            RowRanges(offsets=(5, 10), only_offsets=frozenset([5, 7, 9])),
        ),
        (
            [("offset", "in", [9, 5]), ("offset", "in", [5, 6])],
            RowRanges(offsets=(5, 7), only_offsets=frozenset([5])),
        ),
        ([("offset", ">", -3)], RowRanges()),
        ([("offset", ">=", 0)], RowRanges(offsets=(0, None))),
        ([("offset", "<", -3)], RowRanges(offsets=(None, 0))),
        ([("offset", "<", MAX)], RowRanges(offsets=(None, MAX))),
        ([("offset", "<=", MAX)], RowRanges()),
        ([("offset", ">=", MAX)], RowRanges(offsets=(MAX, None))),
        ([("offset", ">", MAX)], RowRanges(offsets=(MAX, MAX))),
        ([("offset", "<", 3), ("offset", ">", 5)], RowRanges(offsets=(3, 3))),
        ([("offset", "!=", 3)], RowRanges()),
        ([("timestamp", ">=", 4000)], RowRanges(timestamps=(4, None))),
        ([("timestamp", ">=", 4001)], RowRanges(timestamps=(5, None))),
        ([("timestamp", ">", 3999)], RowRanges(timestamps=(4, None))),
        ([("timestamp", ">", 4000)], RowRanges(timestamps=(5, None))),
        ([("timestamp", "<", 4000)], RowRanges(timestamps=(None, 4))),
        ([("timestamp", "<=", 4000)], RowRanges(timestamps=(None, 5))),
        ([("timestamp", "=", 4000)], RowRanges(timestamps=(4, 5))),
        ([("timestamp", "=", 4001)], RowRanges(timestamps=(5, 5))),
        ([("timestamp", "in", [4000, 9000])], RowRanges(timestamps=(4, 10))),
        ([("partition", ">", 1)], RowRanges(partitions=(2, None))),
        (
            [("partition", "=", 1)],
            RowRanges(partitions=(1, 2), only_partitions=frozenset([1])),
        ),
        (
            [("partition", "in", [4, 1])],
            RowRanges(partitions=(1, 5), only_partitions=frozenset([1, 4])),
        ),
        ([("topic", "=", "a")], RowRanges(topics=frozenset("a"))),
        ([("topic", "in", ["a", "b"]), ("topic", "=", "b")], RowRanges(topics=frozenset("b"))),
        ([("topic", "<", "b")], RowRanges()),
        ([("topic", "in", [])], RowRanges(topics=frozenset())),
        ([("partition", "=", True), ("offset", "=", "5"), ("topic", "=", 1)], RowRanges()),
    ],
)
def test_what_filters_leave(filters: list[Filter], left: RowRanges) -> None:
    """Exactly the values that they take: what more is left is read for nothing."""
    assert parse_filters(filters) == left


@pytest.mark.parametrize(
    ("left", "taken"),
    [
        (RowRanges(), "a0 a1 a2 b0 b1 b2"),
        (RowRanges(topics=frozenset("a")), "a0 a1 a2"),
        (RowRanges(partitions=(1, None)), "a1 a2 b1 b2"),
        (RowRanges(partitions=(None, 1)), "a0 b0"),
        (RowRanges(partitions=(1, 2), topics=frozenset("b")), "b1"),
        (RowRanges(only_partitions=frozenset([0, 2])), "a0 a2 b0 b2"),
    ],
)
def test_partitions_that_filters_take(left: RowRanges, taken: str) -> None:
    every = [(topic, number) for topic in "ab" for number in range(3)]
    assert " ".join(f"{topic}{n}" for topic, n in every if left.may_contain(topic, n)) == taken


@given(FILTERS)
def test_what_filters_leave_can_be_selected(filters: list[Filter]) -> None:
    """Also at the ends of 64 bits, where the number after a bound does not exist."""
    left = parse_filters(filters)
    Selection(offsets=left.offsets, timestamps=left.timestamps).rows()


@given(*[st.tuples(st.none() | SMALL, st.none() | SMALL)] * 2, SMALL)
def test_what_ranges_have_in_common(a: Any, b: Any, n: int) -> None:
    def within(bounds: Any) -> bool:
        return (bounds[0] is None or n >= bounds[0]) and (bounds[1] is None or n < bounds[1])

    assert within(intersect_ranges(a, b)) == (within(a) and within(b))


def test_a_plan_has_what_a_query_may_want(directory: Path) -> None:
    for partition in range(3):
        write(directory, "t", partition, 0, numbered(2, 4))
        write(directory, "t", partition, 8, build(batch(8, [b"8", b"9"])))
    options = parse({"path": str(directory)})

    def planned(*filters: Filter) -> list[tuple[int, int]]:
        tasks = plan(options, parse_filters(filters))
        return [(s.segment.partition, s.segment.base_offset) for task in tasks for s in task]

    assert len(planned()) == 6
    assert planned(("partition", "=", 1)) == [(1, 0), (1, 8)]
    assert planned(("partition", ">", 0), ("offset", ">=", 9)) == [(1, 8), (2, 8)]
    assert planned(("topic", "in", ["u", "v"])) == []
    assert planned(("offset", "<", 3)) == [(0, 0), (1, 0), (2, 0)]


def test_headers_of_segments_within_a_range_are_not_read(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No header there leaves out a batch; of a log that is read from its middle on these are all segments but one."""
    for base in (0, 10, 20, 30):
        write(directory, "t", 0, base, build(batch(base, [b"v"] * 5), batch(base + 5, [b"v"] * 5)))
    options = parse({"path": str(directory)})
    asked: list[int] = []

    def recording(segment: Segment, *args: Any) -> Any:
        asked.append(segment.base_offset)
        return find_selected_runs(segment, *args)

    monkeypatch.setattr("pyspark_kafka_log.splits.plan.find_selected_runs", recording)
    cases: list[tuple[list[Filter], list[int], int]] = [
        ([("offset", ">=", 17)], [10], 25),
        ([("offset", ">=", 10), ("offset", "<", 33)], [30], 25),
        ([("offset", ">", 17), ("offset", "<=", 21)], [10, 20], 10),
        ([("offset", "in", [12, 35])], [10, 30], 10),
        ([("offset", "<", 40)], [30], 40),
    ]
    for filters, read, rows in cases:
        asked.clear()
        tasks = plan(options, parse_filters(filters))
        batches = [b for task in tasks for b in read_splits(task, Scan(columns=("offset",)))]
        assert asked == read
        kept = sum(part.size for task in tasks for part in task)
        assert kept == rows // 5 * len(build(batch(0, [b"v"] * 5)))
        found = [o for b in batches for o in b.column(0).to_pylist()]
        wanted = [o for o in range(40) if all(OPERATORS[how](o, n) for _, how, n in filters)]
        assert [o for o in found if o in wanted] == wanted


# ---------------------------------------------------------------- in Spark


@pytest.mark.python_lane
@pytest.mark.share(4, ci=6)
@pytest.mark.spark
@pytest.mark.parametrize(
    "condition",
    [
        "offset between 3 and 7",
        "offset in (2, 4, 200000)",
        "topic = 'codecs' and partition = 1",
        "topic like 'seg%' and offset > 100",
        "timestamp > timestamp'2026-11-20 06:10:00'",
        "timestamp <= timestamp'2026-11-20 06:10:00.000001' or offset = 1",
        "timestamp < timestamp'9999-12-31' and timestamp >= timestamp'0001-01-01'",
        "partition > 0 and not offset <=> 3",
        "offset < 3 and offset > 5",
        f"offset <= {MAX} and offset >= {MIN} and partition <= {(1 << 31) - 1}",
        f"offset = {MAX}",
        f"offset > {MAX}",
        f"offset in (3, {MAX}, {MIN})",
        f"offset > {MIN} and offset < {MAX} and timestamp <= timestamp_micros({MAX})",
    ],
)
def test_the_rows_of_a_query(spark: SparkSession, condition: str) -> None:
    frame = load(spark, SAMPLES / "kafka-4.x", includeHeaders=True)
    every = spark.createDataFrame(frame.toArrow())
    wanted = sorted(map(repr, every.where(condition).collect()))
    assert sorted(map(repr, frame.where(condition).collect())) == wanted
    assert frame.where(condition).count() == len(wanted)


@pytest.mark.spark
def test_filters_stay_with_their_query(spark: SparkSession) -> None:
    """Spark keeps a reader that takes filters for all queries of a DataFrame, and has it read what the last filter left."""
    conf = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(conf, "true")
    try:
        frame = load(spark, SAMPLES / "kafka-4.x")
        every = frame.count()
        features, codecs = (frame.where(f"topic = '{name}'") for name in ("features", "codecs"))
        counts = features.count(), codecs.count()
        assert 0 < counts[0] < counts[1] < every
        assert (features.count(), codecs.count(), frame.count()) == (*counts, every)
        assert features.union(codecs).count() == sum(counts)
        found = features.groupBy("topic").count().crossJoin(frame.groupBy().count()).collect()
        assert [tuple(row) for row in found] == [("features", counts[0], every)]
        frame.createOrReplaceTempView("filters_stay")
        assert spark.sql("select * from filters_stay where topic = 'features'").count() == counts[0]
        assert spark.sql("select * from filters_stay").count() == every
    finally:
        spark.conf.unset(conf)


class Narrowed(DataSource):
    """A Python source of the numbers 0 to 2, which reads what a filter leaves."""

    @classmethod
    def name(cls) -> str:
        return "narrowed"

    def schema(self) -> str:
        return "n long"

    def reader(self, schema: StructType) -> DataSourceReader:
        return NarrowedReader()


class NarrowedReader(DataSourceReader):
    def __init__(self) -> None:
        self.filters: list[EqualTo] = []

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:
        self.filters = [taken for taken in filters if isinstance(taken, EqualTo)]
        yield from filters

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        return ((n,) for n in range(3) if all(n == taken.value for taken in self.filters))


@pytest.mark.soak
@pytest.mark.spark
def test_why_the_python_source_takes_no_filters(session: SparkSession) -> None:
    """A Spark that fails here has the right answers: then the Python source can take filters."""
    conf = "spark.sql.python.filterPushdown.enabled"
    session.dataSource.register(Narrowed)
    session.conf.set(conf, "true")
    try:
        frame = session.read.format("narrowed").load()
        assert (frame.count(), frame.where("n = 1").count(), frame.count()) == (3, 1, 1)
        frame = session.read.format("narrowed").load()
        one, two = (frame.where(f"n = {n}") for n in (1, 2))
        assert one.union(two).count() == 1
    finally:
        session.conf.unset(conf)


@pytest.mark.spark
def test_segments_that_are_not_wanted_are_not_read(session: SparkSession, directory: Path) -> None:
    """Damage there is no error."""
    session.conf.set("spark.tests.format", "kafka-log")
    first, second = numbered(3, 1), numbered(3, 2)[len(numbered(3, 1)) :]
    write(directory, "t", 0, 0, flipped(first, len(first) - 3))
    write(directory, "t", 0, 3, second)
    frame = load(session, directory)
    assert column(frame.where("offset >= 3"), "offset") == [3, 4, 5]
    with pytest.raises(PySparkException, match="checksum"):
        frame.where("offset >= 2").collect()


@pytest.mark.spark
def test_columns_and_filters_are_in_the_plan(
    session: SparkSession, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session.conf.set("spark.tests.format", "kafka-log")
    write(directory, "t", 0, 0, numbered(3, 1))
    frame = load(session, directory).where(F.col("offset") > 1).select("value")
    frame.explain()
    shown = capsys.readouterr().out
    assert "columns [value, offset]" in shown
    assert "GreaterThan(offset,1)" in shown
    load(session, directory).limit(2).explain()
    assert "limit 2" in capsys.readouterr().out


@pytest.mark.spark
def test_a_view_has_columns_of_these_names_too(spark: SparkSession) -> None:
    frame = load(spark, SAMPLES / "kafka-4.x", view="offsets")
    every = spark.createDataFrame(frame.toArrow())
    if "partition" in frame.columns:
        assert frame.where("partition = 0").count() == every.where("partition = 0").count()


@pytest.mark.spark
def test_a_log_that_grows_is_read_as_it_was_planned(directory: Path) -> None:
    """What comes after a plan is not in it, however often it is read."""
    path = write(directory, "t", 0, 0, numbered(2, 3))
    (task,) = plan(parse({"path": str(directory)}))

    def offsets() -> list[int]:
        batches = read_splits(task, Scan(columns=("offset",)))
        return [o for b in batches for o in b.column(0).to_pylist()]

    before = offsets()
    path.write_bytes(path.read_bytes() + build(batch(6, [b"later"], base_timestamp=TIME)))
    assert offsets() == before == list(range(6))
