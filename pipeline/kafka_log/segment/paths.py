"""Paths of files and directories: of this machine, or of a store that fsspec supports."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from kafka_log.segment.urls import is_url, path_of_file_url


def path_list(name: str, value: Any) -> list[str | os.PathLike[str]]:
    """Return a path, or the paths of an iterable in order, as a list; ``[]`` for an empty iterable.
    Raise ValueError for anything else, such as bytes or an iterable with other items.
    """
    given = [value] if isinstance(value, str | os.PathLike) else value
    if isinstance(given, Iterable) and not isinstance(given, bytes):
        found = list(given)
        if all(isinstance(path, str | os.PathLike) for path in found):
            return found
    raise ValueError(f"{name} is {value!r}: a path is expected, or several")


def refuse_no_path(value: Any) -> None:
    """Raise ValueError if ``value`` is neither a str nor a path object, such as bytes or None. Return nothing otherwise."""
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"path is {value!r}: a path is expected")


def local_path(path: str | os.PathLike[str]) -> Path:
    """Return ``path`` as a Path of this machine. Raise ValueError for the URL of a store, as output
    is written to local disks only, for a ``file:`` URL of another machine or a relative path, and for
    anything else than a path.
    """
    refuse_no_path(path)
    if is_url(path):
        raise ValueError(
            f"{path}: output is written to local directories only: name one, and copy the result to the store"
        )
    return make_path(path)


def make_path(
    path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> Path:
    """Return a path or ``file:`` URL as a Path, the URL of a store as a RemotePath with
    ``storage_options`` for fsspec, and a Path or RemotePath unchanged. Raise ModuleNotFoundError
    for a store if fsspec is not installed; OSError for a ``file:`` URL of another machine or
    without an absolute path, or a URL with a password; ValueError for anything else than a path.

    Args:
        path: Path or URL. ``file:`` URLs become paths.
        storage_options: Options of fsspec's class for the store.

    Raises:
        ModuleNotFoundError: For a URL if fsspec is not installed.
        OSError: For a URL of a file on another machine.
        ValueError: If ``path`` is neither a str nor a path object.
    """
    if isinstance(path, Path) or getattr(path, "is_remote", False):
        return cast(Path, path)
    refuse_no_path(path)
    text = os.fspath(path)
    if not is_url(text):
        of_url = path_of_file_url(text)
        return Path(text if of_url is None else of_url)
    try:
        from kafka_log.segment.remote_paths import RemotePath
    except ModuleNotFoundError as error:
        from codecgen.runtime.extras import missing

        advice = missing(text, error)
        if advice is None:
            raise
        raise ModuleNotFoundError(advice, name=error.name) from None
    return cast(Path, RemotePath(text, storage_options))


def resolve_links(path: Path) -> Path:
    """Return the absolute path of a file or directory without symbolic links; of a link that leads
    nowhere, as far as it leads. Return a URL unchanged.
    """
    return path if is_url(path) else Path(os.path.realpath(path))
