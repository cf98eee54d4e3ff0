"""Partitions and their segments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from kafka_log.logs.names import STATES, State
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.model import Tail
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.ranges import EVERYTHING, Range

_SAID = 5


class DirectoryError(Exception):
    """A path that holds no Kafka log. ``path`` is what was asked for."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class NotFoundError(ValueError):
    """A topic or a partition that was asked for is not there."""


@dataclass(frozen=True, slots=True)
class SkippedPath:
    """What is not read though its name, or what lies in it, is of logs. ``topic`` is that of the partition that it lies in, or has the
    name of; None where nobody knows."""

    path: Path
    reason: str
    topic: str | None = None


def filter_by_topics(
    passed_over: Iterable[SkippedPath], topics: Collection[str] | None
) -> list[SkippedPath]:
    """Those that may be of some topics (None: of any)."""
    return [one for one in passed_over if topics is None or one.topic in (None, *topics)]


def describe_skipped(passed_over: Sequence[SkippedPath]) -> str:
    """One line that says what was not read, and what reads it."""
    places = ", ".join(f"{one.path} ({one.reason})" for one in passed_over[:_SAID])
    more = f" and {len(passed_over) - _SAID} more" if len(passed_over) > _SAID else ""
    return f"passed over: {places}{more}; a directory or a file by another name is read where its own path is given"


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
    def has_canonical_name(self) -> bool:
        """Whether the file's name says where its offsets begin."""
        return self.path.name == f"{self.base_offset:020d}.log"

    @property
    def has_offset_in_name(self) -> bool:
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
    skipped_paths: tuple[SkippedPath, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        """Topic and partition."""
        return self.topic, self.partition

    @property
    def size(self) -> int:
        """Bytes of its segments."""
        return sum(segment.size for segment in self.segments)


def pair_with_next_base_offset(segments: Sequence[Segment]) -> Iterator[tuple[Segment, int | None]]:
    """Each segment of a partition with the first offset of the next one in the same state, None where no name says it."""
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
    """Each partition, and each state of its segments that there is, with the segments in that state."""
    for partition in partitions:
        found = {segment.state for segment in partition.segments} | {partition.state}
        for state in STATES:
            if state in found:
                yield partition, state, tuple(s for s in partition.segments if s.state == state)


def select_partitions(
    found: Sequence[Partition],
    topics: str | Iterable[str] | None,
    partitions: int | Iterable[int] | None,
    left_out: Iterable[Segment] = (),
) -> list[Partition]:
    """Return the partitions of some topics and with some numbers; None: of all.

    Raises:
        NotFoundError: If one of them is not there. The error names the states of segments that are ``left_out`` and have it.
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


def make_not_found_error(
    what: str, missing: Iterable[Any], there: Iterable[Any], states: Collection[State] = ()
) -> NotFoundError:
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
    return NotFoundError(f"there is no {what} {said}; there are: {listed or 'none'}{hint}")


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
        raise make_not_found_error(what, missing, there, states)
    return [partition for partition in found if key(partition) in wanted]
