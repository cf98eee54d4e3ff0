"""Segments that are moved to other offsets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from kafka_log import SegmentReader, write_segment
from kafka_log.write.log_format import LogFormat
from kafka_log.write.rebase import rebase


def test_a_batch_whose_header_contradicts_itself_is_moved(tmp_path: Path) -> None:
    """Rows with the same offset twice: the last offset delta is below the count, so the header has no bound of offsets."""
    path = tmp_path / f"{0:020}.log"
    rows = {
        "offset": pa.array([5, 5, 6], pa.int64()),
        "timestamp": pa.array([1, 2, 3], pa.timestamp("ms")),
        "key": pa.array([b"k"] * 3),
        "value": pa.array([b"v"] * 3),
    }
    write_segment(path, pa.table(rows))
    rebase(path, 10, None, LogFormat())
    assert [r.offset for batch in SegmentReader(path) for r in batch.records] == [15, 15, 16]
    assert all(batch.is_valid for batch in SegmentReader(path))
