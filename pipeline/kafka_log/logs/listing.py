"""Listing of log directories and partition directories."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from kafka_log.logs.names import (
    NOT_A_SEGMENT_NAME,
    OFFSET_TOO_LARGE,
    TIERED_STORAGE_DIRECTORY,
    State,
    parse_live_partition_name,
    parse_segment_name,
)
from kafka_log.logs.partitions import SkippedPath
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.regular_files import explain_missing, kind_of

_ENDING = ".log"


def list_children(path: Path) -> list[Path]:
    """Return the paths in a directory and in its ``kafka-tiered-storage`` directory, those of each
    sorted by name. Raise OSError if one of the two cannot be listed.
    """
    tier = path / TIERED_STORAGE_DIRECTORY
    parents = [path, tier] if is_directory(tier) else [path]
    return [child for one in parents for child in sorted(one.iterdir(), key=lambda c: c.name)]


class SegmentFile(NamedTuple):
    """A path with the name of a segment or a metadata snapshot.

    Attributes:
        base_offset: Base offset in the name.
        state: State in the name.
        path: The path.
        size: Size in bytes; 0 if there is a ``problem``.
        problem: Why it cannot be read as a file, such as ``this is a dangling link``. None for a file.
    """

    base_offset: int
    state: State
    path: Path
    size: int
    problem: str | None = None


class Listing(NamedTuple):
    """Contents of a partition directory.

    Attributes:
        files: Segments and metadata snapshots, lowest base offset first, also those that cannot be read.
        misnamed: Files with the ending of a segment whose names no segment can have, with reasons.
        skipped_paths: Other paths with that ending that are no files, with reasons.
        directories: Directories that are not hidden.
    """

    files: list[SegmentFile]
    misnamed: list[SkippedPath]
    skipped_paths: list[SkippedPath]
    directories: list[Path]


def list_directory(directory: Path) -> Listing:
    """Return the segments, misnamed files, skipped paths (other paths that end in ``.log`` and are
    no files) and subdirectories of a directory, each sorted. A path with the name of a segment is
    one, whatever lies there. Leave out hidden directories, files without the ending ``.log`` that
    are no segments, and files that a broker deletes meanwhile. Raise OSError if the directory
    cannot be listed; FileNotFoundError only if nothing lies there.
    """
    found = Listing([], [], [], [])
    with _open_listing(directory) as entries:
        for child in entries:
            name = parse_segment_name(child.name)
            if name is None and not child.name.endswith(_ENDING):
                if not child.name.startswith(".") and is_directory(child):
                    found.directories.append(directory / child.name)
                continue
            path, size, kind, problem = directory / child.name, 0, None, None
            try:
                if child.is_file():
                    size = child.stat().st_size
                elif (kind := kind_of(path)) is None:
                    continue  # it is gone
            except FileNotFoundError:
                continue
            except OSError as error:
                kind, problem = kind_of(path), error.strerror
            if name is not None and name[0] <= MAX_OFFSET:
                problem = problem if kind is None else f"this is {kind}"
                found.files.append(SegmentFile(*name, path, size, problem))
            elif kind is not None:
                found.skipped_paths.append(SkippedPath(path, kind))
            else:
                reason = NOT_A_SEGMENT_NAME if name is None else OFFSET_TOO_LARGE
                found.misnamed.append(SkippedPath(path, reason))
    for paths in (found.misnamed, found.skipped_paths):
        paths.sort(key=lambda one: one.path)
    return Listing(
        sorted(found.files), found.misnamed, found.skipped_paths, sorted(found.directories)
    )


def _open_listing(directory: Path) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    """Return a context manager with the entries of a directory. Raise OSError if it cannot be
    listed, FileNotFoundError only if nothing lies there.
    """
    scandir = getattr(directory, "scandir", None)  # of a store: there are sizes in its listing
    try:
        return os.scandir(directory) if scandir is None else scandir()
    except FileNotFoundError as error:
        raise explain_missing(error, directory) from None


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
    return tuple(file.base_offset for file in found if file.state == "live")


def list_partition_names(directory: Path) -> frozenset[tuple[bytes, int]]:
    """Return topic (as bytes of the file system) and number of each live partition directory in a
    log directory. Other names, and files, are left out. Raise OSError if it cannot be listed.
    """
    found = (
        parse_live_partition_name(child) for child in directory.iterdir() if is_directory(child)
    )
    return frozenset((os.fsencode(name[0]), name[1]) for name in found if name is not None)
