"""Paths and URLs: a path of this machine, or the URL of a store that fsspec supports."""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)(?:::[^/]*)?://", re.ASCII)
"""A scheme has at least two letters: ``C:`` is a drive."""

_FILE_URL = re.compile(r"file:(?://(?P<host>[^/]*))?(?P<path>/.*)?", re.ASCII | re.DOTALL | re.I)


class FileUrlError(OSError, ValueError):
    """A ``file:`` URL that does not name an absolute path of this machine."""


def is_url(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is the URL of a store: any but ``file://``, which is a path of this machine."""
    found = _URL.match(os.fspath(path))
    return found is not None and found["scheme"].lower() != "file"


def path_of_file_url(
    text: str | os.PathLike[str], *, windows: bool = os.name == "nt"
) -> str | None:
    """Return the path of a ``file:`` URL, with ``%20`` and others decoded; on Windows without the
    ``/`` before a drive. Return None for any other text. Raise FileUrlError, an OSError and
    ValueError, for another host than localhost or a path that is not absolute.

    ``file:/a``, ``file:///a`` and ``file://localhost/a`` are accepted, with ``%20`` for a blank. ``#`` and ``?`` are parts of names, as in Hadoop.
    """
    text = os.fspath(text)
    found = _FILE_URL.match(text)
    if found is None:
        return None
    path = found["path"] if found.end() == len(text) else None
    if path is None or (found["host"] or "").lower() not in ("", "localhost"):
        reason = "it is not a URL of a path on this machine, which begins with file:///"
        raise FileUrlError(f"{text}: {reason}")
    plain = os.fsdecode(urllib.parse.unquote_to_bytes(path))
    return plain[1:] if windows and re.match(r"/[A-Za-z]:(/|$)", plain, re.ASCII) else plain


def has_password(path: str) -> bool:
    """Return whether a path is a URL with a password, which messages that show the path would
    disclose.
    """
    found = _URL.match(path)
    host = "" if found is None else path[found.end() :].partition("/")[0]
    return ":" in host.rpartition("@")[0]


def local_path(path: str | os.PathLike[str]) -> Path:
    """Return ``path`` as a Path of this machine. Raise ValueError for the URL of a store, as output
    is written to local disks only, and for a ``file:`` URL of another machine or a relative path.
    """
    if is_url(path):
        raise ValueError(
            f"{path}: output is written to local directories only: name one, and copy the result to the store"
        )
    return place_of(path)


def place_of(
    path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> Path:
    """Return a path or ``file:`` URL as a Path, the URL of a store as a RemotePath with
    ``storage_options`` for fsspec, and a Path or RemotePath unchanged. Raise ModuleNotFoundError
    for a store if fsspec is not installed; OSError for a ``file:`` URL of another machine or
    without an absolute path, or a URL with a password.

    Args:
        path: Path or URL. ``file:`` URLs become paths.
        storage_options: Options of fsspec's class for the store.

    Raises:
        ModuleNotFoundError: For a URL if fsspec is not installed.
        OSError: For a URL of a file on another machine.
    """
    if isinstance(path, Path) or getattr(path, "is_remote", False):
        return cast(Path, path)
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
