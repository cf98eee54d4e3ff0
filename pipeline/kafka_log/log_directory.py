"""A log directory that answers questions, each with an Arrow table."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from typing import Any

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

    def groups(
        self,
        *,
        names: str | Iterable[str] | None = None,
        at: int | None = None,
        states: bool = False,
        salvage: bool = False,
    ) -> pa.Table:
        """What groups have committed, from ``__consumer_offsets``: a row for each group and partition (see
        :data:`kafka_log.report.groups.COMMITS`), or (``states``) for each group (:data:`kafka_log.report.group_states.GROUPS`).

        ``names`` are the groups, None: all; ``topics`` and ``partitions`` of this object choose among the commits. ``at`` is a time
        in milliseconds since the epoch: what was written after it does not count. Transactions count whose commit is there. Raises
        :class:`~codecgen.runtime.errors.CodecError` for damage in that topic, or (``salvage``) goes on after it.
        """
        from kafka_log.report.group_states import group_table
        from kafka_log.report.groups import Groups, commit_table

        wanted = Groups(_set(names), _set(self._topics), _set(self._numbers), at, salvage)
        return (group_table if states else commit_table)(discover(self.path), wanted)

    def metadata(
        self, what: str = "topics", *, as_of: int | None = None, salvage: bool = False
    ) -> pa.Table:
        """What ``__cluster_metadata`` says: a row for each thing of a kind (:data:`kafka_log.report.metadata.KINDS`: ``topics``,
        ``partitions``, ``configs``, ``brokers``, ...) that there is after the record at the offset ``as_of`` (None: the last one).

        Raises ValueError for a kind or an offset that is not there, :class:`~kafka_log.disk.directory.DirectoryError` where records
        are missing, :class:`~codecgen.runtime.errors.CodecError` for damage and for records that are not known, or (``salvage``) passes
        over these.
        """
        from kafka_log.report.metadata import state_table

        topics, numbers = _set(self._topics), _set(self._numbers)
        found = discover(self.path)
        return state_table(found, what, as_of, topics=topics, numbers=numbers, salvage=salvage)

    def metadata_changes(
        self, first: int, last: int, what: str = "topics", *, salvage: bool = False
    ) -> pa.Table:
        """What is not the same after the records at two offsets: a row for each thing that was added, removed or changed, with the
        columns that differ and what they said, as JSON. Raises as :meth:`metadata`."""
        from kafka_log.report.metadata_changes import change_table

        topics, numbers = _set(self._topics), _set(self._numbers)
        return change_table(
            discover(self.path), what, first, last, topics=topics, numbers=numbers, salvage=salvage
        )

    def coordinator(self, names: str | Iterable[str], *, partitions: int | None = None) -> pa.Table:
        """The partitions of ``__consumer_offsets`` and ``__transaction_state`` that groups or transactional ids belong to, and the
        directories that are these (see :data:`kafka_log.report.coordinators.COORDINATORS`). The partition of a share group in
        ``__share_group_state`` goes by ``group:topic id:partition``, which is a name like others.

        ``partitions`` is how many the topics have, None: what ``__cluster_metadata`` says where it is there, else 50. Raises
        ValueError for a name that is no text, or a number of partitions that cannot be.
        """
        from kafka_log.report.coordinators import coordinator_table

        chosen = [names] if isinstance(names, str) else names
        return coordinator_table(chosen, discover(self.path), partitions)


def _set(chosen: Any) -> frozenset[Any] | None:
    """What is chosen, None for all."""
    if chosen is None:
        return None
    return frozenset([chosen] if isinstance(chosen, str | int) else chosen)
