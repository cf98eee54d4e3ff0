"""One process at a time writes into an output directory: the second one says who writes there, and changes nothing."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codecgen.runtime import file_lock
from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.write.output_lock import (
    OUTPUT_LOCK,
    OutputLockedError,
    is_staged,
    locked_output,
    staged_path,
)
from kafka_log.write.sink.commit_journal import LOCK, lock_target
from kafka_log.write.staged_output import manifest_name
from tests.support.batches import batch
from tests.support.output_commands import COMMANDS, command_line
from tests.support.segment_files import put

HOLD = """
import sys
from pathlib import Path
from kafka_log.write.output_lock import locked_output, staged_path
out = Path(sys.argv[1])
with locked_output(out):
    staged_path(out / "t-0.csv").write_text("half")
    staged_path(out / "t-0").mkdir()
    (staged_path(out / "t-1") / "below").mkdir(parents=True)
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for partition in range(3):
        put(tmp_path / "logs" / f"t-{partition}", (0, batch(0)), (3, batch(3)))
    return tmp_path / "logs"


@contextmanager
def held(out: Path, program: str = HOLD) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of a directory, in which it has staged something."""
    command = [sys.executable, "-c", program, str(out)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def names(out: Path) -> list[str]:
    return sorted(path.name for path in out.rglob("*"))


def test_the_second_process_says_who_writes_there(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with held(out) as process:
        before = names(out)
        for name in COMMANDS:
            assert main(command_line(name, source, out)) == 2
            said = capsys.readouterr().err
            assert said.count("\n") == 1
            assert re.search(
                rf"^kafka-log: {re.escape(str(out))}: process {process.pid} on \S+ \(\S*python\S* -c .*,"
                r" since 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\) writes into it: wait until it is done, or choose another directory$",
                said.rstrip("\n"),
                re.DOTALL,
            )
            assert names(out) == before


def test_jobs_that_append_to_a_log_wait_for_the_same_lock(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out"
    with held(out) as process:
        before = names(out)
        message = rf"process {process.pid} on \S+ .* writes into it: wait until it is done"
        with (
            pytest.raises(OutputLockedError, match=re.compile(message, re.DOTALL)),
            lock_target(out, 0.2),
        ):
            pass
        assert names(out) == before
    with lock_target(out):
        with pytest.raises(OutputLockedError, match=rf"process {os.getpid()} on "):
            LogDirectory(source).salvage(out)
        assert sorted(names(out)) == [OUTPUT_LOCK, LOCK]
    assert names(out) == [LOCK]


def test_a_process_that_was_killed_leaves_neither_lock_nor_files(
    tmp_path: Path, source: Path
) -> None:
    out = tmp_path / "out"
    with held(out) as process:
        process.kill()
        process.wait()
    assert len(names(out)) == 5 and OUTPUT_LOCK in names(out)
    assert main(["salvage", str(source), "--out", str(out)]) == 0
    assert sorted(p.name for p in out.iterdir()) == [
        manifest_name("salvage"),
        *(f"t-{i}" for i in range(3)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_of_the_lock_stays(name: str, tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out"
    assert main(command_line(name, source, out)) == 0
    assert not [n for n in names(out) if n == OUTPUT_LOCK or is_staged(n)]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_directory_in_which_nothing_was_written_is_removed(
    name: str, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    outs = (tmp_path / "new" / "out", tmp_path / "there", tmp_path / "there" / "out")
    commands = [command_line(name, source, out) for out in outs]
    monkeypatch.setattr("codecgen.runtime.file_lock._write_holder", refuse)
    (tmp_path / "there").mkdir()
    before = names(tmp_path)
    for command in commands:
        assert main(command) == 2
        assert names(tmp_path) == before


HOLD_FILE = """
import sys
from pathlib import Path
from kafka_log.write.output_lock import locked_file, staged_path
out = Path(sys.argv[1])
with locked_file(out):
    staged_path(out).write_text("half")
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_writes_a_file(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other files of the directory are no concern of it."""
    pages = tmp_path / "pages"
    pages.mkdir()
    out, other = pages / "page.html", pages / "other.html"
    other_staged = staged_path(other)
    other_staged.write_text("half")
    command = ["report", str(source), "--now", "2026-11-22", "--out"]
    with held(out, HOLD_FILE) as process:
        before = names(pages)
        assert main([*command, str(out)]) == 2
        said = capsys.readouterr().err
        who = rf"^kafka-log: {re.escape(str(out))}: process {process.pid} on "
        assert re.search(who, said) and said.endswith("or choose another file\n")
        assert names(pages) == before
        assert main([*command, str(other)]) == 0  # which removes what was staged for it alone
        assert names(pages) == sorted({*before, other.name} - {other_staged.name})
        process.kill()
        process.wait()
    assert main([*command, str(out)]) == 0
    assert names(pages) == ["other.html", "page.html"]


@pytest.mark.slow
def test_two_reports_of_one_file(tmp_path: Path, source: Path) -> None:
    """However the two meet, one page is written, and the other process says why it wrote none."""
    pages = tmp_path / "pages"
    pages.mkdir()
    out = pages / "page.html"
    words = [sys.executable, "-m", "kafka_log", "report", str(source), "--now", "2026-11-22"]
    words += ["--out", str(out), "--overwrite"]
    both = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [one.communicate()[1] for one in both]
    assert {one.returncode for one in both} <= {0, 2} and any(one.returncode == 0 for one in both)
    for one, error in zip(both, errors, strict=True):
        assert ("writes into it" in error) == (one.returncode == 2)
    assert names(pages) == [out.name]
    assert out.read_bytes().rstrip().endswith(b"</html>")


def test_two_jobs_of_one_process(tmp_path: Path, source: Path) -> None:
    files = LogDirectory(source).export(tmp_path / "out")
    next(files)
    with pytest.raises(OutputLockedError, match=rf"process {os.getpid()} on "):
        LogDirectory(source).salvage(tmp_path / "out")
    files.close()
    assert len(list(LogDirectory(source).export(tmp_path / "out"))) == 3


def test_a_lock_file_that_says_nothing(tmp_path: Path) -> None:
    with locked_output(tmp_path):
        for text in (b"", b"{}", b"[" * 9000, b'{"pid": 1}', b"\xff"):
            (tmp_path / OUTPUT_LOCK).write_bytes(text)
            with pytest.raises(OutputLockedError, match="another process writes into it"):
                locked_output(tmp_path).__enter__()


def test_a_lock_file_that_is_removed_while_it_is_opened_locks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder before removes the file after we have opened it: the lock is taken on a new one."""
    plain, tries = file_lock._try_lock, []

    def late(file: object) -> bool:
        tries.append(file)
        if len(tries) == 1:
            (tmp_path / OUTPUT_LOCK).unlink()
        return plain(file)  # type: ignore[arg-type]

    monkeypatch.setattr(file_lock, "_try_lock", late)
    with locked_output(tmp_path):
        assert json.loads((tmp_path / OUTPUT_LOCK).read_bytes())["pid"] == os.getpid()
    assert len(tries) == 2


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(OutputLockedError, match=r"has no locks \(No locks available\)"),
        locked_output(tmp_path),
    ):
        pass


@pytest.mark.parametrize("name", ["t-0.csv", "é" * 120 + "-0", "x" * 255, "t\n-0", "\udce9-0"])
def test_staged_names(name: str, tmp_path: Path) -> None:
    """They fit, belong to one call, and are told apart from all others."""
    path = tmp_path / name
    found = {staged_path(path) for _ in range(10)}
    assert len(found) == 10
    for staged in found:
        assert staged.parent == tmp_path and is_staged(staged.name)
        assert len(os.fsencode(staged.name)) <= 255
    assert not is_staged(name) and not is_staged(f".{name}.partial")


def start(name: str, source: Path, out: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "kafka_log", *command_line(name, source, out)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def content(out: Path) -> dict[str, bytes]:
    """The files of a directory but for what a job says of its inputs, where their times stand."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and not path.name.startswith("kafka-log-")
    }


def large(root: Path, partitions: int, batches: int, size: int = 30) -> Path:
    """A log of partitions that have the same bytes."""
    data = b"".join(batch(i * 3, size=size) for i in range(batches))
    for partition in range(partitions):
        put(root / f"t-{partition}", (0, data))
    return root


@pytest.fixture(scope="module")
def two_sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [large(tmp_path_factory.mktemp("logs"), 10, 500, size) for size in (30, 31)]


@pytest.fixture(scope="module")
def one_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return large(tmp_path_factory.mktemp("logs"), 20, 3_000)


@pytest.mark.share(ci=12)
@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_pairs_of_processes(name: str, two_sources: list[Path], tmp_path: Path) -> None:
    """Two processes with different inputs begin at a time. Whoever comes second changes nothing, however the two meet."""
    sources = two_sources
    expected = []
    for i, logs in enumerate(sources):
        assert main(command_line(name, logs, tmp_path / f"alone-{i}")) == 0
        expected.append(content(tmp_path / f"alone-{i}"))
    assert expected[0] != expected[1] or name == "reindex"
    met = 0
    for attempt in range(2):
        out = tmp_path / f"out-{attempt}"
        pair = [start(name, logs, out) for logs in sources]
        if attempt == 0:
            stop_once_it_writes(pair[0], out)
        errors = [pair[1].communicate()[1].decode()]
        pair[0].send_signal(signal.SIGCONT)
        errors.insert(0, pair[0].communicate()[1].decode())
        codes = [process.returncode for process in pair]
        assert set(codes) <= {0, 2} and 0 in codes, errors
        for code, error in zip(codes, errors, strict=True):
            if code == 2:
                refused = ("writes into it", "made of", "is another log")
                assert "Traceback" not in error and any(words in error for words in refused)
                met += "writes into it" in error
        winners = [i for i in range(2) if codes[i] == 0]
        assert content(out) in [expected[i] for i in winners]
    assert met


@pytest.mark.slow
@pytest.mark.share(ci=5)
@pytest.mark.parametrize("name", ["csv", "salvage", "repair", "merge", "diff"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 2)])
def test_a_signal_leaves_nothing_staged(
    name: str, number: signal.Signals, code: int, one_source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with start(name, one_source, out) as process:
        until = time.monotonic() + 60
        while time.monotonic() < until and not any(map(is_staged, names(out))):
            assert process.poll() is None
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert errors.startswith(b"kafka-log: interrupted: ") or b"\nkafka-log: interrupted: " in errors
    assert b"Traceback" not in errors
    assert not [n for n in names(out) if is_staged(n) or n == OUTPUT_LOCK]


def stop_once_it_writes(process: subprocess.Popen[bytes], out: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            if json.loads((out / OUTPUT_LOCK).read_bytes())["pid"] == process.pid:
                process.send_signal(signal.SIGSTOP)
                return
        except (OSError, ValueError):
            continue
