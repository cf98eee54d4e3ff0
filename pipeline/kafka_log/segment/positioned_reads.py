"""Reads at a position of a file, with retries around sectors that the disk cannot read.

All bytes of segments are read by :func:`pread`, or by the kernel that reads headers (:mod:`codecgen.runtime.arrow.header_reads`).
Bytes that the kernel cannot read are read here again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

from codecgen.runtime.errors import CodecError, Where
from kafka_log.segment.regular_files import open_regular
from kafka_log.segment.urls import is_url

DELETED = ".deleted"
"""Suffix that a broker appends to the name of a segment a minute before it deletes the file."""

DELETED_DIRECTORY = "-delete"
"""End of the name that a broker gives to a partition directory before it deletes the directory."""

SECTOR = 512
"""Minimum number of bytes that a disk cannot read together. Files of stores have an attribute ``sector``."""

_PREADV = hasattr(os, "preadv")


class UnreadableError(CodecError, OSError):
    """The system cannot read the bytes of a file from a position on. ``errno`` is the error number, None if the file became shorter."""

    def __init__(self, reason: str, where: Where | None = None, number: int | None = None) -> None:
        """Set the attributes of OSError from the reason, the place and the error number of the system."""
        super().__init__(reason, where)
        self.errno = number
        self.strerror = reason
        self.filename = self.where.file

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason, self.where, self.errno)

    def __str__(self) -> str:
        return CodecError.__str__(self)


def open_segment(path: Path, *, is_listed: bool = False, size: int | None = None) -> FileIO:
    """Open a segment for reading, unbuffered, and return the file. With ``is_listed``, a file that
    is gone is opened under the name that its broker gives to a file or directory that it deletes.
    With ``size``, a file of another size is replaced by the file with the suffix ``.deleted`` if
    that has this size, and else kept. Both are ignored for a URL. Raise UnreadableError, an OSError
    but no FileNotFoundError, if none can be opened.

    Args:
        path: The segment.
        is_listed: Whether a listing of the directory had the file. A running broker renames a segment, or the directory of a partition, a
            minute before it deletes it: then the file is opened by its new name.
        size: Bytes of the file when it was listed, if its broker does not write to it any more. A cleaner may have put another file in
            its place: then the file that was listed is opened by its new name, if it is still there.
    """
    follows = not is_url(path)
    try:
        file = open_regular(path)
    except OSError as error:
        if follows and is_listed and isinstance(error, FileNotFoundError):
            for renamed in _names_of_deleted(path):
                with suppress(OSError):
                    return open_regular(renamed)
        raise unreadable(error, 0, path) from error
    if not follows or size is None or _has_size(file, size, path):
        return file
    with suppress(OSError):
        listed = open_regular(path.with_name(path.name + DELETED))
        if _has_size(listed, size, path):
            file.close()
            return listed
        listed.close()
    return file


def _has_size(file: FileIO, size: int, path: Path) -> bool:
    """Return whether an open file has ``size`` bytes. If the system cannot tell, close it and raise
    UnreadableError with ``path``.
    """
    try:
        return size_of(file) == size
    except OSError as error:
        file.close()
        raise unreadable(error, 0, path) from error


def _names_of_deleted(path: Path) -> Iterator[Path]:
    """Yield the paths that a segment may have while its broker is about to delete it: with the
    suffix ``.deleted``, then in the renamed partition directory, if there is one. Raise
    PermissionError if this user may not search the directory above the partition's.
    """
    yield path.with_name(path.name + DELETED)
    directory = listed_directory(path.parent)
    if directory != path.parent:
        yield directory / path.name


def listed_directory(directory: Path) -> Path:
    """Return the current path of a partition directory that was listed: the one that a broker
    renamed to delete it (``NAME.*-delete``) if the directory is gone and such a one is there, else
    ``directory`` itself. A URL is returned as it is. Raise PermissionError if this user may not
    search its parent.
    """
    if is_url(directory) or directory.exists():
        return directory
    with suppress(OSError):
        for beside in directory.parent.iterdir():
            name = beside.name
            if name.startswith(f"{directory.name}.") and name.endswith(DELETED_DIRECTORY):
                return beside
    return directory


def size_of(file: FileIO) -> int:
    """Return the size of an open file in bytes. Raise OSError if the system cannot tell."""
    return file.seek(0, os.SEEK_END)


def pread(file: FileIO, view: memoryview, position: int) -> int:
    """Read bytes of a file at ``position`` into ``view``, once, and return their number: at most
    the size of the view, maybe fewer, 0 at the end of the file. The position of the file object may
    move. Raise OSError if the system cannot read them.
    """
    if _PREADV and isinstance(file, FileIO):
        return os.preadv(file.fileno(), (view,), position)
    file.seek(position)
    return file.readinto(view) or 0


def read_at(file: FileIO, view: memoryview, position: int) -> int:
    """Fill ``view`` with the bytes of a file from ``position`` on, and return their number: fewer
    than the view holds at the end of the file (0 beyond it) or before an unreadable sector. Raise
    UnreadableError if the first sector cannot be read.
    """
    done, end = 0, len(view)
    bad: int | None = None  # up to here it could not be read at once
    while done < len(view):
        try:
            n = pread(file, view[done:end], position + done)
        except OSError as error:
            if end - done <= _rest_of_sector(file, position + done):
                if done:
                    return done
                raise unreadable(error, position, os.fsdecode(file.name)) from error
            bad = end
        else:
            if not n:
                return done
            done += n
            if bad is None or done < end:
                continue
        # Half of what is left, up to where a sector ends.
        half = (done + bad) // 2
        half -= (position + half) % _sector(file)
        end = min(max(half, done + _rest_of_sector(file, position + done)), len(view))
    return done


def read_exactly(file: FileIO, position: int, n: int) -> bytes:
    """Return exactly ``n`` bytes of a file at ``position``. Raise UnreadableError if one of them
    cannot be read, or the file ends before.
    """
    data = bytearray(n)
    view = memoryview(data)
    done = 0
    while done < n:
        got = read_at(file, view[done:], position + done)
        if not got:
            where = Where(position=position + done, file=os.fsdecode(file.name))
            raise UnreadableError(
                "the file became shorter while it was read, as when a broker truncates it: read it again",
                where,
            )
        done += got
    return bytes(data)


def read_what_there_is(file: FileIO, position: int, n: int, fill: int) -> bytes:
    """Return exactly ``n`` bytes of a file at ``position``, with the byte ``fill`` in place of each
    byte that cannot be read or lies after the end of the file.
    """
    out = bytearray([fill]) * n
    view = memoryview(out)
    done, step = 0, n
    while done < n:
        try:
            got = read_at(file, view[done : done + step], position + done)
        except UnreadableError:
            # Sectors that cannot be read lie together: the next ones are tried one by one.
            got, step = _rest_of_sector(file, position + done), _sector(file)
        else:
            if not got:
                break
            step *= 2
        done += got
    return bytes(out)


def _sector(file: FileIO) -> int:
    """Return the number of bytes that are lost at least if one byte of a file cannot be read."""
    return getattr(file, "sector", SECTOR)


def _rest_of_sector(file: FileIO, position: int) -> int:
    """Return the number of bytes from ``position`` to the end of its sector."""
    sector = _sector(file)
    return sector - position % sector


def unreadable(
    error: OSError, position: int | None, path: str | os.PathLike[str]
) -> UnreadableError:
    """Return, without raising it, an UnreadableError with the reason and number of ``error``, the
    path and the position (None: unknown).
    """
    text = error.strerror or str(error)
    where = Where(position=position, file=os.fspath(path))
    return UnreadableError(f"{text}: it cannot be read", where, error.errno)
