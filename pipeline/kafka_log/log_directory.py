"""A log directory that answers questions, each with an Arrow table."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property

import pyarrow as pa

from kafka_log.disk.directory import Partition, chosen, discover

Place = str | os.PathLike[str]


class LogDirectory:
    """The partitions below a path: a segment, a partition's directory, a broker's log directory, or several of these.

    ``topics`` and ``partitions`` choose among what is there. Each method answers one question with an Arrow table, and reads the
    files anew. Raises :class:`~kafka_log.disk.directory.DirectoryError` when there is no log, NotThere (a ValueError) for a topic or a
    partition that is not there.
    """

    def __init__(
        self,
        path: Place | Iterable[Place],
        *,
        topics: str | Iterable[str] | None = None,
        partitions: int | Iterable[int] | None = None,
    ) -> None:
        self.path = path
        self._topics = topics
        self._numbers = partitions

    @cached_property
    def partitions(self) -> list[Partition]:
        """The partitions, by topic and number."""
        return chosen(discover(self.path), self._topics, self._numbers)

    def ls(self, *, segments: bool = False) -> pa.Table:
        """What lies there: a row for each partition, or (``segments``) for each segment. See :mod:`kafka_log.report.listing`."""
        from kafka_log.report.listing import partition_table, segment_table

        return segment_table(self.partitions) if segments else partition_table(self.partitions)
