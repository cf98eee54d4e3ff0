"""The partitions that a log directory answers from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_log.logs.discovery import Survey, survey, warn_if_all_excluded
from kafka_log.logs.names import Include
from kafka_log.logs.partitions import (
    DirectoryError,
    Partition,
    Segment,
    SkippedPath,
    filter_by_topics,
    select_partitions,
)
from kafka_log.logs.replicas import Replicas, select_replicas
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.read.arguments import (
    places,
)
from kafka_log.segment.places import is_url, place_of
from kafka_log.segment.times import Time, moment, present

if TYPE_CHECKING:
    from kafka_log.inspect.partition_headers import OnDamage

Place = str | os.PathLike[str]


class Opened:
    """The partitions below some paths, those that are chosen, and those that are left out."""

    def __init__(
        self,
        path: Place | Iterable[Place],
        *,
        topics: str | Iterable[str] | None = None,
        partitions: int | Iterable[int] | None = None,
        include: Include = (),
        replicas: Replicas | None = None,
    ) -> None:
        from kafka_log.read.selection import Selection

        self.path = places("path", path)
        wanted = Selection(
            topics=topics, partitions=partitions, include=include, replicas=replicas or "error"
        )
        self.include = wanted.include
        self.replicas = None if replicas is None else wanted.replicas
        self._topics = wanted.topics
        self._numbers = wanted.partitions

    @cached_property
    def _there(self) -> Survey:
        return survey(self.path, self.include, unreadable_raises=False)

    @cached_property
    def found(self) -> list[Partition]:
        """The partitions, by topic and number, also those that cannot be read: these say so."""
        there = self._there
        wanted = select_partitions(
            there.found, self._topics, self._numbers, there.excluded_segments
        )
        warn_if_all_excluded(wanted, self.excluded_segments, stacklevel=2)
        return select_replicas(wanted, self.replicas or "keep")

    def refuse_copies(self, found: Sequence[Partition]) -> list[Partition]:
        """Return ``found``. Raises DirectoryError if two directories hold one partition and ``replicas`` does not say which are read."""
        return select_replicas(found, "error") if self.replicas is None else list(found)

    def _in_numbers(self) -> dict[str, str]:
        """What there is, by names and sizes: no file is read. Of places that cannot be listed what is wrong. Nobody asks a store for it."""
        said = {"path": ", ".join(map(str, self.path))}
        known: Survey | None = vars(self).get("_there")
        if known is None and any(map(is_url, self.path)):
            return said
        try:
            all_there = known or survey(self.path, self.include, unreadable_raises=False)
            there = select_partitions(all_there.found, self._topics, self._numbers)
        except (DirectoryError, OSError, ValueError) as error:
            return said | {"problem": str(error)}
        left = [
            s
            for s in all_there.excluded_segments
            if self._topics is None or s.topic in self._topics
        ]
        said["topics"] = f"{len({p.topic for p in there}):,}"
        said["partitions"] = f"{len({p.key for p in there}):,}"
        said["bytes"] = f"{sum(p.size for p in there):,}"
        if left:
            states = Counter(segment.state for segment in left)
            said["left out"] = ", ".join(f"{count} {state}" for state, count in states.items())
        return said

    def __repr__(self) -> str:
        path, *rest = self._in_numbers().items()
        return f"LogDirectory({'; '.join([path[1], *(f'{name}: {text}' for name, text in rest)])})"

    def _repr_html_(self) -> str:
        rows = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._in_numbers().items())  # fmt: skip
        return f"<table>{''.join(rows)}</table>"

    @property
    def partitions(self) -> list[Partition]:
        """The partitions, by topic and number. Raises UnreadableError, an OSError, where one of them cannot be read."""
        tell(self.found, None)
        return self.found

    @property
    def _logs(self) -> list[Partition]:
        """The partitions with what tiered storage has of them, each record once; also those that cannot be read."""
        return merge_tiered_segments(self.found)

    @cached_property
    def excluded_segments(self) -> list[Segment]:
        """The segments that are there, but not live: deleted, stray and the like. ``include`` takes them in."""
        segments = self._there.excluded_segments
        return [s for s in segments if self._topics is None or s.topic in self._topics]

    @cached_property
    def skipped_paths(self) -> list[SkippedPath]:
        """What is not read though it has the name of a segment and is no file (a link to nothing, a FIFO, ...), or has segments and the
        name of no partition: each with why. A path of its own reads such a directory."""
        return filter_by_topics(self._there.skipped_paths, _with_own_topics(self._topics))

    @property
    def _paths(self) -> list[Path]:
        return list(map(place_of, self.path))

    def _chooses(self, partition: Partition) -> bool:
        topics, numbers = as_set(self._topics), as_set(self._numbers)
        return (topics is None or partition.topic in topics) and (
            numbers is None or partition.partition in numbers
        )

    def _broker_directories(self) -> list[Path]:
        """The log directories among and below the paths; none when partitions were chosen."""
        if self._topics is not None or self._numbers is not None:
            return []
        return self._there.directories


def readable(found: Sequence[Partition], on_damage: OnDamage | None, topic: str) -> list[Partition]:
    """The partitions, of which those of a topic hold the answer, without what cannot be read: ``on_damage`` is told of it. Raises
    UnreadableError where nobody wants to be told, or nothing of the topic can be read."""
    closed = [p for p in found if p.error is not None and not p.segments]
    of_topic = [p for p in found if p.topic == topic]
    if of_topic and all(p in closed for p in of_topic):
        tell(of_topic, None)
    tell(found, on_damage)
    return [replace(p, error=None) for p in found if p.topic != topic or p not in closed]


def tell(found: Iterable[Partition], on_damage: OnDamage | None) -> None:
    """Tell of the partitions that cannot be read. Raises UnreadableError where nobody wants to be told."""
    for partition in found:
        if partition.error is None:
            continue
        if on_damage is None:
            raise partition.error
        on_damage(str(partition.error))


def _with_own_topics(topics: Iterable[str] | None) -> list[str] | None:
    """Topics, and those of Kafka's own from which answers about any topic come; None: all."""
    from kafka_log.logs.names import CLUSTER_METADATA
    from kafka_log.read.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE

    own = (CONSUMER_OFFSETS, TRANSACTION_STATE, CLUSTER_METADATA)
    return None if topics is None else [*topics, *own]


def time_of(now: Time | None) -> int:
    given = moment("now", now)
    return present() if given is None else given


def as_set(chosen: Iterable[Any] | None) -> frozenset[Any] | None:
    """What is chosen, None for all."""
    return None if chosen is None else frozenset(chosen)
