"""Where a search by offset or time begins."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from kafka_log import SegmentReader, discover
from kafka_log.inspect.browse.batch_windows import Target, choose_segment
from tests.paths import SAMPLES
from tests.support.check_plants import PLAIN


@pytest.mark.parametrize("damage", ["none", "too low", "wrong offset", "cut", "zeros", "missing"])
def test_a_wrong_time_index_skips_no_segment(damage: str, tmp_path: Path) -> None:
    log = tmp_path / PLAIN
    shutil.copytree(SAMPLES / "kafka-4.x" / PLAIN, log)
    segments = discover(log)[0].segments
    for segment in segments[:-1]:
        path = segment.path.with_suffix(".timeindex")
        index = path.read_bytes()
        timestamp, offset = struct.unpack(">qi", index[-12:])
        if damage == "too low":
            index = index[:-12] + struct.pack(">qi", timestamp - 1, offset)
        elif damage == "wrong offset":
            index = index[:-12] + struct.pack(">qi", timestamp, offset - 1)
        elif damage == "cut":
            index = index[:-12]
        elif damage == "zeros":
            index = index[:-12] + bytes(12)
        path.write_bytes(index)
        if damage == "missing":
            path.unlink()
    for i, segment in enumerate(segments):
        latest = max(batch.max_timestamp or 0 for batch in SegmentReader(segment.path))
        assert choose_segment(segments, Target("time", latest)) <= i
        if damage == "none":
            assert choose_segment(segments, Target("time", latest)) == i
