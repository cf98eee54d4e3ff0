"""Listing of the files below a directory. Unlike ``Path.rglob``, it never leaves out what it may not read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def list_files(directory: Path) -> Iterator[Path]:
    """Yield the files below a directory at any depth, links to files included, sorted by path. Skip
    hidden files and directories, and links to directories. Yield nothing if ``directory`` is missing
    or no directory. Raise OSError if a directory cannot be listed.
    """
    if directory.is_dir():
        yield from sorted(_walk(directory))


def _walk(directory: Path) -> Iterator[Path]:
    """Yield the files of :func:`list_files`, in any order."""
    for folder, folders, names in os.walk(directory, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files = (Path(folder, name) for name in names if not name.startswith("."))
        yield from (path for path in files if path.is_file())


def _raise(error: OSError) -> None:
    """Raise the error of a directory that cannot be listed."""
    raise error
