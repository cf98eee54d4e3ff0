"""The lock of an output directory: only one process at a time writes to it."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from kafka_log.logs.partitions import DirectoryError
from kafka_log.write.output_files import created_directory, name_errors

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

OUTPUT_LOCK = ".kafka-log.lock"
"""The lock file. It is there while a process writes, and after a process that was killed. It says who holds the lock."""

MAX_NAME = 255
"""Bytes of a name that file systems have room for."""

_POLL_S = 0.05
_MAX_HOLDER_BYTES = 1 << 16
_STAGED = re.compile(r"\..*\.[0-9a-f]{32}\.partial", re.DOTALL)
_WINDOWS_LOCKED_BYTE = 1 << 30
"""Windows refuses to read a locked byte. This one lies behind the text, so that others can read who holds the lock."""


class OutputLockedError(DirectoryError):
    """Raised if another process writes to the output directory, or if its file system has no locks. ``path`` is the directory."""


@contextmanager
def locked_output(out: Path, patience_s: float = 0.0) -> Iterator[None]:
    """Create an output directory if needed, and hold its lock during the ``with`` block. Remove
    staged files that dead processes left there, and at the end the lock file. If the block raises, remove the directory if it is
    new and empty. Raise OutputLockedError if another process or job still holds the lock after ``patience_s`` seconds, or at
    once if the file system has no locks; OSError if the directory cannot be created or listed, or the lock file cannot be opened or written.

    The operating system releases the lock when its process ends, however it ends.
    """
    with created_directory(out):
        file = _open_locked(out, patience_s)
        try:
            _write_holder(file)
            _remove_staged(out)
            yield
        finally:
            with suppress(
                OSError
            ):  # Windows does not remove open files: an old lock file is harmless
                (out / OUTPUT_LOCK).unlink(missing_ok=True)
            with suppress(OSError):
                file.close()


def staged_path(path: Path) -> Path:
    """Return a new path beside ``path`` for a file or directory that is renamed to ``path`` when it is whole. No two calls return the same path."""
    suffix = f".{uuid.uuid4().hex}.partial"
    stem = os.fsencode(f".{path.name}")[: MAX_NAME - len(suffix)]
    return path.with_name(stem.decode("utf-8", "ignore") + suffix)


def is_staged(name: str) -> bool:
    """Return whether :func:`staged_path` makes names like this one."""
    return _STAGED.fullmatch(name) is not None


def _open_locked(out: Path, patience_s: float) -> BinaryIO:
    """Return the lock file of an output directory, created if needed, open and locked. Raise
    OutputLockedError, which names the holder, if another job has the lock after ``patience_s``
    seconds, or at once if the file system has no locks; OSError if the directory is missing and cannot be created, or the file cannot be
    opened or locked.
    """
    path = out / OUTPUT_LOCK
    until = time.monotonic() + patience_s
    while True:
        if not out.exists():  # the holder before has removed it, as it was empty
            out.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b", buffering=0)
        try:
            while not _try_lock(file):
                if time.monotonic() < until:
                    time.sleep(_POLL_S)
                    continue
                raise OutputLockedError(out, f"{_describe_holder(file)} writes into it: {_ADVICE}")
            # The holder before may have removed the file between the two calls: then it locks nothing.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
        except OSError as error:
            file.close()
            if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
                reason = f"its file system has no locks ({error.strerror}): choose a directory on another one"
                raise OutputLockedError(out, reason) from None
            raise
        except BaseException:
            file.close()
            raise
        file.close()


_ADVICE = "wait until it is done, or choose another directory"


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
    with name_errors(file.name):
        file.truncate(0)
        file.write(json.dumps(holder).encode("ascii")[:_MAX_HOLDER_BYTES])


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


def _remove_staged(out: Path) -> None:
    """Remove the files and directories in an output directory with temporary names: dead processes
    left them, as the caller holds the lock. Ignore those that cannot be removed. Raise OSError if
    the directory cannot be listed.
    """
    for child in out.iterdir():
        if not is_staged(child.name):
            continue
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child, ignore_errors=True)
        else:
            with suppress(OSError):
                child.unlink()
