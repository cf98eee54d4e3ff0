"""Files that are written. Each error names its file, and the first error is the one that is raised."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

Mode = Literal["w", "x", "a"]


class _NamedFile(io.FileIO):
    """A file whose errors have its name."""

    def write(self, data: Any) -> int:
        with named_errors(self.name):
            return super().write(data)

    def close(self) -> None:
        with named_errors(self.name):
            super().close()


class OutputFile(io.BufferedWriter):
    """A buffered file that is written. When its ``with`` block ends by an error, an error of closing it is ignored."""

    def sync(self) -> None:
        """Put the bytes that were written onto the disk. Raises OSError."""
        self.flush()
        with named_errors(self.name):
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


def open_output(path: Path, mode: Mode = "w") -> OutputFile:
    """Open a file to write bytes: ``w`` replaces its content, ``x`` refuses a file that exists, ``a`` appends. Raises OSError."""
    return OutputFile(_NamedFile(os.fspath(path), mode))


def write_file(path: Path, data: bytes | memoryview) -> None:
    """Write a file that has these bytes. Raises OSError."""
    with open_output(path) as file:
        file.write(data)


def sync(path: Path) -> None:
    """Put a file, or the names in a directory, onto the disk. Raises OSError."""
    number = os.open(path, os.O_RDONLY)
    try:
        with named_errors(path):
            os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def named_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Give each OSError that has no file name the name of ``path``."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = os.fspath(path)
        raise
