"""Reads of files that brokers write meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from codecgen.runtime.errors import CodecError

T = TypeVar("T")

TRIES = 50
PAUSE_S = 0.02
"""Longer than a tick of the clock that says when files were written."""


def steady(path: Path, read: Callable[[], T]) -> T:
    """What ``read`` gives of a file. Raises the CodecError that it raises, if it raises it again when the file did not change for a while:
    a batch that is just being written over the zeros of a file that was made longer in advance looks like damage."""
    again = False
    for _ in range(TRIES):
        before = _state(path)
        try:
            return read()
        except CodecError:
            if again and _state(path) == before:
                raise
            time.sleep(PAUSE_S)
            again = _state(path) == before
    return read()


def _state(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
