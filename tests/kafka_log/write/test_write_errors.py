"""Disks that fail while files are written: the first error is told, with its file and with what is left; and the same command goes on."""

from __future__ import annotations

import errno
import re
import resource
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_log import DirectoryError, LogDirectory, write_log
from kafka_log.cli import main
from kafka_log.write.output_lock import OUTPUT_LOCK
from tests.support.check_plants import flip
from tests.support.failing_calls import Fault, failing_close, failing_fsync
from tests.support.output_commands import COMMANDS
from tests.support.write_errors import content, judge, run
from tests.support.write_errors import source as source

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")


def fails(name: str, source: Path, out: Path, failing: Fault, nth: int) -> bool:
    """Run a command of which the ``nth`` call fails, then the same without. Return False if there are fewer calls."""
    with failing(nth) as made:
        code = run(name, source, out)
    if made.left > 0:
        return False
    assert code == 2
    return True


@pytest.mark.slow
@pytest.mark.share(ci=5)
@pytest.mark.parametrize("failing", [failing_fsync, failing_close])
@pytest.mark.parametrize("name", COMMANDS)
def test_each_call_fails(
    name: str,
    failing: Fault,
    source: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(name, source, tmp_path / "whole") == 0
    whole = content(tmp_path / "whole")
    capsys.readouterr()
    nth = 1
    while fails(name, source, out := tmp_path / f"out-{nth}", failing, nth):
        judge(capsys.readouterr().err, out, errno.EIO)
        assert run(name, source, out) == 0
        assert content(out).keys() == whole.keys()
        assert all(content(out)[k] == whole[k] for k in whole if not k.startswith("kafka-log-"))
        capsys.readouterr()
        nth += 1
    assert nth > 3


@pytest.mark.share(3)
@pytest.mark.parametrize("failing", [failing_fsync, failing_close])
@pytest.mark.parametrize("name", COMMANDS)
def test_the_first_error_wins(
    name: str,
    failing: Fault,
    source: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert fails(name, source, tmp_path / "out", failing, 2)
    judge(capsys.readouterr().err, tmp_path / "out", errno.EIO)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_disk_that_is_full(
    name: str, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file may have more bytes than this: a write fails in the middle, and so does each try to write the rest of it."""
    out = tmp_path / "out"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = 5 if name == "reindex" else 30_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        code = run(name, source, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 2
    said = capsys.readouterr().err
    judge(said, out, errno.EFBIG)
    assert run(name, source, out) == 0


def test_a_disk_that_is_full_during_a_repair(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    shutil.copytree(source, logs)
    flip(min((logs / "a-0").glob("*.log")), 500)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, hard))
    try:
        assert main(["salvage", "--repair", str(logs), "--out", str(out)]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    judge(capsys.readouterr().err, out, errno.EFBIG)


def test_logs_that_are_written(source: Path, tmp_path: Path) -> None:
    """An error of write_log names the file, leaves what was there, and nothing else."""
    rows = pa.table({"value": [b"x" * 100] * 50})
    write_log(tmp_path, rows, topic="a")
    before = content(tmp_path / "a-0")
    outcomes = set()
    for failing in (failing_fsync, failing_close):
        for nth in range(1, 40, 3):
            count = len(LogDirectory(tmp_path).all_partitions[0].segments)
            with failing(nth) as made:
                try:
                    write_log(tmp_path, rows, topic="a")
                except OSError as error:
                    assert error.errno == errno.EIO and str(error.filename).startswith(
                        str(tmp_path)
                    )
                    outcomes.add("error")
            if made.left > 0:
                break
            after = len(LogDirectory(tmp_path).all_partitions[0].segments)
            assert after - count in (0, 1)
            assert not [p for p in tmp_path.iterdir() if p.name.startswith(".kafka-log")]
    assert outcomes == {"error"}
    assert content(tmp_path / "a-0").items() >= before.items()
    assert LogDirectory(tmp_path).check().num_rows == 0


def test_a_lock_that_cannot_be_written(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / OUTPUT_LOCK).mkdir(parents=True)
    with pytest.raises((OSError, DirectoryError), match=re.escape(OUTPUT_LOCK)):
        list(LogDirectory(source).export(tmp_path / "out"))
