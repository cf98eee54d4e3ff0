"""Logs in tiered storage and replicas of several brokers: each record once, of the newest replica."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.shares import examples
from tests.support.permissions import bound_by_modes
from tests.support.tiers import IDS, TIER, local, remote, remote_of_epochs, write

pytest.importorskip("pyspark")

from kafka_log import (
    DirectoryError,
    LogDirectory,
    discover,
    read_table,
    scan,
    scan_batches,
)
from kafka_log.cli import main
from kafka_log.logs.names import LOG_START
from kafka_log.logs.tiers import drop_tiered_segments, merge_tiered_segments
from kafka_log.segment.positioned_reads import UnreadableError
from pyspark_kafka_log.losses import DataLossError
from pyspark_kafka_log.options import OptionError, parse
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.task_reader import read_splits


def offsets(table: pa.Table) -> list[int]:
    found: list[int] = table["offset"].to_pylist()
    return found


def of_spark(root: Path, **options: str) -> list[int]:
    """What Spark's tasks read."""
    tasks = plan(parse({"path": str(root), **options}))
    batches = [b for task in tasks for b in read_splits(task, Scan(columns=("offset",)))]
    return [offset for batch in batches for offset in batch.column(0).to_pylist()]


def test_what_is_remote_and_local_is_read_once(tmp_path: Path) -> None:
    remote(tmp_path, 0, 0, 50)
    remote(tmp_path, 1, 50, 120)
    local(tmp_path, 80, 120)
    local(tmp_path, 120, 130)
    table = read_table(tmp_path, ["offset", "state"], include="remote")
    assert offsets(table) == list(range(130))
    assert table["state"].to_pylist() == ["remote"] * 80 + ["live"] * 50
    assert offsets(read_table(tmp_path, ["offset"])) == list(range(80, 130))
    assert of_spark(tmp_path, include="remote") == list(range(130))
    assert of_spark(tmp_path, include="remote", splitBytes="500") == list(range(130))
    assert of_spark(tmp_path) == list(range(80, 130))
    chosen = {
        "include": "remote",
        "startingOffsets": '{"t":{"0":70}}',
        "endingOffsets": '{"t":{"0":90}}',
    }
    assert of_spark(tmp_path, **chosen) == list(range(70, 90))
    assert offsets(read_table(tmp_path, ["offset"], include="remote", offsets=(70, 90))) == list(
        range(70, 90)
    )


def test_isolation_is_of_both(tmp_path: Path) -> None:
    remote(tmp_path, 0, 0, 50)
    local(tmp_path, 40, 60)
    options = {"include": "remote", "isolation": "read_committed"}
    assert offsets(read_table(tmp_path, ["offset"], **options)) == list(range(60))  # type: ignore[arg-type]
    assert of_spark(tmp_path, include="remote", isolationLevel="read_committed") == list(range(60))


def test_the_commands_read_each_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remote(tmp_path, 0, 0, 50)
    local(tmp_path, 40, 60)
    arguments = [
        "dump",
        str(tmp_path),
        "--include",
        "remote",
        "--format",
        "csv",
        "--columns",
        "offset",
    ]
    assert main(arguments) == 0
    assert capsys.readouterr().out.split()[1:] == [str(n) for n in range(60)]
    out = tmp_path.with_name(f"{tmp_path.name}-out")
    list(LogDirectory(tmp_path, include=["remote"]).export(out, "csv", columns=["offset"]))
    [made] = out.glob("*.csv")
    assert made.read_text().split()[1:] == [str(n) for n in range(60)]


def test_a_live_segment_is_left_out_only_for_a_copy_of_its_leader(tmp_path: Path) -> None:
    """A copy from before a truncation may be larger."""
    local(tmp_path, 0, 40, epoch=2)
    local(tmp_path, 40, 50, epoch=2)

    def bases() -> list[int]:
        found = drop_tiered_segments(discover(tmp_path, "remote"))
        return [s.base_offset for p in found if p.state == "live" for s in p.segments]

    remote(tmp_path, 0, 0, 60, epoch=1)
    assert bases() == [0, 40]
    remote(tmp_path, 1, 0, 40, epoch=2)
    assert bases() == [40]


SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 20)), min_size=1, max_size=5)


@pytest.mark.slow
@examples(25)
@given(SPANS, st.none() | st.integers(0, 40))
def test_each_offset_that_a_copy_has_comes_once(
    tmp_path_factory: pytest.TempPathFactory, spans: Sequence[tuple[int, int]], first: int | None
) -> None:
    """The law, whatever the copies are: as a set of what lies before the local log, and the local log. Spark tells what lies between."""
    root = tmp_path_factory.mktemp("tier")
    there = set()
    for number, (base, count) in enumerate(spans):
        remote(root, number, base, base + count, batch=1)
        there |= {n for n in range(base, base + count) if first is None or n < first}
    if first is not None:
        local(root, first, first + 3)
        there |= set(range(first, first + 3))
    assert offsets(read_table(root, ["offset"], include="remote")) == sorted(there)
    lost = {*range(min(there), max(there))} - there
    with pytest.raises(DataLossError) if lost else nullcontext() as caught:
        assert of_spark(root, include="remote") == sorted(there)
    told = (
        [re.findall(r"offsets (\d+) to (\d+) are", loss) for loss in caught.value.losses]
        if caught
        else []
    )
    assert {n for [(low, high)] in told for n in range(int(low), int(high) + 1)} == lost
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert of_spark(root, include="remote", failOnDataLoss="false") == sorted(there)
    merged = merge_tiered_segments(discover(root, ["remote"]))
    assert merge_tiered_segments(merged) == merged


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 12)),
        st.tuples(st.just("elect"), st.integers(0, 10)),
        st.tuples(st.just("copy"), st.tuples(st.integers(0, 12), st.integers(1, 14))),
    ),
    min_size=3,
    max_size=14,
)


@pytest.mark.slow
@examples(8)
@given(STEPS)
@example([("copy", (0, 12)), ("elect", 8), ("write", 2), ("copy", (0, 14))])
@example([("copy", (0, 12)), ("elect", 8), ("write", 4), ("copy", (2, 5))])
@example([("copy", (0, 12)), ("elect", 8), ("write", 4), ("copy", (5, 9)), ("copy", (2, 4))])
def test_a_truncated_copy_hides_no_offset_of_the_log(
    tmp_path_factory: pytest.TempPathFactory, steps: Sequence[tuple[str, Any]]
) -> None:
    """The log writes, loses its last offsets to a leader that did not have them, and copies parts of itself."""
    root = tmp_path_factory.mktemp("tier")
    log: list[int] = []
    epoch, copies = 1, []
    for step, argument in [("write", 12), *steps]:
        if step == "write":
            log += [epoch] * argument
        elif step == "elect":
            del log[max(len(log) - argument, 0) :]
            epoch += 1
        elif len(copies) < len(IDS) - 1:
            first, count = argument
            if part := log[first : first + count]:
                copies.append((first, part))
                remote_of_epochs(root, len(copies) - 1, first, part)
    if not copies:
        return
    expected = {
        n: b"%d of %d" % (n, e)
        for first, part in copies
        for n, e in enumerate(part, first)
        if log[n : n + 1] == [e]
    }
    rows = read_table(root, ["offset", "value"], include="remote").to_pylist()
    found = {row["offset"]: row["value"] for row in rows}
    assert len(found) == len(rows)
    assert {n: found.get(n) for n in expected} == expected


DAMAGE = st.sampled_from(["no", "no", "whole", "longer"])
"""Damage that the headers of a copy show. Which copy has a wrong checksum is not known before it is read."""


@examples(25)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12), DAMAGE), min_size=1, max_size=6))
def test_a_damaged_copy_hides_no_offset_of_an_intact_one(
    tmp_path_factory: pytest.TempPathFactory, spans: Sequence[tuple[int, int, str]]
) -> None:
    root = tmp_path_factory.mktemp("tier")
    intact = set()
    for number, (base, count, damage) in enumerate(spans):
        remote(root, number, base, base + count, batch=1)
        path = next((root / TIER).rglob(f"{base:020d}-{IDS[number]}.log"))
        data = path.read_bytes()
        if damage == "no":
            intact |= set(range(base, base + count))
        else:
            junk = bytes(8) + b"\xff" * (len(data) - 8)
            path.write_bytes(junk if damage == "whole" else data + junk)
    found = offsets(read_table(root, ["offset"], include="remote", policy="salvage"))
    assert found == sorted(set(found)) and intact <= set(found)


def test_of_two_copies_the_intact_one_is_read(tmp_path: Path) -> None:
    remote(tmp_path, 0, 0, 3)
    remote(tmp_path, 1, 0, 3)
    path = next((tmp_path / TIER).rglob(f"{0:020d}-{IDS[1]}.log"))
    path.write_bytes(bytes(8) + b"\xff" * (path.stat().st_size - 8))
    (partition,) = merge_tiered_segments(discover(tmp_path, ["remote"]))
    assert [s.offsets for s in partition.segments] == [(0, 3)]
    assert offsets(read_table(tmp_path, ["offset"], include="remote")) == [0, 1, 2]


def test_a_copy_that_cannot_be_read_does_not_hide_others(tmp_path: Path) -> None:
    remote(tmp_path, 0, 0, 50)
    remote(tmp_path, 1, 50, 60)
    path = next((tmp_path / TIER).rglob(f"{0:020d}-*.log"))
    path.write_bytes(b"\x07" * 200)
    found = read_table(tmp_path, ["offset"], include="remote", policy="salvage")
    assert offsets(found) == list(range(50, 60))


@pytest.fixture
def trimmed(tmp_path: Path) -> Path:
    """A log whose start DeleteRecords has moved into the copies of its first segments."""
    remote(tmp_path, 0, 0, 50)
    remote(tmp_path, 1, 50, 100)
    local(tmp_path, 80, 120)
    local(tmp_path, 120, 130)
    (tmp_path / LOG_START).write_text("0\n1\nt 0 40\n")
    return tmp_path


def test_records_before_the_log_start_do_not_come_back(trimmed: Path) -> None:
    """Not of copies, whether these lie in the log directory or elsewhere; the checkpoint is that beside the live directory."""
    every: dict[str, Any] = {"columns": ["offset"], "include": "remote"}
    assert offsets(read_table(trimmed, **every)) == list(range(40, 130))
    assert offsets(read_table(trimmed, **every, offsets=(30, 90))) == list(range(40, 90))
    assert offsets(read_table(trimmed, **every, policy="salvage")) == list(range(40, 130))
    assert offsets(read_table(trimmed, **every, deleted_records=True)) == list(range(130))
    assert offsets(read_table(trimmed, ["offset"])) == list(range(80, 130))
    assert of_spark(trimmed, include="remote") == list(range(40, 130))
    assert of_spark(trimmed, include="remote", includeDeletedRecords="true") == list(range(130))
    log = LogDirectory(trimmed, include="remote")
    assert log.keys()["records"].to_pylist() == [90]
    elsewhere = trimmed.parent / "elsewhere"
    (trimmed / TIER).rename(elsewhere)
    both = [elsewhere, trimmed]
    assert offsets(read_table(both, **every)) == list(range(40, 130))
    # Of the tier alone nobody knows the start.
    assert offsets(read_table(elsewhere, **every)) == list(range(100))
    (elsewhere / LOG_START).write_text("0\n1\nt 0 60\n")
    assert offsets(read_table(elsewhere, **every)) == list(range(100))
    assert offsets(read_table(both, **every)) == list(range(40, 130))
    (trimmed / LOG_START).write_text("0\n1\nt 0 100\n")
    assert offsets(read_table(both, **every)) == list(range(100, 130))


def test_verbs_say_which_records_lie_before_the_log_start(
    trimmed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("dump", "keys", "export"):
        out = ["--out", str(trimmed.parent / "out")] if command == "export" else ["--format", "csv"]
        assert main([command, str(trimmed), "--include", "remote", *out]) == 0
        shown = capsys.readouterr()
        assert (
            "below the log start offset were skipped: t-0 before 40; add --deleted-records"
            in shown.err
        )
        assert command != "dump" or len(shown.out.splitlines()) == 1 + 90
    for more, said in ((["--include", "remote"], True), ([], False), (["--offsets", "40:"], False)):
        assert main(["stat", str(trimmed), *more]) == 0
        shown = capsys.readouterr()
        assert (
            "batches below the log start offset were skipped: t-0 before 40; the batch with"
            in shown.err
        ) == said
    assert "counted more than once" not in shown.err


def test_stat_says_what_it_counts_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remote(tmp_path, 0, 0, 50)
    local(tmp_path, 50, 80)
    local(tmp_path, 80, 90)
    command = ["stat", str(tmp_path), "--by", "topic"]
    assert main([*command, "--include", "remote"]) == 0
    assert "counted more than once" not in capsys.readouterr().err
    remote(tmp_path, 1, 50, 80)
    assert main([*command, "--include", "remote"]) == 0
    err = capsys.readouterr().err
    assert (
        "live segments, are counted more than once; without --include remote only local segments are counted: t-0 from 50"
        in err
    )
    assert main(command) == 0
    assert "counted more than once" not in capsys.readouterr().err


@examples(8)
@given(SPANS, st.none() | st.integers(0, 40))
def test_stat_says_so_of_each_offset_that_occurs_twice(
    tmp_path_factory: pytest.TempPathFactory, spans: Sequence[tuple[int, int]], first: int | None
) -> None:
    root = tmp_path_factory.mktemp("tier")
    held: list[int] = []
    for number, (base, count) in enumerate(spans):
        remote(root, number, base, base + count)
        held += range(base, base + count)
    if first is not None:
        local(root, first, first + 60)
        held += range(first, first + 60)
    twice = [n for n in held if held.count(n) > 1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LogDirectory(root, include="remote").stat()
    said = [str(one.message) for one in caught if "more than once" in str(one.message)]
    assert [text.rpartition(": ")[2] for text in said] == (
        [f"t-0 from {min(twice)}"] if twice else []
    )


# ---------------------------------------------------------------- replicas


def test_the_newest_replica(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The later epoch goes before the larger offset."""
    places = [tmp_path / name for name in "abc"]
    for place, end, epoch in zip(places, (30, 20, 20), (1, 2, 1), strict=True):
        local(place, 0, end, epoch=epoch)
        write(place / f"only-{place.name}-0" / f"{0:020d}.log", 0, 3)
    with pytest.raises(DirectoryError, match="its records would be read twice"):
        read_table(places)
    columns = ["topic", "offset", "value"]
    newest = read_table(places, columns, replicas="newest")
    of_t = [row for row in newest.to_pylist() if row["topic"] == "t"]
    assert [row["value"] for row in of_t] == [b"%d of 2" % n for n in range(20)]
    assert newest.num_rows == 20 + 9
    assert read_table(places, columns, replicas="keep").num_rows == 30 + 20 + 20 + 9
    assert scan_batches(places, replicas="newest").read_all().num_rows < (
        scan_batches(places, replicas="keep").read_all().num_rows
    )
    with pytest.raises(ValueError, match="replicas is 'oldest'; known: error, newest, keep"):
        read_table(places, replicas="oldest")  # type: ignore[arg-type]

    assert len(LogDirectory(places).partitions) == 6
    directory = LogDirectory(places, replicas="newest")
    assert [p.directory for p in directory.partitions if p.topic == "t"] == [places[1] / "t-0"]
    assert directory.stat()["records"].to_pylist() == [3, 3, 3, 20]
    with pytest.raises(DirectoryError, match="holds the same partition"):
        _ = LogDirectory(places, replicas="error").partitions

    texts = list(map(str, places))
    assert main(["ls", *texts, "--replicas", "newest", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.split()) == 1 + 4
    assert main(["stat", *texts, "--replicas", "error"]) == 2
    assert "would be read twice" in capsys.readouterr().err
    assert main(["dump", *texts, "--topic", "t", "--replicas", "newest", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.split("\n")) == 20 + 2


@pytest.mark.parametrize("is_damaged", [True, False])
def test_the_newest_replica_is_not_known(
    is_damaged: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The end of one is damaged, or its directory cannot be listed: that is an error, as if it were read."""
    places = [tmp_path / name for name in "ab"]
    for place, end in zip(places, (30, 20), strict=True):
        local(place, 0, end)
    path = max((places[0] / "t-0").glob("*.log"))
    if is_damaged:
        path.write_bytes(path.read_bytes() + b"\xff" * 100)
    else:
        path.parent.chmod(0)
    try:
        with bound_by_modes():
            with pytest.raises(UnreadableError, match=str(path.parent)):
                read_table(places, replicas="newest")
            lost: list[Path] = []
            columns = ["offset"]
            found = scan(
                places, columns, "salvage", replicas="newest", on_lost=lambda at, _: lost.append(at)
            )
            assert found.read_all().num_rows == 20 and lost == [places[1] / "t-0"]
            texts = list(map(str, places))
            options = {"paths": json.dumps(texts), "replicas": "newest"}
            with pytest.raises(OSError, match=str(path.parent)):
                plan(parse(options))
            with pytest.warns(UserWarning, match=str(path.parent)):
                plan(parse(options | {"mode": "PERMISSIVE"}))
            for command in ("dump", "stat", "ls", "keys"):
                assert main([command, *texts, "--replicas", "newest"]) == 1, command
                assert str(path.parent) in "".join(capsys.readouterr()), command
    finally:
        path.parent.chmod(0o700)


def test_replicas_of_spark(tmp_path: Path) -> None:
    places = [tmp_path / name for name in "ab"]
    local(places[0], 0, 10)
    local(places[1], 0, 12)
    paths = {"paths": json.dumps(list(map(str, places)))}
    both = Scan(columns=("offset",))

    def count(**options: str) -> int:
        tasks = plan(parse(paths | options))
        return sum(b.num_rows for task in tasks for b in read_splits(task, both))

    assert count(replicas="newest") == 12
    assert count(replicas="keep") == 22
    with pytest.raises(OptionError, match="set replicas to newest or keep"):
        count()
