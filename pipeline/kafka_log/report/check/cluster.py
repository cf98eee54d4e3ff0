"""What the metadata of the cluster, where it lies beside, says of the partitions of a log directory."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from codecgen.runtime.errors import CodecError
from kafka_codecs import META_PROPERTIES
from kafka_log.disk.directory import DirectoryError, NotThere, discover
from kafka_log.disk.small_files import small_file
from kafka_log.report.metadata_log import metadata_log
from kafka_log.report.metadata_state import TOPIC, topics
from kafka_log.tables.own_topics import CLUSTER_METADATA

_POLICIES = ("cleanup.policy", "log.cleanup.policy")


@dataclass(frozen=True, slots=True)
class _Said:
    names: frozenset[str] = frozenset()
    """Topics that there are."""
    has_policy: frozenset[str] = frozenset()
    """What has, or had, a setting of how it is cleaned: topics; "" for all of them."""
    partitions: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)


@dataclass
class Cluster:
    """The metadata log of a broker's log directory. It is read when it is first asked for; where there is none, or it cannot be
    read, nothing is known."""

    directory: Path

    @cached_property
    def _said(self) -> _Said:
        try:
            return _read(self.directory)
        except (CodecError, DirectoryError, NotThere, OSError):
            return _Said()

    def is_never_compacted(self, topic: str) -> bool:
        """Whether a topic has the broker's own way of cleaning, which is to delete, as long as the metadata log tells."""
        said = self._said
        return topic in said.names and not {topic, ""} & said.has_policy

    def is_here(self, key: tuple[str, int]) -> bool:
        """Whether a partition belongs into this log directory."""
        row = self._said.partitions.get(key)
        ids = _ids(self.directory)
        if row is None or ids is None:
            return False
        node, directory = ids
        if node not in row["replicas"]:
            return False
        # Without the id of a directory it is not known in which one of the broker it is.
        at = row["replicas"].index(node)
        return at < len(row["directories"]) and row["directories"][at] == directory


def _read(directory: Path) -> _Said:
    log = metadata_log(discover([directory / f"{CLUSTER_METADATA}-0"]), None)
    found = topics(log.events(("topics", "partitions", "metadata_events"), salvage=True))
    has_policy = {
        row["resource_name"] if row["resource_type"] == TOPIC else ""
        for _, row in log.events(("configs",), salvage=True)
        if row["name"] in _POLICIES
    }
    partitions = {
        (found.names[topic_id], number): row
        for topic_id, of_topic in found.partitions.items()
        if topic_id in found.names
        for number, row in of_topic.items()
    }
    return _Said(frozenset(found.names.values()), frozenset(has_policy), partitions)


def _ids(directory: Path) -> tuple[int, bytes] | None:
    """The ids of the node and of the log directory; None where they are not known."""
    path = directory / "meta.properties"
    try:
        said = META_PROPERTIES.parse(small_file(path), file=os.fspath(path), strict=False)
    except (OSError, CodecError):
        return None
    node = said.node_id if said.node_id is not None else said.broker_id
    if node is None or said.directory_id is None:
        return None
    return int(node), said.directory_id.bytes
