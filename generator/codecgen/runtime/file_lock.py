"""Lock files: only one process at a time writes to an output, and another one learns which process that is."""

from __future__ import annotations

import errno
import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

MAX_NAME = 255
"""Bytes of a name that file systems have room for."""

_POLL_S = 0.05
_MAX_HOLDER_BYTES = 1 << 16
_WINDOWS_LOCKED_BYTE = 1 << 30
"""Windows refuses to read a locked byte. This one lies behind the text, so that others can read who holds the lock."""


class LockedError(Exception):
    """Raised if another process or job holds a lock. The text names the holder and says that it writes there."""


class NoLocksError(Exception):
    """Raised if a file system has no locks. The text is the reason that the operating system gives."""


@contextmanager
def locked(path: Path, patience_s: float = 0.0) -> Iterator[None]:
    """Hold the lock of the lock file ``path`` during the ``with`` block, and remove the file at the
    end. Raise LockedError if another process or job still holds the lock after ``patience_s``
    seconds; NoLocksError at once if the file system has no locks; OSError if the file cannot be
    opened or written.

    The operating system releases the lock when its process ends, however it ends.
    """
    file = _open_locked(path, patience_s)
    try:
        _write_holder(file)
        yield
    finally:
        with suppress(OSError):  # Windows does not remove open files: an old lock file is harmless
            path.unlink(missing_ok=True)
        with suppress(OSError):
            file.close()


def hidden_path(path: Path, suffix: str) -> Path:
    """Return the path beside ``path`` whose name is a dot, the name of ``path`` as far as there is room, and ``suffix``."""
    stem = os.fsencode(f".{path.name}")[: MAX_NAME - len(suffix)]
    return path.with_name(stem.decode("utf-8", "ignore") + suffix)


def _open_locked(path: Path, patience_s: float) -> BinaryIO:
    """Return the lock file, created if needed, open and locked. Raise LockedError if another job
    has the lock after ``patience_s`` seconds; NoLocksError if the file system has no locks; OSError
    if its directory is missing and cannot be created, or the file cannot be opened or locked.
    """
    until = time.monotonic() + patience_s
    while True:
        if not path.parent.exists():  # the holder before has removed it, as it was empty
            path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b", buffering=0)
        try:
            while not _try_lock(file):
                if time.monotonic() < until:
                    time.sleep(_POLL_S)
                    continue
                raise LockedError(f"{_describe_holder(file)} writes into it")
            # The holder before may have removed the file between the two calls: then it locks nothing.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
        except OSError as error:
            file.close()
            if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
                with suppress(OSError):
                    path.unlink(missing_ok=True)
                raise NoLocksError(error.strerror) from None
            raise
        except BaseException:
            file.close()
            raise
        file.close()


def _try_lock(file: BinaryIO) -> bool:
    """Lock an open file and return True, without waiting. Return False if another open file has the
    lock. Raise OSError if locking fails for another reason, such as a file system without locks.
    """
    try:
        if sys.platform == "win32":
            file.seek(_WINDOWS_LOCKED_BYTE)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return False
        raise
    return True


def _write_holder(file: BinaryIO) -> None:
    """Replace the text of the lock file by JSON, cut off after 64 KiB: this process's id, host and
    command, and the present time (ISO 8601, UTC, seconds). Raise OSError, which names the file, if
    it cannot be written.
    """
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "command": shlex.join(sys.orig_argv),
        "since": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }
    try:
        file.truncate(0)
        file.write(json.dumps(holder).encode("ascii")[:_MAX_HOLDER_BYTES])
    except OSError as error:
        error.filename = file.name
        raise


def _describe_holder(file: BinaryIO) -> str:
    """Return a phrase with process, host, command and time of the lock's holder, for a message.
    Return "another process" if the lock file cannot be read, is no JSON or lacks one of these.
    """
    try:
        file.seek(0)
        holder = json.loads(file.read(_MAX_HOLDER_BYTES))
        return f"process {holder['pid']} on {holder['host']} ({holder['command']}, since {holder['since']})"
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return "another process"
