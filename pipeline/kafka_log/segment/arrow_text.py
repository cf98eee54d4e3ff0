"""Text that Arrow can hold."""

from __future__ import annotations


def utf8(text: str) -> str:
    r"""Return ``text`` with a backslash escape such as ``\udcff`` for each lone surrogate. Python
    has one for each byte of a file name that is not UTF-8; Arrow and UTF-8 files cannot hold it.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
