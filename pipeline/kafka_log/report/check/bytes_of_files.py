"""Bytes of files that may be large."""

from __future__ import annotations

from typing import BinaryIO


def only_zeros(file: BinaryIO, start: int, end: int) -> bool:
    """Whether all bytes of a file from one place to another are 0. Raises OSError."""
    file.seek(start)
    while start < end:
        data = file.read(min(end - start, 1 << 20))
        if not data:
            return True  # it became shorter
        if data.strip(b"\0"):
            return False
        start += len(data)
    return True
