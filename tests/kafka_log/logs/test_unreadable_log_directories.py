"""A directory above log directories, in which something cannot be read that may be another one: no answer without it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kafka_log
from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.logs import discovery
from kafka_log.logs.partitions import DirectoryError
from tests.support.batches import batch


def log(path: Path) -> None:
    path.mkdir(parents=True)
    (path / f"{0:020d}.log").write_bytes(batch(0))


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """Directories that the system does not list; permissions do not bind root."""
    found: set[Path] = set()

    def refuse(function: Callable[[Path], Any]) -> Callable[[Path], Any]:
        def read(path: Path) -> Any:
            if path in found:
                raise OSError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
            return function(path)

        return read

    for name in ("list_segment_files", "list_directory", "list_children"):
        monkeypatch.setattr(discovery, name, refuse(getattr(discovery, name)))
    return found


def close(path: Path, closed: set[Path]) -> None:
    path.mkdir()
    closed.add(path)


UNREADABLE: dict[str, Callable[[Path, set[Path]], None]] = {
    "directory": close,
    "dangling link": lambda path, _: path.symlink_to("/nowhere/at/all"),
    "loop": lambda path, _: path.symlink_to(path),
}
COMMANDS = (
    ["check"],
    ["ls"],
    ["stat"],
    ["dump"],
    ["dump", "--topic", "t"],
    ["txn"],
    ["producers"],
    ["keys"],
    ["sql", "select * from records"],
)


@pytest.fixture(params=UNREADABLE)
def disks(request: pytest.FixtureRequest, tmp_path: Path, closed: set[Path]) -> Path:
    """Two disks: one with a log, and one that cannot be read. Its name is no partition's."""
    log(tmp_path / "a" / "t-0")
    UNREADABLE[request.param](tmp_path / "b", closed)
    return tmp_path


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege")
@pytest.mark.share(6)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_names_it(
    command: list[str], disks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verb, *more = command
    arguments = [verb, *more, str(disks)] if verb != "sql" else [verb, str(disks), *more]
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert "nothing is wrong" not in out + err
    assert "b: " in err and "pass the paths of the log directories" in err
    arguments[arguments.index(str(disks))] = str(disks / "a")
    assert main(arguments) == 0


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege")
def test_python_names_it(disks: Path) -> None:
    for read in (
        lambda: LogDirectory(disks).check(),
        lambda: kafka_log.scan(disks),
        lambda: kafka_log.discover(disks),
    ):
        with pytest.raises(DirectoryError, match="b: "):
            read()


def test_a_name_like_that_of_a_partition_proves_nothing(
    tmp_path: Path, closed: set[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """``disk-2`` may be a partition or a log directory. A selection of topics cannot leave it out."""
    log(tmp_path / "disk-1" / "t-0")
    (tmp_path / "disk-2").mkdir()
    closed.add(tmp_path / "disk-2")
    assert main(["check", str(tmp_path), "--topic", "t"]) == 2
    assert "disk-2: Permission denied" in capsys.readouterr().err


def test_it_is_named_at_any_level(
    tmp_path: Path, closed: set[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    log(tmp_path / "rack" / "a" / "t-0")
    log(tmp_path / "c" / "t-1")
    (tmp_path / "rack" / "b").mkdir()
    closed.add(tmp_path / "rack" / "b")
    assert main(["check", str(tmp_path)]) == 2
    assert "b: it cannot be read: Permission denied" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege")
def test_what_is_no_log_directory_is_ignored(
    tmp_path: Path, closed: set[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Hidden directories and links, files, and links to files; and what lies inside a log directory."""
    log(tmp_path / "a" / "t-0")
    log(tmp_path / "b" / "t-1")
    (tmp_path / ".snapshots").mkdir()
    closed.add(tmp_path / ".snapshots")
    (tmp_path / ".lock").symlink_to("/nowhere/at/all")
    (tmp_path / "README").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "README")
    assert main(["check", str(tmp_path)]) == 0
    capsys.readouterr()
    shutil.rmtree(tmp_path / "b")
    (tmp_path / "a" / "gone").symlink_to("/nowhere/at/all")
    assert main(["ls", str(tmp_path)]) == 0


def test_lost_and_found_of_the_file_system_is_only_mentioned(
    tmp_path: Path, closed: set[Path]
) -> None:
    log(tmp_path / "disk" / "t-0")
    close(tmp_path / "lost+found", closed)
    logs = LogDirectory(tmp_path)
    assert logs.ls().num_rows == 1
    assert [skipped.path.name for skipped in logs.skipped_paths] == ["lost+found"]
