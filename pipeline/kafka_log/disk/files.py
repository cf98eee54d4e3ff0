"""Which files and directories there are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from kafka_log.disk.names import MAX_OFFSET, State, of_file, parse_name
from kafka_log.disk.remote_names import TIER

File = tuple[int, State, Path, int]
"""Base offset, state, path and size of a file that has batches."""


def children(path: Path) -> list[Path]:
    """What is in a directory, and in the one that LocalTieredStorage makes in it."""
    tier = path / TIER
    below = tier.iterdir() if tier.is_dir() else ()
    return sorted([*path.iterdir(), *below])


def files_of(directory: Path) -> tuple[list[File], list[Path]]:
    """The files of a directory that have batches, lowest offsets first, and those whose names say what no offset can be. Brokers
    delete old ones meanwhile: these are passed over."""
    out: list[File] = []
    beyond: list[Path] = []
    with _scanned(directory) as entries:
        for child in entries:
            said = of_file(child.name)
            try:
                if said is None or not child.is_file():
                    continue
                if said[0] > MAX_OFFSET:
                    beyond.append(directory / child.name)
                else:
                    out.append((*said, directory / child.name, child.stat().st_size))
            except FileNotFoundError:
                continue
    return sorted(out), sorted(beyond)


def _scanned(directory: Path) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    scandir = getattr(directory, "scandir", None)  # of a store: there are sizes in its listing
    return os.scandir(directory) if scandir is None else scandir()


def segment_files(directory: Path) -> list[File]:
    """Those with batches. Raises OSError."""
    return files_of(directory)[0]


def segment_bases(directory: Path) -> tuple[int, ...]:
    """The base offsets of all segments in a directory, by their names, lowest first. Raises OSError."""
    found = segment_files(directory)
    return tuple(base for base, state, _, _ in found if state == "live")


def partition_names(directory: Path) -> frozenset[tuple[bytes, int]]:
    """The partitions with a directory of their own in a broker's log directory: topics as bytes, numbers. Raises OSError."""
    found = (parse_name(child) for child in directory.iterdir() if child.is_dir())
    return frozenset((os.fsencode(name[0]), name[1]) for name in found if name is not None)
