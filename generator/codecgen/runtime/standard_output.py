"""Standard output that cannot be written."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def discard_stdout() -> None:
    """Send what standard output still holds, and what follows, to nowhere: Python would try to
    write it when the process ends. A stream without a file descriptor stays as it is.
    """
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


__all__ = ["discard_stdout"]
