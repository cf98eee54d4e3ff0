"""A working directory that was removed: commands run in it with absolute paths, and say so of relative ones."""

from __future__ import annotations

import argparse
import os
from importlib import import_module
from pathlib import Path

from kafka_log.segment.urls import is_url

ADVICE = "the working directory is gone, so relative paths lead nowhere: change to another directory, or give absolute paths"


def is_working_directory_gone() -> bool:
    """Return whether the directory in which the process runs was removed."""
    try:
        os.getcwd()  # noqa: PTH109 (Path.cwd makes a path of it)
    except FileNotFoundError:
        return True
    return False


def load_compiler() -> None:
    """Import the compiler of the kernels in the root directory, then return to the removed one.

    numba imports libraries that ask for the path of the working directory, which has none.
    """
    gone = os.open(".", os.O_RDONLY)
    os.chdir(os.sep)
    try:
        import_module("codecgen.runtime.arrow.primitives.compiling")
    finally:
        os.fchdir(gone)
        os.close(gone)


def has_relative_path(options: argparse.Namespace) -> bool:
    """Return whether the options of a command have a path that is relative to the working directory."""
    found = [value for value in vars(options).values() if isinstance(value, Path)]
    paths = [path for path in getattr(options, "paths", ()) if not is_url(path)]
    return any(not Path(path).is_absolute() for path in (*found, *paths))
