"""Conversion of the errors of stores to OSErrors that name the URL."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from typing import Any

_SAID = 300
"""Maximum number of characters of a library's message."""

_PLAIN = ("endpoint", "region", "url", "host", "project", "account", "user", "protocol")
"""Words in names of options whose values are not secret, unless the name also has a word of _KEYS (``account_key``)."""

_KEYS = ("key", "secret", "token", "password", "credential", "connection_string")


class RemoteError(OSError):
    """A store cannot read or write a URL. ``filename`` is the URL, ``strerror`` the reason."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


_DECORATION = re.compile(r"\x1b\[[0-9;]*m|\s0: <unknown>.*", re.DOTALL)
"""Colors, and backtraces of compiled libraries, in their messages."""


def as_os_error(error: Exception, url: str, options: Mapping[str, Any]) -> OSError:
    """Return an exception of a store's library, without raising it, as an OSError that names the
    URL: FileNotFoundError and PermissionError stay such, a RemoteError is returned itself, others
    become a RemoteError. Values of ``options`` that may be secret are replaced by ``***``, and the
    text is cut to 300 characters.
    """
    if isinstance(error, RemoteError):
        return error
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    text = " ".join(_DECORATION.sub("", str(error)).split())
    for secret in _secrets(options):
        text = text.replace(secret, "***")
    text = text[:_SAID]
    if isinstance(error, PermissionError):
        return PermissionError(errno.EACCES, f"the store refuses it ({text or 'no reason'})", url)
    kind = type(error).__name__
    return RemoteError(errno.EIO, f"{kind}: {text}" if text else kind, url)


def _secrets(options: Any, name: str = "") -> list[str]:
    """Return the strings in storage options, also in nested mappings, that must not be shown, with
    the parts of connection strings. Leave out strings of at most 3 characters, and options whose
    name says that they are no secret, such as ``region``. ``name`` is the name, in lower case, of
    the option that ``options`` is the value of.
    """
    if isinstance(options, Mapping):
        return [s for key, value in options.items() for s in _secrets(value, str(key).lower())]
    plain = any(part in name for part in _PLAIN) and not any(part in name for part in _KEYS)
    if not isinstance(options, str) or len(options) <= 3 or plain:
        return []
    if "connection_string" in name:  # AccountName=x;AccountKey=y
        parts = (part.partition("=") for part in options.split(";"))
        of_parts = [s for key, _, value in parts for s in _secrets(value, key.lower())]
        return [options, *of_parts]
    return [options]
