"""Whether the working directory of the process was removed."""

from __future__ import annotations

import os


def is_working_directory_gone() -> bool:
    """Return whether the directory in which the process runs was removed."""
    try:
        os.getcwd()  # noqa: PTH109 (Path.cwd makes a path of it)
    except FileNotFoundError:
        return True
    return False
