"""``stat`` counts what a scan reads: no batch below the log start offset, on disk or in tiered storage."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log import LogDirectory, read_table, scan_batches
from kafka_log.cli import main
from kafka_log.logs.names import LOG_START
from tests.paths import SAMPLES
from tests.shares import examples
from tests.support.tiers import local, remote

DENSE = (("segments.small-0", False), ("transactions-1", False), ("trimmed-0", True))
"""Partitions that were never compacted, and whether their records are decoded."""


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def expected_records(place: Path, start: int, include: Any = ()) -> int:
    """Number of records that a scan reads, and of those before ``start`` in the batch around it."""
    options: dict[str, Any] = {"include": include, "columns": ["offset"]}
    batches = scan_batches(place, ["base_offset", "last_offset"], include=include).read_all()
    split = [b["base_offset"] for b in batches.to_pylist() if b["base_offset"] < start <= b["last_offset"]]  # fmt: skip
    before = [read_table(place, offsets=(first, start), deleted_records=True, **options) for first in split]  # fmt: skip
    return read_table(place, **options).num_rows + sum(table.num_rows for table in before)


def count(log: LogDirectory, **options: Any) -> int:
    with quiet():
        return sum(log.stat(**options)["records"].to_pylist())


def set_log_start(directory: Path, name: str, start: int) -> None:
    topic, _, number = name.rpartition("-")
    (directory / LOG_START).write_text(f"0\n1\n{topic} {number} {start}\n", encoding="ascii")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "deep"), DENSE)
def test_the_count_is_that_of_a_scan(name: str, deep: bool, tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "kafka-4.x" / name, tmp_path / name)
    log = LogDirectory(tmp_path)
    every = count(log, deep=deep)
    assert every == read_table(tmp_path).num_rows
    bounds = scan_batches(tmp_path, ["base_offset", "last_offset"]).read_all().to_pylist()
    ends = {b["base_offset"] for b in bounds[1 :: len(bounds) // 2]} | {bounds[-1]["last_offset"] + 1}  # fmt: skip
    for end in ends:
        for start in (end, end + 1):
            set_log_start(tmp_path, name, start)
            log = LogDirectory(tmp_path)
            assert count(log, deep=deep) == expected_records(tmp_path, start), start
            assert count(log, deep=deep, deleted_records=True) == every
            assert count(log, deep=deep, by="codec") == count(log, deep=deep)
        set_log_start(tmp_path, name, end)
        assert count(log, deep=deep) == read_table(tmp_path).num_rows


@pytest.mark.slow
@examples(8)
@given(st.integers(0, 130))
def test_copies_below_the_log_start_do_not_count(
    tmp_path_factory: pytest.TempPathFactory, start: int
) -> None:
    root = tmp_path_factory.mktemp("tier")
    remote(root, 0, 0, 50)
    remote(root, 1, 50, 80)
    local(root, 80, 120)
    local(root, 120, 130)
    set_log_start(root, "t-0", start)
    log = LogDirectory(root, include="remote")
    assert count(log) == expected_records(root, start, "remote")
    assert count(log, deleted_records=True) == 130
    with quiet():
        rows = {row["state"]: row["records"] for row in log.stat().to_pylist()}
    assert rows["live"] == count(LogDirectory(root))
    elsewhere = root.parent / f"{root.name}-elsewhere"
    (root / "kafka-tiered-storage").rename(elsewhere)
    assert count(LogDirectory([elsewhere, root], include="remote")) == sum(rows.values())
    assert count(LogDirectory(elsewhere, include="remote")) == 80  # no file there states the start


def test_segments_that_are_not_part_of_the_log_count(tmp_path: Path) -> None:
    local(tmp_path, 0, 20)
    local(tmp_path, 20, 40)
    first = tmp_path / "t-0" / f"{0:020d}.log"
    first.rename(first.with_name(f"{first.name}.deleted"))
    set_log_start(tmp_path, "t-0", 30)
    with quiet():
        table = LogDirectory(tmp_path, include="deleted").stat()
    assert dict(zip(table["state"].to_pylist(), table["records"].to_pylist(), strict=True))["deleted"] == 20  # fmt: skip


def test_the_largest_are_those_of_consumers(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "kafka-4.x" / "trimmed-0", tmp_path / "trimmed-0")
    set_log_start(tmp_path, "trimmed-0", 7)
    log = LogDirectory(tmp_path)
    with quiet():
        assert sorted(log.largest(9)["first_offset"].to_pylist()) == [5, 10]
        assert sorted(log.largest(99, deep=True)["offset"].to_pylist()) == list(range(7, 15))
        every = log.largest(99, deep=True, deleted_records=True)
    assert sorted(every["offset"].to_pylist()) == list(range(15))


def test_the_command_says_what_it_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(SAMPLES / "kafka-4.x" / "trimmed-0", tmp_path / "trimmed-0")
    set_log_start(tmp_path, "trimmed-0", 7)
    said = (
        "kafka-log: batches below the log start offset were skipped: trimmed-0 before 7; the batch with this offset counts as a whole;"
        " add --deleted-records to include them"
    )
    for more, records, line in (((), 10, said), (("--deleted-records",), 15, ""), (("--offsets", "7:"), 10, "")):  # fmt: skip
        assert main(["stat", str(tmp_path), "--format", "jsonl", *more]) == 0
        shown = capsys.readouterr()
        assert f'"records": {records},' in shown.out
        assert shown.err.strip() == line
