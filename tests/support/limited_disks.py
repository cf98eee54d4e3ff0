"""File systems with little room, which can be enlarged."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("who runs the tests may not mount a file system")


@contextmanager
def disk(place: Path, limit: str) -> Iterator[Path]:
    """A file system with room for so many bytes, or files."""
    place.mkdir()
    mount("-t", "tmpfs", "-o", limit, "tmpfs", str(place))
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def enlarge(place: Path) -> None:
    mount("-o", "remount,size=64m,nr_inodes=10000", str(place))
