"""Entries of index files: as brokers wrote them, beside the batches that they name, and as laws."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from construct import Container
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.construct import Layout
from codecgen.runtime.errors import BuildError, ParseError, TruncatedError, ValueRefused
from kafka_codecs import (
    OFFSET_INDEX_ENTRY,
    TIME_INDEX_ENTRY,
    TRANSACTION_INDEX_ENTRY,
    TRANSACTION_INDEX_ENTRY_V0,
)
from kafka_log import Batch, Segment, SegmentReader, discover
from tests.paths import SAMPLES

LAYOUTS = {
    ".index": OFFSET_INDEX_ENTRY,
    ".timeindex": TIME_INDEX_ENTRY,
    ".txnindex": TRANSACTION_INDEX_ENTRY_V0,
}
SIZES = {".index": 8, ".timeindex": 12, ".txnindex": 34}
INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
OFFSET_ENTRIES = st.fixed_dictionaries({"relative_offset": INT32, "position": INT32})
TIME_ENTRIES = st.fixed_dictionaries(
    {"timestamp": st.integers(0, 2**63 - 1), "relative_offset": INT32}
)
TRANSACTION_ENTRIES = st.fixed_dictionaries(
    {
        "version": st.just(0),
        "producer_id": INT64,
        "first_offset": INT64,
        "last_offset": INT64,
        "last_stable_offset": INT64,
    }
)


def pieces(path: Path) -> Iterator[bytes]:
    """The bytes of each entry of an index file."""
    data = path.read_bytes() if path.exists() else b""
    size = SIZES[path.suffix]
    assert len(data) % size == 0
    for at in range(0, len(data), size):
        yield data[at : at + size]


def entries(segment: Segment, suffix: str) -> list[Container]:
    path = segment.path.with_suffix(suffix)
    return [LAYOUTS[suffix].parse(piece, file=path.name) for piece in pieces(path)]


def segments(folder: str) -> Iterator[tuple[Segment, list[Batch]]]:
    for partition in discover(SAMPLES / folder):
        for segment in partition.segments:
            yield segment, list(SegmentReader(segment.path))


# ---------------------------------------------------------------- what brokers wrote


@pytest.mark.parametrize("suffix", LAYOUTS)
def test_entries_that_brokers_wrote_are_built_as_they_were(suffix: str) -> None:
    layout = LAYOUTS[suffix]
    count = 0
    for path in sorted(SAMPLES.rglob(f"*{suffix}")):
        for piece in pieces(path):
            parsed = layout.parse(piece)
            assert layout.build(parsed) == piece
            assert layout.build(dict(parsed)) == piece
            count += 1
    assert count >= {".index": 70, ".timeindex": 150, ".txnindex": 20}[suffix]


@pytest.mark.parametrize("folder", ["kafka-4.x", "kafka-2.8"])
def test_offset_and_time_indexes_name_batches(folder: str) -> None:
    appended = []
    for segment, batches in segments(folder):
        starts = {batch.position: batch for batch in batches}
        for entry in entries(segment, ".index"):
            batch = starts[entry.position]
            offset = segment.base_offset + entry.relative_offset
            if batch.last_offset != offset:  # the last of several that were appended at once
                assert offset in [b.last_offset for b in batches if b.position > entry.position]
                appended.append(segment)
        for entry in entries(segment, ".timeindex"):
            named = next(b for b in batches if b.max_timestamp == entry.timestamp)
            assert segment.base_offset + entry.relative_offset == named.last_offset
    assert bool(appended) == (folder == "kafka-2.8")


@pytest.mark.parametrize("folder", ["kafka-4.x", "kafka-2.8"])
def test_transaction_indexes_name_abort_markers(folder: str) -> None:
    """All of them in their order, where compaction has not removed markers."""
    count = 0
    for segment, batches in segments(folder):
        if "compacted" in segment.path.parent.name:
            continue
        markers = [
            (batch.producer_id, record.offset)
            for batch in batches
            for record in batch.records
            if record.control is not None and record.control.type == "ABORT"
        ]
        found = entries(segment, ".txnindex")
        assert [(entry.producer_id, entry.last_offset) for entry in found] == markers
        for entry in found:
            assert entry.first_offset < entry.last_offset
            assert entry.last_stable_offset <= entry.last_offset + 1
            count += 1
    assert count >= 10


# ---------------------------------------------------------------- laws


@given(OFFSET_ENTRIES)
def test_an_offset_entry_comes_back(entry: dict[str, int]) -> None:
    comes_back(OFFSET_INDEX_ENTRY, entry, 8)


@given(TIME_ENTRIES)
def test_a_time_entry_comes_back(entry: dict[str, int]) -> None:
    comes_back(TIME_INDEX_ENTRY, entry, 12)


@given(TRANSACTION_ENTRIES)
def test_a_transaction_entry_comes_back(entry: dict[str, int]) -> None:
    comes_back(TRANSACTION_INDEX_ENTRY, entry, 34)
    del entry["version"]
    assert TRANSACTION_INDEX_ENTRY_V0.parse(TRANSACTION_INDEX_ENTRY_V0.build(entry)).version == 0


def comes_back(layout: Any, entry: dict[str, int], size: int) -> None:
    data = layout.build(entry)
    assert len(data) == size
    assert dict(layout.parse(data)) == entry
    with pytest.raises(TruncatedError):
        layout.parse(data[:-1])
    with pytest.raises(ParseError):
        layout.parse(data + b"\0")


def test_bytes_by_hand() -> None:
    """Big endian, in this order."""
    built = OFFSET_INDEX_ENTRY.build({"relative_offset": 0x01020304, "position": 0x05060708})
    assert built == bytes(range(1, 9))
    built = TIME_INDEX_ENTRY.build({"timestamp": 0x0102030405060708, "relative_offset": 0x090A0B0C})
    assert built == bytes(range(1, 13))
    fields = {"producer_id": 1, "first_offset": 2, "last_offset": 3, "last_stable_offset": 4}
    built = TRANSACTION_INDEX_ENTRY_V0.build(fields)
    assert built == b"\0\0" + b"".join(n.to_bytes(8, "big") for n in (1, 2, 3, 4))


def test_zeros_of_files_that_were_made_longer_are_entries() -> None:
    for layout in (OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY):
        assert set(layout.parse(bytes(layout.size or 0)).values()) == {0}


@pytest.mark.parametrize(
    ("layout", "field", "at"),
    [
        (OFFSET_INDEX_ENTRY, "relative_offset", 0),
        (OFFSET_INDEX_ENTRY, "position", 4),
        (TIME_INDEX_ENTRY, "timestamp", 0),
        (TIME_INDEX_ENTRY, "relative_offset", 8),
    ],
)
def test_negative_numbers_are_noted(layout: Layout, field: str, at: int) -> None:
    data = bytearray(layout.size or 0)
    data[at] = 0x80
    with pytest.raises(ValueRefused) as caught:
        layout.parse(bytes(data), file="0.index", position=40)
    assert caught.value.where.path == field
    assert caught.value.where.position == 40 + at
    findings: list[ParseError] = []
    parsed = layout.parse(bytes(data), strict=False, findings=findings)
    assert parsed[field] == -(1 << 8 * layout.size_of(field) - 1)
    assert [finding.where.path for finding in findings] == [field]
    with pytest.raises(BuildError):
        layout.build(parsed)


@pytest.mark.parametrize("strict", [True, False])
def test_transactions_of_another_version_are_refused(strict: bool) -> None:
    for version in (1, -1):
        data = version.to_bytes(2, "big", signed=True) + bytes(32)
        for layout in (TRANSACTION_INDEX_ENTRY, TRANSACTION_INDEX_ENTRY_V0):
            with pytest.raises(ValueRefused) as caught:
                layout.parse(data, strict=strict)
            assert caught.value.where.path == "version"
