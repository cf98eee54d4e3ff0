"""All scans of one query in Spark read one log: while it is planned, the log grows."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_kafka_log import ending_offsets
from tests.support.spark_logs import batch, build, numbered, write
from tests.support.spark_queries import load

pytestmark = pytest.mark.spark

BEFORE = 6


class Writer(DataSource):
    """A source of no rows that appends a batch to a log whenever a scan of it is planned."""

    @classmethod
    def name(cls) -> str:
        return "appends"

    def schema(self) -> str:
        return "offset long"

    def reader(self, schema: StructType) -> DataSourceReader:
        return WriterReader(self.options["path"])


class WriterReader(DataSourceReader):
    def __init__(self, path: str) -> None:
        self.path = path

    def partitions(self) -> list[InputPartition]:
        """Append what the file beside has, and put the next offset into it."""
        log, more = Path(self.path), Path(self.path).with_suffix(".more")
        pieces = json.loads(more.read_text())
        with log.open("ab") as file:
            file.write(bytes.fromhex(pieces.pop(0)))
        more.write_text(json.dumps(pieces))
        return []

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        return iter(())


@pytest.fixture
def log(session: SparkSession, directory: Path) -> Path:
    """A log of six records, and ten batches that are appended while queries are planned."""
    session.dataSource.register(Writer)
    path = write(directory, "t", 0, 0, numbered(2, 3))
    write(directory, "u", 0, 0, numbered(2, 1))
    later = [build(batch(BEFORE + i, [b"later"])).hex() for i in range(10)]
    path.with_suffix(".more").write_text(json.dumps(later))
    return path


def appends(session: SparkSession, log: Path) -> DataFrame:
    return session.read.format("appends").load(str(log))


def appended(log: Path) -> int:
    return 10 - len(json.loads(log.with_suffix(".more").read_text()))


def records(session: SparkSession, path: Path, which: str = "topic = 't'") -> DataFrame:
    session.conf.set("spark.tests.format", "kafka-log")
    return load(session, path).where(which)


def test_a_union_sees_one_log(session: SparkSession, log: Path, directory: Path) -> None:
    """Of other columns, filters, topics and paths."""
    frame = records(session, directory).selectExpr("'a' which", "offset")
    for which, more in {
        "b": records(session, directory).where("offset >= 0").selectExpr("'b'", "offset"),
        "c": records(session, log.parent).selectExpr("'c'", "offset"),
        "d": records(session, directory, "topic = 'u'").selectExpr("'d'", "offset"),
        "e": records(session, directory)
        .groupBy("value")
        .agg({"offset": "max"})
        .selectExpr("'e'", "`max(offset)`"),
    }.items():
        grows = appends(session, log).selectExpr(f"'{which}'", "offset")
        frame = frame.union(grows).union(more)
    found = {row.which: row["count"] for row in frame.groupBy("which").count().collect()}
    assert appended(log) >= 4
    assert found["a"] in range(BEFORE, BEFORE + 4)
    assert {found[which] for which in "bce"} == {found["a"]}
    assert found["d"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_join_with_itself_sees_one_log(
    session: SparkSession, log: Path, directory: Path, adaptive: str
) -> None:
    session.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        left, right = (records(session, directory).select("offset") for _ in range(2))
        grows = appends(session, log)
        joined = left.join(grows, "offset", "left_anti").join(right, "offset", "full")
        counts = joined.selectExpr("count(*) a", "count_if(offset is null) b").collect()
        assert appended(log) == 1
        assert counts in ([(BEFORE, 0)], [(BEFORE + 1, 0)])
        one_side = left.join(right, "offset", "left_anti").union(appends(session, log))
        other_side = right.join(left, "offset", "left_anti")
        assert one_side.union(other_side).collect() == []
        assert appended(log) == 2
    finally:
        session.conf.unset("spark.sql.adaptive.enabled")


def test_queries_in_queries_see_one_log(session: SparkSession, log: Path, directory: Path) -> None:
    """Those that are planned in other threads too, and one that explain has planned."""
    records(session, directory).createOrReplaceTempView("records")
    appends(session, log).createOrReplaceTempView("grows")
    frame = session.sql(
        "with w as (select * from records) select (select count(*) from w) a, (select count(offset) from grows) g,"
        " (select max(offset) from w where partition = 0) b, count(key) c, max(offset) d from w"
        " where `offset` not in (select offset from grows union all select -1)"
    )
    frame.explain(True)
    (row,) = frame.collect()
    assert appended(log) >= 1
    assert row.a in (BEFORE, BEFORE + 1)
    assert (row.g, row.b, row.c, row.d) == (0, row.a - 1, row.a, row.a - 1)


def test_the_next_query_sees_what_was_appended(
    session: SparkSession, log: Path, directory: Path
) -> None:
    frame = records(session, directory)
    assert frame.count() == BEFORE
    assert appends(session, log).collect() == []
    assert appended(log) >= 1
    assert frame.count() == BEFORE + appended(log)
    assert frame.union(frame).count() == 2 * (BEFORE + appended(log))


def test_the_python_source_reads_to_the_ends_that_are_said(
    session: SparkSession, log: Path, directory: Path
) -> None:
    """Without them each scan has its own, as Spark tells it nothing of the query."""
    ends = ending_offsets(directory, {"subscribe": "t"})
    assert ends == '{"t":{"0":6}}'
    session.conf.set("spark.tests.format", "kafka-log-python")

    def union(**options: str) -> set[int]:
        frame = None
        for which in "abc":
            some = load(session, directory, subscribe="t", **options)
            grows = appends(session, log).selectExpr(f"'{which}'", "offset")
            more = grows.union(some.selectExpr(f"'{which}' which", "offset"))
            frame = more if frame is None else frame.union(more)
        assert frame is not None
        found = frame.toDF("which", "offset").groupBy("which").count().collect()
        return {row["count"] for row in found}

    assert union(endingOffsets=ends) == {BEFORE}
    assert appended(log) == 3
    assert len(union()) > 1


def test_what_a_query_has_seen_goes_with_it(session: SparkSession, log: Path) -> None:
    """Queries that are gone leave nothing in the JVM."""
    jvm = session._jvm
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    kind = jvm.java.lang.Class.forName("pyspark_kafka_log.QueryLogs", True, loader)
    kept = kind.getDeclaredField("OF_QUERIES")
    kept.setAccessible(True)

    def held() -> int:
        for _ in range(2):
            jvm.java.lang.System.gc()
        return int(kept.get(None).size())

    before = held()
    for _ in range(10):
        assert records(session, log.parent).count() == BEFORE
    for _ in range(20):  # a busy JVM clears references late
        if held() <= before + 3:
            break
        time.sleep(0.5)
    assert held() <= before + 3
