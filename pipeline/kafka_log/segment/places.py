"""Where files lie: a path of this machine, or the URL of a store that fsspec knows."""

from __future__ import annotations

import os
import re
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)(?:::[^/]*)?://", re.ASCII)
"""Two letters or more: ``C:`` is a drive."""


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether it is the URL of a store: of any but ``file://``, which is a path of this machine."""
    found = _URL.match(os.fspath(path))
    return found is not None and found["scheme"].lower() != "file"


def has_password(path: str) -> bool:
    """Whether it is a URL with a password, which would be shown wherever the path is."""
    found = _URL.match(path)
    host = "" if found is None else path[found.end() :].partition("/")[0]
    return ":" in host.rpartition("@")[0]


def local_path(path: str | os.PathLike[str]) -> Path:
    """A path of this machine. Raises ValueError for what lies elsewhere: nothing is written there."""
    if is_url(path):
        raise ValueError(f"{path}: output is written to this machine's disks only")
    return place_of(path)


def place_of(
    path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> Path:
    """A path as it is; of a URL what reads there, with the options of fsspec's class for it.

    That is a :class:`~kafka_log.segment.remote_paths.RemotePath`: it has of a Path what reading needs. Raises
    ModuleNotFoundError without fsspec.
    """
    if isinstance(path, Path) or getattr(path, "is_remote", False):
        return cast(Path, path)
    text = os.fspath(path)
    if not is_url(text):
        if _URL.match(text):
            text = urllib.request.url2pathname(urllib.parse.urlsplit(text).path)
        return Path(text)
    try:
        from kafka_log.segment.remote_paths import RemotePath
    except ModuleNotFoundError as error:
        from codecgen.runtime.extras import missing

        advice = missing(text, error)
        if advice is None:
            raise
        raise ModuleNotFoundError(advice, name=error.name) from None
    return cast(Path, RemotePath(text, storage_options))
