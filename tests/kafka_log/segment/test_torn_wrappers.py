"""Wrappers that are torn or damaged: ``salvage`` gives the messages before that, with the offsets that they had."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafka_codecs import LOG_ENTRY
from kafka_log import Batch, SegmentReader
from kafka_log.segment.reader import damage
from tests.shares import draw_seeds

MESSAGES = 24
SIZE = 9000
Row = tuple[int, bytes | None]


def value(i: int) -> bytes:
    return random.Random(i).randbytes(SIZE)  # no codec makes it shorter


def plain(offset: int, magic: int) -> bytes:
    return LOG_ENTRY.build({"magic": magic, "offset": offset, "key": b"k", "value": b"plain"})


def wrapper(first: int, magic: int, codec: str) -> bytes:
    start = 0 if magic else first
    inner = [
        {"magic": magic, "offset": start + i, "key": b"k%d" % i, "value": value(i)}
        for i in range(MESSAGES)
    ]
    fields = {"magic": magic, "offset": first + MESSAGES - 1, "key": None, "messages": inner}
    return LOG_ENTRY.build(fields | {"attributes": {"compression": codec}})


def rows(batches: list[Batch]) -> list[Row]:
    return [(r.offset, r.value) for batch in batches for r in batch.records]


@pytest.fixture(params=[0, 1])
def magic(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=["gzip", "snappy", "lz4"])
def whole(request: pytest.FixtureRequest, magic: int) -> list[bytes]:
    return [plain(99, magic), wrapper(100, magic, request.param), plain(200, magic)]


ROWS: list[Row] = [(99, b"plain"), *((100 + i, value(i)) for i in range(MESSAGES))]


def write(tmp_path: Path, *parts: bytes) -> Path:
    path = tmp_path / f"{99:020}.log"
    path.write_bytes(b"".join(parts))
    return path


@pytest.mark.share(4)
@pytest.mark.parametrize("share", [0.35, 0.6, 0.9])
@pytest.mark.parametrize("tail", ["active", "rolled", "reference"])
def test_a_torn_wrapper(tmp_path: Path, whole: list[bytes], share: float, tail: str) -> None:
    before, torn = whole[0], whole[1][: int(share * len(whole[1]))]
    path = write(tmp_path, before, torn)
    reader = SegmentReader(path, policy="salvage", tail=tail)
    found = list(reader)
    assert rows(found) == ROWS[: len(rows(found))]
    # snappy and lz4 lose what is left of a block of 32 or 64 KiB
    assert len(rows(found)) - 1 >= share * MESSAGES - (64 << 10) / SIZE - 1
    assert reader.end is not None and reader.end.lost
    assert all(damage(batch) for batch in found[1:])
    assert rows(list(SegmentReader(path))) == ROWS[:1]


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("seed", draw_seeds(1, first=1))
def test_damage_within_a_wrapper(tmp_path: Path, whole: list[bytes], seed: int) -> None:
    """A bit of the stream, at any place, with a good message behind it."""
    r = random.Random(seed)
    for _ in range(20):
        damaged = bytearray(whole[1])
        damaged[r.randrange(60, len(damaged))] ^= 1 << r.randrange(8)
        found = list(
            SegmentReader(write(tmp_path, whole[0], bytes(damaged), whole[2]), policy="salvage")
        )
        got = rows(found)
        assert got[0] == ROWS[0] and got[-1] == (200, b"plain")
        # a bit of a value may be one that has changed
        assert [offset for offset, _ in got[1:-1]] == [
            offset for offset, _ in ROWS[1 : len(got) - 1]
        ]
        assert sum(row not in ROWS for row in got[1:-1]) <= 1
        assert all(damage(batch) for batch in found[1:-1])


def test_without_a_batch_before_it_offsets_are_not_known(
    tmp_path: Path, whole: list[bytes], magic: int
) -> None:
    path = write(tmp_path, whole[1][: len(whole[1]) // 2])
    found = rows(list(SegmentReader(path, policy="salvage")))
    assert found == ([] if magic else ROWS[1 : len(found) + 1])
    assert bool(found) is (magic == 0)


def test_a_torn_message_is_one_value(tmp_path: Path, magic: int) -> None:
    torn = plain(100, magic)[:-1]
    reader = SegmentReader(write(tmp_path, plain(99, magic), torn), policy="salvage")
    assert rows(list(reader)) == ROWS[:1]
    assert reader.end is not None and reader.end.lost
