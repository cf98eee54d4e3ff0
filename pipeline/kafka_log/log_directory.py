"""A log directory that answers questions, each with an Arrow table."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafka_log.disk.directory import Partition, Segment, State, chosen, survey
from kafka_log.segment.model import Policy

if TYPE_CHECKING:
    from kafka_log.report.export import Exported, Format

Place = str | os.PathLike[str]


class LogDirectory:
    """The partitions below a path: a segment, a partition's directory, a broker's log directory, or several of these.

    ``topics`` and ``partitions`` choose among what is there, ``include`` adds segments that are not live (see
    :data:`~kafka_log.disk.directory.State`). Each method answers one question with an Arrow table, and reads the
    files anew. Raises :class:`~kafka_log.disk.directory.DirectoryError` when there is no log, NotThere (a ValueError) for a topic or a
    partition that is not there.
    """

    def __init__(
        self,
        path: Place | Iterable[Place],
        *,
        topics: str | Iterable[str] | None = None,
        partitions: int | Iterable[int] | None = None,
        include: Collection[State] = (),
    ) -> None:
        self.path = [path] if isinstance(path, str | os.PathLike) else list(path)
        self.include = include
        self._topics = [topics] if isinstance(topics, str) else topics
        self._numbers = partitions

    @cached_property
    def _there(self) -> tuple[list[Partition], list[Segment]]:
        return survey(self.path, self.include)

    @cached_property
    def partitions(self) -> list[Partition]:
        """The partitions, by topic and number."""
        return chosen(self._there[0], self._topics, self._numbers)

    @cached_property
    def left_out(self) -> list[Segment]:
        """The segments that are there, but not live: deleted, stray and the like. ``include`` takes them in."""
        segments = self._there[1]
        return [s for s in segments if self._topics is None or s.topic in self._topics]

    def ls(self, *, segments: bool = False) -> pa.Table:
        """What lies there: a row for each partition, or (``segments``) for each segment. See :mod:`kafka_log.report.listing`."""
        from kafka_log.report.listing import partition_table, segment_table

        return segment_table(self.partitions) if segments else partition_table(self.partitions)

    def stat(self, *, deep: bool = False, policy: Policy | str = Policy.KAFKA) -> pa.Table:
        """A row for each partition: records, bytes, offsets, timestamps, codecs, problems. ``deep`` decodes every record, not headers
        and checksums only. Columns: :data:`kafka_log.report.summary_table.SUMMARIES`. Raises OSError."""
        from kafka_log.report.summary import summarize
        from kafka_log.report.summary_table import summary_table
        from kafka_log.segment.block_reader import BlockReader

        def reader(segment: Segment) -> BlockReader:
            tail, size = segment.tail, segment.size
            return BlockReader(segment.path, policy=policy, records=deep, tail=tail, size=size)

        return summary_table(self.partitions, summarize(self.partitions, reader))

    def export(
        self, out: Place, kind: Format = "parquet", *, overwrite: bool = False, **options: Any
    ) -> Iterator[Exported]:
        """Write a file for each partition, one after the other as this is iterated. See :func:`kafka_log.report.export.export`."""
        from kafka_log.report.export import export

        return export(self.partitions, Path(out), kind, overwrite=overwrite, **options)

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
