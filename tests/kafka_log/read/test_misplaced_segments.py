"""A selection has all its rows, whatever the names of segments say about their offsets."""

from __future__ import annotations

import io
import json
import shutil
from collections import Counter
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory, discover, read_table, scan_batches
from kafka_log.cli import main
from kafka_log.inspect.diff.record_comparison import find_batch
from kafka_log.inspect.diff.side import Side
from kafka_log.logs.offset_ranges import within_offsets
from kafka_log.read.offsets_by_time import offset_at
from kafka_log.segment.ranges import Range
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.filters import Filter, parse_filters
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.task_reader import read_splits
from tests.paths import SAMPLES
from tests.support.check_plants import PLAIN, TX
from tests.support.misplaced_segments import MISPLACED, cuts_of, misplaced_log

NAMES = pytest.mark.parametrize("name", MISPLACED)


def scanned(path: Path, offsets: Any = None, **options: Any) -> Counter[int]:
    return Counter(read_table(path, ["offset"], offsets=offsets, **options)["offset"].to_pylist())


def halves(every: Counter[int], cut: int) -> list[tuple[Range, Counter[int]]]:
    """Both half-open ranges at a cut, with the rows that they select."""
    ranges: list[Range] = [(None, cut), (cut, None)]
    return [(half, within(every, half)) for half in ranges]


def within(rows: Counter[int], offsets: Range) -> Counter[int]:
    low, high = offsets
    return Counter(
        {
            offset: count
            for offset, count in rows.items()
            if (low is None or offset >= low) and (high is None or offset < high)
        }
    )


@pytest.mark.slow
@pytest.mark.share(5)
@NAMES
def test_two_halves_of_a_scan_are_all_rows(name: str, tmp_path: Path) -> None:
    directory = misplaced_log(tmp_path, name)
    every = scanned(directory)
    for cut in cuts_of(directory):
        for half, wanted in halves(every, cut):
            assert scanned(directory, half) == wanted, half


@pytest.mark.slow
@NAMES
def test_the_last_offsets_are_the_highest(name: str, tmp_path: Path) -> None:
    directory = misplaced_log(tmp_path, name)
    every = scanned(directory, control_records=True)
    end = max(max(every) + 1, *(int(path.stem) for path in directory.glob("*.log")))
    for policy in ("kafka", "salvage"):
        found = scanned(directory, (-30, None), control_records=True, policy=policy)
        assert found == within(every, (end - 30, None))


@pytest.mark.slow
@pytest.mark.share(7, ci=2)
@NAMES
def test_every_policy_and_engine_agrees(name: str, tmp_path: Path) -> None:
    directory = misplaced_log(tmp_path, name, indexes=False)
    every = scanned(directory)
    for cut in cuts_of(directory)[::2]:
        for half, wanted in halves(every, cut):
            options: Any
            for options in ({"policy": "strict"}, {"policy": "salvage"}, {"engine": "construct"}):
                assert scanned(directory, half, **options) == wanted, (half, options)


def places_of(directory: Path, offsets: Any = None) -> set[tuple[int, int]]:
    batches = scan_batches(directory, ["base_offset", "position"], offsets=offsets).read_all()
    return {(row["base_offset"], row["position"]) for row in batches.to_pylist()}


def printed(*argv: str) -> list[dict[str, Any]]:
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(said):
        assert main([*argv, "--format", "jsonl"]) == 0
    said.seek(0)
    return [json.loads(line) for line in said]


@pytest.mark.slow
@pytest.mark.share(7, ci=2)
@NAMES
def test_two_halves_of_dumps_and_batches_are_all_rows(name: str, tmp_path: Path) -> None:
    directory = misplaced_log(tmp_path, name)
    every, places = scanned(directory), places_of(directory)
    columns = ("--batches", "--columns", "base_offset,position")
    for cut in cuts_of(directory)[1::3]:
        argv = ("dump", str(directory), "--offsets")
        texts = [f":{cut}", f"{cut}:"]
        for text, (_, wanted) in zip(texts, halves(every, cut), strict=True):
            assert Counter(row["offset"] for row in printed(*argv, text)) == wanted
        assert places_of(directory, (None, cut)) | places_of(directory, (cut, None)) == places
        batches = [row for text in texts for row in printed(*argv, text, *columns)]
        assert {(row["base_offset"], row["position"]) for row in batches} == places


@pytest.mark.slow
@pytest.mark.share(7, ci=9)
@NAMES
def test_two_halves_of_cuts_are_all_rows(name: str, tmp_path: Path) -> None:
    """Batches are copied whole, each once: rows on the other side of the cut may come with them."""
    directory = misplaced_log(tmp_path, name)
    every = scanned(directory)
    for cut in cuts_of(directory)[::2]:
        for half, wanted in halves(every, cut):
            out = tmp_path / "out"
            table = LogDirectory(directory).cut(out, offsets=half)
            found = scanned(out) if wanted else Counter()
            shutil.rmtree(out, ignore_errors=True)
            assert set(found.values()) <= {1}
            assert within(found, half).keys() == wanted.keys(), (half, table.to_pylist())


def planned(root: Path, filters: Iterable[Filter] = (), **options: str) -> Counter[int]:
    """The rows that a query of Spark plans and reads, before Spark applies its filters."""
    tasks = plan(parse({"path": str(root), "splitBytes": "500", **options}), parse_filters(filters))
    batches = (batch for task in tasks for batch in read_splits(task, Scan(columns=("offset",))))
    return Counter(offset for batch in batches for offset in batch.column(0).to_pylist())


@pytest.mark.slow
@pytest.mark.share(7, ci=9)
@NAMES
def test_two_halves_of_queries_are_all_rows(name: str, tmp_path: Path) -> None:
    """By filters, and by the options that name offsets."""
    directory = misplaced_log(tmp_path, name)
    every = scanned(directory)
    topic, number = directory.name.rsplit("-", 1)
    for cut in cuts_of(directory)[1::2]:
        (below, lower), (above, upper) = halves(every, cut)
        assert within(planned(tmp_path, [("offset", "<", cut)]), below) == lower
        assert within(planned(tmp_path, [("offset", ">=", cut)]), above) == upper
        some = planned(tmp_path, [("offset", "in", (cut, 17))])
        for one in (cut, 17):
            assert some[one] == every[one]
        text = json.dumps({topic: {number: cut}})
        assert planned(tmp_path, endingOffsets=text, failOnDataLoss="false") == lower
        assert planned(tmp_path, startingOffsets=text, failOnDataLoss="false") == upper


@pytest.mark.slow
@pytest.mark.parametrize("indexes", [True, False])
@pytest.mark.parametrize("name", [name for name in MISPLACED if "transactions" in name])
def test_transactions_are_followed_by_offset(name: str, indexes: bool, tmp_path: Path) -> None:
    directory = misplaced_log(tmp_path, name, indexes=indexes)
    healthy = SAMPLES / "kafka-4.x" / TX
    committed = scanned(directory, isolation="read_committed")
    assert committed.keys() == scanned(healthy, isolation="read_committed").keys()
    assert planned(tmp_path, isolationLevel="read_committed") == committed
    tables = [LogDirectory(path).txn() for path in (directory, healthy)]
    columns = ["state", "producer_id", "first_offset", "last_offset", "records", "hides"]
    found, wanted = (table.select(columns).to_pylist() for table in tables)
    assert found == wanted


def test_the_offset_of_a_time_and_the_place_of_an_offset(tmp_path: Path) -> None:
    directory = misplaced_log(tmp_path, "renamed to a lower offset")
    (partition,) = discover(directory)
    assert offset_at(partition, 0, first=36) == 36
    found = find_batch(Side(partition, lambda _: None), 36)
    assert found is not None and found[0].endswith(f"{0:020d}.log")


def test_segments_that_names_and_headers_exclude_are_left_out() -> None:
    segments = discover(SAMPLES / "kafka-4.x" / PLAIN)[0].segments
    for low, high, wanted in ((42, 84, [42]), (41, 85, [0, 42, 84]), (126, None, [126])):
        assert [s.base_offset for s in within_offsets(segments, (low, high))] == wanted
    assert [s.base_offset for s in within_offsets(segments, (None, None), frozenset((3, 90)))] == [
        0,
        84,
    ]


@pytest.mark.slow
@NAMES
@pytest.mark.parametrize("indexes", [True, False])
def test_diff_finds_all_records(name: str, indexes: bool, tmp_path: Path) -> None:
    """Of two replicas with the same batches, neither lacks a record."""
    directory = misplaced_log(tmp_path, name, indexes=indexes)
    whole = SAMPLES / "kafka-4.x" / directory.name
    expected = LogDirectory(whole).diff(whole).to_pylist()
    texts = {"verdict", "findings", "meaning", "remedy", "directory_a", "directory_b"}
    for one, other in ((directory, whole), (whole, directory), (directory, directory)):
        rows = LogDirectory(one).diff(other).to_pylist()
        assert {row["verdict"] for row in rows} <= {"same", "segments"}
        assert [{k: v for k, v in row.items() if k not in texts} for row in rows] == [
            {k: v for k, v in row.items() if k not in texts} for row in expected
        ]


@pytest.mark.parametrize("swapped", [False, True])
def test_diff_finds_what_a_misplaced_log_lacks(swapped: bool, tmp_path: Path) -> None:
    directory = misplaced_log(tmp_path, "first two exchanged")
    (directory / f"{84:020d}.log").unlink()
    whole = SAMPLES / "kafka-4.x" / directory.name
    one, other = (whole, directory) if swapped else (directory, whole)
    (row,) = LogDirectory(one).diff(other).to_pylist()
    assert row["missing_b" if swapped else "missing_a"] == 42
    assert row["missing_a" if swapped else "missing_b"] == 0
