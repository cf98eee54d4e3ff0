"""URLs of stores, and ``file:`` URLs of paths on this machine."""

from __future__ import annotations

import os
import re
import urllib.parse

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)(?:::[^/]*)?://", re.ASCII)
"""A scheme has at least two letters: ``C:`` is a drive."""

_FILE_URL = re.compile(r"file:(?://(?P<host>[^/]*))?(?P<path>/.*)?", re.ASCII | re.DOTALL | re.I)


class FileUrlError(OSError, ValueError):
    """A ``file:`` URL that does not name an absolute path of this machine."""


def is_url(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is the URL of a store: any but ``file://``, which is a path of this machine."""
    found = _URL.match(os.fspath(path))
    return found is not None and found["scheme"].lower() != "file"


def needs_several_requests(path: str | os.PathLike[str], size: int | None) -> bool:
    """Return whether reading ``size`` bytes of a file (None: unknown) takes more than one request:
    whether it lies in a store, and they do not fit the first block.
    """
    if not is_url(path):
        return False
    from kafka_log.segment.remote_files import FIRST  # threads: not for files on a disk

    return size is None or size > FIRST


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
