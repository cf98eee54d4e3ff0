"""Repairs of one segment: each fault that can be undone gives the bytes back, and nothing else is touched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import LOG_ENTRY, RECORD_BATCH
from kafka_log import encode
from kafka_log.logs.partitions import Segment
from kafka_log.segment.reader import SegmentReader
from kafka_log.segment.repair.batch_repair import NoRepair, Repair
from kafka_log.write.rewrite.repaired_copy import find_segment_repairs
from tests.paths import SAMPLES, VECTORS
from tests.support.batches import batch, message
from tests.support.vector_segments import SEGMENTS

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def answers(
    directory: Path, data: bytes, base: int = 0, next_base: int | None = None
) -> list[Repair | NoRepair]:
    path = directory / f"{base:020d}.log"
    path.write_bytes(data)
    segment = Segment(path, "t", 0, base, len(data), rolled=next_base is not None)
    return find_segment_repairs(segment, next_base)


def apply(data: bytes, found: list[Repair | NoRepair]) -> bytes:
    out = bytearray(data)
    for repair in found:
        if isinstance(repair, Repair):
            for edit in repair.edits:
                assert out[edit.byte] == edit.old != edit.new
                out[edit.byte] = edit.new
    return bytes(out)


def numbered(*sizes: int, epochs: tuple[int, ...] = (), codec: str = "none") -> list[bytes]:
    """Batches with so many records each, one after the other from offset 0."""
    out, offset = [], 0
    for i, size in enumerate(sizes):
        data = batch(offset, codec, size)
        out.append(set_field(data, "partition_leader_epoch", epochs[i] if epochs else 0))
        offset += size
    return out


def set_field(data: bytes, name: str, value: int) -> bytes:
    at, size = RECORD_BATCH.offset_of(name), RECORD_BATCH.size_of(name)
    return data[:at] + value.to_bytes(size, "big", signed=True) + data[at + size :]


def flip(data: bytes, byte: int, bits: int = 1) -> bytes:
    return data[:byte] + bytes([data[byte] ^ bits]) + data[byte + 1 :]


@given(st.data())
def test_every_single_bit(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Of five batches of any version and codec, any bit of the middle one but those of its base offset."""
    directory = tmp_path_factory.mktemp("bits", numbered=True)
    kind = data.draw(st.sampled_from([*CODECS, "message"]))
    is_message = kind == "message"
    parts = [message(i) for i in range(5)] if is_message else numbered(3, 3, 3, 3, 3, codec=kind)
    whole = b"".join(parts)
    start, end = len(b"".join(parts[:2])), len(b"".join(parts[:3]))
    bit = data.draw(st.integers(8 * (start + 8), 8 * end - 1))
    damaged = flip(whole, bit // 8, 1 << bit % 8)
    found = answers(directory, damaged, next_base=15)
    assert apply(damaged, found) == whole
    [repair] = found
    assert isinstance(repair, Repair) and repair.is_certain
    assert repair.position == start and str(bit // 8) in repair.what


def test_good_logs_are_left_alone(tmp_path: Path) -> None:
    """Samples of brokers have compaction, transactions, snapshots and all versions."""
    paths = sorted(SAMPLES.rglob("*.log"))
    assert len(paths) > 50
    for path in paths:
        base = int(path.stem) if path.stem.isdigit() else 0
        found = answers(tmp_path, path.read_bytes(), base)
        assert found == [], path


@pytest.mark.share(ci=3)
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SEGMENTS))
def test_no_vector_is_repaired_to_something_that_is_not_strict(name: str, tmp_path: Path) -> None:
    """What hostile and odd files become decodes under strict where it was repaired."""
    data = (VECTORS / name).read_bytes()
    found = answers(tmp_path, data)
    repaired = apply(data, found)
    path = tmp_path / "again.log"
    path.write_bytes(repaired)
    there = {b.position: b for b in SegmentReader(path, policy="salvage")}
    for one in found:
        if isinstance(one, Repair) and len({r.position for r in found}) == len(found):
            assert there[one.position].is_valid and not there[one.position].problems


EPOCHS = [
    ((5, 5, 5, 5, 5), 4, [True]),  # below its neighbors
    ((5, 5, 5, 5, 5), 7, [True]),
    ((3, 3, 5, 6, 6), 1, []),  # 3 and 5 fit
    ((5, 5, 5, 7, 7), 21, [False]),  # 16 is the only bit
    ((5, 5, 5), 4, []),  # or the first epoch was 4, or the last one
    ((5, 5, 5), 7, []),
]


@pytest.mark.parametrize(("epochs", "wrong", "certain"), EPOCHS)
def test_leader_epochs(
    epochs: tuple[int, ...], wrong: int, certain: list[bool], tmp_path: Path
) -> None:
    parts = numbered(*[3] * len(epochs), epochs=epochs)
    whole, middle = b"".join(parts), len(parts) // 2
    parts[middle] = set_field(parts[middle], "partition_leader_epoch", wrong)
    damaged = b"".join(parts)
    found = answers(tmp_path, damaged)
    assert [r.is_certain for r in found if isinstance(r, Repair)] == certain
    assert apply(damaged, found) == (whole if certain else damaged)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_batch_with_two_faults(codec: str, tmp_path: Path) -> None:
    """One flipped bit is named by the checksum, the other one, which it does not cover, by the batches around."""
    parts = [set_field(batch(3 * i, codec, 3), "partition_leader_epoch", 5) for i in range(5)]
    whole = b"".join(parts)
    parts[2] = set_field(parts[2], "partition_leader_epoch", 7)
    damaged = bytearray(b"".join(parts))
    damaged[len(b"".join(parts[:3])) - 4] ^= 8
    found = answers(tmp_path, bytes(damaged))
    assert [type(one) for one in found] == [Repair, Repair]
    assert apply(bytes(damaged), found) == whole


@given(st.data())
def test_no_flipped_bit_that_no_checksum_covers_has_a_wrong_certain_repair(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Compaction leaves gaps of offsets, and each leader has its epoch: a batch beside the damaged one may look like it."""
    directory = tmp_path_factory.mktemp("fields", numbered=True)
    base = data.draw(st.sampled_from([0, 5]))
    parts, offset, epoch = [], base, 0
    for _ in range(data.draw(st.integers(2, 5))):
        offset += data.draw(st.sampled_from([0, 0, 1, 4]))
        epoch += data.draw(st.sampled_from([0, 0, 1, 2]))
        size = data.draw(st.integers(1, 4))
        parts.append(set_field(batch(offset, "none", size), "partition_leader_epoch", epoch))
        offset += size
    whole = b"".join(parts)
    which = data.draw(st.integers(0, len(parts) - 1))
    name = data.draw(st.sampled_from(["base_offset", "partition_leader_epoch"]))
    last = sum(map(len, parts[:which])) + RECORD_BATCH.offset_of(name) + RECORD_BATCH.size_of(name)
    bit = data.draw(st.integers(0, 9))
    damaged = flip(whole, last - 1 - bit // 8, 1 << bit % 8)
    following = data.draw(st.sampled_from([None, offset, offset + 3]))
    found = answers(directory, damaged, base, following)
    certain = [one for one in found if isinstance(one, Repair) and one.is_certain]
    assert not certain or apply(damaged, found) == whole


@pytest.mark.parametrize(
    ("bit", "next_base", "certain"),
    [(40, None, [True]), (31, None, [True]), (5, None, [False]), (5, 100, []), (5, 4, [True])],
)
def test_two_batches_of_which_the_first_has_a_wrong_offset(
    bit: int, next_base: int | None, certain: list[bool], tmp_path: Path
) -> None:
    """If the segment has room for the second batch after it, that one may be wrong, unless compaction has left no gaps."""
    parts = numbered(2, 2)
    damaged = flip(parts[0], 7 - bit // 8, 1 << bit % 8) + parts[1]
    found = answers(tmp_path, damaged, next_base=next_base)
    assert [one.is_certain for one in found if isinstance(one, Repair)] == certain
    assert apply(damaged, found) == (b"".join(parts) if certain else damaged)


def test_a_batch_before_the_last_one_is_likely_only(tmp_path: Path) -> None:
    """No offset after the last one is known: it may have been a larger one before a bit was flipped."""
    parts = numbered(2, 2, 2, 2, 2)
    whole = b"".join(parts)
    damaged = b"".join([*parts[:3], flip(parts[3], 7, 8), parts[4]])
    found = answers(tmp_path, damaged)
    assert apply(damaged, found) == whole
    assert [one.is_certain for one in found if isinstance(one, Repair)] == [False]
    with_next = answers(tmp_path, damaged, next_base=10)
    assert [isinstance(one, Repair) and one.is_certain for one in with_next] == [True]


def test_epochs_that_ascend_are_not_touched(tmp_path: Path) -> None:
    for epochs in ((1, 2, 3), (0, 0, 9), (-1, -1, 4)):
        assert answers(tmp_path, b"".join(numbered(2, 2, 2, epochs=epochs))) == []


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("bit", [0, 1, 3, 20, 40, 62])
def test_base_offsets(which: int, bit: int, tmp_path: Path) -> None:
    parts = numbered(3, 4, 5)
    whole = b"".join(parts)
    parts[which] = flip(parts[which], 7 - bit // 8, 1 << bit % 8)
    damaged = b"".join(parts)
    found = answers(tmp_path, damaged, next_base=12)
    assert apply(damaged, found) == whole
    assert all(isinstance(one, Repair) and one.probability is None for one in found)


def test_a_batch_that_was_written_twice_is_not_renumbered(tmp_path: Path) -> None:
    """A write to a wrong place: the second batch is a copy of the first, and would fit with another offset."""
    first, _, third = numbered(4, 4, 4)
    assert answers(tmp_path, first + first + third, next_base=12) == []


def test_a_batch_of_another_log_is_not_renumbered(tmp_path: Path) -> None:
    """One record each, so that any batch fits into the gap: more than a bit of its offset is wrong."""
    parts = numbered(1, 1, 1, 1)
    stray = batch(777_777, "none", 1)
    assert answers(tmp_path, parts[0] + stray + parts[2] + parts[3], next_base=4) == []


def test_a_gap_of_compaction_is_not_filled(tmp_path: Path) -> None:
    parts = numbered(2, 2, 2, 2)
    assert answers(tmp_path, parts[0] + parts[2] + parts[3]) == []


@pytest.mark.parametrize("length", [0, 1, -1, 14, 1 << 30, 60])
def test_any_wrong_length_is_repaired_if_a_batch_follows(length: int, tmp_path: Path) -> None:
    parts = numbered(3, 3, 3)
    whole = b"".join(parts)
    damaged = parts[0] + set_field(parts[1], "batch_length", length) + parts[2]
    assert apply(damaged, answers(tmp_path, damaged)) == whole


def test_the_length_of_the_last_batch(tmp_path: Path) -> None:
    """The active segment ends as if a broker had been killed, but all bytes are there."""
    parts = numbered(3, 3)
    whole = b"".join(parts)
    damaged = flip(whole, len(parts[0]) + 9, 4)
    assert apply(damaged, answers(tmp_path, damaged)) == whole


@pytest.mark.parametrize("cut", [1, 30, 70])
def test_an_incomplete_tail_is_no_damage(cut: int, tmp_path: Path) -> None:
    whole = b"".join(numbered(3, 3))
    assert answers(tmp_path, whole[:-cut]) == []
    assert answers(tmp_path, whole + bytes(5000)) == []


def test_two_batches_in_a_row(tmp_path: Path) -> None:
    parts = numbered(3, 3, 3, 3)
    whole = b"".join(parts)
    at = len(parts[0])
    damaged = flip(flip(whole, at + 80, 16), at + len(parts[1]) + 90, 2)
    found = answers(tmp_path, damaged)
    assert apply(damaged, found) == whole and len(found) == 2


def test_a_batch_that_breaks_rules_is_not_repaired(tmp_path: Path) -> None:
    """Without its flipped bit it would be as it was, but nobody could tell."""
    parts = numbered(3, 3)
    broken = _with_last_delta(parts[1], 1)
    damaged = parts[0] + flip(broken, 90, 4)
    found = answers(tmp_path, damaged, next_base=6)
    assert [type(one) for one in found] == [NoRepair]


def _with_last_delta(data: bytes, delta: int) -> bytes:
    """A batch with a valid checksum whose last offset is not that of its last record."""
    data = set_field(data, "last_offset_delta", delta)
    crc = RECORD_BATCH.by_name["crc"]
    assert crc.checksum is not None
    at = RECORD_BATCH.offset_of("crc")
    covered = data[RECORD_BATCH.offset_of("attributes") :]
    return data[:at] + crc.checksum(covered).to_bytes(4, "big") + covered


def test_a_large_batch_is_likely_only(tmp_path: Path) -> None:
    """One bit of a mebibyte: 1 in 512 other errors would look like one."""
    value = os.urandom(1 << 20)
    whole = RECORD_BATCH.build({"records": [{"value": value}]})
    damaged = flip(whole, 700_001, 32)
    [repair] = answers(tmp_path, damaged)
    assert isinstance(repair, Repair) and apply(damaged, [repair]) == whole
    assert not repair.is_certain and repair.probability is not None
    assert 1 / 513 < repair.probability < 1 / 500


@pytest.mark.parametrize("hurt", [lambda d: flip(d, 100, 3), lambda d: flip(d, 100, 255)])
def test_more_than_a_bit_of_a_large_batch_is_left_alone(
    hurt: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    whole = RECORD_BATCH.build({"records": [{"value": os.urandom(100_000)}]})
    [found] = answers(tmp_path, hurt(whole))
    assert isinstance(found, NoRepair)


@pytest.mark.slow
def test_two_errors_that_explain_the_checksum_are_told(tmp_path: Path) -> None:
    """Two bits of one byte that have the syndrome of two others: neither pair is chosen."""
    whole = RECORD_BATCH.build({"records": [{"value": b"v" * 7000}]})
    kinds = set()
    for one in range(8):
        for other in range(one):
            damaged = flip(whole, 3500, 1 << one | 1 << other)
            [found] = answers(tmp_path, damaged)
            kinds.add(isinstance(found, NoRepair) and found.is_ambiguous)
            assert isinstance(found, NoRepair) or apply(damaged, [found]) == whole
    assert kinds == {False, True}


def test_the_entry_layouts_all_have_one_linear_checksum() -> None:
    assert {len(layout.related.checksums) for layout in LOG_ENTRY.cases.values()} == {1}


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["lz4", "snappy"])
def test_messages_that_stand_in_compressed_bytes_do_not_end_a_wrapper(
    codec: str, tmp_path: Path
) -> None:
    """Random values are not compressed, so that the messages inside look like the next valid ones."""
    table = pa.table({"offset": range(3), "value": [os.urandom(200) for _ in range(3)]})
    whole = b"".join(encode(table, magic=0, codec=codec))
    for byte in range(30, len(whole), 7):
        damaged = flip(whole, byte, 8)
        assert apply(damaged, answers(tmp_path, damaged)) == whole
