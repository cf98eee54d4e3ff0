"""What a consumer gets of a partition: what its isolation makes of a selection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kafka_log.disk.directory import MAX_OFFSET, Segment
from kafka_log.segment.row_selection import Aborted, RowSelection
from kafka_log.tables.selection import Selection

if TYPE_CHECKING:
    from kafka_log.segment.kernels import Engine


class Log(Protocol):
    """A partition, by its segments in the order of offsets."""

    @property
    def segments(self) -> Sequence[Segment]: ...


class PartitionRows:
    """The rows that a selection wants of partitions, of one at a time: with ``read_committed`` their transactions are looked for,
    from batch headers and markers.

    ``of_view``: where isolation is not said, of Kafka's own topics comes what brokers take of them: nothing of transactions that
    have not ended, but all that others wrote after they began.
    """

    def __init__(
        self, selection: Selection, engine: Engine = "auto", *, of_view: bool = False
    ) -> None:
        self._selection = selection
        self._whole = of_view and selection.isolation is None
        self._committed = self._whole or selection.isolation == "read_committed"
        self._engine = engine
        self._partition: Log | None = None
        self._rows = selection.rows()

    def of(self, partition: Log) -> RowSelection:
        """What is wanted of its segments. Raises CodecError for damage, where that is an error."""
        if self._committed and partition is not self._partition:
            self._partition, self._rows = partition, self._find(partition)
        return self._rows

    def _find(self, partition: Log) -> RowSelection:
        from kafka_log.disk.transactions import transactions  # the codecs: not for other scans

        found = transactions(
            partition.segments,
            self._selection.policy,
            damage_raises=self._selection.raises,
            engine=self._engine,
        )
        aborted = [(t.producer_id, t.first_offset, t.last_offset) for t in found.aborted]
        if self._whole:
            aborted += [(producer, first, MAX_OFFSET) for producer, first in found.begun]
        stable = None if self._whole else found.last_stable_offset
        return self._selection.rows(stable, Aborted(aborted))
