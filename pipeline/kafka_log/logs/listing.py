"""Which files and directories there are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from kafka_log.logs.names import (
    TIERED_STORAGE_DIRECTORY,
    State,
    parse_live_partition_name,
    parse_segment_name,
)
from kafka_log.logs.partitions import SkippedPath
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.regular_files import kind_of

SegmentFile = tuple[int, State, Path, int]
"""Base offset, state, path and size of a file that has batches."""

_ENDING = ".log"


def list_children(path: Path) -> list[Path]:
    """What is in a directory, and in the one that LocalTieredStorage makes in it."""
    tier = path / TIERED_STORAGE_DIRECTORY
    below = tier.iterdir() if is_directory(tier) else ()
    return sorted([*path.iterdir(), *below])


class Listing(NamedTuple):
    """What lies in a directory: the files that have batches, lowest offsets first, those whose names say what no offset can be, what
    is passed over, and the directories in it that are not hidden."""

    files: list[SegmentFile]
    too_large: list[Path]
    skipped_paths: list[SkippedPath]
    directories: list[Path]


def list_directory(directory: Path) -> Listing:
    """The files of a directory. Brokers delete old ones meanwhile: these are left out. Raises OSError."""
    found = Listing([], [], [], [])
    with _scanned(directory) as entries:
        for child in entries:
            said = parse_segment_name(child.name)
            if said is None and not child.name.endswith(_ENDING):
                if not child.name.startswith(".") and is_directory(child):
                    found.directories.append(directory / child.name)
                continue
            path = directory / child.name
            try:
                if not child.is_file():
                    reason = kind_of(path)
                elif said is None:
                    reason = "its name is no segment's"
                elif said[0] > MAX_OFFSET:
                    found.too_large.append(path)
                    continue
                else:
                    found.files.append((*said, path, child.stat().st_size))
                    continue
            except FileNotFoundError:
                continue
            except OSError:  # of what a link leads to
                reason = kind_of(path)
            if reason is not None:
                found.skipped_paths.append(SkippedPath(path, reason))
    passed_over = sorted(found.skipped_paths, key=lambda one: one.path)
    return Listing(
        sorted(found.files), sorted(found.too_large), passed_over, sorted(found.directories)
    )


def _scanned(directory: Path) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    scandir = getattr(directory, "scandir", None)  # of a store: there are sizes in its listing
    return os.scandir(directory) if scandir is None else scandir()


def list_segment_files(directory: Path) -> list[SegmentFile]:
    """Those with batches. Raises OSError."""
    return list_directory(directory).files


def is_directory(path: Path | os.DirEntry[str]) -> bool:
    """Whether there is a directory; a link that cannot be followed leads to none."""
    try:
        return path.is_dir()
    except OSError:
        return False


def list_base_offsets(directory: Path) -> tuple[int, ...]:
    """The base offsets of all segments in a directory, by their names, lowest first. Raises OSError."""
    found = list_segment_files(directory)
    return tuple(base for base, state, _, _ in found if state == "live")


def list_partition_names(directory: Path) -> frozenset[tuple[bytes, int]]:
    """The partitions with a directory of their own in a broker's log directory: topics as bytes, numbers. Raises OSError."""
    found = (
        parse_live_partition_name(child) for child in directory.iterdir() if is_directory(child)
    )
    return frozenset((os.fsencode(name[0]), name[1]) for name in found if name is not None)
