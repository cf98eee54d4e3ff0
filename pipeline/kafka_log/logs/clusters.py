"""Clusters of log directories, by the cluster id in their ``meta.properties``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kafka_log.logs.broker_files import log_directory_of, read_meta_properties
from kafka_log.logs.partitions import DirectoryError, Partition


class ClusterIds:
    """Cluster ids of partitions. Each ``meta.properties`` is read once."""

    def __init__(self) -> None:
        self._known: dict[Path, str | None] = {}

    def get(self, partition: Partition) -> str | None:
        """Return the cluster id in ``meta.properties`` of the log directory of a partition; None if
        the file has none, does not exist or cannot be read.
        """
        directory = log_directory_of(partition.directory)
        if directory not in self._known:
            properties = read_meta_properties(directory)
            self._known[directory] = None if properties is None else properties.cluster_id
        return self._known[directory]

    def find_only(self, partitions: Iterable[Partition]) -> str | None:
        """Return the cluster id that the log directories of ``partitions`` state, None if none
        states one. Raise DirectoryError if two of them state different ids.
        """
        first: tuple[str, Partition] | None = None
        for partition in partitions:
            stated = self.get(partition)
            if stated is None:
                continue
            first = first or (stated, partition)
            if stated != first[0]:
                reason = (
                    f"the meta.properties beside it states the cluster id {stated}, and the one beside {first[1].directory} {first[0]}: the logs are of"
                    " different clusters, and none is a replica of the other. Read one cluster at a time"
                )
                raise DirectoryError(partition.directory, reason)
        return None if first is None else first[0]

    def select_same(
        self, partitions: Iterable[Partition], others: Iterable[Partition]
    ) -> list[Partition]:
        """Return the ``partitions`` that may be of the cluster of ``others``: an unknown cluster id
        matches every id. Raise DirectoryError if ``others`` are of different clusters.
        """
        own = self.find_only(others)
        return [p for p in partitions if own is None or self.get(p) in (None, own)]
