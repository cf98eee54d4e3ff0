"""Repeated reads of files that brokers change meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from codecgen.runtime.errors import CodecError
from kafka_log.segment.positioned_reads import UnreadableError

T = TypeVar("T")

TRIES = 50
PAUSE_S = 0.02
"""Seconds between two tries: longer than the resolution of modification times."""


def read_steadily(path: Path, read: Callable[[], T]) -> T:
    """Return ``read()``. If it raises CodecError, wait 20 ms and call it again, up to 50 times,
    while the file changes. Raise the CodecError if it comes again and the file did not change
    meanwhile, after the last try, or at once if the file is gone. Other errors pass through at
    once.

    A batch that is being written over the zeros of a preallocated file looks like damage.
    """
    again = False
    for _ in range(TRIES):
        before = _state(path)
        try:
            return read()
        except CodecError as error:
            if is_gone(error):
                raise  # waiting does not bring it back
            if again and _state(path) == before:
                raise
            time.sleep(PAUSE_S)
            again = _state(path) == before
    return read()


def is_gone(error: Exception) -> bool:
    """Return whether an error says that a file does not exist."""
    gone = error.__cause__ if isinstance(error, UnreadableError) else error
    return isinstance(gone, FileNotFoundError)


def _state(path: Path) -> tuple[int, int] | None:
    """Return size in bytes and modification time in nanoseconds of a file; None if it does not
    exist or cannot be examined.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
