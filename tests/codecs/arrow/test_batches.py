"""The view of batches has what the reference codecs read from the headers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.errors import CodecError
from kafka_codecs import MESSAGE_V1, Compression
from kafka_codecs.arrow.batches import BATCHES
from kafka_log import SegmentReader
from kafka_log.segment.model import Batch, End
from kafka_log.segment.scanner import header_scanner
from tests.support.scanned_rows import CODECS, unpacked
from tests.support.vector_files import FILES, POLICIES, name

ALL = [column.name for column in BATCHES.columns]


def row(batch: Batch) -> dict[str, Any]:
    wraps = batch.magic < 2 and batch.compression != "none"
    return {
        "position": batch.position,
        "size": batch.size,
        "magic": batch.magic,
        "codec": CODECS.index(batch.compression or "none"),
        "base_offset": None if wraps else batch.base_offset,
        "last_offset": batch.last_offset,
        "timestamp_type": batch.timestamp_type,
        "base_timestamp": batch.base_timestamp,
        "max_timestamp": batch.max_timestamp,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "leader_epoch": batch.partition_leader_epoch,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "delete_horizon": batch.delete_horizon,
        "record_count": batch.count,
        "crc": batch.crc,
        "next_offset": batch.next_offset,
        "last_sequence": batch.last_sequence,
        "attributes": batch.attributes,
        "offset_bound": None if contradicts_count(batch) else batch.last_offset,
        "timestamp_bound": None if contradicts_times(batch) else batch.max_timestamp,
        "first_timestamp": first_timestamp(batch, wraps),
    }


def contradicts_count(batch: Batch) -> bool:
    if batch.count is None:
        is_relative = batch.magic == 1 and batch.compression != "none"
        return is_relative and batch.last_offset == 0
    assert batch.base_offset is not None
    span = batch.last_offset - batch.base_offset + 1
    return batch.count < 0 or span < max(batch.count, 1)


def contradicts_times(batch: Batch) -> bool:
    if batch.magic < 2:
        return batch.magic == 1 and batch.compression != "none" and batch.max_timestamp == -1
    if batch.timestamp_type != 0:
        return False
    base = batch.base_timestamp if batch.delete_horizon is None else None
    return batch.max_timestamp == -1 or (base is not None and batch.max_timestamp < base)


def first_timestamp(batch: Batch, wraps: bool) -> int | None:
    if batch.magic == 2 and batch.timestamp_type == 0:
        return None if batch.delete_horizon is not None else batch.base_timestamp
    return None if wraps and batch.timestamp_type == 0 else batch.max_timestamp


def ended(end: End | None) -> tuple[int, int, str]:
    assert end is not None
    return end.batches, end.iterated_bytes, end.stop


@pytest.mark.share(6, ci=9)
@pytest.mark.parametrize("path", FILES, ids=name)
def test_heads_are_those_of_the_reference(path: Path) -> None:
    for policy in POLICIES:
        reader = SegmentReader(path, policy=policy, records=False)
        expected = []
        damaged = False
        try:
            for batch in reader:
                damaged = damaged or bool(batch.findings or batch.problems) or batch.magic > 2
                expected.append(row(batch))
        except CodecError:
            damaged = True
        if damaged or (reader.end and reader.end.lost):
            continue  # checksums are not verified here: what is after damage is read on
        for engine in ("arrow", "construct"):
            scanner = header_scanner(path, ALL, policy, engine=engine, on_damage="keep")
            assert [r for batch in scanner for r in unpacked(batch)] == expected
            assert ended(scanner.end) == ended(reader.end)


def test_what_has_no_frame_is_left_to_the_reference(tmp_path: Path) -> None:
    good = FILES[0].read_bytes()
    path = tmp_path / "tail.log"
    path.write_bytes(good + b"\xff" * 40)
    with pytest.raises(CodecError):
        list(header_scanner(path, engine="arrow"))
    rows = [r for b in header_scanner(path, engine="arrow", on_damage="keep") for r in unpacked(b)]
    assert sum(r["size"] for r in rows) == len(good)


@pytest.mark.parametrize(("timestamp", "bound"), [(-1, None), (0, 0), (7, 7)])
def test_the_bound_of_a_wrapper_without_a_timestamp(
    tmp_path: Path, timestamp: int, bound: int | None
) -> None:
    path = tmp_path / "wrapper.log"
    inner = {"offset": 0, "magic": 1, "attributes": {}, "timestamp": 7, "key": None, "value": b"v"}
    attributes = {"compression": Compression.GZIP}
    outer = {"offset": 0, "magic": 1, "attributes": attributes, "timestamp": timestamp, "key": None}
    path.write_bytes(MESSAGE_V1.build(outer | {"messages": [inner]}, strict=False))
    for engine in ("arrow", "construct"):
        scanner = header_scanner(path, ["timestamp_bound"], engine=engine)
        assert [r for b in scanner for r in unpacked(b)] == [{"timestamp_bound": bound}]


def test_an_empty_file_has_no_batches(tmp_path: Path) -> None:
    path = tmp_path / "empty.log"
    path.write_bytes(b"")
    assert list(header_scanner(path, engine="arrow")) == []
