"""A log directory that answers questions, each with an Arrow table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_log.disk.directory import Partition, chosen, discover, is_partition

if TYPE_CHECKING:
    from kafka_log.segment.columnar import Engine

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
        self.path = path if isinstance(path, str | os.PathLike) else tuple(path)
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

    def check(
        self,
        *,
        deep: bool = False,
        engine: Engine = "auto",
        advance: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """What is wrong: a row for each finding, the worst first. Nothing is changed.

        Columns: ``severity`` (error, warning, note), ``code``, ``topic``, ``partition``, ``file``, ``byte`` (position in the
        file), ``first_offset`` and ``last_offset`` that are concerned, ``records`` (lost or at risk at most), ``meaning`` and
        ``remedy``. Numbers are null where unknown. Headers, checksums and the files beside the segments are checked; with
        ``deep`` every record is decoded too. ``advance`` is told of bytes of segments that are done. Memory holds the batch
        headers of one segment. A file that cannot be read is a finding. See :mod:`kafka_log.report.check`.
        """
        from kafka_log.report.check import check_table

        return check_table(
            self.partitions, self._broker_directories(), deep=deep, engine=engine, advance=advance
        )

    def _broker_directories(self) -> list[Path]:
        """The paths that are brokers' log directories; none when partitions were chosen."""
        if self._topics is not None or self._numbers is not None:
            return []
        given = [self.path] if isinstance(self.path, str | os.PathLike) else self.path
        paths = dict.fromkeys(map(Path, given))
        return [path for path in paths if path.is_dir() and not is_partition(path)]
