"""Advice for commands with relative paths whose working directory was removed."""

from __future__ import annotations

import argparse
from pathlib import Path

from kafka_log.segment.urls import is_url

ADVICE = "the working directory is gone, so relative paths lead nowhere: change to another directory, or give absolute paths"


def has_relative_path(options: argparse.Namespace) -> bool:
    """Return whether the options of a command have a path that is relative to the working directory."""
    found = [value for value in vars(options).values() if isinstance(value, Path)]
    paths = [path for path in getattr(options, "paths", ()) if not is_url(path)]
    return any(not Path(path).is_absolute() for path in (*found, *paths))
