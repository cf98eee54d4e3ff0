"""Segments that are moved to other offsets."""

from __future__ import annotations

from pathlib import Path

from kafka_codecs import RECORD_BATCH
from kafka_log import SegmentReader
from kafka_log.write.sink.commit import rebase
from kafka_log.write.sink.log_format import LogFormat


def test_a_batch_whose_header_contradicts_itself_is_moved(tmp_path: Path) -> None:
    """Rows with the same offset twice: the last offset delta is below the count, so the header has no bound of offsets."""
    path = tmp_path / f"{0:020}.log"
    records = [
        {"offset": offset, "timestamp": i, "key": b"k", "value": b"v"}
        for i, offset in enumerate((5, 5, 6))
    ]
    values = {"last_offset_delta": 1, "records": records}
    path.write_bytes(RECORD_BATCH.build(values, strict=False))
    rebase(path, 10, None, LogFormat())
    assert [r.offset for batch in SegmentReader(path) for r in batch.records] == [15, 15, 16]
    assert all(batch.is_valid for batch in SegmentReader(path))
