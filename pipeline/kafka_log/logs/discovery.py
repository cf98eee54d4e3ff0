"""Discovery of the partitions below paths."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from codecgen.runtime.errors import Where
from kafka_log.logs.listing import is_directory, list_children, list_directory, list_segment_files
from kafka_log.logs.names import (
    BROKER_FILE_KINDS,
    BROKER_FILE_NAMES,
    META,
    OFFSET_TOO_LARGE,
    STATES,
    TIERED_STORAGE_DIRECTORY,
    Include,
    State,
    parse_include,
    parse_partition_name,
    parse_segment_name,
    strip_date_suffix,
)
from kafka_log.logs.partitions import DirectoryError, Partition, Segment, SkippedPath
from kafka_log.segment.places import place_of
from kafka_log.segment.positioned_reads import UnreadableError, unreadable
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.regular_files import kind_of, open_regular

NO_LOGS = "no segments (NNN.log) and no partition directories (topic-N) are in it"


class AllSegmentsExcluded(UserWarning):
    """There are segments, and none of them is read."""


Paths = Iterable[str | os.PathLike[str]] | str | os.PathLike[str]


def discover(
    paths: Paths, include: Include = (), *, unreadable_raises: bool = True
) -> list[Partition]:
    """The partitions below broker directories, partition directories, and single segment files.

    Sorted by topic and partition. A directory may be empty, as a new disk of a broker or a new tier is, if another path holds logs. What is not ``live`` is left out, unless its state is in ``include``, or its path is one of
    ``paths``. Raises :class:`DirectoryError` when a path does not exist or holds no log, ValueError for a state that there is not,
    and an OSError for a directory that cannot be read, but for those of partitions below a path if ``unreadable_raises`` is False:
    these say so.
    """
    return survey(paths, include, unreadable_raises=unreadable_raises).partitions


class Survey(NamedTuple):
    """What :func:`discover` finds, the segments that are there beside it, what is no segment or partition in spite of its name, or
    has segments in spite of it, and the log directories among and below the paths."""

    partitions: list[Partition]
    excluded_segments: list[Segment]
    skipped_paths: list[SkippedPath]
    directories: list[Path]


def survey(paths: Paths, include: Include = (), *, unreadable_raises: bool = True) -> Survey:
    """What is read, and what is not. Raises as :func:`discover`."""
    wanted = {"live", *parse_include(include)}
    places = _listed(paths)
    found: list[Partition] = []
    left_out: list[Segment] = []
    every, layout = _all(places, unreadable_raises)
    passed_over = layout.skipped_paths
    for partition in every:
        by_name = partition.directory in places
        kept: list[Segment] = []
        for s in partition.segments:
            of_place = by_name and s.state == partition.state
            read = s.state in wanted or s.path in places or of_place
            (kept if read else left_out).append(s)
        if kept or by_name or partition.state in wanted:
            found.append(replace(partition, segments=tuple(kept)))
            passed_over += partition.skipped_paths
    # A directory that is named like no partition may be one of the paths.
    known = {*places, *(partition.directory for partition in found)}
    passed_over = [one for one in dict.fromkeys(passed_over) if one.path not in known]
    return Survey(found, left_out, passed_over, list(dict.fromkeys(layout.directories)))


def warn_if_all_excluded(
    found: Iterable[Partition], left_out: Iterable[Segment], stacklevel: int
) -> None:
    """Warn if there are segments, and none is read because of their states: an answer of no rows would say that there are none."""
    states = {segment.state for segment in left_out}
    if states and not any(partition.segments for partition in found):
        known = ",".join(state for state in STATES if state in states)
        warnings.warn(
            f"kafka-log: no segment is read: all that are there are left out; include={known!r} takes them in",
            AllSegmentsExcluded,
            stacklevel=stacklevel + 1,
        )


def _listed(paths: Paths) -> list[Path]:
    return list(map(place_of, [paths] if isinstance(paths, str | os.PathLike) else paths))


def _all(places: Sequence[Path], unreadable_raises: bool) -> tuple[list[Partition], Layout]:
    """Return all partitions, whatever their state, sorted, and what lies beside them."""
    found: dict[tuple[Path, str], Partition] = {}
    roots: dict[Path, Path] = {}

    def read(directory: Path) -> Partition:
        return _inner(directory, unreadable_raises)

    every = Layout()
    for path in places:
        every.add(_layout(path, read))
    if places and not (every.partitions or every.tiers):
        raise DirectoryError(places[0], NO_LOGS)
    # A segment that leaves the disk meanwhile is in a tier before: the tier is listed last.
    for partition in chain(every.partitions, map(read, every.tiers)):
        key = (_resolved(partition.directory, roots), partition.topic)
        if key in found:
            both = {s.path.name: s for s in (*found[key].segments, *partition.segments)}
            partition = replace(partition, segments=_in_order(both.values()))
        found[key] = partition
    partitions = list(found.values())
    if any(segment.state == "remote" for p in partitions for segment in p.segments):
        from kafka_log.logs.remote_states import (
            mark_unfinished_copies,  # layouts that others do not need
        )

        partitions = mark_unfinished_copies(partitions)
    return sorted(partitions, key=_place), every


def _resolved(directory: Path, roots: dict[Path, Path]) -> Path:
    """A directory without links. ``roots`` keeps what is around them: there are ten thousand in one."""
    if directory.name in ("", "..") or directory.is_symlink():
        return directory.resolve()
    parent = directory.parent
    if parent not in roots:
        roots[parent] = parent.resolve()
    return roots[parent] / directory.name


def _place(partition: Partition) -> tuple[str, int, int, str]:
    state = STATES.index(partition.state)
    return partition.topic, partition.partition, state, str(partition.directory)


def _layout(path: Path, read: Callable[[Path], Partition]) -> Layout:
    """Return what lies in and below a path. Raise DirectoryError or OSError."""
    if path.is_file():
        return Layout(partitions=[_single(path)])
    if not path.is_dir():
        kind = kind_of(path)
        reason = f"this is {kind}" if kind else "there is no such file or directory"
        raise DirectoryError(path, reason)
    named = parse_partition_name(path)
    if named is not None and any(list_segment_files(path)):
        is_remote = named[2] == "remote"
        return Layout(tiers=[path]) if is_remote else Layout(partitions=[_partition(path)])
    found = search_directory(path, read)
    if any(p.segments or p.error or p.state == "live" for p in found.partitions):
        return found
    if any(there.files or there.skipped_paths for there in map(list_directory, found.tiers)):
        return found
    if named is not None and not found.is_log:
        return Layout(partitions=[_partition(path)], skipped_paths=found.skipped_paths)
    if _has_no_logs_yet(path):
        return Layout(skipped_paths=found.skipped_paths, directories=found.directories or [path])
    beside = "; ".join(f"{one.path.name}: {one.reason}" for one in found.skipped_paths[:_SAID])
    raise DirectoryError(path, f"{NO_LOGS} ({beside})" if beside else NO_LOGS)


_SAID = 5


def _has_no_logs_yet(path: Path) -> bool:
    """Whether a directory has nothing but what a broker or a tier keeps before its first segment, and after its last. Raises OSError."""
    return all(
        child.name in BROKER_FILE_NAMES
        or child.name == TIERED_STORAGE_DIRECTORY
        or (parse_partition_name(child) and is_directory(child))
        for child in list_children(path)
    )


def _inner(child: Path, unreadable_raises: bool) -> Partition:
    """A partition of a directory, which says so itself if it cannot be read."""
    try:
        made = _partition(child)
    except OSError as error:
        if unreadable_raises:
            raise
        topic, partition, state = _named(child)
        made = Partition(topic, partition, child, (), state, unreadable(error, None, child))
    if made.error is not None and unreadable_raises:
        raise made.error
    return made


def _in_order(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Segments of one partition, lowest offsets first. Where a name says no offset nobody knows what follows."""
    ordered = sorted(segments, key=lambda s: (s.base_offset, STATES.index(s.state)))
    last: dict[State, int] = {}
    for s in ordered:
        if s.has_offset_in_name:
            last[s.state] = s.base_offset
    rolled = (_is_rolled(s, last) for s in ordered)
    return tuple(
        replace(s, rolled=is_rolled) if is_rolled != s.rolled else s
        for s, is_rolled in zip(ordered, rolled, strict=True)
    )


def _is_rolled(segment: Segment, last: Mapping[State, int]) -> bool:
    """Whether its broker has done with it. What is deleted, takes the place of others or was copied is whole; a cleaner writes its own."""
    if segment.state in ("deleted", "swap", "remote", "unfinished"):
        return True
    return segment.has_offset_in_name and segment.base_offset < last[segment.state]


def _named(directory: Path) -> tuple[str, int, State]:
    found = parse_partition_name(directory)
    if found is not None and not directory.is_symlink():
        return found
    resolved = directory.resolve()
    return parse_partition_name(resolved) or (resolved.name, 0, "live")


def _partition(directory: Path) -> Partition:
    topic, partition, state = _named(directory)
    found = list_directory(directory)
    segments = _in_order(
        Segment(path, topic, partition, base, size, said if state == "live" else state)
        for base, said, path, size in found.files
    )
    beyond = found.too_large
    error = UnreadableError(OFFSET_TOO_LARGE, Where(file=os.fspath(beyond[0]))) if beyond else None
    # The search for log directories goes on below a directory without segments.
    nested = _with_segments(found.directories) if segments else ()
    of_topic = tuple(replace(one, topic=topic) for one in (*found.skipped_paths, *nested))
    return Partition(topic, partition, directory, segments, state, error, of_topic)


def _with_segments(directories: Iterable[Path]) -> Iterator[SkippedPath]:
    """Yield the directories inside of a partition's directory that have segments, or cannot be listed."""
    for directory in directories:
        try:
            if list_segment_files(directory):
                reason = "it has segments, and lies in the directory of a partition"
                yield SkippedPath(directory, reason)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield SkippedPath(directory, f"it cannot be read: {error.strerror}")


def _single(path: Path) -> Partition:
    """A file by itself. Topic and partition come from its directory, if that is named like one."""
    said = parse_segment_name(path.name)
    if said is None:
        plain = re.sub(r"\.(deleted|cleaned|swap)\Z", "", path.name)
        for end, what in BROKER_FILE_KINDS.items():
            if plain.endswith(end):
                reason = f"this is {what}, not a segment: docs/log-directory.md says what reads it"
                raise DirectoryError(path, reason)
        if (kind := _content(path)) is not None:
            raise DirectoryError(path, f"this is {kind}, not a segment")
    topic, partition, state = parse_partition_name(path.resolve().parent) or (path.stem, 0, "live")
    base, of_name = said or (0, state)
    if base > MAX_OFFSET:
        raise DirectoryError(path, OFFSET_TOO_LARGE)
    of_segment = of_name if state == "live" else state
    segment = Segment(path, topic, partition, base, path.stat().st_size, of_segment)
    return Partition(topic, partition, path.parent, _in_order([segment]), state)


_KINDS = {b"\x1f\x8b\x08": "compressed with gzip", b"\x28\xb5\x2f\xfd": "compressed with zstd", b"PAR1": "Parquet"}  # fmt: skip
_LEADING = 16


def _content(path: Path) -> str | None:
    """What a file is that cannot be a segment by its first bytes: its first offset would be above 2^60."""
    try:
        with open_regular(path, -1) as file:
            begin = file.read(_LEADING)
    except OSError:
        return None  # reading it as a segment says so
    if len(begin) == _LEADING and all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in begin):
        return "text"
    return next((what for first, what in _KINDS.items() if begin.startswith(first)), None)


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
    skipped_paths: list[SkippedPath] = field(default_factory=list)
    unread: list[Path] = field(default_factory=list)
    is_log: bool = False

    def add(self, other: Layout) -> None:
        """Take in what lies below another directory."""
        self.partitions += other.partitions
        self.tiers += other.tiers
        self.directories += other.directories
        self.skipped_paths += other.skipped_paths
        self.unread += other.unread
        self.is_log |= other.is_log

    def pass_over(self, other: Layout) -> None:
        """Name what lies below another directory, which is not read."""
        for directory in other.directories if other.is_log else ():
            self.skip(directory, "it is a log directory inside of another one", has_segments=True)
        self.skipped_paths += other.skipped_paths
        self.unread += other.unread

    def skip(self, path: Path, reason: str, *, has_segments: bool = False) -> None:
        """Note that a directory is not read."""
        self.skipped_paths.append(SkippedPath(path, reason))
        if has_segments:
            self.unread.append(path)


def search_directory(path: Path, read: Callable[[Path], Partition]) -> Layout:
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
        why = f" ({_reasons(found.skipped_paths)})" if found.skipped_paths else ""
        reason = f"nothing is read here, but segments lie in {names}{rest}{why}: pass these paths"
        raise DirectoryError(path, reason)
    return found


def _reasons(passed_over: Sequence[SkippedPath]) -> str:
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
        for child in list_children(directory):
            named = parse_partition_name(child)
            if not is_directory(child):
                is_marked |= child.name == META
                if named is not None and (kind := kind_of(child)) is not None:
                    out.skipped_paths.append(SkippedPath(child, kind, named[0]))
            elif named is None:
                if child.name not in BROKER_FILE_NAMES and child.name != TIERED_STORAGE_DIRECTORY:
                    others.append(child)
            elif named[2] == "remote":
                out.tiers.append(child)
            else:
                made = self.read(child)
                is_proved = bool(made.segments or made.skipped_paths)
                (out.partitions if is_proved else unproved).append(made)
        if not is_marked:
            _skip_copies(directory, out, unproved)
        if level and (out.partitions or unproved or others):
            self._count()
        has_segments = any(list_segment_files(directory))
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
                if any(list_segment_files(child)):
                    reason = "its name is no partition's, and it has segments"
                    out.skip(child, reason, has_segments=True)
                elif any(
                    parse_partition_name(inner) and is_directory(inner) for inner in child.iterdir()
                ):
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
        for child, has_segments in _list_visible(others, out):
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
    if parse_partition_name(directory) is not None:
        copied[""] = "its name is a date, and it lies in a directory that is named like a partition"
    for partitions in (out.partitions, unproved):
        for partition in [*partitions]:
            name = strip_date_suffix(partition.directory.name)
            if name is not None and (reason := copied.get(name)) is not None:
                partitions.remove(partition)
                if partition.segments or partition.error is not None:
                    out.skip(partition.directory, reason, has_segments=True)


def _list_visible(directories: Sequence[Path], out: Layout) -> Iterator[tuple[Path, bool]]:
    """Yield the directories that are not hidden and can be listed, each with whether it has segments."""
    for directory in directories:
        if directory.name.startswith("."):
            continue
        try:
            yield directory, any(list_segment_files(directory))
        except FileNotFoundError:
            continue
        except OSError as error:
            out.skip(directory, f"it cannot be read: {error.strerror}")
