"""Partitions and segments that pages show, under ids that are safe in a URL. Nothing else can be addressed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from kafka_log.inspect.report.origin import Origin, format_selection
from kafka_log.logs.discovery import Survey, survey
from kafka_log.logs.names import State
from kafka_log.logs.partition_filters import Numbers
from kafka_log.logs.partitions import Partition, Segment, select_partitions
from kafka_log.logs.replicas import Replicas, select_replicas
from kafka_log.segment.times import present

_REUSE_FACTOR = 3.0
"""A listing is used again for this multiple of the time that it took: with many partitions it takes long."""


class UnknownIdError(Exception):
    """A URL names something that the paths do not hold, or no longer hold."""


def make_id(*parts: str | os.PathLike[str] | int) -> str:
    """Return an id for a name or path: 16 hexadecimal digits, the same in each run."""
    texts = [str(part) if isinstance(part, int) else part for part in parts]
    return sha256(b"\0".join(map(os.fsencode, texts))).hexdigest()[:16]


def segment_id(segment: Segment) -> str:
    """Return the id of a segment within its partition."""
    return make_id(segment.path.name, segment.path)


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies below the paths at a moment.

    Attributes:
        found: All partitions, log directories, excluded segments and skipped paths.
        partitions: The selected partitions by id, in order of topic and number.
        topics: Partitions by id of their topic.
        listed_ms: Time of the listing, in milliseconds since 1970.
    """

    found: Survey
    partitions: Mapping[str, Partition]
    topics: Mapping[str, Sequence[tuple[str, Partition]]]
    listed_ms: int

    def get_partition(self, partition_id: str) -> Partition:
        """Return a partition. Raise UnknownIdError if there is none with this id."""
        try:
            return self.partitions[partition_id]
        except KeyError:
            raise UnknownIdError(
                "there is no partition with this id, or no longer: open the list of topics again"
            ) from None

    def get_topic(self, topic_id: str) -> Sequence[tuple[str, Partition]]:
        """Return the partitions of a topic with their ids. Raise UnknownIdError if there is none."""
        try:
            return self.topics[topic_id]
        except KeyError:
            raise UnknownIdError(
                "there is no topic with this id, or no longer: open the list of topics again"
            ) from None


def get_segment(partition: Partition, wanted: str) -> int:
    """Return the index of a segment in its partition, by its id. Raise UnknownIdError if there is none."""
    for i, segment in enumerate(partition.segments):
        if segment_id(segment) == wanted:
            return i
    raise UnknownIdError(
        "the partition has no such segment, or no longer, because brokers delete and replace segments: open the partition again"
    )


class Lister:
    """Lists the paths anew, unless a recent listing is at hand.

    Args:
        paths: Paths as on the command line.
        topics: Topics to show: names and patterns. None: all.
        numbers: Partition numbers to show. None: all.
        include: States of segments to show besides live ones.
        replicas: What to do if several directories hold the same partition.
    """

    def __init__(
        self,
        paths: Sequence[str],
        topics: Sequence[str] | None = None,
        numbers: Sequence[Numbers] | None = None,
        include: Sequence[State] = (),
        replicas: Replicas = "keep",
    ) -> None:
        self.paths = paths
        self._topics = topics
        self._numbers = numbers
        self._include = include
        self._replicas = replicas
        self._listing: Listing | None = None
        self._fresh_until = 0.0

    @property
    def origin(self) -> Origin:
        """How the paths were listed, for commands that show more of the same logs."""
        options = self._topics, self._numbers, self._include
        replicas = None if self._replicas == "keep" else self._replicas
        return Origin(self.paths, format_selection(*options, replicas), (), 0, 0, "")

    def list_paths(self) -> Listing:
        """Return what lies below the paths; the last listing again for three times as long as it
        took. Raise DirectoryError if a path holds no log, or several directories hold a partition
        and ``replicas`` is ``error``; NotFoundError if a selected topic or partition does not
        exist; PatternError (a ValueError) for an invalid topic pattern; OSError if a directory
        cannot be listed.
        """
        begun = time.monotonic()
        if self._listing is None or begun >= self._fresh_until:
            self._listing = self._list_anew()
            ended = time.monotonic()
            self._fresh_until = ended + _REUSE_FACTOR * (ended - begun)
        return self._listing

    def _list_anew(self) -> Listing:
        """Return a new listing. Raise what :meth:`list_paths` raises."""
        found = survey(self.paths, tuple(self._include), unreadable_raises=False)
        selected = select_partitions(
            found.partitions, self._topics, self._numbers, found.excluded_segments
        )
        selected = select_replicas(selected, self._replicas)
        partitions: dict[str, Partition] = {}
        topics: dict[str, list[tuple[str, Partition]]] = {}
        for one in selected:
            key = make_id(one.topic, one.partition, one.state, one.directory)
            partitions[key] = one
            topics.setdefault(make_id(one.topic), []).append((key, one))
        return Listing(found, partitions, topics, present())
