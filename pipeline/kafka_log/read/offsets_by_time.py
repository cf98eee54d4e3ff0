"""Offsets by time, as brokers look them up for a consumer that asks for a time."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_log.logs.offset_ranges import within_offsets
from kafka_log.read.reader import dropped_range, lost_ranges
from kafka_log.read.selection import Selection
from kafka_log.segment.kernels import use_kernels
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.scanner import Flagged, Scanner

if TYPE_CHECKING:
    from kafka_log.logs.log_start import Log
    from kafka_log.read.scanning import OnLost
    from kafka_log.segment.kernels import Engine
    from kafka_log.segment.model import Lost


def offset_at(
    partition: Log,
    timestamp: int,
    selection: Selection | None = None,
    engine: Engine = "auto",
    first: int | None = None,
    on_lost: OnLost | None = None,
) -> int | None:
    """Return the lowest offset, at or after ``first`` (None: any), of a record, control records
    included, whose timestamp is at least ``timestamp`` in milliseconds since 1970. Return None if
    there is none. Of ``selection`` only policy and treatment of damage count: raise CodecError for
    damage before the record, and for an unreadable file, unless it accepts damage. Checksums are
    verified only from the first batch of a segment on that may hold the record by its header. Call
    ``on_lost`` for each lost range of the segments before that of the record: they may have had an
    earlier one.

    Of a file in a store, headers are read from where the time index says; of a local file, from its start.
    """
    from kafka_log.logs.index_files import (
        find_start_position,  # layouts of indexes: not for other scans
    )
    from kafka_log.logs.removed_segments import read_options

    wanted = selection or Selection()
    rows = RowSelection(offsets=(first, None), timestamps=(timestamp, None))
    for segment in within_offsets(partition.segments, (first, None)):
        start = find_start_position(segment, first, timestamp, engine)
        scanner = Scanner(
            segment.path,
            ("offset",),
            wanted.policy,
            selection=rows,
            on_damage=wanted.damage,
            engine="arrow" if use_kernels(segment.size - start, engine) else "construct",
            start=start,
            **read_options(segment),
        )
        dropped: list[Lost | None] = []
        with closing(scanner.items()) as items:
            for item in items:
                if isinstance(item, pa.RecordBatch) and item.num_rows:
                    found: int = item.column("offset")[0].as_py()
                    return found
                if isinstance(item, Flagged) and scanner.drop:
                    dropped.append(dropped_range(item))
        if on_lost is not None:
            for lost in (*filter(None, dropped), *lost_ranges(scanner)):
                on_lost(segment.path, lost)
    return None
