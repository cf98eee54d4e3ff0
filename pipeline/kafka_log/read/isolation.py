"""Row filters of partitions: a selection, limited by isolation level and log start offset."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kafka_log.logs.log_start import LOG_STATES, Log, LogStarts
from kafka_log.logs.names import State
from kafka_log.logs.offset_ranges import within_offsets
from kafka_log.logs.partitions import Segment
from kafka_log.read.selection import Selection
from kafka_log.segment.model import Lost, Policy
from kafka_log.segment.ranges import MAX_OFFSET, Range, counts_from_end, offsets_from
from kafka_log.segment.row_selection import Aborted, RowSelection
from kafka_log.segment.urls import is_url

if TYPE_CHECKING:
    from kafka_log.logs.transactions import Transactions
    from kafka_log.segment.kernels import Engine


Known = MutableMapping[tuple[Log, Policy, bool], "Transactions"]
"""Transactions by partition, policy, and whether damage is an error."""


class PartitionFilters:
    """Row filters of partitions, for one partition at a time.

    With ``read_committed`` the transactions of a partition are looked up from batch headers and markers. Records before the log start offset
    are selected only with ``deleted_records``. Segments that are not part of the log, and were included by their state, have no log start offset.
    """

    def __init__(
        self,
        selection: Selection,
        engine: Engine = "auto",
        *,
        of_view: bool = False,
        starts: LogStarts | None = None,
        known: Known | None = None,
        lists_again: bool = False,
    ) -> None:
        """Prepare filters for a selection.

        Args:
            selection: Selected records.
            engine: Codecs that read batch headers.
            of_view: Rows are those of a view of an internal topic. Without an isolation level they are the records that brokers use: none of
                aborted or open transactions, but records of others after the last stable offset.
            starts: Log start offsets. None reads them.
            known: Transactions that were found before. New ones are added.
            lists_again: If retention removes a segment during the search for transactions, leave out its rows and those of segments before it.
                False raises UnreadableError then.
        """
        self._asked = self._selection = selection
        self._whole = of_view and selection.isolation is None
        self._committed = self._whole or selection.isolation == "read_committed"
        self._engine = engine
        self._starts = None if selection.deleted_records else starts or LogStarts()
        self._known: Known = {} if known is None else known
        self._lists_again = lists_again
        self._firsts: dict[Log, int] = {}
        self._partition: Log | None = None
        self._counted: Log | None = None
        self._rows = self._in_log = RowSelection()

    def filter_for(self, partition: Log, state: State = "live") -> RowSelection:
        """Return the row filter for the segments of a partition in the state ``state``; with
        read_committed it excludes aborted and undecided records. In live and remote segments it
        also excludes records below the log start offset, unless they are selected. Raise CodecError
        for damage in transactions unless the selection accepts it, and, if offsets count from the
        end, for damage there under ``strict``. Raise UnreadableError if retention removes a segment
        meanwhile and ``lists_again`` is False.
        """
        if partition is not self._partition:
            self._count(partition)
            rows = self._find(partition) if self._committed else self._selection.rows()
            self._partition, self._rows = partition, rows
            self._in_log = replace(rows, offsets=self._from_start(partition, rows.offsets))
        return self._in_log if state in LOG_STATES else self._rows

    def selected_offsets(self, partition: Log) -> Range:
        """Return the selected offsets of a partition from its log start on, also those of undecided
        records, which :meth:`filter_for` excludes. Raise the errors of :meth:`filter_for`.
        """
        self.filter_for(partition)
        return self._from_start(partition, self._selection.offsets)

    def _from_start(self, partition: Log, offsets: Range) -> Range:
        """Return a range of offsets without those below the log start offset of a partition, and those that retention removed meanwhile."""
        for start in (self.start(partition), self._firsts.get(partition)):
            if start is not None:
                offsets = offsets_from(offsets, start)
        return offsets

    def segments(self, partition: Log) -> list[Segment]:
        """Return the segments of a partition that may hold selected offsets, by the base offsets in
        their names; those without one are included. If offsets count from the end, raise CodecError
        for damage in transactions (with read_committed, unless the selection accepts it), and for
        damage at the end of the log under ``strict``.
        """
        self._count(partition)
        offsets = self._selection.offsets
        start = self.start(partition)
        if start is not None and all(s.state in LOG_STATES for s in partition.segments):
            offsets = offsets_from(offsets, start)
        return within_offsets(partition.segments, offsets)

    def start(self, partition: Log) -> int | None:
        """Return the log start offset of a partition if records before it are not selected, else None."""
        return None if self._starts is None else self._starts.get(partition)

    def last_stable_offset(self, partition: Log) -> int | None:
        """Return the first offset of the oldest open transaction of a partition; None if none is
        open. Raise CodecError for damage in transactions unless the selection accepts it, and
        UnreadableError if retention removes a segment meanwhile and ``lists_again`` is False.
        """
        return self._transactions_of(partition).last_stable_offset

    def find_transaction_losses(self, partition: Log) -> Iterator[tuple[Path, Lost]]:
        """Yield the file of a batch whose offsets cannot be right, or of a marker that cannot be
        decoded, and why, as an empty lost range: read_committed may leave out or return wrong records
        because of it although damage is accepted. Raise UnreadableError if retention removes a
        segment meanwhile and ``lists_again`` is False.
        """
        error = self._transactions_of(partition).error if self._committed else None
        if error is not None:
            path, position = Path(error.where.file or ""), error.where.position or 0
            yield path, Lost(position, position, f"byte {position}: {error.reason}")

    def _count(self, partition: Log) -> None:
        """Replace offsets of the selection that count from the end of ``partition`` by absolute
        ones; do nothing if that was done for it. The end is at most the last stable offset with
        read_committed. Raise CodecError for damage in transactions unless the selection accepts it,
        and for damage at the end of the log under ``strict``. Raise UnreadableError if retention
        removes a segment meanwhile and ``lists_again`` is False.
        """
        if partition is not self._counted:
            stable = None
            if counts_from_end(self._asked.offsets) and self._committed and not self._whole:
                stable = self.last_stable_offset(partition)
            self._counted, self._selection = (
                partition,
                self._asked.resolve_offsets(partition.segments, stable),
            )

    def _find(self, partition: Log) -> RowSelection:
        """Return the row filter of a partition without aborted records and without those from the
        last stable offset on. For a view it excludes records of open transactions in place of the
        latter. Raise CodecError for damage in transactions unless the selection accepts it. Raise
        UnreadableError if retention removes a segment meanwhile and ``lists_again`` is False.
        """
        found = self._transactions_of(partition)
        rows = self._select(found)
        if not found.is_verified and not self._are_crossing_confirmed(found, rows, partition):
            found = self._read_batches(_with_cached_paths(partition.segments))
            self._known[self._cache_key(partition)] = found
            rows = self._select(found)
        aborted = [(t.producer_id, t.first_offset, t.last_offset) for t in found.aborted]
        if self._whole:
            aborted += [
                (producer, first, MAX_OFFSET) for producer, first in found.open_first_offsets
            ]
        selected = Aborted(aborted, is_verified=found.is_verified, unindexed=found.unindexed)
        is_limited = bool(aborted) or found.last_stable_offset is not None
        return replace(
            rows, aborted=selected, verifies_order=is_limited and not found.is_order_verified
        )

    def _select(self, found: Transactions) -> RowSelection:
        """Return the row filter of the selection, limited to offsets before the last stable one unless rows are those of a view."""
        return self._selection.rows(None if self._whole else found.last_stable_offset)

    def _are_crossing_confirmed(
        self, found: Transactions, rows: RowSelection, partition: Log
    ) -> bool:
        """Return whether batches confirm the aborted transactions that begin before the end of the
        selected offsets and end after it, so that whoever reads the rows does not meet the marker.
        If the last stable offset is that end, only those that also begin before the first selected
        offset are looked up: the reader meets the first batches of the others.
        """
        low, high = rows.offsets
        if high is None:
            return True
        starts = low, self.start(partition), self._firsts.get(partition)
        first = max((start for start in starts if start is not None), default=0)
        before = first if high == found.last_stable_offset else high
        crossing = [
            one for one in found.aborted if one.first_offset < before and one.last_offset >= high
        ]
        if not crossing:
            return True
        from kafka_log.logs.transaction_files import are_confirmed_by_batches

        segments = _with_cached_paths(partition.segments)
        return are_confirmed_by_batches(crossing, segments, self._engine)

    def _transactions_of(self, partition: Log) -> Transactions:
        """Return the transactions of a partition; read them only at the first call. Raise
        CodecError for damage, and for an unreadable file, unless the selection accepts damage;
        UnreadableError if retention removes a segment meanwhile and ``lists_again`` is False.
        """
        key = self._cache_key(partition)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._transactions(partition)
        return found

    def _cache_key(self, partition: Log) -> tuple[Log, Policy, bool]:
        """Return the key of a partition among the known transactions."""
        return partition, self._asked.policy, self._asked.raises

    def _transactions(self, partition: Log) -> Transactions:
        """Return the transactions of a partition, read anew. If retention may remove segments
        meanwhile, go on with those that are left, and note their first offset. Raise CodecError for
        damage, UnreadableError for a segment that cannot be read, unless the selection accepts
        damage.
        """
        if not self._lists_again:
            return self._transactions_in(partition.segments)
        from kafka_log.logs.removed_segments import read_history  # not for other scans

        def read(segments: Sequence[Segment]) -> Transactions:
            """Return the transactions in ``segments``, the last ones of the partition, and note their first offset if some are gone."""
            if len(segments) < len(partition.segments):
                first = segments[0].base_offset if segments else MAX_OFFSET
                self._firsts[partition] = first
            return self._transactions_in(segments)

        return read_history(partition.segments, read)

    def _transactions_in(self, segments: Sequence[Segment]) -> Transactions:
        """Return the transactions in segments: from transaction indexes and producer snapshots if
        damage is an error and these files suffice, else from batch headers. Raise CodecError for
        damage, and for an unreadable file, unless the selection accepts damage; always
        UnreadableError for a segment that retention deletes meanwhile. Checksums of batches are
        verified only under ``salvage``, if damage is accepted.
        """
        from kafka_log.logs.transaction_files import read_transactions_from_files  # the codecs

        segments = _with_cached_paths(segments)
        # Where damage is passed over, no file beside the log knows what of it will be read.
        if self._selection.raises:
            kept = read_transactions_from_files(segments, self._engine)
            if kept is not None:
                return kept
        return self._read_batches(segments)

    def _read_batches(self, segments: Sequence[Segment]) -> Transactions:
        """Return the transactions in segments from batch headers and markers. Raise CodecError for
        damage unless the selection accepts it, UnreadableError for a segment that retention deletes.
        """
        from kafka_log.logs.transactions import read_transactions  # not for other scans

        return read_transactions(
            segments,
            self._selection.policy,
            damage_raises=self._selection.raises,
            engine=self._engine,
        )


def _with_cached_paths(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Return the segments; if any is in a store, as a list in which paths in stores are replaced by
    ones that cache blocks of their files.
    """
    if not any(is_url(segment.path) for segment in segments):
        return segments
    from kafka_log.segment.buffered_files import BufferedBlocks, BufferedPath  # fsspec

    blocks = BufferedBlocks()
    return [
        replace(s, path=cast(Path, BufferedPath(cast(Any, s.path), blocks)))
        if is_url(s.path)
        else s
        for s in segments
    ]
