"""Reads at a place of a file."""

from __future__ import annotations

import os
from io import FileIO


def read_at(file: FileIO, view: memoryview, position: int) -> int:
    """Fill a view with the bytes at a place of a file. How many there were. Raises OSError that names the file."""
    done = 0
    try:
        while done < len(view):
            if hasattr(os, "preadv"):
                n = os.preadv(file.fileno(), (view[done:],), position + done)
            else:
                file.seek(position + done)
                n = file.readinto(view[done:]) or 0
            if not n:
                break
            done += n
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, file.name) from None
    return done
