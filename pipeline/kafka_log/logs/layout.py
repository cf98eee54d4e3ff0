"""Find the partitions below a directory. What a directory holds decides what it is, not its name alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_log.logs.files import (
    DirectoryError,
    PassedOver,
    children,
    is_directory,
    segment_files,
)
from kafka_log.logs.names import BESIDE_PARTITIONS, META, name_before_date, parse_any
from kafka_log.logs.remote_names import TIER
from kafka_log.segment.regular_files import kind_of

if TYPE_CHECKING:
    from kafka_log.logs.directory import Partition

MAX_LEVELS = 4
"""Log directories are looked for down to this many levels below a path."""

MAX_DIRECTORIES = 1_000
"""Directories below a path that are looked into before the search is given up."""

_NAMED = 5
"""Paths that an error message names."""


@dataclass
class Layout:
    """What lies below a path.

    Attributes:
        partitions: Partitions outside of tiered storage.
        tiers: Partition directories of tiered storage, not listed yet.
        directories: Log directories.
        passed_over: What is not read in spite of its name or its contents.
        unread: Directories that have segments and are not read.
        is_log: Whether segments or ``meta.properties`` prove that logs lie here.
    """

    partitions: list[Partition] = field(default_factory=list)
    tiers: list[Path] = field(default_factory=list)
    directories: list[Path] = field(default_factory=list)
    passed_over: list[PassedOver] = field(default_factory=list)
    unread: list[Path] = field(default_factory=list)
    is_log: bool = False

    def add(self, other: Layout) -> None:
        """Take in what lies below another directory."""
        self.partitions += other.partitions
        self.tiers += other.tiers
        self.directories += other.directories
        self.passed_over += other.passed_over
        self.unread += other.unread
        self.is_log |= other.is_log

    def pass_over(self, other: Layout) -> None:
        """Name what lies below another directory, which is not read."""
        for directory in other.directories if other.is_log else ():
            self.skip(directory, "it is a log directory inside of another one", has_segments=True)
        self.passed_over += other.passed_over
        self.unread += other.unread

    def skip(self, path: Path, reason: str, *, has_segments: bool = False) -> None:
        """Note that a directory is not read."""
        self.passed_over.append(PassedOver(path, reason))
        if has_segments:
            self.unread.append(path)


def find_layout(path: Path, read: Callable[[Path], Partition]) -> Layout:
    """Return what lies in and below a directory.

    A directory with partitions that have segments, or with ``meta.properties``, is a log directory. A directory without these is
    one above log directories if any lie at most :data:`MAX_LEVELS` levels below it: all of them are read.

    Args:
        path: A directory.
        read: Lists a partition directory.

    Raises:
        DirectoryError: If segments lie below ``path`` and none of them is read, or too many directories do.
        OSError: If ``path`` cannot be listed.
    """
    found = _Search(path, read).look(path, 0)
    is_read = found.tiers or any(p.segments or p.error is not None for p in found.partitions)
    if found.unread and not is_read:
        names = ", ".join(map(str, found.unread[:_NAMED]))
        more = len(found.unread) - _NAMED
        rest = f" and {more} more directories" if more > 0 else ""
        why = f" ({_reasons(found.passed_over)})" if found.passed_over else ""
        reason = f"nothing is read here, but segments lie in {names}{rest}{why}: pass these paths"
        raise DirectoryError(path, reason)
    return found


def _reasons(passed_over: Sequence[PassedOver]) -> str:
    return "; ".join(f"{one.path.name}: {one.reason}" for one in passed_over[:_NAMED])


class _Search:
    """The search below one path."""

    def __init__(self, path: Path, read: Callable[[Path], Partition]) -> None:
        self.path = path
        self.read = read
        self.count = 0

    def look(self, directory: Path, level: int) -> Layout:
        """Return what lies in and below ``directory``, which is ``level`` levels below the path."""
        out = Layout()
        is_marked, others = False, []
        unproved: list[Partition] = []
        for child in children(directory):
            named = parse_any(child)
            if not is_directory(child):
                is_marked |= child.name == META
                if named is not None and (kind := kind_of(child)) is not None:
                    out.passed_over.append(PassedOver(child, kind, named[0]))
            elif named is None:
                if child.name not in BESIDE_PARTITIONS and child.name != TIER:
                    others.append(child)
            elif named[2] == "remote":
                out.tiers.append(child)
            else:
                made = self.read(child)
                is_proved = bool(made.segments or made.passed_over)
                (out.partitions if is_proved else unproved).append(made)
        if not is_marked:
            _skip_copies(directory, out, unproved)
        if level and (out.partitions or unproved or others):
            self._count()
        has_segments = any(segment_files(directory))
        if has_segments:
            out.partitions.insert(0, self.read(directory))
        out.is_log = is_marked or bool(out.partitions)
        if out.is_log:
            self._pass_over(out, unproved, others, level)
            is_broker = not has_segments
        else:
            self._look_below(out, unproved, others, level)
            out.is_log |= bool(out.tiers) or any(p.error is not None for p in out.partitions)
            is_broker = not out.directories and bool(out.partitions or out.tiers)
        if is_broker:
            out.directories.insert(0, directory)
        return out

    def _count(self) -> None:
        self.count += 1
        if self.count > MAX_DIRECTORIES:
            reason = f"more than {MAX_DIRECTORIES:,} directories lie below it: pass the log directories themselves"
            raise DirectoryError(self.path, reason)

    def _pass_over(
        self, out: Layout, unproved: Sequence[Partition], others: Sequence[Path], level: int
    ) -> None:
        """Add the empty partitions of a log directory, and name the logs in it that no broker would read."""
        is_empty = not out.partitions
        for partition in unproved:
            below = self._below(partition, out, level)
            if below is None:
                out.partitions.append(partition)
            else:
                out.pass_over(below)
        for child in others:
            try:
                if any(segment_files(child)):
                    reason = "its name is no partition's, and it has segments"
                    out.skip(child, reason, has_segments=True)
                elif any(parse_any(inner) and is_directory(inner) for inner in child.iterdir()):
                    reason = "its name is no partition's, and it has partitions"
                    out.skip(child, reason, has_segments=True)
                elif is_empty and not child.name.startswith("."):
                    below = self.look(child, level + 1) if level < MAX_LEVELS else Layout()
                    out.pass_over(below)
            except FileNotFoundError:
                continue
            except OSError as error:
                out.skip(child, f"it cannot be read: {error.strerror}")

    def _look_below(
        self, out: Layout, unproved: Sequence[Partition], others: Sequence[Path], level: int
    ) -> None:
        """Add the log directories below a directory that is none itself; if there are none, its empty partitions."""
        empty: list[Partition] = []
        for partition in unproved:
            below = self._below(partition, out, level)
            if below is not None:
                out.add(below)
            else:
                empty.append(partition)
        for child, has_segments in _listed(others, out):
            if has_segments:
                reason = "its name is no partition's, and it has segments"
                out.skip(child, reason, has_segments=True)
            elif level == MAX_LEVELS:
                out.skip(child, f"it lies more than {MAX_LEVELS} levels below {self.path}")
            else:
                try:
                    below = self.look(child, level + 1)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    out.skip(child, f"it cannot be read: {error.strerror}")
                    continue
                if below.is_log:
                    out.add(below)
                else:
                    out.pass_over(below)
        # An empty directory that is named like a partition proves nothing beside log directories.
        out.partitions += [p for p in empty if not out.directories or p.error is not None]

    def _below(self, partition: Partition, out: Layout, level: int) -> Layout | None:
        """Return what lies below a directory that has a partition's name and no segments, None if that is no log."""
        if partition.error is not None or level == MAX_LEVELS:
            return None
        try:
            below = self.look(partition.directory, level + 1)
        except FileNotFoundError:
            return None
        if below.is_log:
            return below
        out.pass_over(below)
        return None


def _skip_copies(directory: Path, out: Layout, unproved: list[Partition]) -> None:
    """Leave out copies of partitions: the day that ends their name is no number of a partition. A directory is one that is named by a date, in
    a directory that may be a partition's, and one that has the name of a partition beside it before the date."""
    names = {p.directory.name for p in (*out.partitions, *unproved)}
    copied = dict.fromkeys(names, "it is named like the partition beside it, and a date")
    if parse_any(directory) is not None:
        copied[""] = "its name is a date, and it lies in a directory that is named like a partition"
    for partitions in (out.partitions, unproved):
        for partition in [*partitions]:
            name = name_before_date(partition.directory.name)
            if name is not None and (reason := copied.get(name)) is not None:
                partitions.remove(partition)
                if partition.segments or partition.error is not None:
                    out.skip(partition.directory, reason, has_segments=True)


def _listed(directories: Sequence[Path], out: Layout) -> Iterator[tuple[Path, bool]]:
    """Yield the directories that are not hidden and can be listed, each with whether it has segments."""
    for directory in directories:
        if directory.name.startswith("."):
            continue
        try:
            yield directory, any(segment_files(directory))
        except FileNotFoundError:
            continue
        except OSError as error:
            out.skip(directory, f"it cannot be read: {error.strerror}")
