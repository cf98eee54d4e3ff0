"""The lock of an output directory or file: only one process at a time writes to it."""

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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
"""The lock file of a directory; that of a file has its name before this one. It is there while a process writes, and after a process that was killed. It says who holds the lock."""

MAX_NAME = 255
"""Bytes of a name that file systems have room for."""

_POLL_S = 0.05
_MAX_HOLDER_BYTES = 1 << 16
_SUFFIX_BYTES = len(f".{uuid.UUID(int=0).hex}.partial")
_STAGED = re.compile(r"\..*\.[0-9a-f]{32}\.partial", re.DOTALL)
_WINDOWS_LOCKED_BYTE = 1 << 30
"""Windows refuses to read a locked byte. This one lies behind the text, so that others can read who holds the lock."""


class OutputLockedError(DirectoryError):
    """Raised if another process writes to the output, or if its file system has no locks. ``path`` is the directory or file."""


@contextmanager
def locked_output(out: Path, patience_s: float = 0.0) -> Iterator[None]:
    """Create an output directory if needed, and hold its lock during the ``with`` block. Remove
    staged files that dead processes left there, and at the end the lock file. If the block raises, remove the directory if it is
    new and empty. Raise OutputLockedError if another process or job still holds the lock after ``patience_s`` seconds, or at
    once if the file system has no locks; OSError if the directory cannot be created or listed, or the lock file cannot be opened or written.

    The operating system releases the lock when its process ends, however it ends.
    """
    with created_directory(out), _locked(_Lock(out, out / OUTPUT_LOCK, "directory"), patience_s):
        _remove_staged(child for child in out.iterdir() if is_staged(child.name))
        yield


@contextmanager
def locked_file(path: Path) -> Iterator[None]:
    """Hold the lock of an output file during the ``with`` block; its directory must exist. Remove
    staged files that dead processes left for it, and at the end the lock file. Raise
    OutputLockedError if another process or job holds the lock, or if the file system has no locks;
    OSError if the lock file cannot be opened or written.
    """
    with _locked(_Lock(path, _hidden_path(path, OUTPUT_LOCK), "file"), 0.0):
        staged = (child for child in path.parent.iterdir() if is_staged(child.name))
        _remove_staged(
            child for child in staged if child == _hidden_path(path, child.name[-_SUFFIX_BYTES:])
        )
        yield


def staged_path(path: Path) -> Path:
    """Return a new path beside ``path`` for a file or directory that is renamed to ``path`` when it is whole. No two calls return the same path."""
    return _hidden_path(path, f".{uuid.uuid4().hex}.partial")


def _hidden_path(path: Path, suffix: str) -> Path:
    """Return the path beside ``path`` whose name is a dot, the name of ``path`` as far as there is room, and ``suffix``."""
    stem = os.fsencode(f".{path.name}")[: MAX_NAME - len(suffix)]
    return path.with_name(stem.decode("utf-8", "ignore") + suffix)


def is_staged(name: str) -> bool:
    """Return whether :func:`staged_path` makes names like this one."""
    return _STAGED.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class _Lock:
    """A lock: the output, the path of the lock file, and whether the output is a ``directory`` or a ``file``."""

    out: Path
    path: Path
    noun: str


@contextmanager
def _locked(lock: _Lock, patience_s: float) -> Iterator[None]:
    """Hold a lock during the ``with`` block, and remove the lock file at the end. Raise what
    :func:`_open_locked` raises, and OSError if the lock file cannot be written.
    """
    file = _open_locked(lock, patience_s)
    try:
        _write_holder(file)
        yield
    finally:
        with suppress(OSError):  # Windows does not remove open files: an old lock file is harmless
            lock.path.unlink(missing_ok=True)
        with suppress(OSError):
            file.close()


def _open_locked(lock: _Lock, patience_s: float) -> BinaryIO:
    """Return the lock file, created if needed, open and locked. Raise
    OutputLockedError, which names the holder, if another job has the lock after ``patience_s``
    seconds, or at once if the file system has no locks; OSError if its directory is missing and cannot be created, or the file cannot be
    opened or locked.
    """
    path = lock.path
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
                advice = f"wait until it is done, or choose another {lock.noun}"
                raise OutputLockedError(
                    lock.out, f"{_describe_holder(file)} writes into it: {advice}"
                )
            # The holder before may have removed the file between the two calls: then it locks nothing.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
        except OSError as error:
            file.close()
            if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
                reason = f"its file system has no locks ({error.strerror}): choose a directory on another one"
                raise OutputLockedError(lock.out, reason) from None
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


def _remove_staged(staged: Iterable[Path]) -> None:
    """Remove files and directories with temporary names: dead processes left them, as the caller
    holds the lock. Ignore those that cannot be removed.
    """
    for child in staged:
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child, ignore_errors=True)
        else:
            with suppress(OSError):
                child.unlink()
