"""Writes a segment file."""

from __future__ import annotations

from pathlib import Path


def put(directory: Path, *segments: tuple[int, bytes]) -> Path:
    """A partition's directory with segments."""
    directory.mkdir(parents=True, exist_ok=True)
    for base, data in segments:
        (directory / f"{base:020d}.log").write_bytes(data)
    return directory
