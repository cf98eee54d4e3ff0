"""A log directory that answers questions, each with an Arrow table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
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

    def keys(self) -> pa.Table:
        """What compaction would leave: a row for each partition with its records, keys, tombstones, and how many records are obsolete
        or live; bytes are those of keys and values, not compressed. ``problem`` is the first damage of a partition, whose other
        records are counted. Memory: some 150 bytes for each key of a partition. See :mod:`kafka_log.report.keys`. Raises OSError."""
        from kafka_log.report.keys import key_table

        return key_table(self.partitions)

    def records_of_key(self, key: bytes, *, note: Callable[[str], None] | None = None) -> pa.Table:
        """All records of a key: offset, timestamp (milliseconds), bytes of the value, whether it is a tombstone, whether it is the
        latest of its partition, and the segment. Raises OSError, and CodecError for damage; with a ``note``, which takes the text
        of the error, what lies around the damage is read."""
        from kafka_log.report.keys import records_of_key

        return records_of_key(self.partitions, key, note)
