"""Runs of zstd that are looked at together: nothing is said of a run that is not said of it alone."""

from __future__ import annotations

import random

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.arrow import zstd as many
from codecgen.runtime.compression import compress
from codecgen.runtime.compression import zstd as single

LIMIT = 1 << 20


def rooms(runs: list[bytes], limit: int = LIMIT) -> list[int]:
    """What is said of runs that lie one after the other, with the slack of a chunk behind them."""
    ends = np.cumsum([len(run) for run in runs], dtype=np.int64)
    data = np.frombuffer(b"".join(runs) + bytes(64), np.uint8)
    return many.rooms(data, ends - [len(run) for run in runs], ends, limit)


def usual(size: int, seed: int = 0) -> bytes:
    r = random.Random(seed)
    return compress("zstd", bytes(r.choice(b"abcdefgh") for _ in range(size)))


def test_streams_of_one_block_are_taken() -> None:
    runs = [usual(size, size) for size in (100, 5000, 60_000, 128 << 10)]
    for run, most in zip(runs, rooms(runs), strict=True):
        plain = single.CODEC.read(memoryview(run), LIMIT, None).data
        assert most and many.reader()[0](memoryview(run), most) == plain


def test_one_last_block_is_taken() -> None:
    run = bytearray(usual(3000)[: -len(single.NO_MORE)])
    run[6] |= 1
    assert rooms([bytes(run)]) == [single.LARGEST_BLOCK]
    assert many.reader()[0](memoryview(bytes(run)), single.LARGEST_BLOCK)


@pytest.mark.parametrize(
    "run",
    [
        b"",
        b"\x28",
        usual(3000)[:11],
        usual(3000)[:-1],
        usual(3000) + b"\0",
        usual(3000)[:-3] + b"\x00\x00\x00",
        usual(3000)[:-3],
        zstandard.ZstdCompressor().compress(b"abc" * 900),  # it declares its size
        zstandard.ZstdCompressor(write_checksum=True).compress(b"abc" * 900),
        compress("zstd", random.Random(1).randbytes(3000)),  # a raw block
        usual((128 << 10) + 1),  # two blocks
        usual(100) + usual(100),
        compress("zstd", b""),
    ],
)
def test_anything_else_is_left(run: bytes) -> None:
    assert rooms([usual(500), run, usual(500)])[1] == 0


def test_limits() -> None:
    assert rooms([usual(500)], 100) == [100]
    assert rooms([usual(500)], 0) == [0]
    decompress, error = many.reader()
    with pytest.raises(error):
        decompress(memoryview(usual(500)), 100)


@given(st.integers(1, 4000), st.integers(0, 2**32), st.data())
def test_what_is_said_of_changed_runs_is_what_is_said_of_each(
    size: int, seed: int, data: st.DataObject
) -> None:
    """A room is only for runs that are one frame, and covers what the frame holds."""
    run = bytearray(usual(size, seed))
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, min(len(run), 16) - 1) | st.integers(-4, -1))
        run[at] = data.draw(st.integers(0, 255))
    (most,) = rooms([bytes(run)])
    whole = single.CODEC.read(memoryview(bytes(run)), LIMIT, None)
    decompress, error = many.reader()
    if most:
        try:
            plain = decompress(memoryview(bytes(run)), most)
        except error:
            assert whole.error is not None
        else:
            assert whole.error is None and not whole.unused
            assert plain == whole.data
