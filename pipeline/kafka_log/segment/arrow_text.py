"""Text that Arrow can hold."""

from __future__ import annotations


def utf8(text: str) -> str:
    """Return a text with a backslash escape for each surrogate, which stands for a byte of a file name that is not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
