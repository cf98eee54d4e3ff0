"""Checkpoints, snapshots and indexes: read whole, and never much."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from kafka_log.logs.broker_files import MAX_BYTES, TooLargeError, read_small_file


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
