"""Discovery of partitions below paths. The contents of a directory decide what it is, not its name alone."""

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
from kafka_log.logs.listing import (
    is_directory,
    list_children,
    list_directory,
    list_segment_files,
)
from kafka_log.logs.names import (
    BROKER_FILE_KINDS,
    BROKER_FILE_NAMES,
    META,
    NOT_A_SEGMENT_NAME,
    OFFSET_TOO_LARGE,
    STATES,
    TIERED_STORAGE_DIRECTORY,
    Include,
    PartitionName,
    State,
    parse_include,
    parse_partition_name,
    parse_segment_name,
    strip_date_suffix,
)
from kafka_log.logs.partitions import DirectoryError, Partition, Segment, SkippedPath
from kafka_log.segment.paths import make_path, path_list, resolve_links
from kafka_log.segment.positioned_reads import UnreadableError, unreadable
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.regular_files import is_unreachable, kind_of, open_regular

NO_LOGS = "it contains no segments (NNN.log) and no partition directories (topic-N)"

MAX_LEVELS = 4
"""Maximum number of levels below a path at which log directories are found."""

MAX_DIRECTORIES = 1_000
"""Maximum number of directories below a path that are searched for log directories."""

_MAX_NAMED_PATHS = 5
"""Maximum number of paths in an error message."""

Paths = Iterable[str | os.PathLike[str]] | str | os.PathLike[str]

_Listed = tuple[Path, PartitionName]
"""A directory and its parsed name."""

_ReadPartition = Callable[[Path, PartitionName | None], Partition]
"""Lists a partition directory, given its path and parsed name."""


class AllSegmentsExcluded(UserWarning):
    """Warning that segments exist, but the states of all of them are excluded."""


class Survey(NamedTuple):
    """Everything that lies below some paths: partitions, excluded segments, skipped paths and log
    directories.

    Attributes:
        partitions: Partitions to read, by topic and number.
        excluded_segments: Segments that are not read because of their state.
        skipped_paths: Paths that are no segment or partition in spite of their names, directories that have segments but not the
            name of a partition, and copies of deleted topics in tiered storage; also damaged segments that say which copies are unfinished.
        directories: Log directories among and below the paths.
    """

    partitions: list[Partition]
    excluded_segments: list[Segment]
    skipped_paths: list[SkippedPath]
    directories: list[Path]


def discover(
    paths: Paths, include: Include = (), *, unreadable_raises: bool = True
) -> list[Partition]:
    """Return the partitions below log directories, partition directories and single segments,
    sorted by topic and number, each directory once; ``[]`` without paths. They have live segments,
    those in the states ``include``, and those of a path that is given itself. Raise DirectoryError
    if a path does not exist or holds no log (one may be empty, like a new disk, if another holds a
    log); ValueError for an unknown state; OSError if a directory cannot be listed, or a partition
    has a ``.log`` file with a name that no segment can have. Without ``unreadable_raises`` a
    partition has the OSError of its own directory as ``error``; a path itself that cannot be listed
    still raises.

    Args:
        paths: One path or several.
        include: States of segments to return besides live ones. A path given in ``paths`` is returned whatever its state.
        unreadable_raises: Raise if the directory of a partition cannot be read. If False, the partition has an ``error``.

    Raises:
        DirectoryError: If a path does not exist or holds no log.
        OSError: If a directory cannot be listed, or a partition has a ``.log`` file with a name that no segment can have.
        ValueError: If a state does not exist, or ``paths`` is neither a path nor an iterable of paths.

    Example:
        >>> [partition.topic for partition in discover("/var/lib/kafka/data")]
        ['orders', 'orders', 'users']
    """
    return survey(paths, include, unreadable_raises=unreadable_raises).partitions


def survey(paths: Paths, include: Include = (), *, unreadable_raises: bool = True) -> Survey:
    """Return a Survey of everything below some paths: partitions to read, segments in states that
    ``include`` does not name, skipped paths, and log directories. A path that is given itself is
    read in any state. Raise DirectoryError if a path does not exist or holds no log (one may be
    empty, like a new disk, if another holds a log); ValueError for an unknown state; OSError if a
    directory cannot be listed, or a partition has a ``.log`` file with a name that no segment can
    have. Without ``unreadable_raises`` a partition has the OSError of its own directory as
    ``error``; a path itself that cannot be listed still raises. Without paths the Survey is empty.
    Raise ValueError too for anything else than paths.
    """
    included = {"live", *parse_include(include)}
    given = list(map(make_path, path_list("paths", paths)))
    partitions: list[Partition] = []
    excluded: list[Segment] = []
    every, layout = _find_partitions(given, unreadable_raises)
    skipped = layout.skipped_paths
    unknown: list[SkippedPath] = []
    if any(segment.state == "remote" for p in every for segment in p.segments):
        from kafka_log.logs.remote_states import mark_unfinished_copies  # loads further codecs

        every, unknown = mark_unfinished_copies(every)
    for partition in every:
        is_given = partition.directory in given
        segments: list[Segment] = []
        for s in partition.segments:
            has_given_state = is_given and s.state == partition.state
            is_read = s.state in included or s.path in given or has_given_state
            (segments if is_read else excluded).append(s)
        if segments or is_given or partition.state in included:
            is_changed = len(segments) != len(partition.segments)
            partitions.append(
                replace(partition, segments=tuple(segments)) if is_changed else partition
            )
            skipped += partition.skipped_paths
    # A skipped directory may be one of the given paths.
    known = {*given, *(partition.directory for partition in partitions)}
    skipped = [one for one in dict.fromkeys(skipped) if one.path not in known]
    if any(partition.state == "remote" for partition in partitions):
        from kafka_log.logs.remote_topics import skip_earlier_topics  # loads further codecs

        partitions, earlier = skip_earlier_topics(partitions)
        skipped += [*earlier, *unknown]
    return Survey(partitions, excluded, skipped, list(dict.fromkeys(layout.directories)))


def warn_if_all_excluded(
    partitions: Iterable[Partition], excluded: Iterable[Segment], stacklevel: int
) -> None:
    """Warn with AllSegmentsExcluded, which names the states to include, if no partition has
    segments and ``excluded`` has some. Do nothing otherwise. The warning is about the line of the
    caller if ``stacklevel`` is 1, of its caller if 2, and so on.
    """
    states = {segment.state for segment in excluded}
    if states and not any(partition.segments for partition in partitions):
        names = ",".join(state for state in STATES if state in states)
        warnings.warn(
            f"kafka-log: no segment is read, because all of them are in excluded states; include={names!r} reads them",
            AllSegmentsExcluded,
            stacklevel=stacklevel + 1,
        )


def _find_partitions(
    paths: Sequence[Path], unreadable_raises: bool
) -> tuple[list[Partition], Layout]:
    """Return the partitions below paths in every state, sorted, each directory once, and the layout
    of all paths together; both are empty without paths. Raise DirectoryError if a path does not
    exist or holds no log (one may be empty, like a new disk, if another holds a log);
    OSError if a directory cannot be listed, or a partition has a ``.log`` file with a name that no
    segment can have. Without ``unreadable_raises`` a partition below a path has its OSError as
    ``error``.
    """
    found: dict[tuple[Path, str], Partition] = {}
    parents: dict[Path, Path] = {}

    def read(directory: Path, name: PartitionName | None) -> Partition:
        return _read_or_report(directory, name, unreadable_raises)

    layout = Layout()
    for path in paths:
        layout.add(_find_layout(path, read))
    if paths and not (layout.partitions or layout.tiers):
        raise DirectoryError(paths[0], NO_LOGS)
    # A broker copies a segment to a tier before it deletes the local one: a tier that is listed last has all that the disk lost.
    tiers = (read(directory, name) for directory, name in layout.tiers)
    for partition in chain(layout.partitions, tiers):
        key = (_resolve(partition.directory, parents), partition.topic)
        if key in found:
            both = {s.path.name: s for s in (*found[key].segments, *partition.segments)}
            partition = replace(partition, segments=_order_segments(both.values()))
        found[key] = partition
    return sorted(found.values(), key=_sort_key), layout


def _resolve(directory: Path, parents: dict[Path, Path]) -> Path:
    """Return the absolute path of a directory without symbolic links. ``parents`` caches resolved
    parents, which may have thousands of children.
    """
    if directory.name in ("", "..") or directory.is_symlink():
        return resolve_links(directory)
    parent = directory.parent
    if parent not in parents:
        parents[parent] = resolve_links(parent)
    return parents[parent] / directory.name


def _sort_key(partition: Partition) -> tuple[str, int, int, str]:
    """Return the sort key of a partition: topic, number, state, directory."""
    state = STATES.index(partition.state)
    return partition.topic, partition.partition, state, str(partition.directory)


def _find_layout(path: Path, read: _ReadPartition) -> Layout:
    """Return the partitions and log directories in and below a path: a segment file, a partition
    directory, a log directory (perhaps empty) or a directory above some. Raise DirectoryError if it
    does not exist, is no file or directory or a file of another kind, holds no log, or too many
    directories or segments that are not read lie below it; OSError if it cannot be listed.
    """
    if path.is_file():
        return Layout(partitions=[_read_file(path)])
    if not path.is_dir():
        kind = kind_of(path)
        reason = f"this is {kind}" if kind else "there is no such file or directory"
        raise DirectoryError(path, reason)
    name = parse_partition_name(path)
    if name is not None and any(list_segment_files(path)):
        if name.state == "remote":
            return Layout(tiers=[(path, name)])
        return Layout(partitions=[read(path, name)])
    found = search_directory(path, name, read)
    if any(p.segments or p.error or p.state == "live" for p in found.partitions):
        return found
    if any(
        there.files or there.misnamed or there.skipped_paths
        for there in map(list_directory, found.tier_paths)
    ):
        return found
    if name is not None and not found.is_log:
        partitions = [read(path, name)]
        return Layout(partitions=partitions, skipped_paths=found.skipped_paths)
    if _is_empty_log_directory(path):
        return Layout(skipped_paths=found.skipped_paths, directories=found.directories or [path])
    beside = _format_reasons(found.skipped_paths)
    raise DirectoryError(path, f"{NO_LOGS} ({beside})" if beside else NO_LOGS)


def _is_empty_log_directory(path: Path) -> bool:
    """Return whether all children of a directory are files that a broker writes there, the
    directory of tiered storage, or partition directories; True if it has no children. Raise OSError
    if it cannot be listed.
    """
    return all(
        child.name in BROKER_FILE_NAMES
        or child.name == TIERED_STORAGE_DIRECTORY
        or (parse_partition_name(child) and is_directory(child))
        for child in list_children(path)
    )


def _read_or_report(
    directory: Path, name: PartitionName | None, unreadable_raises: bool
) -> Partition:
    """Return the partition in a directory. If it cannot be listed, or a file in it has a name that
    no segment can have, return a partition with that ``error``; or raise it if
    ``unreadable_raises``, OSError or UnreadableError.
    """
    try:
        partition = _read_partition(directory, name)
    except OSError as error:
        if unreadable_raises:
            raise
        if name is None or is_directory(directory):
            name = _name_without_links(directory, name)
        topic, number, state = name
        cause = unreadable(error, None, directory)
        partition = Partition(topic, number, directory, (), state, cause)
    if partition.error is not None and unreadable_raises:
        raise partition.error
    return partition


def _order_segments(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Return the segments of a partition by base offset, then state, with ``rolled`` set if no
    broker writes to the segment any more.
    """
    ordered = sorted(segments, key=lambda s: (s.base_offset, STATES.index(s.state)))
    are_named = [s.has_offset_in_name for s in ordered]
    last = {s.state: s.base_offset for s, is_named in zip(ordered, are_named, strict=True) if is_named}  # fmt: skip
    return tuple(
        replace(s, rolled=is_rolled) if is_rolled != s.rolled else s
        for s, is_named in zip(ordered, are_named, strict=True)
        for is_rolled in [_is_rolled(s, is_named, last)]
    )


def _is_rolled(segment: Segment, is_named: bool, last: Mapping[State, int]) -> bool:
    """Return whether a broker no longer writes to a segment: it is deleted, a swap file or in
    tiered storage; or its name has an offset (``is_named``) below ``last`` of its state, the
    highest base offset there. In other states a segment without an offset in its name is never
    rolled.

    Segments that are deleted, replace others or were copied are complete. A cleaner still writes to its own.

    Args:
        segment: A segment.
        is_named: Whether its file name has its base offset.
        last: Highest base offset per state.
    """
    if segment.state in ("deleted", "swap", "remote", "unfinished"):
        return True
    return is_named and segment.base_offset < last[segment.state]


def _name_without_links(directory: Path, name: PartitionName | None) -> PartitionName:
    """Return ``name``, the parsed name of a directory. If the directory is a link or ``name`` is
    None, parse the name of the directory that the path leads to. A directory whose name does not
    name a partition is partition 0 of a topic of that name.
    """
    if name is not None and not directory.is_symlink():
        return name
    resolved = resolve_links(directory)
    return parse_partition_name(resolved) or PartitionName(resolved.name, 0, "live")


def _read_partition(directory: Path, name: PartitionName | None) -> Partition:
    """Return the partition in a directory with all its segments and skipped paths, perhaps none.
    Its ``error`` is an UnreadableError if a file has a name that no segment can have, which in tiered
    storage is only one whose offset is too large. Raise OSError if the directory cannot be listed.
    """
    listing = list_directory(directory)
    topic, number, state = _name_without_links(directory, name)
    segments = _order_segments(
        Segment(
            *(file.path, topic, number, file.base_offset, file.size),
            file.state if state == "live" else state,
            problem=file.problem,
        )
        for file in listing.files
    )
    # A plugin of tiered storage may keep other files beside its copies of segments.
    others = [o for o in listing.misnamed if state == "remote" and o.reason == NOT_A_SEGMENT_NAME]
    misnamed = [one for one in listing.misnamed if one not in others]
    error = None
    if misnamed:
        first, more = misnamed[0], len(misnamed) - 1
        reason = first.reason + (f"; {more} more files have such names" if more else "")
        error = UnreadableError(reason, Where(file=os.fspath(first.path)))
    # If there are no segments, the search for log directories continues below this directory.
    nested = _skip_nested_segments(listing.directories) if segments else ()
    skipped = tuple(replace(one, topic=topic) for one in (*listing.skipped_paths, *others, *nested))
    return Partition(topic, number, directory, segments, state, error, skipped)


def _skip_nested_segments(directories: Iterable[Path]) -> Iterator[SkippedPath]:
    """Yield a SkippedPath with the reason for each of ``directories``, which lie inside a partition
    directory, that has segments or cannot be listed. Ignore directories without segments, and those
    that are gone.
    """
    for directory in directories:
        try:
            if list_segment_files(directory):
                reason = "it has segments, but lies inside a partition directory"
                yield SkippedPath(directory, reason)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield SkippedPath(directory, f"it cannot be read: {error.strerror}")


def _read_file(path: Path) -> Partition:
    """Return the partition that consists of a single segment file. Topic and number come from the
    name of its directory; otherwise the topic is the name of the file without its suffix, the
    number 0. The base offset is 0 if the file name states none. Raise DirectoryError if the file's
    name or first bytes show another kind of file, or its base offset is too large; OSError if the
    file is gone.
    """
    name = parse_segment_name(path.name)
    if name is None:
        stem = re.sub(r"\.(deleted|cleaned|swap)\Z", "", path.name)
        for ending, kind in BROKER_FILE_KINDS.items():
            if stem.endswith(ending):
                reason = f"this is {kind}, not a segment: docs/log-directory.md says what reads it"
                raise DirectoryError(path, reason)
        if (content := _recognize_content(path)) is not None:
            raise DirectoryError(
                path, f"this is {content}, not a segment: name a segment (NNN.log)"
            )
    topic, number, state = parse_partition_name(path.resolve().parent) or (path.stem, 0, "live")
    base, file_state = name or (0, state)
    if base > MAX_OFFSET:
        raise DirectoryError(path, OFFSET_TOO_LARGE)
    segment_state = file_state if state == "live" else state
    segment = Segment(path, topic, number, base, path.stat().st_size, segment_state)
    return Partition(topic, number, path.parent, _order_segments([segment]), state)


_CONTENT_BY_START = {b"\x1f\x8b\x08": "compressed with gzip", b"\x28\xb5\x2f\xfd": "compressed with zstd", b"PAR1": "Parquet"}  # fmt: skip
_CONTENT_BYTES = 16


def _recognize_content(path: Path) -> str | None:
    """Return a description of a file if its first bytes show that it is no segment: ``text``,
    ``Parquet``, ``compressed with gzip`` or ``compressed with zstd``. Return None if it may be a
    segment, or cannot be read.

    As the base offset of a segment, such bytes would be above 2^60.
    """
    try:
        with open_regular(path, -1) as file:
            begin = file.read(_CONTENT_BYTES)
    except OSError:
        return None  # the reader of the segment reports it
    if len(begin) == _CONTENT_BYTES and all(
        byte in b"\t\n\r" or 32 <= byte < 127 for byte in begin
    ):
        return "text"
    return next(
        (kind for magic, kind in _CONTENT_BY_START.items() if begin.startswith(magic)), None
    )


@dataclass
class Layout:
    """What lies below a path: partitions, directories in tiered storage, log directories and
    skipped paths.

    Attributes:
        partitions: Partitions outside of tiered storage.
        tiers: Partition directories of tiered storage, not listed yet.
        directories: Log directories.
        skipped_paths: Paths that are not read in spite of their name or contents.
        unread: Directories that have segments and are not read.
        unsearched: Directories more than :data:`MAX_LEVELS` levels below the path, which are not searched.
        is_log: Whether segments or ``meta.properties`` prove that logs lie here.
    """

    partitions: list[Partition] = field(default_factory=list)
    tiers: list[_Listed] = field(default_factory=list)
    directories: list[Path] = field(default_factory=list)
    skipped_paths: list[SkippedPath] = field(default_factory=list)
    unread: list[Path] = field(default_factory=list)
    unsearched: list[Path] = field(default_factory=list)
    is_log: bool = False

    @property
    def tier_paths(self) -> list[Path]:
        """The paths of ``tiers``."""
        return [path for path, _ in self.tiers]

    def add(self, other: Layout) -> None:
        """Add the contents of another layout: partitions, tiers, log directories and skipped paths.
        ``is_log`` becomes true if either is a log.
        """
        self.partitions += other.partitions
        self.tiers += other.tiers
        self.directories += other.directories
        self.skipped_paths += other.skipped_paths
        self.unread += other.unread
        self.unsearched += other.unsearched
        self.is_log |= other.is_log

    def skip_below(self, other: Layout) -> None:
        """Add the log directories of ``other`` to the skipped paths, as log directories inside
        another one, if ``other`` is a log; and add its skipped paths. Its partitions are not added.
        """
        for directory in other.directories if other.is_log else ():
            self.skip(directory, "it is a log directory inside another one", has_segments=True)
        self.skipped_paths += other.skipped_paths
        self.unread += other.unread
        self.unsearched += other.unsearched

    def skip(self, path: Path, reason: str, *, has_segments: bool = False) -> None:
        """Add a skipped directory."""
        self.skipped_paths.append(SkippedPath(path, reason))
        if has_segments:
            self.unread.append(path)

    def skip_unsearched(self, path: Path) -> None:
        """Add a skipped directory that lies too deep to be searched."""
        self.skip(path, f"it lies more than {MAX_LEVELS} levels below the searched directory")
        self.unsearched.append(path)


def search_directory(path: Path, name: PartitionName | None, read: _ReadPartition) -> Layout:
    """Return the partitions and log directories in and below a directory, an empty layout if there
    are none. Raise DirectoryError if segments lie below ``path`` and none of them is read, if it is
    not known whether segments lie below because directories there were not searched, if a directory
    or link beside log directories below ``path`` cannot be read, or if there are too many
    directories; OSError if ``path`` cannot be listed.

    A directory with partitions that have segments, or with ``meta.properties``, is a log directory. A directory without these is
    one above log directories if any lie at most :data:`MAX_LEVELS` levels below it: all of them are read.

    Args:
        path: A directory.
        name: Its parsed name.
        read: Lists a partition directory.
    """
    found = _Search(path, read).search(path, name, 0)
    if found.tiers or any(p.segments or p.error is not None for p in found.partitions):
        return found
    deeper = _find_segment_directories(found.unsearched)
    if unread := [*found.unread, *deeper.paths]:
        why = f" ({_format_reasons(found.skipped_paths)})" if found.skipped_paths else ""
        reason = f"nothing is read here, but segments lie in {_format_paths(unread)}{why}: pass these paths"
        raise DirectoryError(path, reason)
    if found.unsearched and not (found.is_log and deeper.is_complete):
        reason = (
            f"nothing is read here, and it was not searched more than {MAX_LEVELS} levels below:"
            f" pass the log directories themselves if any lie in {_format_paths(found.unsearched)}"
        )
        raise DirectoryError(path, reason)
    return found


class _SegmentDirectories(NamedTuple):
    """Result of a search for segments in directories that lie too deep to be read.

    Attributes:
        paths: Log directories and other directories with segments.
        is_complete: Whether every directory was listed.
    """

    paths: list[Path]
    is_complete: bool


def _find_segment_directories(tops: Iterable[Path]) -> _SegmentDirectories:
    """Return the directories with segments among and below ``tops``, each once: the log directory
    of a partition, other directories themselves. Hidden directories are ignored. List at most
    MAX_DIRECTORIES (1,000) directories; the result says whether that was enough and whether each
    could be listed.
    """
    paths: dict[Path, None] = {}
    queue = list(tops)
    seen: set[Path] = set()
    is_complete = True
    for directory in queue:
        real = resolve_links(directory)
        if real in seen:
            continue
        if len(seen) == MAX_DIRECTORIES:
            return _SegmentDirectories([*paths], False)
        seen.add(real)
        try:
            listing = list_directory(directory)
        except FileNotFoundError:
            continue
        except OSError:
            is_complete = False
            continue
        if listing.files:
            is_partition = parse_partition_name(directory) is not None
            paths[directory.parent if is_partition else directory] = None
        queue += listing.directories
    return _SegmentDirectories([*paths], is_complete)


def _format_paths(paths: Sequence[Path]) -> str:
    """Return the first of some paths, and the number of the others, for a message."""
    more = len(paths) - _MAX_NAMED_PATHS
    rest = f" and {more} more directories" if more > 0 else ""
    return ", ".join(map(str, paths[:_MAX_NAMED_PATHS])) + rest


def _format_reasons(skipped: Sequence[SkippedPath]) -> str:
    """Return names and reasons of the first skipped paths for a message, ``""`` if there are none."""
    return "; ".join(f"{one.path.name}: {one.reason}" for one in skipped[:_MAX_NAMED_PATHS])


class _Search:
    """The search for log directories below one path. It counts the directories that it has searched."""

    def __init__(self, path: Path, read: _ReadPartition) -> None:
        self.path = path
        self.read = read
        self.count = 0

    def search(self, directory: Path, name: PartitionName | None, level: int) -> Layout:
        """Return the partitions and log directories in and below ``directory``, whose parsed name
        is ``name`` (None: no partition's), ``level`` levels below the searched path. Below a log
        directory nothing more is read; other logs there become skipped paths. Raise OSError if
        ``directory`` cannot be listed; DirectoryError after 1,000 directories, and for
        what cannot be read beside log directories.
        """
        out = Layout()
        is_marked, others = False, []
        links: list[Path] = []
        empty: list[Partition] = []
        for child in list_children(directory):
            child_name = parse_partition_name(child)
            is_listed = is_directory(child)
            is_marked |= child.name == META and not is_listed
            if child_name is None:
                is_known = child.name in (*BROKER_FILE_NAMES, TIERED_STORAGE_DIRECTORY)
                if is_listed and not is_known:
                    others.append(child)
                elif not is_listed and not child.name.startswith(".") and is_unreachable(child):
                    links.append(child)
            elif not is_listed and not is_unreachable(child):
                if (kind := kind_of(child)) is not None:
                    out.skipped_paths.append(SkippedPath(child, kind, child_name.topic))
            elif child_name.state == "remote":
                out.tiers.append((child, child_name))
            else:
                partition = self.read(child, child_name)
                is_proved = bool(partition.segments or partition.skipped_paths)
                (out.partitions if is_proved else empty).append(partition)
        if not is_marked:
            _skip_dated_copies(name, out, empty)
        if level and (out.partitions or empty or others):
            self._count_directory()
        has_segments = any(list_segment_files(directory))
        if has_segments:
            out.partitions.insert(0, self.read(directory, name))
        out.is_log = is_marked or bool(out.partitions)
        if out.is_log:
            self._skip_inner_logs(out, empty, others, level)
            is_broker = not has_segments
        else:
            unreadable = [SkippedPath(child, kind_of(child) or _UNREACHABLE) for child in links]
            unreadable += self._search_below(out, empty, others, level)
            serious = [one for one in unreadable if one.path.name != LOST_AND_FOUND]
            if out.directories and serious:
                raise DirectoryError(directory, _describe_unreadable(serious))
            out.skipped_paths += unreadable
            out.is_log |= bool(out.tiers) or any(p.error is not None for p in out.partitions)
            is_broker = not out.directories and bool(out.partitions or out.tiers)
        if is_broker:
            out.directories.insert(0, directory)
        return out

    def _count_directory(self) -> None:
        """Count one more directory. Raise DirectoryError if there are now more than
        MAX_DIRECTORIES (1,000).
        """
        self.count += 1
        if self.count > MAX_DIRECTORIES:
            reason = f"more than {MAX_DIRECTORIES:,} directories lie below it: pass the log directories themselves"
            raise DirectoryError(self.path, reason)

    def _skip_inner_logs(
        self, out: Layout, empty: Sequence[Partition], others: Sequence[Path], level: int
    ) -> None:
        """Add the ``empty`` partitions of a log directory to ``out``, except those with a log
        below. Add to its skipped paths: directories of ``others`` with segments or partitions, or
        that cannot be listed; logs below a partition; logs deeper below ``others``, only if ``out``
        has no partitions yet. Raise DirectoryError if there are too many directories; OSError if
        one of ``empty`` cannot be listed.

        Args:
            out: Layout of the log directory, which is extended.
            empty: Partitions without segments.
            others: Directories that are not named like a partition.
            level: Level of the log directory.
        """
        is_empty = not out.partitions
        for partition in empty:
            below = self._search_empty_partition(partition, out, level)
            if below is None:
                out.partitions.append(partition)
            else:
                out.skip_below(below)
        for child in others:
            try:
                if any(list_segment_files(child)):
                    reason = "it has segments, but its name is not topic-partition"
                    out.skip(child, reason, has_segments=True)
                elif any(parse_partition_name(c) and is_directory(c) for c in child.iterdir()):
                    reason = "it has partitions, but its name is not topic-partition"
                    out.skip(child, reason, has_segments=True)
                elif is_empty and not child.name.startswith("."):
                    if level == MAX_LEVELS:
                        out.skip_unsearched(child)
                    else:
                        out.skip_below(self.search(child, None, level + 1))
            except FileNotFoundError:
                continue
            except OSError as error:
                out.skip(child, f"it cannot be read: {error.strerror}")

    def _search_below(
        self, out: Layout, empty: Sequence[Partition], others: Sequence[Path], level: int
    ) -> list[SkippedPath]:
        """Add to ``out`` the log directories below a directory that is not one itself; its
        partitions without segments if there are none. Return the directories that cannot be listed,
        which may be log directories, with reasons. Skip, with a reason, directories of ``others``
        that have segments or lie too deep. Ignore hidden ones. Raise DirectoryError if there are
        too many directories; OSError if one of ``empty`` cannot be listed.

        Args:
            out: Layout of the directory, which is extended.
            empty: Partitions without segments.
            others: Directories that are not named like a partition.
            level: Level of the directory.
        """
        still_empty: list[Partition] = []
        for partition in empty:
            below = self._search_empty_partition(partition, out, level)
            if below is not None:
                out.add(below)
            else:
                still_empty.append(partition)
        unreadable: list[SkippedPath] = []
        for child, has_segments in _list_visible(others, unreadable):
            if has_segments:
                reason = "it has segments, but its name is not topic-partition"
                out.skip(child, reason, has_segments=True)
            elif level == MAX_LEVELS:
                out.skip_unsearched(child)
            else:
                try:
                    below = self.search(child, None, level + 1)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    unreadable.append(_skip_unreadable(child, error))
                    continue
                if below.is_log:
                    out.add(below)
                else:
                    out.skip_below(below)
        if not out.directories:
            out.partitions += still_empty
            return unreadable
        # Beside log directories, an empty directory that is named like a partition proves nothing.
        failed = [
            SkippedPath(p.directory, p.error.reason) for p in still_empty if p.error is not None
        ]
        return unreadable + failed

    def _search_empty_partition(
        self, partition: Partition, out: Layout, level: int
    ) -> Layout | None:
        """Return what lies below a partition without segments if that is a log. Return None
        otherwise, after adding its skipped paths to ``out``; also if the partition has an error or
        is gone. If the search ends at this ``level``, skip the directories inside the partition as
        unsearched. Raise OSError if its directory cannot be listed; DirectoryError after 1,000
        directories.
        """
        if partition.error is not None:
            return None
        if level == MAX_LEVELS:
            for inner in list_directory(partition.directory).directories:
                out.skip_unsearched(inner)
            return None
        name = PartitionName(partition.topic, partition.partition, partition.state)
        try:
            below = self.search(partition.directory, name, level + 1)
        except FileNotFoundError:
            return None
        if below.is_log:
            return below
        out.skip_below(below)
        return None


def _skip_dated_copies(name: PartitionName | None, out: Layout, empty: list[Partition]) -> None:
    """Remove from ``out`` and ``empty`` the partitions whose directory is a dated copy of another
    partition's, such as ``orders-0-2026-11-22`` beside ``orders-0``. Copies with segments or an
    error become skipped paths of ``out``.

    A directory is such a copy if its name without the date is that of a partition beside it. It is one too if its name is a date, and
    the directory around it is named like a partition (``name``).
    """
    names = {p.directory.name for p in (*out.partitions, *empty)}
    reasons = dict.fromkeys(names, "its name is that of a partition beside it and a date")
    if name is not None:
        reasons[""] = (
            "its name is a date, and it lies inside a directory that is named like a partition"
        )
    for partitions in (out.partitions, empty):
        for partition in [*partitions]:
            original = strip_date_suffix(partition.directory.name)
            if original is not None and (reason := reasons.get(original)) is not None:
                partitions.remove(partition)
                if partition.segments or partition.error is not None:
                    out.skip(partition.directory, reason, has_segments=True)


def _list_visible(
    directories: Sequence[Path], unreadable: list[SkippedPath]
) -> Iterator[tuple[Path, bool]]:
    """Yield each directory that is not hidden, with whether it has segments. One that cannot be
    listed is added to ``unreadable``; one that is gone is ignored.
    """
    for directory in directories:
        if directory.name.startswith("."):
            continue
        try:
            yield directory, any(list_segment_files(directory))
        except FileNotFoundError:
            continue
        except OSError as error:
            unreadable.append(_skip_unreadable(directory, error))


_UNREACHABLE = "it cannot be examined"

LOST_AND_FOUND = "lost+found"
"""A directory that file systems of Linux make, and that only root may read. It is no log directory."""


def _skip_unreadable(directory: Path, error: OSError) -> SkippedPath:
    """Return a directory that cannot be listed as a skipped path."""
    return SkippedPath(directory, f"it cannot be read: {error.strerror}")


def _describe_unreadable(unreadable: Sequence[SkippedPath]) -> str:
    """Return the reason why a directory above log directories is not read: it has paths that may be
    log directories too.
    """
    more = len(unreadable) - _MAX_NAMED_PATHS
    rest = f" and {more} more" if more > 0 else ""
    return (
        f"log directories lie below it, and what cannot be read may be another one: {_format_reasons(unreadable)}{rest}."
        " Repair or remove what is named, or pass the paths of the log directories"
    )
