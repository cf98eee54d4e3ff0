"""Queries with any operator and any constant give the rows that a Python of three truth values picks, in both sources."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_log import read_table
from tests.shares import draw_seeds
from tests.support.spark_logs import TIME, batch, build, numbered, write
from tests.support.spark_metrics import metrics
from tests.support.spark_queries import load

MAX, MIN = (1 << 63) - 1, -1 << 63
COLUMNS = ("topic", "partition", "offset", "timestamp")
Truth = bool | None
Row = tuple[str, int, int, int]


class Query(NamedTuple):
    """A condition as SQL has it, and what it says of a row; None is SQL's unknown."""

    sql: str
    truth: Callable[[Row], Truth]


class Constant(NamedTuple):
    sql: str
    value: Any


def integers(*values: int) -> list[Constant]:
    """Numbers as literals of several types."""
    found = []
    for n in values:
        found.append(Constant(f"{n}BD" if n in (MIN, MAX) else str(n), n))
        found.append(Constant(f"cast('{n}' as bigint)", n))
        if -(1 << 31) <= n < 1 << 31:
            found.append(Constant(f"cast('{n}' as int)", n))
        if -(1 << 7) <= n < 1 << 7:
            found += [Constant(f"{n}S", n), Constant(f"{n}Y", n), Constant(f"{n}.0BD", n)]
    return found


NULL = Constant("null", None)
NUMBERS = {
    "offset": [
        *integers(0, 1, 5, 11, 12, 40, -1, -3, MAX, MAX - 1, MAX - 9, MIN, MIN + 1, 1 << 31),
        Constant("5.5BD", Decimal("5.5")),
        Constant("9223372036854775808BD", MAX + 1),
        Constant("-9223372036854775809BD", MIN - 1),
        NULL,
    ],
    "partition": [
        *integers(0, 1, 2, -1, (1 << 31) - 1, -(1 << 31), 1 << 31, MAX, MIN),
        Constant("0.5BD", Decimal("0.5")),
        NULL,
    ],
    "topic": [*(Constant(f"'{name}'", name) for name in ("a", "b", "A", "", "a ", "zz")), NULL],
    "timestamp": [
        *(
            Constant(f"timestamp_micros({us}L)", us)
            for ms in (TIME, TIME + 1, TIME + 5, 0, -1)
            for us in (ms * 1000, ms * 1000 + 1, ms * 1000 - 1)
        ),
        *(Constant(f"timestamp_micros({us}L)", us) for us in (MAX, MAX - 1, -(1 << 62))),
        Constant("cast(null as timestamp)", None),
    ],
}
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compared(name: str, sign: str, constant: Constant, flipped: bool) -> Query:
    at = COLUMNS.index(name)
    sides = (constant.sql, f"`{name}`") if flipped else (f"`{name}`", constant.sql)

    def truth(row: Row) -> Truth:
        if sign == "<=>":
            return bool(row[at] == constant.value)
        if constant.value is None:
            return None
        pair = (constant.value, row[at]) if flipped else (row[at], constant.value)
        return OPERATORS[sign](*pair)

    return Query(f"{sides[0]} {sign} {sides[1]}", truth)


def listed(name: str, constants: list[Constant], negated: bool) -> Query:
    at = COLUMNS.index(name)
    values = [constant.value for constant in constants]

    def truth(row: Row) -> Truth:
        found: Truth = True if row[at] in values else None if None in values else False
        return found if found is None else found != negated

    sql = ", ".join(constant.sql for constant in constants)
    return Query(f"`{name}` {'not ' if negated else ''}in ({sql})", truth)


def between(name: str, low: Constant, high: Constant) -> Query:
    query = both(compared(name, ">=", low, False), compared(name, "<=", high, False))
    return query._replace(sql=f"`{name}` between {low.sql} and {high.sql}")


def both(a: Query, b: Query) -> Query:
    def truth(row: Row) -> Truth:
        pair = (a.truth(row), b.truth(row))
        return False if False in pair else None if None in pair else True

    return Query(f"({a.sql}) and ({b.sql})", truth)


def negated(a: Query) -> Query:
    def truth(row: Row) -> Truth:
        found = a.truth(row)
        return None if found is None else not found

    return Query(f"not ({a.sql})", truth)


def either(a: Query, b: Query) -> Query:
    query = negated(both(negated(a), negated(b)))
    return query._replace(sql=f"({a.sql}) or ({b.sql})")


def drawn(r: random.Random, depth: int = 2) -> Query:
    """Draw a condition."""
    kind = r.random()
    if depth and kind < 0.4:
        way = r.choice((both, both, either))
        return way(drawn(r, depth - 1), drawn(r, depth - 1))
    if depth and kind < 0.5:
        return negated(drawn(r, depth - 1))
    name = r.choice(("offset", "offset", "partition", "timestamp", "topic"))
    constants = NUMBERS[name]
    if kind < 0.65:
        some = r.sample(constants, r.randint(1, 4))
        return listed(name, some, r.random() < 0.3)
    if kind < 0.75:
        return between(name, r.choice(constants), r.choice(constants))
    return compared(name, r.choice((*OPERATORS, "<=>")), r.choice(constants), r.random() < 0.3)


@pytest.fixture
def logs(directory: Path) -> Path:
    """Topics and partitions with offsets near both ends, and times that are absent, at 1970, and no whole order."""
    write(directory, "a", 0, 0, numbered(3, 4))
    write(directory, "a", 0, 12, build(batch(12, [b"x"] * 4, base_timestamp=0)))
    write(directory, "a", 1, 0, build(batch(0, [b"y"] * 2, base_timestamp=-1)))
    times = [{"offset_delta": i, "timestamp_delta": t} for i, t in enumerate((9, -1, 5))]
    late = batch(MAX - 10, []) | {"records": times}
    write(directory, "b", 0, MAX - 10, build(late))
    write(directory, "b", 2, 40, build(batch(40, [b"z"])))
    return directory


def rows_of(path: Path) -> list[Row]:
    table = read_table(path, list(COLUMNS), control_records=True)
    times = table["timestamp"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    columns = [table[name].to_pylist() for name in COLUMNS[:3]]
    return list(zip(*columns, times.to_pylist(), strict=True))


def asked(frame: DataFrame, queries: list[Query]) -> list[list[Row]]:
    """The rows of each query. All of them are one job, in which each has a scan of its own."""
    micros = F.unix_micros("timestamp").alias("us")
    plain = frame.select("topic", "partition", "offset", "timestamp")
    parts = [
        plain.where(query.sql).select(F.lit(i).alias("i"), *COLUMNS[:3], micros)
        for i, query in enumerate(queries)
    ]
    found: list[list[Row]] = [[] for _ in queries]
    for i, *row in reduce(DataFrame.unionAll, parts).collect():
        found[i].append((row[0], row[1], row[2], row[3]))
    return [sorted(rows) for rows in found]


def check(frame: DataFrame, path: Path, queries: list[Query]) -> None:
    rows = rows_of(path)
    assert len(rows) == 22
    for query, found in zip(queries, asked(frame, queries), strict=True):
        wanted = sorted(row for row in rows if query.truth(row))
        assert found == wanted, query.sql


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.parametrize("name", COLUMNS)
def test_each_operator_and_constant(spark: SparkSession, logs: Path, name: str) -> None:
    constants = NUMBERS[name]
    queries = [
        compared(name, sign, constant, flipped=i % 3 == 0)
        for sign in (*OPERATORS, "<=>")
        for i, constant in enumerate(constants)
    ]
    lists = [constants[i : i + 3] for i in range(0, len(constants), 2)]
    queries += [listed(name, [*some, *more], not_in) for some in lists for more in ([], [NULL]) for not_in in (False, True)]  # fmt: skip
    queries += [between(name, *pair) for pair in zip(constants, constants[::-1], strict=True)]
    for i in range(0, len(queries), 60):
        check(load(spark, logs), logs, queries[i : i + 60])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.share(ci=3)
@pytest.mark.parametrize("seed", draw_seeds(3))
def test_conditions_of_several(spark: SparkSession, logs: Path, seed: int) -> None:
    r = random.Random(seed)
    check(load(spark, logs), logs, [drawn(r) for _ in range(60)])


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["construct", "arrow"])
def test_a_list_of_offsets_reads_their_batches_alone(
    session: SparkSession, directory: Path, engine: str
) -> None:
    write(directory, "t", 0, 0, numbered(4, 100, pad=1024))
    size = len(numbered(4, 100, pad=1024))
    source = session.read.format("kafka-log").option("engine", engine).load(str(directory))
    found = {
        where: metrics(source.where(f"offset {where}"))["readBytes"]
        for where in (
            "in (9, 350)",
            "= 9",
            f"in (9, 350, {MAX})",
            "in (9, 9999)",
            "in (9999, 5000)",
        )
    }
    one = found["= 9"]
    assert size / 101 < one < size / 99
    assert found["in (9, 350)"] == found[f"in (9, 350, {MAX})"] == pytest.approx(2 * one, rel=0.02)
    assert (found["in (9, 9999)"], found["in (9999, 5000)"]) == (one, 0)
