"""The partitions that a log directory answers from."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_log.disk.directory import Include, Partition, Segment, chosen, is_partition, survey
from kafka_log.disk.replicas import Replicas, one_of_each
from kafka_log.disk.tiers import with_tiers
from kafka_log.segment.places import place_of
from kafka_log.segment.times import Time, moment
from kafka_log.tables.arguments import (
    places,
)

if TYPE_CHECKING:
    from kafka_log.report.partition_headers import OnDamage

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
        replicas: Replicas = "keep",
    ) -> None:
        from kafka_log.tables.selection import Selection

        self.path = places("path", path)
        wanted = Selection(topics=topics, partitions=partitions, include=include, replicas=replicas)
        self.include = wanted.include
        self.replicas = wanted.replicas
        self._topics = wanted.topics
        self._numbers = wanted.partitions

    @cached_property
    def _there(self) -> tuple[list[Partition], list[Segment]]:
        return survey(self.path, self.include, unreadable_raises=False)

    @cached_property
    def found(self) -> list[Partition]:
        """The partitions, by topic and number, also those that cannot be read: these say so."""
        return one_of_each(chosen(self._there[0], self._topics, self._numbers), self.replicas)

    @property
    def partitions(self) -> list[Partition]:
        """The partitions, by topic and number. Raises UnreadableError, an OSError, where one of them cannot be read."""
        return readable(self.found)

    @property
    def _logs(self) -> list[Partition]:
        """The partitions with what tiered storage has of them, each record once; also those that cannot be read."""
        return with_tiers(self.found)

    @cached_property
    def left_out(self) -> list[Segment]:
        """The segments that are there, but not live: deleted, stray and the like. ``include`` takes them in."""
        segments = self._there[1]
        return [s for s in segments if self._topics is None or s.topic in self._topics]

    @property
    def _paths(self) -> list[Path]:
        return list(map(place_of, self.path))

    def _chooses(self, partition: Partition) -> bool:
        topics, numbers = as_set(self._topics), as_set(self._numbers)
        return (topics is None or partition.topic in topics) and (
            numbers is None or partition.partition in numbers
        )

    def _broker_directories(self) -> list[Path]:
        """The paths that are brokers' log directories; none when partitions were chosen."""
        if self._topics is not None or self._numbers is not None:
            return []
        paths = dict.fromkeys(self._paths)
        return [path for path in paths if path.is_dir() and not is_partition(path)]


def readable(found: list[Partition]) -> list[Partition]:
    """The same, if all of them can be read. Raises UnreadableError."""
    for partition in found:
        if partition.error is not None:
            raise partition.error
    return found


def tell(found: Iterable[Partition], on_damage: OnDamage | None) -> None:
    """Tell of the partitions that cannot be read. Raises UnreadableError where nobody wants to be told."""
    for partition in found:
        if partition.error is None:
            continue
        if on_damage is None:
            raise partition.error
        on_damage(str(partition.error))


def time_of(now: Time | None) -> int:
    given = moment("now", now)
    return int(time.time() * 1000) if given is None else given


def as_set(chosen: Iterable[Any] | None) -> frozenset[Any] | None:
    """What is chosen, None for all."""
    return None if chosen is None else frozenset(chosen)
