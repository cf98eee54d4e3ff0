"""Commands that write into an output directory."""

from __future__ import annotations

import shutil
from pathlib import Path

COMMANDS = {
    "parquet": ["export", "--format", "parquet"],
    "arrow": ["export", "--format", "arrow"],
    "jsonl": ["export", "--format", "jsonl"],
    "csv": ["export", "--format", "csv"],
    "salvage": ["salvage"],
    "repair": ["salvage", "--repair"],
    "merge": ["merge"],
    "diff": ["diff", "--only", "A"],
    "cut": ["cut", "--offsets", "0:"],
    "reindex": ["reindex"],
    "convert": ["convert", "--codec", "zstd"],
}
"""Each command that writes files, in each format."""


def inputs_of(name: str, source: Path) -> list[Path]:
    """Return the paths that a command of COMMANDS reads, so that it writes every partition of ``source``. A repair reads a copy
    with a flipped bit, and two logs that differ are the source and one without records; such logs are made beside the source.
    """
    if name == "repair":
        return [_copy(source, "flipped")]
    if name == "merge":
        return [source, source]
    return [source, _copy(source, "empty")] if name == "diff" else [source]


def command_line(name: str, source: Path, out: Path) -> list[str]:
    """Return the words of a command of COMMANDS that writes the partitions of ``source`` into ``out``."""
    command, *more = COMMANDS[name]
    return [command, *map(str, inputs_of(name, source)), *more, "--out", str(out)]


def _copy(source: Path, kind: str) -> Path:
    """Return a copy of a log beside it: ``empty``, or with one bit ``flipped`` in the first batch of each partition."""
    copy = source.with_name(f"{source.name}-{kind}")
    if copy.exists():
        return copy
    shutil.copytree(source, copy)
    for directory in [path for path in copy.iterdir() if path.is_dir()]:
        first, *others = sorted(directory.glob("*.log"))
        data = bytearray(first.read_bytes())
        data[66] ^= 4
        first.write_bytes(data if kind == "flipped" else b"")
        for path in others if kind == "empty" else ():
            path.unlink()
    return copy
