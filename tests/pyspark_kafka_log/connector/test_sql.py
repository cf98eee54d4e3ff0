"""What SQL can say with the connector: tables, temporary views, and paths in queries."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_log import LogDirectory, read_table
from tests.paths import SAMPLES

pytestmark = pytest.mark.spark

NEW = SAMPLES / "kafka-4.x"
ONE = NEW / "features-0"


@pytest.fixture
def sql(session: SparkSession) -> Iterator[SparkSession]:
    """A Spark without tables, and without what a test leaves."""
    yield session
    for table in session.catalog.listTables():
        kind = "VIEW" if table.tableType in ("VIEW", "TEMPORARY") else "TABLE"
        session.sql(f"DROP {kind} {table.name}")


def records(path: Path) -> int:
    return int(read_table(path, ["offset"]).num_rows)


def one(sql: SparkSession, query: str) -> tuple[object, ...]:
    found = sql.sql(query).collect()
    assert len(found) == 1
    return tuple(found[0])


def test_a_table_keeps_its_options(sql: SparkSession) -> None:
    sql.sql(
        f"CREATE TABLE t USING `kafka-log` OPTIONS (path '{ONE}', includeMetadata 'true') COMMENT 'c' TBLPROPERTIES ('a' = 'b')"
    )
    assert "magic" in sql.table("t").columns
    assert one(sql, "SELECT count(*), max(offset) FROM t") == (records(ONE), records(ONE) - 1)
    assert one(sql, "SELECT count(*) FROM t WHERE offset >= 3 AND partition = 0") == (
        records(ONE) - 3,
    )
    plan = sql.sql("SELECT offset FROM t WHERE offset = 3")._jdf.queryExecution().toString()
    assert "BatchScan" in plan
    sql.sql("DROP TABLE t")
    assert ONE.is_dir()


def test_a_location_and_columns_of_ones_own(sql: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "a b+c%20"
    shutil.copytree(ONE, place / ONE.name)
    sql.sql(f"CREATE TABLE t USING `kafka-log` LOCATION '{place}'")
    sql.sql(
        f"CREATE TABLE u (topic STRING, offset BIGINT) USING `kafka-log` OPTIONS (path '{place}/*-0')"
    )
    sql.sql(f'CREATE TABLE v USING `kafka-log` OPTIONS (paths \'["{ONE}", "{NEW / "codecs-1"}"]\')')
    assert one(sql, "SELECT count(*) FROM t") == (records(ONE),)
    assert sql.table("u").columns == ["topic", "offset"]
    assert one(sql, "SELECT count(*) FROM u") == (records(ONE),)
    assert one(sql, "SELECT count(*) FROM v") == (records(ONE) + records(NEW / "codecs-1"),)


@pytest.mark.slow
def test_views_as_tables(sql: SparkSession) -> None:
    sql.sql(f"CREATE TABLE b USING `kafka-log` OPTIONS (path '{NEW}', view 'stat')")
    sql.sql(f"CREATE TEMPORARY VIEW o USING `kafka-log` OPTIONS (path '{NEW}', view 'offsets')")
    stat = LogDirectory(NEW).stat()
    total = sum(stat.column("records").to_pylist())
    assert one(sql, "SELECT count(*), sum(records) FROM b") == (stat.num_rows, total)
    assert one(sql, "SELECT count(*) FROM o") == (read_table(NEW, view="offsets").num_rows,)


@pytest.mark.slow
def test_a_path_in_a_query(sql: SparkSession) -> None:
    assert one(sql, f"SELECT count(*) FROM `kafka-log`.`{ONE}`") == (records(ONE),)
    segments = LogDirectory(NEW).ls(segments=True).num_rows
    assert one(sql, f"SELECT count(*) FROM `kafka-log`.segments.`{NEW}`") == (segments,)
    control = f"SELECT count(*) FROM `kafka-log`.`{NEW}` WITH (includeControlRecords 'true')"
    assert one(sql, control) == (read_table(NEW, ["offset"], control_records=True).num_rows,)
    sql.sql(f"CREATE TEMPORARY VIEW p AS SELECT * FROM `kafka-log`.`{ONE}`")
    assert one(sql, "SELECT count(*) FROM p") == (records(ONE),)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["subscribepattern", "SUBSCRIBEPATTERN", "subscribePattern"])
def test_options_of_a_query_take_the_place_of_those_of_the_table(
    sql: SparkSession, option: str
) -> None:
    sql.sql(f"CREATE TABLE t USING `kafka-log` OPTIONS (path '{NEW}', subscribePattern '^codecs$')")
    try:
        found = sql.sql(f"SELECT DISTINCT topic FROM t WITH ({option} '^features$')").collect()
        assert [row.topic for row in found] == ["features"]
    finally:
        sql.sql("DROP TABLE t")


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            f"CREATE TABLE t USING `kafka-log` OPTIONS (path '{ONE}', nosuch 'x')",
            "nosuch: there is",
        ),
        (f"SELECT * FROM `kafka-log`.`{ONE}` WITH (nosuch 'x')", "nosuch: there is no such option"),
        (f"SELECT * FROM `kafka-log`.`{ONE}` WITH (view 'keys')", "there is no column"),
        (f"SELECT * FROM `kafka-log`.nosuch.`{ONE}`", "option view: one of acls"),
        (f"SELECT * FROM `kafka-log`.a.b.`{ONE}`", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT * FROM `kafka-log`.`/nosuch`", "no such file or directory"),
        (f"DROP TABLE `kafka-log`.`{ONE}`", "a path in a query is read"),
        (f"CREATE TABLE `kafka-log`.`{ONE}` (a INT)", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    ],
)
def test_what_is_refused(sql: SparkSession, query: str, told: str) -> None:
    with pytest.raises(Exception, match=told):
        sql.sql(query).collect()
    assert ONE.is_dir()


def test_insert(sql: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sql.sql(f"CREATE TABLE t USING `kafka-log` OPTIONS (path '{out}')")
    sql.sql("INSERT INTO t (topic, value) VALUES ('x', '1'), ('x', '2')")
    sql.sql(f"INSERT INTO `kafka-log`.`{out}` SELECT 'x' AS topic, '3' AS value")
    assert one(sql, "SELECT count(*), min(topic) FROM t") == (3, "x")
    with pytest.raises(Exception, match="column col1: no record has such a column"):
        sql.sql("INSERT INTO t VALUES ('x', '4')")
    sql.sql("DROP TABLE t")
    assert records(out) == 3
