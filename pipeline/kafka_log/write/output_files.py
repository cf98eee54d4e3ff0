"""Files open for writing. Each OSError names its file, and the first error is the one that is raised."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

Mode = Literal["w", "x", "a"]


class _NamedFile(io.FileIO):
    """A raw file whose OSErrors have its name."""

    def write(self, data: Any) -> int:
        """Write bytes and return how many were written. Raises OSError with the name of the file."""
        with name_errors(self.name):
            return super().write(data)

    def close(self) -> None:
        """Close the file. Raises OSError with the name of the file."""
        with name_errors(self.name):
            super().close()


class OutputFile(io.BufferedWriter):
    """A buffered file open for writing. If its ``with`` block raises, errors of closing the file are ignored."""

    def sync(self) -> None:
        """Write all buffered bytes to the disk (fsync). Raise OSError if that fails."""
        self.flush()
        with name_errors(self.name):
            os.fsync(self.fileno())

    def abandon(self) -> None:
        """Close the file after an error. Ignore further errors: the bytes that it holds cannot be written."""
        with suppress(OSError):
            self.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


def list_missing_directories(path: Path) -> list[Path]:
    """Return a directory and its parents as far as they do not exist, the deepest first."""
    return [one for one in (path, *path.parents) if not os.path.lexists(one)]


def remove_empty_directories(directories: Iterable[Path]) -> None:
    """Remove directories in order, up to the first one that is not empty or cannot be removed."""
    with suppress(OSError):
        for directory in directories:
            directory.rmdir()


@contextmanager
def created_directory(path: Path) -> Iterator[None]:
    """Create a directory and its missing parents for a ``with`` block; an existing directory is used
    as it is. They stay after the block. If the block raises, remove the created ones that are empty.
    Raise OSError if one cannot be created, FileExistsError if ``path`` is no directory.
    """
    missing = list_missing_directories(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        remove_empty_directories(one for one in missing if one.is_dir())
        raise


def open_output(path: Path, mode: Mode = "w") -> OutputFile:
    """Return a file opened to write bytes: ``w`` replaces its content, ``x`` refuses a file that
    exists, ``a`` appends. Raise OSError if it cannot be opened.
    """
    return OutputFile(_NamedFile(os.fspath(path), mode))


def write_file(path: Path, data: bytes | memoryview) -> None:
    """Write a file that has these bytes. Raise OSError if that fails."""
    with open_output(path) as file:
        file.write(data)


def sync(path: Path) -> None:
    """Write a file, or the entries of a directory, from the system's cache to the disk (fsync). Do
    nothing for a directory whose file system has no fsync for directories. Raise OSError, which
    names the path, if that fails.
    """
    number = os.open(path, os.O_RDONLY)
    try:
        with name_errors(path):
            os.fsync(number)
    except OSError as error:
        if error.errno != errno.EINVAL or not path.is_dir():
            raise
    finally:
        os.close(number)


@contextmanager
def name_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Run the ``with`` block, and set the file name of an OSError that it raises to ``path`` if the
    error has an error number and no name. The error is raised in any case.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = os.fspath(path)
        raise
