"""Exports and queries select offsets from both ends of each of several partitions, as a filter of all rows in memory does."""

from __future__ import annotations

import io
import json
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_log import read_table, scan_batches
from kafka_log.cli import main
from tests.shares import examples
from tests.support.mixed_logs import mixed_log

Row = tuple[int, int]
"""Partition and offset."""

BOUNDS = st.none() | st.integers(-12, 12)


def run(*argv: str) -> str:
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(said), redirect_stderr(io.StringIO()):
        assert main([*argv]) == 0, argv
    said.seek(0)
    return said.read()


def rows_of(table: pa.Table) -> list[Row]:
    return [(row["partition"], row["offset"]) for row in table.to_pylist()]


def expected(root: Path, low: int | None, high: int | None, wanted: list[int]) -> list[Row]:
    """Return the rows of a range by all rows and all batches: negative offsets count from the end of each partition."""
    rows = rows_of(read_table(root, ["partition", "offset"]))
    found: list[Row] = []
    for number in wanted:
        batches = scan_batches(root, ["partition", "last_offset"], partitions=number).read_all()
        end = max(batches["last_offset"].to_pylist()) + 1
        first, stop = (
            None if bound is None else bound if bound >= 0 else max(end + bound, 0)
            for bound in (low, high)
        )
        found += [
            (partition, offset)
            for partition, offset in rows
            if partition == number
            and (first is None or offset >= first)
            and (stop is None or offset < stop)
        ]
    return found


def exported(root: Path, selection: list[str]) -> list[Row]:
    with tempfile.TemporaryDirectory() as out:
        columns = ("--columns", "partition,offset")
        run("export", str(root), "--out", out, *columns, *selection)
        files = sorted(Path(out).rglob("*.parquet"))
        return [row for path in files for row in rows_of(pq.read_table(path))]


def queried(root: Path, selection: list[str]) -> list[Row]:
    query = "select partition, offset from records"
    text = run("sql", str(root), query, *selection, "--format", "jsonl")
    return [(row["partition"], row["offset"]) for row in map(json.loads, text.splitlines())]


def dumped(root: Path, selection: list[str]) -> list[Row]:
    text = run("dump", str(root), *selection, "--format", "jsonl")
    return [(row["partition"], row["offset"]) for row in map(json.loads, text.splitlines())]


def check_ranges(
    seed: int, low: int | None, high: int | None, wanted: set[int], names_partitions: bool
) -> None:
    if low is not None and high is not None and (low < 0) == (high < 0):
        low, high = sorted((low, high))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "logs"
        for number in range(3):
            mixed_log(root / f"t-{number}", seed + number, entries=2 + 2 * number)
        partitions = sorted(wanted) if names_partitions else [0, 1, 2]
        selection = [f"--offsets={'' if low is None else low}:{'' if high is None else high}"]
        selection += ["--partition", ",".join(map(str, partitions))] if names_partitions else []
        rows = sorted(expected(root, low, high, partitions))
        for command in (exported, queried, dumped):
            assert sorted(command(root, selection)) == rows, (command.__name__, selection)


@pytest.mark.slow
@settings(max_examples=3)
@given(
    st.integers(0, 1 << 20), BOUNDS, BOUNDS, st.sets(st.integers(0, 2), min_size=1), st.booleans()
)
def test_ranges_count_from_both_ends_of_each_partition(
    seed: int, low: int | None, high: int | None, wanted: set[int], names_partitions: bool
) -> None:
    check_ranges(seed, low, high, wanted, names_partitions)


@pytest.mark.soak
@pytest.mark.slow
@examples(60)
@given(
    st.integers(0, 1 << 20), BOUNDS, BOUNDS, st.sets(st.integers(0, 2), min_size=1), st.booleans()
)
def test_ranges_count_from_both_ends_of_each_partition_at_length(
    seed: int, low: int | None, high: int | None, wanted: set[int], names_partitions: bool
) -> None:
    check_ranges(seed, low, high, wanted, names_partitions)
