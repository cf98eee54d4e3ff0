"""``kafka-log dump --follow`` beside a process that writes a log."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_log.cli import main
from tests.paths import ROOT
from tests.support.batches import batch
from tests.support.growing_logs import Growing

WRITER = """\
import sys, time
from pathlib import Path
from tests.support.batches import batch

directory, count = Path(sys.argv[1]), int(sys.argv[2])
directory.mkdir(exist_ok=True)
for number in range(count):
    base = number // 20 * 60  # a new segment after 20 batches
    with (directory / f"{base:020d}.log").open("ab", buffering=0) as file:
        data = batch(number * 3, codec=("none", "gzip", "zstd")[number % 3])
        file.write(data[: number % len(data)])
        time.sleep(0.002)
        file.write(data[number % len(data) :])
"""
"""Writes each batch in two parts, and rolls the log."""


class Output:
    """Lines that a process prints, as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_for(self, count: int) -> list[str]:
        deadline = time.monotonic() + 60
        while len(self.lines) < count:
            assert time.monotonic() < deadline, f"{len(self.lines)} lines of {count}"
            assert self.process.poll() is None, "it has ended"
            time.sleep(0.02)
        return self.lines

    def stop(self, number: signal.Signals) -> tuple[int, str]:
        """Send a signal, and return the exit code and what was printed to stderr."""
        self.process.send_signal(number)
        code = self.process.wait(30)
        self._thread.join(30)
        assert self.process.stderr is not None
        return code, self.process.stderr.read()


@contextmanager
def following(*arguments: str | Path) -> Iterator[Output]:
    command = [sys.executable, "-m", "kafka_log", "dump", *map(str, arguments), "--follow"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, cwd=ROOT, encoding="utf-8") as process:
        try:
            yield Output(process)
        finally:
            process.kill()


def offsets(lines: list[str]) -> list[int]:
    return [json.loads(line)["offset"] for line in lines]


def write(directory: Path, base: int, *offsets: int) -> None:
    directory.mkdir(exist_ok=True)
    with (directory / f"{base:020d}.log").open("ab") as file:
        file.write(b"".join(map(batch, offsets)))


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")


@pytest.mark.slow
def test_each_record_of_a_writing_process_is_printed_once(tmp_path: Path) -> None:
    write(tmp_path / "other-0", 0, 0)
    columns = ("--format", "jsonl", "--columns", "topic,offset")
    with following(tmp_path, "--topic", "*", *columns) as output:
        output.wait_for(3)
        writer = [sys.executable, "-c", WRITER, str(tmp_path / "t-0"), "70"]
        subprocess.run(writer, check=True, cwd=ROOT, timeout=60)
        lines = output.wait_for(3 + 210)
        code, errors = output.stop(signal.SIGINT)
    assert code == 0, errors
    assert errors == ""
    assert offsets(lines) == [0, 1, 2, *range(210)]


@pytest.mark.slow
def test_text_of_a_growing_partition(tmp_path: Path) -> None:
    log = Growing(tmp_path / "t-0", random.Random(1), transactions=False)
    log.append()
    with following(tmp_path / "t-0", "--columns", "offset,value") as output:
        output.wait_for(1 + len(log.uncommitted()))
        for happens in (log.append, log.tear, log.roll, log.append, log.delete, log.append):
            happens()
            output.wait_for(1 + log.end)
        log.tear()
        lines = output.wait_for(1 + log.end)
        code, errors = output.stop(signal.SIGTERM)
    assert code == 0
    assert errors == ""
    assert lines[0].split() == ["offset", "value"]
    printed = [line.split()[0] for line in lines[1:]]
    assert printed == [str(offset) for offset in range(log.end)]


@pytest.mark.slow
def test_the_last_records_then_new_ones_and_new_partitions_up_to_a_number(tmp_path: Path) -> None:
    write(tmp_path / "t-0", 0, 0, 3, 6)
    columns = ("--format", "jsonl", "--columns", "partition,offset")
    with following(tmp_path, "--last", "2", "-n", "11", *columns) as output:
        assert offsets(output.wait_for(2)) == [7, 8]
        write(tmp_path / "t-0", 9, 9)
        output.wait_for(5)
        write(tmp_path / "t-1", 0, 0)
        output.wait_for(8)
        write(tmp_path / "t-0", 9, 12, 15)
        assert output.process.wait(30) == 0
    rows = [(row["partition"], row["offset"]) for row in map(json.loads, output.lines)]
    assert rows == [*((0, n) for n in range(7, 12)), *((1, n) for n in range(3)), *((0, n) for n in range(12, 15))]  # fmt: skip


@pytest.mark.slow
def test_only_new_records_after_last_0(tmp_path: Path) -> None:
    write(tmp_path / "t-0", 0, 0, 3)
    with following(tmp_path, "--last", "0", "--format", "jsonl") as output:
        time.sleep(2)
        write(tmp_path / "t-0", 0, 6)
        deadline = time.monotonic() + 60
        number = 0
        while len(output.lines) < 3:  # it may have begun after the first of them
            assert time.monotonic() < deadline
            write(tmp_path / "t-1", 0, number)
            number += 3
            time.sleep(0.3)
        code, _ = output.stop(signal.SIGTERM)
    assert code == 0
    assert {0, 3}.isdisjoint(
        row["offset"] for row in map(json.loads, output.lines) if row["partition"] == 0
    )


@pytest.mark.slow
def test_damage_is_reported_and_the_exit_code_is_1(tmp_path: Path) -> None:
    write(tmp_path / "t-0", 0, 0)
    with following(tmp_path, "--format", "jsonl", "--columns", "offset") as output:
        output.wait_for(3)
        whole = batch(3)
        with (tmp_path / "t-0" / f"{0:020d}.log").open("ab") as file:
            file.write(whole[:-1] + bytes([whole[-1] ^ 1]) + batch(6))
        output.wait_for(6)
        code, errors = output.stop(signal.SIGTERM)
    assert code == 1
    assert "checksum" in errors or "crc" in errors
    assert offsets(output.lines)[-3:] == [6, 7, 8]


@pytest.mark.slow
def test_follow_ends_if_all_partitions_are_gone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "t-0", 0, 0)
    with following(tmp_path / "data", "--topic", "t", "--format", "jsonl") as output:
        output.wait_for(3)
        (tmp_path / "data" / "t-0").rename(tmp_path / "gone")
        assert output.process.wait(30) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format", "csv"],
        ["--format", "vectors"],
        ["--batches"],
        ["--include", "deleted"],
        ["--isolation", "read_committed"],
        ["--offsets", "0:5"],
    ],
)
def test_what_does_not_go_with_follow_is_refused(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "t-0", 0, 0)
    assert main(["dump", str(tmp_path), "--follow", *arguments]) == 2
    assert "--follow" in capsys.readouterr().err


def test_last_0_needs_follow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "t-0", 0, 0)
    assert main(["dump", str(tmp_path), "--last", "0"]) == 2
    assert "--follow" in capsys.readouterr().err
