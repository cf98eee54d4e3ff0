"""Whether a broker runs on a log directory."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

from kafka_log.logs.names import LOCK

_FLOCK = "hhqqi"
"""The struct flock of Linux: type, whence, start, length and process."""


def is_running(directory: Path) -> bool | None:
    """Return whether a process on this machine holds the lock of a log directory, None if nobody can say. The lock is not touched."""
    if sys.platform != "linux":
        return None
    import fcntl

    try:
        descriptor = os.open(directory / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    kind: int = struct.unpack(_FLOCK, answer)[0]
    return kind != fcntl.F_UNLCK
