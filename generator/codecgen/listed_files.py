"""Listing of the files below a directory. Unlike ``Path.rglob``, it never leaves out what it may not read."""

from __future__ import annotations

import os
from pathlib import Path


def list_files(directory: Path) -> list[Path]:
    """Return the files below a directory at any depth, links to files included, sorted by path. Skip
    hidden files and directories, and links to directories. Return ``[]`` if ``directory`` is missing
    or no directory. Raise OSError if a directory cannot be listed.
    """

    def refuse(error: OSError) -> None:
        raise error

    found: list[Path] = []
    for folder, folders, names in os.walk(directory, onerror=refuse) if directory.is_dir() else ():
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(folder, name) for name in names if not name.startswith(".")]
    return sorted(path for path in found if path.is_file())
