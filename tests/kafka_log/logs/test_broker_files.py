"""Checkpoints, snapshots and indexes: read whole, and never much."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from kafka_log.logs.broker_files import (
    MAX_BYTES,
    TooLargeError,
    is_broker_running,
    read_broker_files,
    read_small_file,
)
from kafka_log.logs.names import CHECKPOINTS, LOCK


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_all_bytes(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(size))
    assert read_small_file(path) == path.read_bytes()
    assert read_small_file(path, size) == path.read_bytes()
    if size:
        with pytest.raises(TooLargeError, match=f"file: it has more than {size - 1} bytes"):
            read_small_file(path, size - 1)


def test_no_more_memory_than_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0\n")
    tracemalloc.start()
    read_small_file(path)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(TooLargeError):
        read_small_file(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_lock_file_that_is_a_fifo(tmp_path: Path) -> None:
    """Opening it would wait for a writer for ever."""
    os.mkfifo(tmp_path / LOCK)
    assert is_broker_running(tmp_path) is None


def test_a_checkpoint_that_is_no_file_is_there(tmp_path: Path) -> None:
    """A broker takes the log directory offline for it, as for a damaged one."""
    link, directory, *others = CHECKPOINTS
    (tmp_path / link).symlink_to("/nowhere/at/all")
    (tmp_path / directory).mkdir()
    found = read_broker_files(tmp_path)
    assert found.errors.keys() == {link, directory}
    assert "dangling link" in str(found.errors[link])
    assert not found.checkpoints and others
