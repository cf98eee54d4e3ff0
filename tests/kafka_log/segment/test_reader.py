"""Reading files: bounds, damage, and what is kept in memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.errors import CodecError, ParseError, TrailingError
from codecgen.runtime.located_bytes import Limits
from kafka_log import SegmentReader
from kafka_log.segment.reader import damage
from tests.paths import VECTORS
from tests.shares import examples
from tests.support.batches import batch, message


def segment() -> list[bytes]:
    """Batches of every version and codec, offsets rising."""
    parts: list[bytes] = []
    for i in range(10):
        parts.append(batch(i * 10, ["none", "gzip", "snappy", "lz4", "zstd"][i % 5]))
        parts.append(message(i * 10 + 5))
    return parts


def offsets(path: Path, **options: Any) -> list[int]:
    return [r.offset for b in SegmentReader(path, **options) for r in b.records]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "00000000000000000000.log"


ALL = [i * 10 + d for i in range(10) for d in (0, 1, 2, 5)]


def test_reads_every_version_in_one_file(path: Path) -> None:
    path.write_bytes(b"".join(segment()))
    for policy in ("strict", "kafka", "salvage"):
        assert offsets(path, policy=policy) == ALL


def test_start_and_stop_are_positions_of_batches(path: Path) -> None:
    parts = segment()
    path.write_bytes(b"".join(parts))
    start = sum(map(len, parts[:4]))
    assert offsets(path, start=start) == [o for o in ALL if o >= 20]
    assert offsets(path, start=start, stop=start + 1) == [20, 21, 22]


@pytest.mark.slow
@given(st.integers(0, 19), st.data())
@examples(150)
def test_salvage_loses_only_the_damaged_batch(path: Path, index: int, data: st.DataObject) -> None:
    parts = segment()
    hurt = bytearray(parts[index])
    # Not the base offset: no checksum covers it, so a changed one is trusted.
    at = data.draw(st.integers(8, len(hurt) - 1))
    hurt[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(b"".join([*parts[:index], bytes(hurt), *parts[index + 1 :]]))
    batches = list(SegmentReader(path, policy="salvage"))
    found = {r.offset for b in batches if not damage(b) for r in b.records}
    own = (
        set(range(index // 2 * 10, index // 2 * 10 + 3))
        if index % 2 == 0
        else {index // 2 * 10 + 5}
    )
    assert set(ALL) - own <= found
    assert found <= set(ALL)


@given(st.integers(0, 19), st.binary(max_size=200))
@examples(60)
def test_salvage_steps_over_foreign_bytes(path: Path, index: int, junk: bytes) -> None:
    parts = segment()
    path.write_bytes(b"".join([*parts[:index], junk, *parts[index:]]))
    reader = SegmentReader(path, policy="salvage")
    found = [r.offset for b in reader for r in b.records]
    assert found == ALL
    assert reader.end is not None
    assert sum(x.end - x.start for x in reader.end.lost) == len(junk)


@given(st.integers(0, 2000))
@examples(60)
def test_a_torn_tail_is_noticed(path: Path, cut: int) -> None:
    parts = segment()
    whole = b"".join(parts)
    path.write_bytes(whole[: max(len(whole) - cut, 1)])
    reader = SegmentReader(path)
    found = [r.offset for b in reader for r in b.records]
    assert found == ALL[: len(found)]
    assert reader.end is not None
    assert reader.end.iterated_bytes + reader.end.trailing_bytes == path.stat().st_size
    assert (reader.end.stop == "eof") == (reader.end.trailing_bytes == 0)
    if reader.end.trailing_bytes:
        with pytest.raises(ParseError) as caught:
            list(SegmentReader(path, policy="strict"))
        assert caught.value.where.file == str(path)
        assert caught.value.where.position == reader.end.iterated_bytes


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(path: Path) -> None:
    one = batch(0, records=20, size=1000)

    def peak(copies: int) -> int:
        path.write_bytes(one * copies)
        tracemalloc.start()
        for _ in SegmentReader(path):
            pass
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    small = peak(5)
    assert peak(200) < small + (1 << 20)


def test_salvage_of_hostile_bytes_is_bounded(path: Path) -> None:
    """Every place looks like the start of an entry that reaches to the end of the file."""
    head = bytearray(batch(5, records=1)[:17])
    head[8:12] = (60_000).to_bytes(4, "big")
    path.write_bytes(bytes(head) * 6000)
    reader = SegmentReader(path, policy="salvage")
    assert list(reader) == []
    assert reader.end is not None
    assert sum(x.end - x.start for x in reader.end.lost) == path.stat().st_size


def test_an_empty_file(path: Path) -> None:
    path.write_bytes(b"")
    for policy in ("strict", "kafka", "salvage"):
        reader = SegmentReader(path, policy=policy)
        assert list(reader) == []
        assert reader.end is not None
        assert reader.end.stop == "eof"


def test_unknown_engines_and_policies_are_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="there is no engine 'rust'; known: construct"):
        SegmentReader(path, engine="rust")
    with pytest.raises(ValueError, match="lax"):
        SegmentReader(path, policy="lax")


def test_salvage_steps_over_a_long_tail_of_zeros(path: Path) -> None:
    """A segment that was made longer in advance; a batch after the zeros is found too."""
    path.write_bytes(batch(0) + bytes(48 << 20) + batch(10))
    reader = SegmentReader(path, policy="salvage")
    assert [b.base_offset for b in reader] == [0, 10]
    assert reader.end is not None
    assert sum(x.end - x.start for x in reader.end.lost) == 48 << 20


def test_more_records_than_the_limit(path: Path) -> None:
    path.write_bytes(batch(0, records=50))
    (found,) = SegmentReader(path, limits=Limits(elements=20))
    assert len(found.records) == 20
    assert "more than 20 elements" in str(found.problems[0].error)


def test_more_oddities_than_the_limit(path: Path) -> None:
    rejected = b"".join(b"\x0c\xff" + bytes([0, 0, 1, 1, 0]) for _ in range(30))
    data = bytearray(batch(0, records=1)[:61] + rejected)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[57:61] = (30).to_bytes(4, "big")
    path.write_bytes(bytes(data))
    (found,) = SegmentReader(path)
    assert len(found.records) == 30
    assert len(found.findings) == 31  # the checksum is wrong too
    (found,) = SegmentReader(path, limits=Limits(findings=10))
    assert "more than 10 findings" in str(found.problems[0].error)


def test_magic_bytes_that_no_version_has(path: Path) -> None:
    """Above the newest one an entry is read as the newest, and below 0 as version 1, as Kafka's file reader does."""
    data = bytearray(batch(0))
    data[16] = 9
    path.write_bytes(bytes(data))
    (found,) = SegmentReader(path)
    assert (found.magic, len(found.records)) == (9, 3)
    assert [f.where.path for f in found.findings] == ["magic"]
    data[16] = 0xFF
    path.write_bytes(bytes(data) + batch(10))
    odd, good = SegmentReader(path)
    assert (odd.magic, odd.records, good.base_offset) == (-1, [], 10)
    assert odd.findings[0].where.path == "crc"
    assert [b.base_offset for b in SegmentReader(path, policy="salvage")] == [10]
    with pytest.raises(CodecError):
        list(SegmentReader(path, policy="strict"))


def test_what_follows_in_a_message_is_refused_by_a_strict_reader() -> None:
    path = VECTORS / "malformed" / "v1-value-len-too-short.log"
    with pytest.raises(TrailingError, match="3 bytes are left of the range that message measures"):
        list(SegmentReader(path, policy="strict"))
    [lenient] = [batch for batch in SegmentReader(path) if batch.magic == 1]
    assert [str(finding.reason) for finding in lenient.findings] == [
        "3 bytes are left of the range that message measures"
    ]
