"""Opening of regular files only: reading a FIFO would block forever."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, Literal, overload

from kafka_log.segment.urls import is_url

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)
"""Flag with which opening a FIFO does not wait for a writer. It has no effect on regular files."""


def kind_of(path: Path) -> str | None:
    """Return a description of a path that is no regular file, such as ``a FIFO``, ``a directory``
    or ``a dangling link``. Return None for a regular file, if nothing lies at the path, and if the
    system cannot tell. Raise OSError for a URL whose store cannot be asked.
    """
    if is_url(path):
        return "a directory" if path.is_dir() else None
    try:
        found = path.stat()
    except FileNotFoundError:
        return "a dangling link" if path.is_symlink() else None
    except OSError as error:
        return f"a link that leads nowhere: {error.strerror}" if path.is_symlink() else None
    return None if stat.S_ISREG(found.st_mode) else _name(found.st_mode)


def is_listed(path: Path) -> bool:
    """Return whether anything lies at a path, also what cannot be read: a dangling link, a FIFO, a
    directory. For a URL return whether a file lies there. Raise OSError if the directory may not be
    searched, or the store cannot be asked.
    """
    if is_url(path):
        return path.is_file()
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def is_unreachable(path: Path) -> bool:
    """Return whether something lies at a path, but the system cannot tell what: a link that leads
    nowhere, or a path in a directory without permission. Return False if nothing lies there, and
    for a URL.
    """
    if is_url(path):
        return False
    try:
        path.stat()
    except FileNotFoundError:
        return path.is_symlink()
    except OSError:
        return True
    return False


def explain_missing(error: FileNotFoundError, path: Path) -> OSError:
    """Return ``error``, or an OSError that is no FileNotFoundError if a dangling link lies at
    ``path``: a broker that removes a file leaves no link.
    """
    if not path.is_symlink():
        return error
    return OSError(errno.EINVAL, "this is a dangling link", os.fspath(path))


@overload
def open_regular(path: Path, buffering: Literal[0] = 0) -> FileIO: ...
@overload
def open_regular(path: Path, buffering: Literal[-1]) -> BinaryIO: ...
def open_regular(path: Path, buffering: int = 0) -> Any:
    """Open a file for reading, by default unbuffered, and return it. Raise OSError, without
    blocking, if the path is a directory, FIFO, socket, device or dangling link, or may not be read;
    FileNotFoundError only if nothing lies there.
    """
    if is_url(path):
        return path.open("rb", buffering=buffering)
    return open(path, "rb", buffering=buffering, opener=_open_descriptor)


def _open_descriptor(name: str, flags: int) -> int:
    """Open a file without blocking, and return its descriptor, also for a directory, which Python
    refuses later. Raise OSError for a FIFO, a socket, a device or a dangling link, and if the
    system cannot open it.
    """
    try:
        number = os.open(name, flags | _AT_ONCE)
    except FileNotFoundError as error:
        raise explain_missing(error, Path(name)) from None
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # Python refuses directories
        return number
    os.close(number)
    raise OSError(errno.EINVAL, f"this is {_name(mode)}, not a regular file, and is not read", name)


def _name(mode: int) -> str:
    """Return the noun for the kind of file in a mode, such as ``a FIFO``; ``no file`` if the kind is unknown."""
    return next((name for holds, name in _KINDS if holds(mode)), "no file")
