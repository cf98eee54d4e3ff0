"""The first look at a directory: its numbers beside a plain sum, its problems, its end in time."""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import time
from pathlib import Path

import pytest

from kafka_log import discover
from kafka_log.cli import main
from kafka_log.inspect.overview.quick_check import check_ends
from kafka_log.inspect.overview.text import format_overview, suggest_commands
from kafka_log.segment.batch_headers import headers
from tests.paths import SAMPLES
from tests.support.batches import batch

BROKER = SAMPLES / "kafka-4.x"


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a machine that does other things."""
    monkeypatch.setattr("kafka_log.inspect.overview.quick_check.SECONDS", 60.0)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(list(argv))
    out, err = capsys.readouterr()
    return code, out, err


def make_log(root: Path, name: str, *batches: bytes) -> Path:
    directory = root / name
    directory.mkdir(parents=True)
    path = directory / f"{0:020}.log"
    path.write_bytes(b"".join(batches))
    return path


@pytest.mark.parametrize("broker", ["kafka-2.8", "kafka-4.x"])
def test_the_numbers_of_samples(broker: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, str(SAMPLES / broker))
    assert code == 0
    said = dict(line.split(None, 1) for line in out.split("\n\n")[0].splitlines())
    partitions = discover(SAMPLES / broker)
    assert said["topics"].split()[0] == str(len({p.topic for p in partitions}))
    assert said["partitions"] == str(len(partitions))
    assert said["segments"] == str(sum(len(p.segments) for p in partitions))
    assert said["bytes"].split()[0] == f"{sum(p.size for p in partitions):,}"
    assert "Quick check of the first and last batch headers of all" in out
    assert "no problem.\n" in out
    assert "Not checked: checksums, records, " in out


def test_the_times_are_those_of_headers() -> None:
    partitions = discover(BROKER)
    found = check_ends(partitions)
    every = [
        t
        for p in partitions
        for s in p.segments
        for row in headers(s.path, ("first_timestamp", "max_timestamp"))
        for t in row
        if t is not None and t >= 0
    ]
    assert found.first_ms is not None
    assert min(every) <= found.first_ms
    assert found.last_ms == max(every)
    assert (found.checked, found.skipped) == (len(partitions), 0)


def test_a_path_first_is_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, str(BROKER)) == run(capsys, "overview", str(BROKER))
    assert run(capsys, str(BROKER), "--topic", "codecs") == run(capsys, "overview", "--topic", "codecs", str(BROKER))  # fmt: skip


@pytest.mark.slow
def test_what_is_suggested_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "some samples").symlink_to(SAMPLES)
    monkeypatch.chdir(tmp_path)
    for paths in (["some samples/kafka-4.x"], ["some samples"], ["some samples/kafka-2.8/v0-0"]):
        code, out, _ = run(capsys, *paths)
        assert code == 0
        commands = out.partition("Next:\n")[2].splitlines()
        assert len(commands) >= 4 or len(paths) == 1
        for command in commands:
            program, *words = shlex.split(command)
            assert program == "kafka-log"
            assert main(words) in (0, 1), command
        capsys.readouterr()


def test_problems_are_named_and_the_exit_code_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = batch(0)
    make_log(tmp_path, "good-0", good)
    make_log(tmp_path, "first-0", b"\x00" * 16 + b"\x07" + good[17:], good)
    torn = make_log(tmp_path, "torn-0", good, good[:-3])
    (torn.parent / f"{9:020}.log").write_bytes(batch(9))
    (torn.parent / f"{5:020}.log").write_bytes(batch(5)[:-1])
    last = make_log(tmp_path, "last-0", good, b"\xff" * 100)
    code, out, _ = run(capsys, str(tmp_path))
    assert code == 1
    lines = [line for line in out.splitlines() if line.startswith("- ")]
    assert "2 problems.\n" in out
    assert [str(tmp_path / "first-0") in lines[0], str(last) in lines[1]] == [True, True]
    assert out.partition("Next:\n")[2].startswith(f"  kafka-log check {tmp_path}")


def test_an_incomplete_batch_of_a_segment_that_was_rolled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_log(tmp_path, "t-0", batch(0), batch(1)[:-1])
    assert run(capsys, str(tmp_path))[0] == 0, "a broker may be writing"
    (path.parent / f"{1:020}.log").write_bytes(b"")
    code, out, _ = run(capsys, str(tmp_path))
    assert code == 1
    assert "bytes of the rolled segment are not a complete batch" in out


def test_an_unreadable_partition_is_never_hidden(tmp_path: Path) -> None:
    """Also if no time is left."""
    make_log(tmp_path, "a-0", batch(0))
    big = make_log(tmp_path, "b-0", batch(0))
    (big.parent / f"{1 << 63:020d}.log").write_bytes(batch(0))
    partitions = discover(tmp_path, unreadable_raises=False)
    assert any(p.error for p in partitions)
    for seconds in (0, 60):
        found = check_ends(partitions, seconds)
        assert len(found.problems) == 1


def test_it_ends_when_the_time_is_over() -> None:
    partitions = discover(BROKER)
    ticks = itertools.count()
    found = check_ends(partitions, seconds=5, clock=lambda: next(ticks))
    assert 0 < found.checked < len(partitions)
    assert found.checked + found.skipped == len(partitions)
    text = format_overview(partitions, found, [str(BROKER)], None)
    assert f"headers of {found.checked} of {len(partitions)} partition directories" in text
    assert re.search(f"Left out, because the time was over, .*: {found.skipped} partition", text)
    assert check_ends(partitions, 0).first_ms is None


def test_a_long_segment_without_an_index_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_log(tmp_path, "t-0", *(batch(i) for i in range(50)))
    monkeypatch.setattr("kafka_log.inspect.overview.quick_check.MAX_HEADERS", 40)
    assert check_ends(discover(tmp_path)).skipped == 1
    monkeypatch.setattr("kafka_log.inspect.overview.quick_check.MAX_HEADERS", 60)
    assert check_ends(discover(tmp_path)).checked == 1


def test_an_index_that_leads_to_no_batch(tmp_path: Path) -> None:
    """All headers are read then, and nothing is wrong with the log."""
    path = make_log(tmp_path, "t-0", *(batch(i) for i in range(9)))
    (path.parent / f"{9:020}.log").write_bytes(b"")
    every = check_ends(discover(tmp_path))
    for position in (1, 50, path.stat().st_size - 5, 1 << 30):
        entry = (5).to_bytes(4, "big") + position.to_bytes(4, "big")
        path.with_suffix(".index").write_bytes(entry)
        assert check_ends(discover(tmp_path)) == every
    assert every.checked == 1
    assert every.problems == ()


def test_names_that_a_shell_would_change_are_not_suggested(tmp_path: Path) -> None:
    make_log(tmp_path, "a*b-0", *[batch(0)] * 3)
    make_log(tmp_path, "-x-0", batch(0))
    partitions = discover(tmp_path)
    commands = suggest_commands(partitions, check_ends(partitions), ["a b", "$(x)"])
    assert "kafka-log check 'a b' '$(x)'" in commands
    assert any("--topic=-x --partition 0" in command for command in commands)


@pytest.mark.soak
@pytest.mark.slow
def test_ten_thousand_partitions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = batch(0)
    for i in range(10_000):
        make_log(tmp_path, f"topic.{i % 100}-{i // 100}", data)
    begin = time.monotonic()
    code, out, _ = run(capsys, str(tmp_path))
    assert time.monotonic() - begin < 60
    assert code == 0
    assert "partitions  10,000\n" in out
    shutil.rmtree(tmp_path)


def test_a_segment_that_retention_deletes_is_no_problem(tmp_path: Path) -> None:
    first = make_log(tmp_path, "t-0", batch(0))
    first.with_name(f"{3:020}.log").write_bytes(batch(3))
    found = discover(tmp_path)
    first.unlink()
    result = check_ends(found)
    assert (result.checked, result.skipped, result.problems) == (0, 1, ())


def test_a_segment_that_is_gone_without_a_reason_is_a_problem(tmp_path: Path) -> None:
    log = make_log(tmp_path, "t-0", batch(0))
    found = discover(tmp_path)
    log.unlink()
    assert len(check_ends(found).problems) == 1
