"""Partitions, their segments, and the errors and skipped paths of discovery."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from kafka_log.logs.names import STATES, State
from kafka_log.logs.partition_filters import (
    Numbers,
    PartitionFilter,
    TopicFilter,
    find_unmatched_numbers,
    find_unmatched_topics,
    format_numbers,
)
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.model import Tail
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.ranges import EVERYTHING, Range

_SAID = 5


class DirectoryError(Exception):
    """A path holds no Kafka log, or cannot be used as one.

    Attributes:
        path: The path.
        reason: What is wrong with it.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


NO_LIVE_SEGMENT = (
    "no segment was checked, because none is live; kafka-log ls --include all lists the others with their states:"
    " add --include STATE"
)
"""Message of a NotFoundError if all segments are excluded."""


class NotFoundError(ValueError):
    """A topic, partition, group or other name that was selected does not exist."""


@dataclass(frozen=True, slots=True)
class SkippedPath:
    """A path that is not read although its name or contents look like those of a log.

    Attributes:
        path: The path.
        reason: Why it is skipped.
        topic: Topic of the partition that it belongs to or is named like, None if unknown.
    """

    path: Path
    reason: str
    topic: str | None = None


def filter_by_topics(
    skipped: Iterable[SkippedPath], topics: Collection[str] | None
) -> list[SkippedPath]:
    """Return the skipped paths that may belong to one of ``topics`` (names and patterns; None: any
    topic), also those of unknown topics. Raise PatternError for an invalid pattern.
    """
    wanted = None if topics is None else TopicFilter(topics)
    return [one for one in skipped if wanted is None or one.topic is None or one.topic in wanted]


def filter_segments(
    segments: Iterable[Segment],
    topics: Collection[str] | None,
    partitions: Iterable[Numbers] | None = None,
) -> list[Segment]:
    """Return the segments of some topics (names and patterns) and with some partition numbers; None:
    all of them. Raise PatternError for an invalid pattern.
    """
    wanted = None if topics is None else TopicFilter(topics)
    numbers = None if partitions is None else PartitionFilter(partitions)
    return [
        segment
        for segment in segments
        if (wanted is None or segment.topic in wanted)
        and (numbers is None or segment.partition in numbers)
    ]


def describe_skipped(skipped: Sequence[SkippedPath]) -> str:
    """Return one line that lists skipped paths with their reasons, the first five by name, and says
    how to read them, if one of them is a file or a directory with segments.
    """
    places = ", ".join(f"{one.path} ({one.reason})" for one in skipped[:_SAID])
    more = f" and {len(skipped) - _SAID} more" if len(skipped) > _SAID else ""
    # The reason is a noun, such as "a dangling link", if there is nothing to read.
    is_readable = any(not one.reason.startswith("a ") for one in skipped)
    how = "; to read a directory or file with another name, pass its path" if is_readable else ""
    return f"skipped: {places}{more}{how}"


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment file.

    Attributes:
        path: Path of the file.
        topic: Topic of its partition.
        partition: Number of its partition.
        base_offset: Base offset in the file name, 0 if the name has none.
        size: Size in bytes when the directory was listed, with ``missing`` bytes; 0 if there is a ``problem``.
        state: What the segment is to its broker.
        rolled: Whether the broker no longer writes to it, because another segment follows or because of its state.
        offsets: Range of the offsets in the log that this segment provides. It is limited for a copy in tiered storage.
        overlap_limits: Offset range to which rows are limited. An end is None unless another segment provides the offsets of this one beyond it.
        tiered: Whether segments of its partition in tiered storage are read too. A broker may delete it as soon as it is copied.
        problem: Why the path could not be read as a file when the directory was listed, such as ``this is a dangling link``. None for a file.
        missing: Bytes at the end that a copy in tiered storage lacks, by its size in ``__remote_log_metadata``. They are read as lost.
        stated_end: Offset after the last one of a copy in tiered storage, by ``__remote_log_metadata``. None if unknown.
    """

    path: Path
    topic: str
    partition: int
    base_offset: int
    size: int
    state: State = "live"
    rolled: bool = False
    offsets: Range = EVERYTHING
    overlap_limits: Range = EVERYTHING
    tiered: bool = False
    problem: str | None = None
    missing: int = 0
    stated_end: int | None = None

    @property
    def tail(self) -> Tail:
        """What may follow the last complete batch."""
        return Tail.ROLLED if self.rolled else Tail.ACTIVE

    @property
    def is_empty(self) -> bool:
        """Whether it is a file without bytes: False for a path that could not be read as a file."""
        return not self.size and self.problem is None

    @property
    def has_canonical_name(self) -> bool:
        """Whether the file name is the base offset and ``.log``, as for a live segment."""
        return self.path.name == f"{self.base_offset:020d}.log"

    @property
    def has_offset_in_name(self) -> bool:
        """Whether the file name begins with the base offset, as for a segment in any state. Copies under other names have none."""
        named = "-" if self.state in ("remote", "unfinished") else ".log"
        return self.path.name.startswith(f"{self.base_offset:020d}{named}")


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition directory with its segments.

    Attributes:
        topic: Topic.
        partition: Partition number.
        directory: Path of the directory.
        segments: Segments by base offset.
        state: State of the directory.
        error: Why the directory cannot be read, or which file in it has a name that no segment can have, or which other replica may be newer. None if it can be read.
        skipped_paths: Paths in the directory that are named like segments but are none.
    """

    topic: str
    partition: int
    directory: Path
    segments: tuple[Segment, ...]
    state: State = "live"
    error: UnreadableError | None = None
    skipped_paths: tuple[SkippedPath, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        """Topic and partition number."""
        return self.topic, self.partition

    @property
    def size(self) -> int:
        """Size of all segments in bytes."""
        return sum(segment.size for segment in self.segments)


def pair_with_next_base_offset(segments: Sequence[Segment]) -> Iterator[tuple[Segment, int | None]]:
    """Return an iterator of each segment with the base offset of the next one in the same state
    whose file name has an offset. The offset is None for the last segment of a state.
    """
    following: dict[State, int] = {}
    found: list[int | None] = []
    for segment in reversed(segments):
        found.append(following.get(segment.state))
        if segment.has_offset_in_name:
            following[segment.state] = segment.base_offset
    return zip(segments, reversed(found), strict=True)


def group_by_state(
    partitions: Iterable[Partition],
) -> Iterator[tuple[Partition, State, tuple[Segment, ...]]]:
    """Yield each partition with each state of its segments, and the segments in that state, in the
    order of STATES. Yield its own state too, with ``()`` if no segment has it.
    """
    for partition in partitions:
        found = {segment.state for segment in partition.segments} | {partition.state}
        for state in STATES:
            if state in found:
                yield partition, state, tuple(s for s in partition.segments if s.state == state)


def select_partitions(
    found: Sequence[Partition],
    topics: str | Iterable[str] | None,
    partitions: int | Iterable[Numbers] | None,
    excluded: Iterable[Segment] = (),
) -> list[Partition]:
    """Return the partitions of some topics and with some numbers (None: all), in the given order.
    Raise NotFoundError if a name or pattern selects no topic, or a number or range no partition of
    these topics; its text says which ``include`` helps if ``excluded`` segments have it. Raise
    PatternError for an invalid pattern. Both are ValueErrors. Empty ``topics`` or ``partitions``
    select no partition.

    Args:
        found: All partitions.
        topics: Names and patterns of topics (:class:`~kafka_log.logs.partition_filters.TopicFilter`). None: all.
        partitions: Partition numbers and ranges of them. None: all.
        excluded: Segments that are not read; if one of them has a missing topic or number, the error names its state.
    """
    out, hidden = list(found), list(excluded)
    if topics is not None:
        wanted = (topics,) if isinstance(topics, str) else tuple(topics)
        there = {partition.topic for partition in out}
        if missing := find_unmatched_topics(wanted, there):
            raise make_missing_topic_error(missing, there, hidden)
        selected = TopicFilter(wanted)
        out = [partition for partition in out if partition.topic in selected]
        hidden = [segment for segment in hidden if segment.topic in selected]
    if partitions is not None:
        numbers = (partitions,) if isinstance(partitions, int) else tuple(partitions)
        known = {partition.partition for partition in out}
        if absent := find_unmatched_numbers(numbers, known):
            states = {s.state for s in hidden if s.partition in PartitionFilter(absent)}
            raise make_not_found_error("partition", map(format_numbers, absent), known, states)
        kept = PartitionFilter(numbers)
        out = [partition for partition in out if partition.partition in kept]
    return out


def make_missing_topic_error(
    missing: Sequence[str], existing: Iterable[str], excluded: Iterable[Segment] = ()
) -> NotFoundError:
    """Return, not raise, the NotFoundError for names and patterns (``missing``) that select none of
    the topics ``existing``. It says if a pattern would match internal topics, but does not begin
    with two underscores, and if ``excluded`` segments have such a topic, how to include them. Raise
    PatternError for an invalid pattern.

    Args:
        missing: Names and patterns.
        existing: Topics that exist.
        excluded: Segments that are not read; if a missing name or pattern selects one of them, the error names its state.
    """
    wanted, topics = TopicFilter(missing), set(existing)
    states = {segment.state for segment in excluded if segment.topic in wanted}
    error = make_not_found_error("topic", missing, topics, states)
    if internal := wanted.find_excluded(topics):
        return NotFoundError(
            f"{error}; a pattern matches internal topics ({', '.join(internal)}) only if it begins with __"
        )
    return error


def make_not_found_error(
    what: str, missing: Iterable[Any], existing: Iterable[Any], states: Collection[State] = ()
) -> NotFoundError:
    """Return, not raise, the NotFoundError that no topic, partition or group (``what``) has the
    names ``missing``. It lists up to 20 of the names ``existing``, and similar ones; if ``states``
    is not empty also the option that includes these states.

    Args:
        what: The kind of thing: topic, partition or group.
        missing: Names or numbers that do not exist.
        existing: Names or numbers that exist.
        states: States of excluded segments that have the missing names; the error says which option includes them.
    """
    names, wanted = sorted(existing), sorted(missing)
    listed = ", ".join(map(_format_name, names[:20])) + (", ..." if len(names) > 20 else "")
    texts = [name for name in names if isinstance(name, str)]
    like = [
        close
        for name in wanted
        if isinstance(name, str)
        for close in get_close_matches(name, texts, 1)
    ]
    hint = f"; did you mean {', '.join(map(_format_name, like))}?" if like else ""
    said = ", ".join(map(_format_name, wanted))
    if states:
        known = ",".join(state for state in STATES if state in states)
        hint += f"; excluded segments have it: --include {known} (in Python include={known!r}) reads them"
    return NotFoundError(f"there is no {what} {said}; there are: {listed or 'none'}{hint}")


def _format_name(name: Any) -> str:
    """Return a name or number for a message, escaped if it is not printable."""
    text = utf8(name) if isinstance(name, str) else str(name)
    return text if text.isprintable() else repr(text)
