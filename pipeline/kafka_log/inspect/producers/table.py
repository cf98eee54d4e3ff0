"""The idempotent and transactional producers of partitions, as a table: their sequence numbers, and what is missing of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_codecs import ProducerSnapshotEntry
from kafka_log.inspect.partition_headers import OnDamage, PartitionHeaders
from kafka_log.logs.broker_files import read_newest_producer_snapshot
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.logs.removed_segments import read_history
from kafka_log.read.internal_topics import COORDINATOR_TOPICS
from kafka_log.read.selection import Selection
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.positioned_reads import listed_directory
from kafka_log.segment.ranges import EVERYTHING
from kafka_log.segment.versions import absent_value

SEQUENCES = 1 << 31
"""How many sequence numbers there are: 0 follows the last one."""

NO_SEQUENCE = absent_value("base_sequence")
"""The sequence number of a batch that has none."""

_TIME = pa.timestamp("ms", "UTC")

PRODUCERS = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Its name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Its number."}),
        pa.field("producer_id", pa.int64(), False, {"doc": "Of the producer."}),
        pa.field("producer_epoch", pa.int16(), False, {"doc": "Of the producer."}),
        pa.field("is_transactional", pa.bool_(), True, {"doc": "Whether it writes transactions."}),
        pa.field(
            "first_sequence",
            pa.int32(),
            True,
            {
                "doc": "Of its first batch. Null in topics that coordinators write, such as __consumer_offsets: their batches have no sequence."
            },
        ),
        pa.field(
            "last_sequence", pa.int32(), True, {"doc": "Of its last batch, or null likewise."}
        ),
        pa.field(
            "snapshot_last_sequence",
            pa.int32(),
            True,
            {"doc": "What the newest producer snapshot says, or null likewise."},
        ),
        pa.field("first_offset", pa.int64(), True, {"doc": "Of its first batch."}),
        pa.field("last_offset", pa.int64(), True, {"doc": "Of its last batch."}),
        pa.field(
            "first_timestamp",
            _TIME,
            True,
            {"doc": "The least of what batches have as their largest."},
        ),
        pa.field("last_timestamp", _TIME, True, {"doc": "The largest of these."}),
        pa.field("batches", pa.int64(), False, {"doc": "Those that are there."}),
        pa.field("records", pa.int64(), False, {"doc": "Data records."}),
        pa.field("markers", pa.int64(), False, {"doc": "Transaction markers with this epoch."}),
        pa.field(
            "gaps", pa.int64(), False, {"doc": "Sequence numbers that are missing between batches."}
        ),
        pa.field(
            "duplicates",
            pa.int64(),
            False,
            {"doc": "Batches that begin at or before a sequence number that was there."},
        ),
        pa.field("directory", pa.string(), False, {"doc": "Path of the partition."}),
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
class Run:
    """What a partition has of one producer id and epoch, so far. Timestamps are in milliseconds."""

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
        """Count a batch of data: ``sequences`` and ``offsets`` are its first and last ones."""
        self._follow(*sequences)
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

    def _follow(self, first: int, last: int) -> None:
        if first < 0:
            return  # a batch without sequence numbers
        if self.last_sequence < 0:
            self.first_sequence, self.last_sequence = first, last
            return
        ahead = distance(self.last_sequence, first)
        if ahead > 0:
            self.gaps += ahead - 1
        else:
            self.duplicates += 1
        if distance(self.last_sequence, last) > 0:
            self.last_sequence = last


Runs = dict[tuple[int, int], Run]
"""What a partition has of its producers, by id and epoch."""


def distance(one: int, other: int) -> int:
    """How far a sequence number is ahead of one, which is negative when it lies behind: of both ways round, the shorter."""
    ahead = (other - one) % SEQUENCES
    return ahead if ahead < SEQUENCES // 2 else ahead - SEQUENCES


def producer_table(
    partitions: Sequence[Partition],
    on_damage: OnDamage,
    wanted: Selection,
    advance: Callable[[int], None] = lambda _: None,
) -> pa.Table:
    """A row for each producer id and epoch of each partition, in the columns of :data:`PRODUCERS`, by id and epoch.

    ``wanted`` says which batches count; in a range of it are no producers that only a snapshot knows. Memory holds the rows. Raises
    OSError.
    """
    rows = []
    whole = wanted.offsets == wanted.timestamps == EVERYTHING
    for partition in partitions:

        def runs_of(segments: Sequence[Segment], partition: Partition = partition) -> Runs:
            return _runs(replace(partition, segments=tuple(segments)), on_damage, wanted, advance)

        runs = read_history(partition.segments, runs_of)
        known: dict[tuple[int, int], ProducerSnapshotEntry] = {}
        for entry in (
            read_newest_producer_snapshot(listed_directory(partition.directory)) or ()
            if partition.segments
            else ()
        ):
            key = entry.producer_id, entry.producer_epoch
            is_wanted = wanted.producers is None or entry.producer_id in wanted.producers
            if is_wanted and (whole or key in runs):
                known[key] = entry
        for key in sorted({*runs, *known}):
            rows.append(_row(partition, key, runs, known))
    return pa.Table.from_pylist(rows, PRODUCERS)


def _runs(
    partition: Partition,
    on_damage: OnDamage,
    wanted: Selection,
    advance: Callable[[int], None],
) -> Runs:
    runs: Runs = {}
    has_sequences = partition.topic not in COORDINATOR_TOPICS
    wanted_rows = wanted.resolve_offsets(partition.segments).batches()
    for _, batch in PartitionHeaders(partition, _COLUMNS, on_damage, wanted_rows, advance):
        rows = batch.filter(pc.greater_equal(batch.column("producer_id"), 0))
        columns = (rows.column(name).to_pylist() for name in _COLUMNS)
        for number, epoch, control, transactional, *rest in zip(*columns, strict=True):
            base, last, first_offset, last_offset, time, count = rest
            if not has_sequences:
                base = last = NO_SEQUENCE
            run = runs.get((number, epoch))
            if run is None:
                run = runs[number, epoch] = Run()
            if control:
                run.markers += 1
            else:
                run.add(transactional, (base, last), (first_offset, last_offset), time, count)
    return runs


def _row(
    partition: Partition,
    key: tuple[int, int],
    runs: Mapping[tuple[int, int], Run],
    known: Mapping[tuple[int, int], ProducerSnapshotEntry],
) -> dict[str, Any]:
    run = runs.get(key, Run())
    entry = None if partition.topic in COORDINATOR_TOPICS else known.get(key)
    return {
        "topic": utf8(partition.topic),
        "partition": partition.partition,
        "producer_id": key[0],
        "producer_epoch": key[1],
        "is_transactional": run.is_transactional or run.markers > 0 if key in runs else None,
        "first_sequence": _known(run.first_sequence),
        "last_sequence": _known(run.last_sequence),
        "snapshot_last_sequence": None if entry is None else _known(entry.last_sequence),
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


def _known(sequence: int) -> int | None:
    return sequence if sequence >= 0 else None
