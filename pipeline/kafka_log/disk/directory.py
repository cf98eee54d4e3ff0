"""Log directories: which segments there are, and what their names say."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kafka_log.segment.model import Tail
from kafka_log.segment.positioned_reads import UnreadableError, unreadable

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
    """A segment file. ``base_offset`` is what its name says; ``size`` is in bytes. It is ``rolled`` when another one follows
    in its partition: brokers write to the last one only."""

    path: Path
    topic: str
    partition: int
    base_offset: int
    size: int
    rolled: bool = False

    @property
    def tail(self) -> Tail:
        """What may lie after its last whole batch."""
        return Tail.ROLLED if self.rolled else Tail.ACTIVE

    @property
    def is_named(self) -> bool:
        """Whether the file's name says where its offsets begin."""
        return self.path.name == f"{self.base_offset:020d}.log"


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition directory with its segments, lowest offsets first. There are none when the directory cannot be read: then
    ``error`` says why."""

    topic: str
    partition: int
    directory: Path
    segments: tuple[Segment, ...]
    error: UnreadableError | None = None


def parse_name(directory: Path) -> tuple[str, int] | None:
    """Topic and partition of a directory's name, None for other names (also those that a broker is about to
    delete, holds as stray, or has not swapped in yet)."""
    found = _PARTITION.match(directory.name)
    if found is None or _SPECIAL.match(directory.name):
        return None
    return found["topic"], int(found["partition"])


def discover(
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    *,
    unreadable_raises: bool = True,
) -> list[Partition]:
    """The partitions below broker directories, partition directories, and single segment files.

    Sorted by topic and partition. Files that a broker has marked ``.deleted``, ``.cleaned`` or ``.swap`` are not
    segments. Raises :class:`DirectoryError` when a path does not exist or holds no log, and an OSError for a directory that
    cannot be read, but for those of partitions below a path if ``unreadable_raises`` is False: these say so.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    found: dict[tuple[Path, str], Partition] = {}
    for path in map(Path, paths):
        for partition in _below(path, unreadable_raises):
            key = (partition.directory.resolve(), partition.topic)
            if key in found:
                both = {s.path.name: s for s in (*found[key].segments, *partition.segments)}
                partition = replace(partition, segments=_in_order(both.values()))
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


def _below(path: Path, unreadable_raises: bool) -> Iterator[Partition]:
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
        try:
            yield _partition(child)
        except OSError as error:
            if unreadable_raises:
                raise
            yield Partition(*_named(child), child, (), unreadable(error, None, child))


def _segments(directory: Path) -> list[tuple[int, Path, int]]:
    """Base offset, path and size of each. Brokers delete old ones meanwhile: these are passed over."""
    out = []
    for child in directory.iterdir():
        found = _SEGMENT.match(child.name)
        if found and child.is_file():
            try:
                out.append((int(found["base"]), child, child.stat().st_size))
            except FileNotFoundError:
                continue
    return sorted(out)


def _named(directory: Path) -> tuple[str, int]:
    return parse_name(directory.resolve()) or (directory.resolve().name, 0)


def _partition(directory: Path) -> Partition:
    topic, partition = _named(directory)
    segments = [
        Segment(path, topic, partition, base, size) for base, path, size in _segments(directory)
    ]
    return Partition(topic, partition, directory, _in_order(segments))


def _in_order(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Segments of one partition, lowest offsets first. Where a name says no offset nobody knows what follows."""
    ordered = sorted(segments, key=lambda s: s.base_offset)
    last = max((s.base_offset for s in ordered if s.is_named), default=0)
    return tuple(replace(s, rolled=s.is_named and s.base_offset < last) for s in ordered)


def _single(path: Path) -> Partition:
    """A file by itself. Topic and partition come from its directory, if that is named like one."""
    found = _SEGMENT.match(path.name)
    topic, partition = parse_name(path.resolve().parent) or (path.stem, 0)
    base = int(found["base"]) if found else 0
    segment = Segment(path, topic, partition, base, path.stat().st_size)
    return Partition(topic, partition, path.parent, (segment,))
