"""What is wrong with a row, in the column of a user's own schema, as Spark's JSON source has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.spark_logs import flipped, numbered, write


@pytest.fixture
def damaged(directory: Path) -> Path:
    """Three batches of four records: the second has a wrong checksum; then bytes that are no batch, and a good one."""
    ends = [len(numbered(4, n)) for n in range(5)]
    data = flipped(numbered(4, 4), ends[2] - 2)
    write(directory, "t", 0, 0, data[: ends[3]] + b"\xff" * 50 + data[ends[3] :])
    return directory


def load(spark: SparkSession, path: Path, schema: str, **options: Any) -> DataFrame:
    source = spark.conf.get("spark.tests.format")
    assert source is not None
    return spark.read.format(source).options(**options).schema(schema).load(str(path))


@pytest.mark.spark
def test_it_says_what_problem_says(spark: SparkSession, damaged: Path) -> None:
    permissive = {"mode": "PERMISSIVE"}
    wanted = load(spark, damaged, "offset long, problem string", **permissive).collect()
    assert len(wanted) == 17 and sum(row["problem"] is not None for row in wanted) == 5
    for name, options in (
        ("_corrupt_record", {}),
        ("wrong", {"columnNameOfCorruptRecord": "wrong"}),
    ):
        frame = load(spark, damaged, f"offset long, {name} string", **permissive, **options)
        assert [tuple(row) for row in frame.collect()] == [tuple(row) for row in wanted]
        # Rows do not come or go with what is selected of them.
        assert frame.count() == frame.select("offset").count() == 17
        assert [row[0] for row in frame.select(name).collect()] == [
            row["problem"] for row in wanted
        ]
    both = load(spark, damaged, "_corrupt_record string, problem string", **permissive)
    assert all(row[0] == row[1] for row in both.collect())
    without = load(spark, damaged, "offset long", **permissive)
    assert without.count() == 16


@pytest.mark.spark
def test_where_damage_is_an_error_it_is_null(spark: SparkSession, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(4, 2))
    rows = load(spark, directory, "_corrupt_record string, offset long").collect()
    assert [tuple(row) for row in rows] == [(None, offset) for offset in range(8)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        ("offset long, _corrupt_record binary", {}, "column _corrupt_record is string"),
        ("offset long, wrong string", {}, "there is no column 'wrong'"),
        ("offset long", {"columnNameOfCorruptRecord": "Value"}, "no other column has"),
        ("offset long", {"columnNameOfCorruptRecord": " "}, "no other column has"),
    ],
)
def test_names_and_types_that_cannot_be(
    spark: SparkSession, directory: Path, schema: str, options: dict[str, str], message: str
) -> None:
    write(directory, "t", 0, 0, numbered(4, 2))
    with pytest.raises(Exception, match=message):
        load(spark, directory, schema, **options).collect()
