"""Offsets by time, as brokers look them up for a consumer that asks for a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_log.logs.offset_ranges import within_offsets
from kafka_log.read.selection import Selection
from kafka_log.segment.kernels import use_kernels
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.scanner import Scanner

if TYPE_CHECKING:
    from kafka_log.logs.log_start import Log
    from kafka_log.segment.kernels import Engine


def offset_at(
    partition: Log,
    timestamp: int,
    selection: Selection | None = None,
    engine: Engine = "auto",
    first: int | None = None,
) -> int | None:
    """Return the lowest offset, at or after ``first`` (None: any), of a record, control records
    included, whose timestamp is at least ``timestamp`` in milliseconds since 1970. Return None if
    there is none. Of ``selection`` only policy and treatment of damage count: raise CodecError for
    damage before the record, and for an unreadable file, unless it accepts damage.

    Headers are read from where the time index says, and the records of one batch.
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
        for batch in scanner:
            if batch.num_rows:
                found: int = batch.column("offset")[0].as_py()
                return found
    return None
