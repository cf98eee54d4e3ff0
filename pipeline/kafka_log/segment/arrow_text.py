"""Text that Arrow can hold."""

from __future__ import annotations


def utf8(text: str) -> str:
    """Text without what is not UTF-8: file names may have such bytes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
