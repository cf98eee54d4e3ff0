"""Log directories: which segments there are, and what their names say."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)\Z")
_SEGMENT = re.compile(r"(?P<base>\d{20})\.log\Z")
_SPECIAL = re.compile(r".+\.[0-9a-f]{32}-(delete|stray|future)\Z")


class NotThere(ValueError):
    """A topic or a partition that was asked for is not there."""


class DirectoryError(Exception):
    """A path that holds no Kafka log. ``path`` is what was asked for."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def utf8(text: str) -> str:
    """Text that Arrow can hold: file names may have bytes that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment file. ``base_offset`` is what its name says; ``size`` is in bytes."""

    path: Path
    topic: str
    partition: int
    base_offset: int
    size: int

    @property
    def is_named(self) -> bool:
        """Whether the file's name says where its offsets begin."""
        return self.path.name == f"{self.base_offset:020d}.log"


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition directory with its segments, lowest offsets first."""

    topic: str
    partition: int
    directory: Path
    segments: tuple[Segment, ...]


def parse_name(directory: Path) -> tuple[str, int] | None:
    """Topic and partition of a directory's name, None for other names (also those that a broker is about to
    delete, holds as stray, or has not swapped in yet)."""
    found = _PARTITION.match(directory.name)
    if found is None or _SPECIAL.match(directory.name):
        return None
    return found["topic"], int(found["partition"])


def discover(paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str]) -> list[Partition]:
    """The partitions below broker directories, partition directories, and single segment files.

    Sorted by topic and partition. Files that a broker has marked ``.deleted``, ``.cleaned`` or ``.swap`` are not
    segments. Raises :class:`DirectoryError` when a path does not exist or holds no log.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    found: dict[tuple[Path, str], Partition] = {}
    for path in map(Path, paths):
        for partition in _below(path):
            key = (partition.directory.resolve(), partition.topic)
            if key in found:
                both = {s.path.name: s for s in (*found[key].segments, *partition.segments)}
                ordered = tuple(sorted(both.values(), key=lambda s: s.base_offset))
                partition = Partition(
                    partition.topic, partition.partition, partition.directory, ordered
                )
            found[key] = partition
    return sorted(found.values(), key=lambda p: (p.topic, p.partition, str(p.directory)))


def chosen(
    found: Sequence[Partition],
    topics: str | Iterable[str] | None,
    partitions: int | Iterable[int] | None,
) -> list[Partition]:
    """The partitions of some topics and with some numbers; None: of all. Raises :class:`NotThere`."""
    out = list(found)
    if topics is not None:
        wanted = {topics} if isinstance(topics, str) else set(topics)
        out = _those("topic", out, wanted, lambda p: p.topic)
    if partitions is not None:
        numbers = {partitions} if isinstance(partitions, int) else set(partitions)
        out = _those("partition", out, numbers, lambda p: p.partition)
    return out


def _those(
    what: str, found: list[Partition], wanted: set[Any], key: Callable[[Partition], Any]
) -> list[Partition]:
    there = {key(partition) for partition in found}
    missing = ", ".join(map(str, sorted(wanted - there)))
    if missing:
        names = sorted(there)
        more = ", ..." if len(names) > 20 else ""
        listed = ", ".join(map(str, names[:20])) + more
        raise NotThere(f"there is no {what} {missing}; there are: {listed}")
    return [partition for partition in found if key(partition) in wanted]


def _below(path: Path) -> Iterator[Partition]:
    if path.is_file():
        yield _single(path)
        return
    if not path.is_dir():
        raise DirectoryError(path, "there is no such file or directory")
    if any(_segments(path)):
        yield _partition(path)
        return
    inner = [child for child in sorted(path.iterdir()) if child.is_dir() and parse_name(child)]
    if not inner:
        if parse_name(path):
            yield _partition(path)
            return
        raise DirectoryError(
            path, "no segments (NNN.log) and no partition directories (topic-N) are in it"
        )
    for child in inner:
        yield _partition(child)


def _segments(directory: Path) -> list[tuple[int, Path]]:
    out = []
    for child in directory.iterdir():
        found = _SEGMENT.match(child.name)
        if found and child.is_file():
            out.append((int(found["base"]), child))
    return sorted(out)


def segment_bases(directory: Path) -> tuple[int, ...]:
    """The base offsets of all segments in a directory, by their names, lowest first. Raises OSError."""
    return tuple(base for base, _ in _segments(directory))


def partition_names(directory: Path) -> frozenset[tuple[bytes, int]]:
    """The partitions with a directory of their own in a broker's log directory: topics as bytes, numbers. Raises OSError."""
    found = (parse_name(child) for child in directory.iterdir() if child.is_dir())
    return frozenset((os.fsencode(name[0]), name[1]) for name in found if name is not None)


def is_partition(directory: Path) -> bool:
    """Whether a directory is one of a partition: it has segments, or is named like one. Raises OSError."""
    return parse_name(directory.resolve()) is not None or any(_segments(directory))


def _partition(directory: Path) -> Partition:
    topic, partition = parse_name(directory.resolve()) or (directory.resolve().name, 0)
    segments = tuple(
        Segment(path, topic, partition, base, path.stat().st_size)
        for base, path in _segments(directory)
    )
    return Partition(topic, partition, directory, segments)


def _single(path: Path) -> Partition:
    """A file by itself. Topic and partition come from its directory, if that is named like one."""
    found = _SEGMENT.match(path.name)
    topic, partition = parse_name(path.resolve().parent) or (path.stem, 0)
    base = int(found["base"]) if found else 0
    segment = Segment(path, topic, partition, base, path.stat().st_size)
    return Partition(topic, partition, path.parent, (segment,))
