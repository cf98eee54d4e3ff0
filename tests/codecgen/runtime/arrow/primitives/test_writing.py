"""The primitives that write against the reference codecs and Python's own."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.arrow.primitives import compiling, memory, utf8, writing
from codecgen.runtime.located_bytes import Session
from codecgen.runtime.primitives import Varint
from tests.shares import draw_seeds


@compiling.jit
def put_varint(p: int, value: int) -> tuple[int, int]:
    return writing.put_varint(p, value), writing.size_varint(value)


@compiling.jit
def put_varlong(p: int, value: int) -> tuple[int, int]:
    return writing.put_varlong(p, value), writing.size_varlong(value)


@compiling.jit
def put_uvarint(p: int, value: int) -> tuple[int, int]:
    return writing.put_uvarint(p, value), writing.size_uvarint(value)


@compiling.jit
def store(p: int, value: int) -> None:
    writing.store_16_be(p, value)
    writing.store_32_be(p + 2, value)
    writing.store_64_be(p + 6, value)
    writing.store_24_be(p + 14, value)
    memory.store_24(p + 17, value)


@compiling.jit
def copy_from(p: int, start: int, size: int, end: int) -> None:
    writing.copy_from(p, start, size, end)


@compiling.jit
def is_utf8(p: int, size: int, end: int) -> bool:
    return utf8.is_utf8_within(p, size, end)


VARINTS = [
    (put_varint, Varint(32), -(1 << 31), (1 << 31) - 1),
    (put_varlong, Varint(64), -(1 << 63), (1 << 63) - 1),
    (put_uvarint, Varint(32, signed=False), 0, (1 << 32) - 1),
]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "codec", "low", "high"), VARINTS)
@pytest.mark.parametrize("seed", draw_seeds(1, first=4))
def test_varints_are_those_of_the_reference(
    function: Callable[[int, int], tuple[int, int]], codec: Varint, low: int, high: int, seed: int
) -> None:
    r = random.Random(seed)
    edges = {sign * (1 << bits) + d for bits in range(64) for sign in (1, -1) for d in (-1, 0, 1)}
    numbers = [n for n in edges if low <= n <= high] + [low, high]
    numbers += [r.randint(low, high) >> r.randrange(64) for _ in range(2000)]
    out = np.zeros(80, np.uint8)
    for number in numbers:
        after, size = function(out.ctypes.data, number)
        expected = codec.write(number, None, Session())
        assert bytes(out[: after - out.ctypes.data]) == expected, number
        assert size == len(expected), number


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_numbers_in_both_orders(value: int) -> None:
    out = np.zeros(80, np.uint8)
    store(out.ctypes.data, value)
    parts = [(value & (1 << 8 * size) - 1).to_bytes(size, "big") for size in (2, 4, 8, 3)]
    assert bytes(out) == b"".join([*parts, parts[-1][::-1]]).ljust(80, b"\0")


def test_copies_of_all_lengths_with_and_without_slack() -> None:
    data = np.frombuffer(random.Random(5).randbytes(300), np.uint8)
    out = np.zeros(400, np.uint8)
    for size in range(200):
        for slack in (0, 1, 7, 31, 32, 100):
            out[:] = 0
            start = data.ctypes.data + 300 - slack - size
            copy_from(out.ctypes.data, start, size, data.ctypes.data + 300)
            assert bytes(out[:size]) == bytes(data[300 - slack - size : 300 - slack])


PIECES = st.sampled_from(
    [b"plain text", b"\xc3\xa4", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xc0\x80",
     b"\xf4\x90\x80\x80", b"\xf4\x8f\xbf\xbf", b"\xe0\x80\x80", b"\xed\x9f\xbf", b"\xf0\x8f\x80\x80", b"\x80", b"\xff",
     b"\xe2\x82", b"\xf0\x9f", b"\xf5\x80\x80\x80"]
)  # fmt: skip


@given(st.lists(PIECES | st.binary(max_size=3), max_size=5).map(b"".join), st.integers(0, 20))
def test_utf8_is_that_of_python(data: bytes, slack: int) -> None:
    try:
        data.decode("utf-8")
        good = True
    except UnicodeDecodeError:
        good = False
    array: Any = np.frombuffer(data + b"\x80" * slack + b"\xff", np.uint8)
    start = int(array.ctypes.data)
    assert bool(is_utf8(start, len(data), start + len(data) + slack)) == good
