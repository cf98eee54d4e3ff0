"""Cluster metadata beside the partitions of a log directory: topic ids, policies, assignments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from codecgen.runtime.errors import CodecError
from kafka_codecs import ConfigResourceType
from kafka_log.inspect.metadata.answer import answer_metadata, metadata_replicas
from kafka_log.inspect.metadata.image import build_topics
from kafka_log.inspect.metadata.metadata_log import Event
from kafka_log.logs.broker_files import get_node_id, read_meta_properties
from kafka_log.logs.discovery import discover
from kafka_log.logs.names import CLUSTER_METADATA
from kafka_log.logs.partitions import DirectoryError, NotFoundError, Partition

Row = dict[str, Any]

_RESERVED = 100
"""Lower ids are those of no directory: unassigned, lost, and such."""

_POLICIES = ("cleanup.policy", "log.cleanup.policy")


@dataclass
class Cluster:
    """Metadata log of a log directory, read when it is first needed.

    If there is none, or a part of its end state cannot be read, all answers are "unknown": a lost record may have changed any of them.
    """

    directory: Path
    _problem: str | None = field(default=None, init=False)

    @property
    def path(self) -> Path:
        """Return the partition directory of the metadata log, which may not exist."""
        return self.directory / f"{CLUSTER_METADATA}-0"

    def find_problem(self) -> str | None:
        """Return why a part of the metadata cannot be read; None if all of it can, or there is none."""
        _ = self._topics
        return self._problem

    def topic_id(self, topic: str) -> bytes | None:
        """Return the id of a topic; None if unknown."""
        return self._topics.get(topic)

    def topic_of(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with an id; None if unknown."""
        return next((name for name, one in self._topics.items() if one == topic_id), None)

    def is_never_compacted(self, topic: str) -> bool:
        """Return whether the metadata has the topic, and never had a cleanup policy for it or for
        all topics. Return False if the metadata is unknown.
        """
        return topic in self._topics and not {topic, ""} & self._has_policy

    def partitions_of(self, topic: str) -> int | None:
        """Return the number of partitions of a topic; None if it is unknown or 0."""
        return sum(name == topic for name, _ in self._partitions) or None

    def replicas_of(self, key: tuple[str, int]) -> int | None:
        """Return the number of replicas of the partition ``key`` (topic, number), also those that
        are being added; None if unknown.
        """
        row = self._partitions.get(key)
        return None if row is None else len({*row["replicas"], *(row["adding_replicas"] or ())})

    def assigned_to(self, node: int) -> int:
        """Return the number of replicas that the metadata assigns to the node id ``node`` in a
        directory with a real id (100 or above; lower ids mean unassigned or lost). Return 0 if the
        metadata is unknown.
        """
        found = (
            directory
            for row in self._partitions.values()
            for replica, directory in zip(row["replicas"], row["directories"], strict=False)
            if replica == node
        )
        return sum(int.from_bytes(directory, "big") >= _RESERVED for directory in found)

    def is_here(self, key: tuple[str, int]) -> bool:
        """Return whether the metadata assigns the partition ``key`` (topic, number) to the node id
        and directory id in ``meta.properties`` of this directory. Return False if one of these ids
        or the partition is unknown.
        """
        row = self._partitions.get(key)
        ids = _read_ids(self.directory)
        if row is None or ids is None:
            return False
        node, directory = ids
        if node not in row["replicas"]:
            return False
        # Without the id of a directory it is not known in which one of the broker it is.
        at = row["replicas"].index(node)
        return at < len(row["directories"]) and bool(row["directories"][at] == directory)

    @cached_property
    def _replicas(self) -> list[Partition]:
        """Return the replica of the metadata log in the directory, in a list; ``[]`` if there is
        none or it cannot be found, listed or read. Note the error as the problem.
        """
        try:
            found = discover([self.path]) if self.path.is_dir() else []
            return metadata_replicas(found, None) if found else []
        except (DirectoryError, NotFoundError, OSError) as error:
            self._problem = str(error)
            return []

    def _rows(
        self, views: Sequence[str], rows: Callable[[Iterable[Event]], list[Row]]
    ) -> list[Row]:
        """Return the rows that the function ``rows`` makes of the events of ``views`` in the
        metadata log. Return ``[]`` if the directory has no metadata log, or a part of its state
        cannot be read; note the reason as the problem.
        """
        if not self._replicas:
            return []
        try:
            answer = answer_metadata(self._replicas, views, rows, None, salvage=False)
            answer.raise_for_reason()
            return answer.rows
        except (CodecError, DirectoryError, NotFoundError, OSError) as error:
            self._problem = str(error)
            return []

    @cached_property
    def _topics(self) -> dict[str, bytes]:
        """Return the 16-byte topic ids by topic name, of topics that exist at the end of the
        metadata log; ``{}`` if the metadata is unknown.
        """

        def rows(events: Iterable[Event]) -> list[Row]:
            return [{"topic": name, "id": id} for id, name in build_topics(events).names.items()]

        return {row["topic"]: row["id"] for row in self._rows(("topics",), rows)}

    @cached_property
    def _has_policy(self) -> frozenset[str]:
        """Return the topics for which the metadata log ever set a cleanup policy, even if it was
        removed later; ``""`` stands for a policy of brokers, the default of all topics. Empty if
        the metadata is unknown.
        """
        return frozenset(
            row["resource_name"] if row["resource_type"] == ConfigResourceType.TOPIC else ""
            for row in self._rows(("configs",), lambda events: [row for _, row in events])
            if row["name"] in _POLICIES
        )

    @cached_property
    def _partitions(self) -> dict[tuple[str, int], Row]:
        """Return the last row of the view ``partitions`` for each partition of an existing topic,
        with ``topic`` and ``partition`` added, by (topic, number); ``{}`` if the metadata is
        unknown.
        """

        def rows(events: Iterable[Event]) -> list[Row]:
            found = build_topics(events)
            return [
                row | {"topic": name, "partition": number}
                for topic_id, name in found.names.items()
                for number, row in found.partitions.get(topic_id, {}).items()
            ]

        views = ("topics", "partitions", "metadata_events")
        return {(row["topic"], row["partition"]): row for row in self._rows(views, rows)}


Clusters = Callable[[Path], Cluster]
"""The metadata that lies in a broker's log directory."""


def _read_ids(directory: Path) -> tuple[int, bytes] | None:
    """Return node id and directory id (16 bytes) in meta.properties of a log directory;
    ``broker.id`` counts as node id. Return None if the file is missing, cannot be parsed, or lacks
    one of the two.
    """
    said = read_meta_properties(directory)
    node = None if said is None else get_node_id(said)
    if said is None or node is None or said.directory_id is None:
        return None
    return node, said.directory_id.bytes
