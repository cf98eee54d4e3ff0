"""Listing of log directories and partition directories."""

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
    """Return the paths in a directory and in its ``kafka-tiered-storage`` directory, those of each
    sorted by name. Raise OSError if one of the two cannot be listed.
    """
    tier = path / TIERED_STORAGE_DIRECTORY
    parents = [path, tier] if is_directory(tier) else [path]
    return [child for one in parents for child in sorted(one.iterdir(), key=lambda c: c.name)]


class Listing(NamedTuple):
    """Contents of a partition directory.

    Attributes:
        files: Segments and metadata snapshots, lowest base offset first.
        too_large: Files whose names have a number that exceeds the largest offset.
        skipped_paths: Paths with the ending of a segment that are no segments, with reasons.
        directories: Directories that are not hidden.
    """

    files: list[SegmentFile]
    too_large: list[Path]
    skipped_paths: list[SkippedPath]
    directories: list[Path]


def list_directory(directory: Path) -> Listing:
    """Return the segments, impossible names, skipped paths and subdirectories of a directory, each
    sorted. Leave out hidden directories, files without the ending ``.log`` that are no segments,
    and files that a broker deletes meanwhile. Raise OSError if the directory cannot be listed.
    """
    found = Listing([], [], [], [])
    with _open_listing(directory) as entries:
        for child in entries:
            name = parse_segment_name(child.name)
            if name is None and not child.name.endswith(_ENDING):
                if not child.name.startswith(".") and is_directory(child):
                    found.directories.append(directory / child.name)
                continue
            path = directory / child.name
            try:
                if not child.is_file():
                    reason = kind_of(path)
                elif name is None:
                    reason = "its name is not that of a segment (20 digits and .log)"
                elif name[0] > MAX_OFFSET:
                    found.too_large.append(path)
                    continue
                else:
                    found.files.append((*name, path, child.stat().st_size))
                    continue
            except FileNotFoundError:
                continue
            except OSError:  # of what a link leads to
                reason = kind_of(path)
            if reason is not None:
                found.skipped_paths.append(SkippedPath(path, reason))
    skipped = sorted(found.skipped_paths, key=lambda one: one.path)
    return Listing(sorted(found.files), sorted(found.too_large), skipped, sorted(found.directories))


def _open_listing(directory: Path) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    """Return a context manager with the entries of a directory. Raise OSError if it cannot be listed."""
    scandir = getattr(directory, "scandir", None)  # of a store: there are sizes in its listing
    return os.scandir(directory) if scandir is None else scandir()


def list_segment_files(directory: Path) -> list[SegmentFile]:
    """Return the segments and metadata snapshots in a directory, lowest base offset first. Raise OSError if it cannot be listed."""
    return list_directory(directory).files


def is_directory(path: Path | os.DirEntry[str]) -> bool:
    """Return whether a path is a directory or a link to one. Return False if it does not exist,
    cannot be examined, or is a link that cannot be followed.
    """
    try:
        return path.is_dir()
    except OSError:
        return False


def list_base_offsets(directory: Path) -> tuple[int, ...]:
    """Return the base offsets of the live segments in a directory, in ascending order. Raise OSError if it cannot be listed."""
    found = list_segment_files(directory)
    return tuple(base for base, state, _, _ in found if state == "live")


def list_partition_names(directory: Path) -> frozenset[tuple[bytes, int]]:
    """Return topic (as bytes of the file system) and number of each live partition directory in a
    log directory. Other names, and files, are left out. Raise OSError if it cannot be listed.
    """
    found = (
        parse_live_partition_name(child) for child in directory.iterdir() if is_directory(child)
    )
    return frozenset((os.fsencode(name[0]), name[1]) for name in found if name is not None)
