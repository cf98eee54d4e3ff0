"""What is written is whole or not there, never over anything, and the same command goes on where it ended."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafka_log import DirectoryError, LogDirectory, discover
from kafka_log.cli import main
from kafka_log.write.staged_output import OutputError, manifest_name
from tests.paths import SAMPLES
from tests.support.batches import batch
from tests.support.permissions import bound_by_modes
from tests.support.salvage_rows import files, rows, said
from tests.support.segment_files import put

BROKER = SAMPLES / "kafka-4.x"
COMMANDS = {
    "salvage": [],
    "cut": ["--offsets", "0:"],
    "reindex": [],
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", COMMANDS)
def test_what_is_there_is_kept(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        verb,
        str(BROKER),
        "--topic",
        "transactions",
        *COMMANDS[verb],
        "--out",
        str(tmp_path),
    ]
    assert main(command) == 0
    said_first = capsys.readouterr().out
    times = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    assert main(command) == 0
    assert capsys.readouterr().out == said_first
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == times
    # What is missing is made again, and more partitions may come.
    before = files(tmp_path, "")
    shutil.rmtree(tmp_path / "transactions-1")
    said_before = before.pop(manifest_name(verb))
    assert main(command) == 0
    after = files(tmp_path, "")
    said_after = after.pop(manifest_name(verb))
    assert after == before
    assert (
        said_after.startswith(said_before)
        and said_after.count(b"\n") == said_before.count(b"\n") + 1
    )
    assert main([*command, "--topic", "codecs"]) == 0
    assert len(discover(BROKER, ())) > len(list(tmp_path.glob("*-*"))) > 3


@pytest.mark.slow
@pytest.mark.parametrize("verb", [*COMMANDS, "convert"])
@pytest.mark.parametrize("at", [100, 20_000, 78_300])
def test_what_is_there_is_of_these_bytes(
    verb: str, at: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name and the size of a segment stay as they are when a sector of it goes bad, and when the good file comes from a backup."""
    source, out = tmp_path / "in" / "codecs-0", tmp_path / "out"
    shutil.copytree(BROKER / "codecs-0", source)
    path = source / f"{0:020d}.log"
    good = path.read_bytes()
    options = COMMANDS.get(verb, ["--codec", "none"])
    command = [verb, str(tmp_path / "in"), *options, "--out", str(out)]
    path.write_bytes(good[:at] + b"oops" + good[at + 4 :])
    first = main(command)
    if (out / "codecs-0").exists():
        made = files(out, "")
        assert main(command) == first  # the same goes on
        path.write_bytes(good)
        capsys.readouterr()
        assert main(command) == 2
        reason = "the directory is the result of another command (the bytes or modification times of its segments differ)"
        assert reason in capsys.readouterr().err
        assert files(out, "") == made
        shutil.rmtree(out)
    path.write_bytes(good)  # convert has refused what is damaged
    assert main(command) == 0
    times = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    assert main(command) == 0
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*")} == times


def test_other_jobs_do_not_write_there(tmp_path: Path) -> None:
    log = LogDirectory(BROKER, topics="transactions")
    log.salvage(tmp_path / "out")
    before = files(tmp_path, "")
    with pytest.raises(OutputError, match="was not written by this command"):
        log.reindex(tmp_path / "out")
    with pytest.raises(OutputError, match="the result of another command"):
        log.salvage(tmp_path / "out", flatten=True)
    grown = put(tmp_path / "transactions-0", (0, batch(0)))
    with pytest.raises(OutputError, match="the result of another command"):
        LogDirectory(grown).salvage(tmp_path / "out")
    shutil.rmtree(grown)
    assert files(tmp_path, "") == before


def test_a_directory_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"notes\.txt"):
        LogDirectory(BROKER).salvage(tmp_path)
    assert files(tmp_path, "") == {"notes.txt": b"mine"}


@pytest.mark.parametrize("verb", COMMANDS)
def test_nothing_is_written_inside_of_what_is_read(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "logs"
    source = put(root / "t-0", (0, batch(0)))
    link = tmp_path / "link"
    link.symlink_to(source)
    before = files(tmp_path, "")
    segment = source / f"{0:020d}.log"
    for given, out in (
        (root, root),
        (root, root / "new"),
        (source, source / "a" / "b"),
        (segment, source / "new"),
        (source, link / "new"),
        (link, source / "new"),
        (source, tmp_path / "elsewhere" / ".." / "logs" / "t-0" / "x"),
    ):
        assert main([verb, str(given), *COMMANDS[verb], "--out", str(out)]) == 2
        assert "it lies inside" in capsys.readouterr().err
    assert files(tmp_path, "") == before


@pytest.mark.parametrize("verb", COMMANDS)
def test_nothing_is_written_inside_of_a_log_directory(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A partition of it is read: no broker would start with the output beside it."""
    root = tmp_path / "logs"
    source = put(root / "t-0", (0, batch(0)))
    (root / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=a\n")
    (tmp_path / "link").symlink_to(root)
    before = files(tmp_path, "")
    for out in (root / "new", root / "a" / "b", tmp_path / "link" / "new"):
        assert main([verb, str(source), *COMMANDS[verb], "--out", str(out)]) == 2
        assert "a broker's log directory" in capsys.readouterr().err
    assert files(tmp_path, "") == before
    assert sorted(p.name for p in root.iterdir()) == ["meta.properties", "t-0"]


def many(root: Path) -> Path:
    """Partitions that take a while."""
    for i in range(12):
        put(root / f"t-{i}", (0, b"".join(batch(j * 3, "gzip", size=900) for j in range(800))))
    return root


def started(source: Path, out: Path, verb: str = "salvage") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kafka_log", verb, str(source), "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def wait_for_some(out: Path) -> None:
    end = time.monotonic() + 60
    while not (out / "t-1").exists() and time.monotonic() < end:
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_job_that_is_ended_in_the_middle_goes_on(tmp_path: Path, number: int) -> None:
    source = many(tmp_path / "logs")
    LogDirectory(source).salvage(tmp_path / "whole")
    wanted = files(tmp_path / "whole", "")
    for attempt in range(20):  # on a busy machine it may be done before it is ended
        out = tmp_path / f"out-{attempt}"
        with started(source, out) as process:
            wait_for_some(out)
            process.send_signal(number)
            _, said_last = process.communicate(timeout=60)
        if process.returncode != 0:
            break
    if number == signal.SIGINT:
        assert process.returncode == 2
        assert b"run the same command again to continue" in said_last
    there = {name for partition in discover(out) for name in [partition.directory.name]}
    assert 0 < len(there) < 12
    for name in there:
        assert files(out / name, "") == files(tmp_path / "whole" / name, "")
    LogDirectory(source).salvage(out)
    assert files(out, "") == wanted


@pytest.mark.slow
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """No file may have more bytes than this: writing fails as it does on a full disk."""
    source = tmp_path / "logs"
    put(source / "a-0", (0, batch(0)))
    put(source / "b-0", (0, b"".join(batch(i * 3, size=3000) for i in range(40))))
    out = tmp_path / "out"
    # -B: Python itself would leave half a file of bytecode, for all who come after.
    command = [sys.executable, "-B", "-m", "kafka_log", "salvage", str(source), "--out", str(out)]

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = subprocess.run(
        command, capture_output=True, timeout=60, check=False, preexec_fn=little_room
    )
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert sorted(p.name for p in out.iterdir()) == ["a-0", "kafka-log-salvage.jsonl"]
    assert main(["salvage", str(source), "--out", str(out)]) == 0
    assert files(out, ".log") == files(source, ".log")


def test_names_that_are_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9-0")
    source = put(tmp_path / "logs" / name, (0, batch(0)))
    for _ in range(2):
        assert main(["salvage", str(source), "--out", str(tmp_path / "out")]) == 0
    assert files(tmp_path / "out" / name, ".log") == files(source, ".log")


def test_the_same_partition_twice(tmp_path: Path) -> None:
    for broker in ("1", "2"):
        put(tmp_path / broker / "t-0", (0, batch(0)))
    both = [tmp_path / "1", tmp_path / "2"]
    with pytest.raises(DirectoryError, match=r"the same partition, .* --replicas"):
        LogDirectory(both).salvage(tmp_path / "out")
    with pytest.raises(OutputError, match="the same partition"):
        LogDirectory(both, replicas="keep").salvage(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_not_live_comes_when_asked_for(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    source = put(logs / "t-0", (6, batch(6)))
    (source / f"{0:020d}.log.deleted").write_bytes(batch(0) + batch(3))
    put(logs / f"gone-0.{'a' * 32}-delete", (0, batch(0)))
    put(logs / f"t-1.{'b' * 32}-future", (0, batch(0)))
    LogDirectory(logs).salvage(tmp_path / "live")
    assert sorted(p.name for p in (tmp_path / "live").glob("*-*/")) == ["t-0"]
    LogDirectory(logs, include=["deleted", "delete", "future"]).salvage(tmp_path / "all")
    found = {p.directory.name: rows(p.directory) for p in discover(tmp_path / "all")}
    assert {name: len(there) for name, there in found.items()} == {"t-0": 9, "gone-0": 3, "t-1": 3}
    assert [int(row[0]) for row in found["t-0"]] == list(range(9))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "what"),
    [("salvage", "lost"), ("cut", "lost"), ("reindex", "lost"), ("convert", "refused")],
)
def test_one_partition_that_cannot_be_read(job: str, what: str, tmp_path: Path) -> None:
    """The others are written as without it, and it is told; salvage and cut write its other segments."""
    logs = tmp_path / "logs"
    for name in ("a-0", "c-0"):
        put(logs / name, (0, batch(0)), (3, batch(3)))
    options = ["--offsets", "0:5"] if job == "cut" else []
    assert main([job, str(logs), "--out", str(tmp_path / "without"), *options]) == 0
    put(logs / "b-0", (0, batch(0)))
    (logs / "b-0" / f"{1 << 63:020d}.log").write_bytes(batch(6))
    assert main([job, str(logs), "--out", str(tmp_path / "out"), *options]) == 1
    for name in ("a-0", "c-0"):
        assert files(tmp_path / "out" / name, "") == files(tmp_path / "without" / name, "") != {}
    logs_of_b = files(tmp_path / "out", ".log").get(f"b-0/{0:020d}.log")
    assert logs_of_b == (batch(0) if job in ("salvage", "cut") else None)
    made = {
        "salvage": lambda log: log.salvage(tmp_path / "api"),
        "cut": lambda log: log.cut(tmp_path / "api", (0, 5)),
        "reindex": lambda log: log.reindex(tmp_path / "api"),
        "convert": lambda log: log.convert(tmp_path / "api"),
    }[job](LogDirectory(logs))
    (row,) = [r for r in made.to_pylist() if r["topic"] == "b" and r.get("what") != "kept"]
    assert row["what"] == what and "exceeds the largest offset" in row["reason"]


def test_a_segment_that_may_not_be_read(tmp_path: Path) -> None:
    source = put(tmp_path / "t-0", (0, batch(0)), (3, batch(3)))
    (source / f"{0:020d}.log").chmod(0)
    with bound_by_modes():
        table = LogDirectory(source).salvage(tmp_path / "out")
    assert [int(row[0]) for row in rows(tmp_path / "out")] == [3, 4, 5]
    assert said(table, "lost")
