"""Count the batches of idempotent and transactional producers, and the gaps and duplicates in their sequence numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_codecs import ProducerSnapshotEntry
from kafka_log.inspect.partition_headers import (
    OnDamage,
    PartitionHeaders,
    SmallSegmentHeaders,
)
from kafka_log.logs.broker_files import read_newest_producer_snapshot
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.logs.removed_segments import read_history
from kafka_log.read.internal_topics import COORDINATOR_TOPICS
from kafka_log.read.selection import Selection
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.positioned_reads import listed_directory, unreadable
from kafka_log.segment.ranges import EVERYTHING
from kafka_log.segment.versions import absent_value

SEQUENCES = 1 << 31
"""Number of sequence numbers: 0 follows the last one."""

NO_SEQUENCE = absent_value("base_sequence")
"""The sequence number of a batch without one."""

_TIME = pa.timestamp("ms", "UTC")

PRODUCERS = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Topic name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Partition number."}),
        pa.field("producer_id", pa.int64(), False, {"doc": "Producer id."}),
        pa.field("producer_epoch", pa.int16(), False, {"doc": "Producer epoch."}),
        pa.field(
            "is_transactional",
            pa.bool_(),
            True,
            {"doc": "Whether the producer writes transactions."},
        ),
        pa.field(
            "first_sequence",
            pa.int32(),
            True,
            {
                "doc": "First sequence number of the first batch; null if batches have none, as in topics that coordinators write (__consumer_offsets)."
            },
        ),
        pa.field(
            "last_sequence",
            pa.int32(),
            True,
            {"doc": "Last sequence number of the last batch; null if batches have none."},
        ),
        pa.field(
            "snapshot_last_sequence",
            pa.int32(),
            True,
            {"doc": "Last sequence number in the newest producer snapshot; null if it has none."},
        ),
        pa.field("first_offset", pa.int64(), True, {"doc": "First offset of the first batch."}),
        pa.field("last_offset", pa.int64(), True, {"doc": "Last offset of the last batch."}),
        pa.field(
            "first_timestamp",
            _TIME,
            True,
            {"doc": "Smallest max_timestamp of the batches."},
        ),
        pa.field("last_timestamp", _TIME, True, {"doc": "Largest max_timestamp of the batches."}),
        pa.field("batches", pa.int64(), False, {"doc": "Number of batches."}),
        pa.field("records", pa.int64(), False, {"doc": "Number of data records."}),
        pa.field(
            "markers", pa.int64(), False, {"doc": "Number of transaction markers with this epoch."}
        ),
        pa.field(
            "gaps",
            pa.int64(),
            False,
            {"doc": "Number of missing sequence numbers between batches."},
        ),
        pa.field(
            "duplicates",
            pa.int64(),
            False,
            {"doc": "Number of batches whose first sequence number is not above those before."},
        ),
        pa.field("directory", pa.string(), False, {"doc": "Path of the partition directory."}),
    ]
)

_COLUMNS = (
    "producer_id",
    "producer_epoch",
    "is_control",
    "is_transactional",
    "base_sequence",
    "last_sequence",
    "base_offset",
    "last_offset",
    "max_timestamp",
    "record_count",
)


@dataclass(slots=True)
class ProducerRun:
    """Totals of the batches of one producer id and epoch in a partition. Timestamps are in milliseconds."""

    batches: int = 0
    records: int = 0
    markers: int = 0
    gaps: int = 0
    duplicates: int = 0
    is_transactional: bool = False
    first_sequence: int = NO_SEQUENCE
    last_sequence: int = NO_SEQUENCE
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None

    def add(
        self,
        is_transactional: bool,
        sequences: tuple[int, int],
        offsets: tuple[int, int],
        timestamp: int,
        records: int,
    ) -> None:
        """Count a data batch. ``sequences`` and ``offsets`` are its first and last ones, negative
        sequences mean none; ``timestamp`` is its largest, negative for none. A negative number of
        ``records`` counts as 0. The run is transactional if one batch ``is_transactional``.
        """
        self._add_sequences(*sequences)
        if not self.batches:
            self.first_offset = offsets[0]
        self.batches += 1
        self.records += max(records, 0)
        self.is_transactional = self.is_transactional or is_transactional
        self.last_offset = offsets[1]
        if timestamp >= 0:
            first, last = self.first_timestamp, self.last_timestamp
            self.first_timestamp = timestamp if first is None else min(first, timestamp)
            self.last_timestamp = timestamp if last is None else max(last, timestamp)

    def _add_sequences(self, first: int, last: int) -> None:
        """Compare the sequence numbers of a batch with the highest before, and keep the highest.
        Add the missing ones to ``gaps``, or count a duplicate if it begins at or before that one. A
        batch without sequence numbers is ignored; the first one is not compared.
        """
        if first < 0:
            return  # a batch without sequence numbers
        if self.last_sequence < 0:
            self.first_sequence, self.last_sequence = first, last
            return
        ahead = sequence_distance(self.last_sequence, first)
        if ahead > 0:
            self.gaps += ahead - 1
        else:
            self.duplicates += 1
        if sequence_distance(self.last_sequence, last) > 0:
            self.last_sequence = last


ProducerRuns = dict[tuple[int, int], ProducerRun]
"""Totals of a partition's producers, by producer id and epoch."""


def sequence_distance(before: int, after: int) -> int:
    """Return ``after - before`` in the circle of sequence numbers, by the shorter way. It is
    negative if ``after`` comes before ``before``, or lies opposite.
    """
    ahead = (after - before) % SEQUENCES
    return ahead if ahead < SEQUENCES // 2 else ahead - SEQUENCES


def producer_table(
    partitions: Sequence[Partition],
    on_damage: OnDamage,
    wanted: Selection,
    advance: Callable[[int], None] = lambda _: None,
) -> pa.Table:
    """Return one row per partition, producer id and epoch, in the columns of :data:`PRODUCERS`.
    Producers that only the newest producer snapshot has are included unless ``wanted`` has a range
    of offsets or timestamps. Rows are in the order of ``partitions``, then by id and epoch. No
    checksum is verified. Other damage, unreadable files and partition directories that are gone are
    skipped and reported to ``on_damage``. Raise UnreadableError if a segment disappears meanwhile
    and retention does not explain it.

    Memory holds the rows.

    Args:
        partitions: The partitions to read.
        on_damage: Called with a line for each lost range.
        wanted: Selects batches. With a range of offsets or timestamps, producers that only the snapshot has are left out.
        advance: Called with the size of each segment after it is read.
    """
    rows = []
    whole = wanted.offsets == wanted.timestamps == EVERYTHING
    ahead = SmallSegmentHeaders(chain.from_iterable(p.segments for p in partitions), _COLUMNS)
    for partition in partitions:

        def count_producers(
            segments: Sequence[Segment], partition: Partition = partition
        ) -> ProducerRuns:
            """Count the producers of these segments."""
            return _count_producers(
                replace(partition, segments=tuple(segments)), on_damage, wanted, advance, ahead
            )

        runs = read_history(partition.segments, count_producers)
        known: dict[tuple[int, int], ProducerSnapshotEntry] = {}
        for entry in _read_snapshot(partition, on_damage):
            key = entry.producer_id, entry.producer_epoch
            is_wanted = wanted.producers is None or entry.producer_id in wanted.producers
            if is_wanted and (whole or key in runs):
                known[key] = entry
        for key in sorted({*runs, *known}):
            rows.append(_row(partition, key, runs, known))
    return pa.Table.from_pylist(rows, PRODUCERS)


def _read_snapshot(partition: Partition, on_damage: OnDamage) -> Sequence[ProducerSnapshotEntry]:
    """Return the entries of the newest valid producer snapshot; ``()`` if the partition has no
    segment or no snapshot. If its directory cannot be listed, report that to ``on_damage`` and
    return ``()``.
    """
    if not partition.segments:
        return ()
    directory = listed_directory(partition.directory)
    try:
        return read_newest_producer_snapshot(directory) or ()
    except OSError as error:
        on_damage(str(unreadable(error, None, directory)))
        return ()


def _count_producers(
    partition: Partition,
    on_damage: OnDamage,
    wanted: Selection,
    advance: Callable[[int], None],
    ahead: SmallSegmentHeaders,
) -> ProducerRuns:
    """Return the totals of the wanted batches of a partition by producer id and epoch, without
    batches that have no producer. In topics of coordinators sequence numbers are ignored. No
    checksum is verified. Other damage and unreadable files are skipped and reported. Raise
    UnreadableError if retention deletes a segment meanwhile.
    """
    runs: ProducerRuns = {}
    has_sequences = partition.topic not in COORDINATOR_TOPICS
    wanted_rows = wanted.resolve_offsets(partition.segments).batches()
    for _, batch in PartitionHeaders(partition, _COLUMNS, on_damage, wanted_rows, advance, ahead):
        has_producer = pc.greater_equal(batch.column("producer_id"), 0)
        if not has_producer.true_count:
            continue
        rows = batch.filter(has_producer)
        columns = (rows.column(name).to_pylist() for name in _COLUMNS)
        for number, epoch, control, transactional, *rest in zip(*columns, strict=True):
            base, last, first_offset, last_offset, time, count = rest
            if not has_sequences:
                base = last = NO_SEQUENCE
            run = runs.get((number, epoch))
            if run is None:
                run = runs[number, epoch] = ProducerRun()
            if control:
                run.markers += 1
            else:
                run.add(transactional, (base, last), (first_offset, last_offset), time, count)
    return runs


def _row(
    partition: Partition,
    key: tuple[int, int],
    runs: Mapping[tuple[int, int], ProducerRun],
    known: Mapping[tuple[int, int], ProducerSnapshotEntry],
) -> dict[str, Any]:
    """Return the row of the producer ``key`` (id, epoch) from its totals in ``runs`` and its entry
    in the producer snapshot (``known``). If only the snapshot has it, counts are 0 and the other
    columns null; in topics of coordinators the snapshot's sequence number is null.
    """
    run = runs.get(key, ProducerRun())
    entry = None if partition.topic in COORDINATOR_TOPICS else known.get(key)
    return {
        "topic": utf8(partition.topic),
        "partition": partition.partition,
        "producer_id": key[0],
        "producer_epoch": key[1],
        "is_transactional": run.is_transactional or run.markers > 0 if key in runs else None,
        "first_sequence": _sequence_or_none(run.first_sequence),
        "last_sequence": _sequence_or_none(run.last_sequence),
        "snapshot_last_sequence": None if entry is None else _sequence_or_none(entry.last_sequence),
        "first_offset": run.first_offset,
        "last_offset": run.last_offset,
        "first_timestamp": run.first_timestamp,
        "last_timestamp": run.last_timestamp,
        "batches": run.batches,
        "records": run.records,
        "markers": run.markers,
        "gaps": run.gaps,
        "duplicates": run.duplicates,
        "directory": utf8(os.fspath(partition.directory)),
    }


def _sequence_or_none(sequence: int) -> int | None:
    """Return the sequence number, or None if it is negative (no sequence)."""
    return sequence if sequence >= 0 else None
