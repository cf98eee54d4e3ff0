"""``kafka-log groups`` on the command line: times, damage, exit codes, names that are no text."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kafka_log.cli import main
from kafka_log.segment.arrow_text import utf8
from tests.paths import SAMPLES
from tests.support.made_topics import TIME, commit, log
from tests.support.permissions import bound_by_modes


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[Any], str]:
    code = main(["groups", *arguments, "--format", "jsonl"])
    out, err = capsys.readouterr()
    return code, [json.loads(line) for line in out.splitlines()], err


@pytest.mark.parametrize("time", [(1 << 63) - 2, -(1 << 63) + 2])
def test_times_at_the_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str], time: int) -> None:
    path = log(tmp_path, "__consumer_offsets-0", commit(0, "g", 1))
    code, found, _ = run(capsys, str(path), f"--as-of={time}")
    assert (code, len(found)) == (0, int(time > 0))


def test_lag_is_no_problem(capsys: pytest.CaptureFixture[str]) -> None:
    code, found, _ = run(capsys, str(SAMPLES / "kafka-4.x"), "--group", "tx-group")
    assert code == 0
    assert [row["lag"] for row in found] == [6]


def test_commits_up_to_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(tmp_path, "__consumer_offsets-0", *(commit(i, "g", i, time=TIME + i) for i in range(3)))  # fmt: skip
    for i in range(3):
        _, [row], _ = run(capsys, str(path), "--as-of", str(TIME + i))
        assert row["committed_offset"] == i
    assert run(capsys, str(path), "--as-of", str(TIME - 1))[1] == []


def test_times_that_a_calendar_does_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = log(tmp_path, "__consumer_offsets-0", commit(0, "g", 1, time=(1 << 62)))
    for more in ([], ["--states"]):
        code, [row], _ = run(capsys, str(path), *more)
        assert code == 0
        assert str(1 << 62) in row.values()


def test_damage_is_told_and_gone_past_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = bytearray(commit(1, "g", 2))
    broken[-1] ^= 1
    path = log(
        tmp_path, "__consumer_offsets-0", commit(0, "g", 1), bytes(broken), commit(2, "h", 3)
    )
    file = path / f"{0:020}.log"
    for more in ([], ["--states"], ["--as-of", str(TIME)]):
        code, found, err = run(capsys, str(path), *more)
        assert (code, found) == (1, [])
        assert str(file) in err and "--policy salvage" in err
        assert f"crc, byte {len(commit(0, 'g', 1)) + 17} of" in err
        code, found, err = run(capsys, str(path), *more, "--policy", "salvage")
        assert code == 1
        assert [row["group"] for row in found] == ["g", "h"]
        assert "omits what cannot be read" in err


def test_bytes_that_are_no_batch_with_a_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = log(tmp_path, "__consumer_offsets-0", commit(0, "g", 1), b"\xff" * 200)
    code, found, err = run(capsys, str(path), "--as-of", str(TIME), "--policy", "salvage")
    assert (code, [row["group"] for row in found]) == (1, ["g"])
    assert str(path) in err


@pytest.mark.parametrize("more", [[], ["--states"], ["--policy", "salvage"]])
@pytest.mark.parametrize("closed", ["__consumer_offsets-1", "orders-0"])
def test_names_that_are_nowhere_where_a_directory_cannot_be_read(
    closed: str, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The directory may have the group, so it is named too."""
    log(tmp_path, "__consumer_offsets-0", commit(0, "g", 1, topic="orders"))
    path = log(tmp_path, closed)
    path.chmod(0)
    try:
        with bound_by_modes():
            unknown_group = run(capsys, str(tmp_path), "--group", "nosuch", *more)
            unknown_topic = run(capsys, str(tmp_path), "--topic", "nosuch", *more)
            known = run(capsys, str(tmp_path), "--topic", "orders", *more)
    finally:
        path.chmod(0o700)
    assert unknown_group[:2] == (2, []) and "no group nosuch; there are: g" in unknown_group[2]
    assert unknown_topic[:2] == (2, []) and "no topic nosuch" in unknown_topic[2]
    assert str(path) in unknown_group[2]
    assert (str(path) in unknown_topic[2]) == (closed != "orders-0")
    assert known[0] == 1 and len(known[1]) == 1 and str(path) in known[2]


@pytest.mark.parametrize("more", [[], ["--states"]])
def test_nothing_there(tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    assert main(["groups", str(log(tmp_path, "__consumer_offsets-0")), *more]) == 0
    assert capsys.readouterr().out.startswith("no ")
    assert main(["groups", str(log(tmp_path, "orders-0")), *more]) == 2
    assert "no topic __consumer_offsets; there are: orders" in capsys.readouterr().err
    assert main(["groups", str(tmp_path / "nowhere"), *more]) == 2


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_names_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = tmp_path / os.fsdecode(b"d\xff")
    log(odd, os.fsdecode(b"caf\xe9-0"), commit(0, "g", 1))
    log(odd, "__consumer_offsets-0", commit(0, "g", 1, topic=utf8(os.fsdecode(b"caf\xe9"))))
    code, [row], _ = run(capsys, str(odd))
    assert (code, row["lag"]) == (0, 0)
    assert main(["groups", str(odd / os.fsdecode(b"caf\xe9-0"))]) == 2


@pytest.mark.slow
def test_commits_by_their_offset_and_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the commits that count: an older one of the same group in the range is none."""
    groups = {"a": [1, 5], "b": [3], "c": [7, 2]}
    commits = [
        commit(i, name, offset, time=TIME + i)
        for i, (name, offset) in enumerate((n, o) for n, each in groups.items() for o in each)
    ]
    path = str(log(tmp_path, "__consumer_offsets-0", *commits))
    newest = {"a": (5, TIME + 1), "b": (3, TIME + 2), "c": (2, TIME + 4)}
    for option, at in (("--offsets", 0), ("--time", 1)):
        values = sorted(one[at] for one in newest.values())
        bounds = [None, *values, values[-1] + 1]
        for low in bounds:
            for high in bounds:
                if low is not None and high is not None and low > high:
                    continue
                text = f"{'' if low is None else low}:{'' if high is None else high}"
                expected = [
                    name
                    for name, one in newest.items()
                    if (low is None or one[at] >= low) and (high is None or one[at] < high)
                ]
                for more in ([], ["--states"]):
                    code, rows, _ = run(capsys, path, option, text, *more)
                    assert (code, [row["group"] for row in rows]) == (0, expected)
