"""Which files and directories there are."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kafka_log.logs.names import State, of_file, parse_name
from kafka_log.logs.remote_names import TIER
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.regular_files import kind_of

File = tuple[int, State, Path, int]
"""Base offset, state, path and size of a file that has batches."""

_ENDING = ".log"
_SAID = 5


class DirectoryError(Exception):
    """A path that holds no Kafka log. ``path`` is what was asked for."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def children(path: Path) -> list[Path]:
    """What is in a directory, and in the one that LocalTieredStorage makes in it."""
    tier = path / TIER
    below = tier.iterdir() if is_directory(tier) else ()
    return sorted([*path.iterdir(), *below])


@dataclass(frozen=True, slots=True)
class PassedOver:
    """What is not read though its name, or what lies in it, is of logs. ``topic`` is that of the partition that it lies in, or has the
    name of; None where nobody knows."""

    path: Path
    reason: str
    topic: str | None = None


def of_topics(
    passed_over: Iterable[PassedOver], topics: Collection[str] | None
) -> list[PassedOver]:
    """Those that may be of some topics (None: of any)."""
    return [one for one in passed_over if topics is None or one.topic in (None, *topics)]


def line_of(passed_over: Sequence[PassedOver]) -> str:
    """One line that says what was not read, and what reads it."""
    places = ", ".join(f"{one.path} ({one.reason})" for one in passed_over[:_SAID])
    more = f" and {len(passed_over) - _SAID} more" if len(passed_over) > _SAID else ""
    return f"passed over: {places}{more}; a directory or a file by another name is read where its own path is given"


class Found(NamedTuple):
    """What lies in a directory: the files that have batches, lowest offsets first, those whose names say what no offset can be, what
    is passed over, and the directories in it that are not hidden."""

    files: list[File]
    beyond: list[Path]
    passed_over: list[PassedOver]
    directories: list[Path]


def files_of(directory: Path) -> Found:
    """The files of a directory. Brokers delete old ones meanwhile: these are left out. Raises OSError."""
    found = Found([], [], [], [])
    with _scanned(directory) as entries:
        for child in entries:
            said = of_file(child.name)
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
                    found.beyond.append(path)
                    continue
                else:
                    found.files.append((*said, path, child.stat().st_size))
                    continue
            except FileNotFoundError:
                continue
            except OSError:  # of what a link leads to
                reason = kind_of(path)
            if reason is not None:
                found.passed_over.append(PassedOver(path, reason))
    passed_over = sorted(found.passed_over, key=lambda one: one.path)
    return Found(sorted(found.files), sorted(found.beyond), passed_over, sorted(found.directories))


def _scanned(directory: Path) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    scandir = getattr(directory, "scandir", None)  # of a store: there are sizes in its listing
    return os.scandir(directory) if scandir is None else scandir()


def segment_files(directory: Path) -> list[File]:
    """Those with batches. Raises OSError."""
    return files_of(directory).files


def is_directory(path: Path | os.DirEntry[str]) -> bool:
    """Whether there is a directory; a link that cannot be followed leads to none."""
    try:
        return path.is_dir()
    except OSError:
        return False


def segment_bases(directory: Path) -> tuple[int, ...]:
    """The base offsets of all segments in a directory, by their names, lowest first. Raises OSError."""
    found = segment_files(directory)
    return tuple(base for base, state, _, _ in found if state == "live")


def partition_names(directory: Path) -> frozenset[tuple[bytes, int]]:
    """The partitions with a directory of their own in a broker's log directory: topics as bytes, numbers. Raises OSError."""
    found = (parse_name(child) for child in directory.iterdir() if is_directory(child))
    return frozenset((os.fsencode(name[0]), name[1]) for name in found if name is not None)
