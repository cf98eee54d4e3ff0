"""Log directories: which segments there are, and what their names say."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from codecgen.runtime.errors import Where
from kafka_log.logs.files import DirectoryError as DirectoryError
from kafka_log.logs.files import PassedOver, children, files_of, is_directory, segment_files
from kafka_log.logs.layout import Layout, find_layout
from kafka_log.logs.names import (
    BESIDE_PARTITIONS,
    BEYOND,
    OTHERS,
    of_file,
    parse_any,
    states_of,
)
from kafka_log.logs.names import STATES as STATES
from kafka_log.logs.names import Include as Include
from kafka_log.logs.names import State as State
from kafka_log.logs.names import parse_name as parse_name
from kafka_log.logs.remote_names import TIER
from kafka_log.segment.arrow_text import utf8 as utf8
from kafka_log.segment.model import Tail
from kafka_log.segment.places import place_of
from kafka_log.segment.positioned_reads import UnreadableError, unreadable
from kafka_log.segment.ranges import EVERYTHING, Range
from kafka_log.segment.ranges import MAX_OFFSET as MAX_OFFSET
from kafka_log.segment.regular_files import kind_of, open_regular

NO_LOGS = "no segments (NNN.log) and no partition directories (topic-N) are in it"


class NotThere(ValueError):
    """A topic or a partition that was asked for is not there."""


class AllLeftOut(UserWarning):
    """There are segments, and none of them is read."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment file. ``base_offset`` is what its name says; ``size`` is in bytes. It is ``rolled`` when another one follows
    in its partition: brokers write to the last one only. ``offsets`` are those that are read of it, where another one has the rest.
    It is ``tiered`` when segments in tiered storage are read too: brokers remove it as soon as its copy is there."""

    path: Path
    topic: str
    partition: int
    base_offset: int
    size: int
    state: State = "live"
    rolled: bool = False
    offsets: Range = EVERYTHING
    tiered: bool = False

    @property
    def tail(self) -> Tail:
        """What may lie after its last whole batch."""
        return Tail.ROLLED if self.rolled else Tail.ACTIVE

    @property
    def is_named(self) -> bool:
        """Whether the file's name says where its offsets begin."""
        return self.path.name == f"{self.base_offset:020d}.log"

    @property
    def says_offset(self) -> bool:
        """The same in whatever state: the names of segments that are not live have more in them."""
        named = "-" if self.state in ("remote", "unfinished") else ".log"
        return self.path.name.startswith(f"{self.base_offset:020d}{named}")


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition directory with its segments, lowest offsets first. ``state`` is that of the directory. ``error`` says why nothing of it
    can be read, or which file cannot be a segment of it; ``passed_over`` is what has the name of a segment, and is no file."""

    topic: str
    partition: int
    directory: Path
    segments: tuple[Segment, ...]
    state: State = "live"
    error: UnreadableError | None = None
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        """Topic and partition."""
        return self.topic, self.partition

    @property
    def size(self) -> int:
        """Bytes of its segments."""
        return sum(segment.size for segment in self.segments)


def next_bases(segments: Sequence[Segment]) -> Iterator[tuple[Segment, int | None]]:
    """Each segment of a partition with the first offset of the next one in the same state, None where no name says it."""
    following: dict[State, int] = {}
    found: list[int | None] = []
    for segment in reversed(segments):
        found.append(following.get(segment.state))
        if segment.says_offset:
            following[segment.state] = segment.base_offset
    return zip(segments, reversed(found), strict=True)


def by_state(
    partitions: Iterable[Partition],
) -> Iterator[tuple[Partition, State, tuple[Segment, ...]]]:
    """Each partition, and each state of its segments that there is, with the segments in that state."""
    for partition in partitions:
        found = {segment.state for segment in partition.segments} | {partition.state}
        for state in STATES:
            if state in found:
                yield partition, state, tuple(s for s in partition.segments if s.state == state)


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
    return survey(paths, include, unreadable_raises=unreadable_raises).found


class Survey(NamedTuple):
    """What :func:`discover` finds, the segments that are there beside it, what is no segment or partition in spite of its name, or
    has segments in spite of it, and the log directories among and below the paths."""

    found: list[Partition]
    left_out: list[Segment]
    passed_over: list[PassedOver]
    directories: list[Path]


def survey(paths: Paths, include: Include = (), *, unreadable_raises: bool = True) -> Survey:
    """What is read, and what is not. Raises as :func:`discover`."""
    wanted = {"live", *states_of(include)}
    places = _listed(paths)
    found: list[Partition] = []
    left_out: list[Segment] = []
    every, layout = _all(places, unreadable_raises)
    passed_over = layout.passed_over
    for partition in every:
        by_name = partition.directory in places
        kept: list[Segment] = []
        for s in partition.segments:
            of_place = by_name and s.state == partition.state
            read = s.state in wanted or s.path in places or of_place
            (kept if read else left_out).append(s)
        if kept or by_name or partition.state in wanted:
            found.append(replace(partition, segments=tuple(kept)))
            passed_over += partition.passed_over
    # A directory that is named like no partition may be one of the paths.
    known = {*places, *(partition.directory for partition in found)}
    passed_over = [one for one in dict.fromkeys(passed_over) if one.path not in known]
    return Survey(found, left_out, passed_over, list(dict.fromkeys(layout.directories)))


def warn_of_all_left_out(
    found: Iterable[Partition], left_out: Iterable[Segment], stacklevel: int
) -> None:
    """Warn if there are segments, and none is read because of their states: an answer of no rows would say that there are none."""
    states = {segment.state for segment in left_out}
    if states and not any(partition.segments for partition in found):
        known = ",".join(state for state in STATES if state in states)
        warnings.warn(
            f"kafka-log: no segment is read: all that are there are left out; include={known!r} takes them in",
            AllLeftOut,
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
        from kafka_log.logs.remote_states import with_unfinished  # layouts that others do not need

        partitions = with_unfinished(partitions)
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


def chosen(
    found: Sequence[Partition],
    topics: str | Iterable[str] | None,
    partitions: int | Iterable[int] | None,
    left_out: Iterable[Segment] = (),
) -> list[Partition]:
    """Return the partitions of some topics and with some numbers; None: of all.

    Raises:
        NotThere: If one of them is not there. The error names the states of segments that are ``left_out`` and have it.
    """
    out, hidden = list(found), list(left_out)
    if topics is not None:
        wanted = {topics} if isinstance(topics, str) else set(topics)
        out = _those("topic", out, wanted, lambda p: p.topic, hidden)
        hidden = [segment for segment in hidden if segment.topic in wanted]
    if partitions is not None:
        numbers = {partitions} if isinstance(partitions, int) else set(partitions)
        out = _those("partition", out, numbers, lambda p: p.partition, hidden)
    return out


def no_such(
    what: str, missing: Iterable[Any], there: Iterable[Any], states: Collection[State] = ()
) -> NotThere:
    """Return the error for topics or partitions that are not there. It lists those that are there, and names similar ones.

    Args:
        what: The kind of thing: topic or partition.
        missing: Names or numbers that are not there.
        there: Names or numbers that are there.
        states: States of segments that have the missing ones but are left out; the error says which option takes them in.
    """
    names, wanted = sorted(there), sorted(missing)
    listed = ", ".join(map(_shown, names[:20])) + (", ..." if len(names) > 20 else "")
    texts = [name for name in names if isinstance(name, str)]
    like = [
        close
        for name in wanted
        if isinstance(name, str)
        for close in get_close_matches(name, texts, 1)
    ]
    hint = f"; did you mean {', '.join(map(_shown, like))}?" if like else ""
    said = ", ".join(map(_shown, wanted))
    if states:
        known = ",".join(state for state in STATES if state in states)
        hint += f"; segments that are left out have it: --include {known} (in Python include={known!r}) takes them in"
    return NotThere(f"there is no {what} {said}; there are: {listed or 'none'}{hint}")


def _shown(name: Any) -> str:
    text = utf8(name) if isinstance(name, str) else str(name)
    return text if text.isprintable() else repr(text)


def _those(
    what: str,
    found: list[Partition],
    wanted: set[Any],
    key: Callable[[Partition | Segment], Any],
    left_out: Sequence[Segment],
) -> list[Partition]:
    there = {key(partition) for partition in found}
    missing = wanted - there
    if missing:
        states = {segment.state for segment in left_out if key(segment) in missing}
        raise no_such(what, missing, there, states)
    return [partition for partition in found if key(partition) in wanted]


def _layout(path: Path, read: Callable[[Path], Partition]) -> Layout:
    """Return what lies in and below a path. Raise DirectoryError or OSError."""
    if path.is_file():
        return Layout(partitions=[_single(path)])
    if not path.is_dir():
        kind = kind_of(path)
        reason = f"this is {kind}" if kind else "there is no such file or directory"
        raise DirectoryError(path, reason)
    named = parse_any(path)
    if named is not None and any(segment_files(path)):
        is_remote = named[2] == "remote"
        return Layout(tiers=[path]) if is_remote else Layout(partitions=[_partition(path)])
    found = find_layout(path, read)
    if any(p.segments or p.error or p.state == "live" for p in found.partitions):
        return found
    if any(there.files or there.passed_over for there in map(files_of, found.tiers)):
        return found
    if named is not None and not found.is_log:
        return Layout(partitions=[_partition(path)], passed_over=found.passed_over)
    if _has_no_logs_yet(path):
        return Layout(passed_over=found.passed_over, directories=found.directories or [path])
    beside = "; ".join(f"{one.path.name}: {one.reason}" for one in found.passed_over[:_SAID])
    raise DirectoryError(path, f"{NO_LOGS} ({beside})" if beside else NO_LOGS)


_SAID = 5


def _has_no_logs_yet(path: Path) -> bool:
    """Whether a directory has nothing but what a broker or a tier keeps before its first segment, and after its last. Raises OSError."""
    return all(
        child.name in BESIDE_PARTITIONS
        or child.name == TIER
        or (parse_any(child) and is_directory(child))
        for child in children(path)
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
        if s.says_offset:
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
    return segment.says_offset and segment.base_offset < last[segment.state]


def _named(directory: Path) -> tuple[str, int, State]:
    found = parse_any(directory)
    if found is not None and not directory.is_symlink():
        return found
    resolved = directory.resolve()
    return parse_any(resolved) or (resolved.name, 0, "live")


def _partition(directory: Path) -> Partition:
    topic, partition, state = _named(directory)
    found = files_of(directory)
    segments = _in_order(
        Segment(path, topic, partition, base, size, said if state == "live" else state)
        for base, said, path, size in found.files
    )
    beyond = found.beyond
    error = UnreadableError(BEYOND, Where(file=os.fspath(beyond[0]))) if beyond else None
    # The search for log directories goes on below a directory without segments.
    nested = _with_segments(found.directories) if segments else ()
    of_topic = tuple(replace(one, topic=topic) for one in (*found.passed_over, *nested))
    return Partition(topic, partition, directory, segments, state, error, of_topic)


def _with_segments(directories: Iterable[Path]) -> Iterator[PassedOver]:
    """Yield the directories inside of a partition's directory that have segments, or cannot be listed."""
    for directory in directories:
        try:
            if segment_files(directory):
                reason = "it has segments, and lies in the directory of a partition"
                yield PassedOver(directory, reason)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield PassedOver(directory, f"it cannot be read: {error.strerror}")


def _single(path: Path) -> Partition:
    """A file by itself. Topic and partition come from its directory, if that is named like one."""
    said = of_file(path.name)
    if said is None:
        plain = re.sub(r"\.(deleted|cleaned|swap)\Z", "", path.name)
        for end, what in OTHERS.items():
            if plain.endswith(end):
                reason = f"this is {what}, not a segment: docs/log-directory.md says what reads it"
                raise DirectoryError(path, reason)
        if (kind := _content(path)) is not None:
            raise DirectoryError(path, f"this is {kind}, not a segment")
    topic, partition, state = parse_any(path.resolve().parent) or (path.stem, 0, "live")
    base, of_name = said or (0, state)
    if base > MAX_OFFSET:
        raise DirectoryError(path, BEYOND)
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
