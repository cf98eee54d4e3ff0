"""Errors from syndromes: the error that was made is among those that are found, and each one that is found explains the syndrome."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.checksums import CHECKSUMS, Crc, checksum
from kafka_log.segment.repair.error_patterns import (
    MAX_PAIR_BITS,
    STEP,
    Window,
    count_pairs,
    find_windows,
)
from tests.support.cpu_time import limit_cpu_time

CRCS = {name: kind for name, kind in CHECKSUMS.items() if isinstance(kind, Crc)}
LENGTHS = st.one_of(
    st.integers(1, 3 * STEP + 2), st.sampled_from([STEP - 1, STEP, STEP + 1, 1000, 5000])
)


def syndrome_of(compute: Callable[[bytes], int], data: bytes, changed: bytes) -> int:
    return compute(data) ^ compute(changed)


@pytest.mark.slow
@pytest.mark.share(5)
@pytest.mark.parametrize("name", CRCS)
@given(st.data())
def test_windows(name: str, data: st.DataObject) -> None:
    crc, compute = CRCS[name], checksum(name)
    length = data.draw(LENGTHS)
    text = data.draw(st.randoms(use_true_random=False)).randbytes(length)
    last = data.draw(st.integers(0, length - 1))
    error = Window(
        last, data.draw(st.integers(1, 255)), data.draw(st.integers(0, 255)) if last else 0
    )
    syndrome = syndrome_of(compute, text, changed(text, error))
    found = find_windows(crc, syndrome, length)
    if syndrome:  # an error of 16 bits may have none with a CRC of 16 bits
        assert error in found
    assert len(set(found)) == len(found)
    for one in found[:50]:
        assert syndrome_of(compute, text, changed(text, one)) == syndrome


def changed(data: bytes, error: Window) -> bytes:
    out = bytearray(data)
    out[error.last] ^= error.flipped
    if error.last:
        out[error.last - 1] ^= error.before
    return bytes(out)


@pytest.mark.share(5)
@pytest.mark.parametrize("name", CRCS)
@given(st.data())
def test_no_window_is_left_out_of_a_short_message(name: str, data: st.DataObject) -> None:
    """All errors of one byte are tried one by one."""
    crc, compute = CRCS[name], checksum(name)
    text = data.draw(st.binary(min_size=1, max_size=4))
    syndrome = data.draw(st.integers(1, (1 << crc.width) - 1))
    single = {
        Window(i, flips, 0)
        for i in range(len(text))
        for flips in range(1, 256)
        if syndrome_of(compute, text, changed(text, Window(i, flips, 0))) == syndrome
    }
    assert {one for one in find_windows(crc, syndrome, len(text)) if not one.before} == single


@pytest.mark.parametrize("name", ["crc32", "crc32c", "crc64_xz"])
@given(st.data())
def test_pairs(name: str, data: st.DataObject) -> None:
    crc, compute = CRCS[name], checksum(name)
    length = data.draw(st.integers(2, 300))
    one, other = data.draw(
        st.lists(st.integers(0, 8 * length - 1), min_size=2, max_size=2, unique=True)
    )
    flipped = bytearray(length)
    flipped[one // 8] ^= 1 << one % 8
    single = syndrome_of(compute, bytes(length), bytes(flipped))
    # No single bit is a pair in messages of this length: the Hamming distance is 4 at least.
    assert count_pairs(crc, single, length) == 0
    flipped[other // 8] ^= 1 << other % 8
    assert count_pairs(crc, syndrome_of(compute, bytes(length), bytes(flipped)), length) == 1
    of_both = single ^ 1 << data.draw(st.integers(0, crc.width - 1))
    assert count_pairs(crc, of_both, length) == 1


def test_nothing_is_found_without_a_message_or_an_error() -> None:
    crc = CRCS["crc32c"]
    assert find_windows(crc, 5, 0) == [] and find_windows(crc, 0, 100) == []
    assert count_pairs(crc, 5, MAX_PAIR_BITS // 8) is not None
    assert count_pairs(crc, 5, MAX_PAIR_BITS // 8 + 1) is None


@pytest.mark.parametrize("place", [0, 1, 777_777, (1 << 20) - 1])
def test_a_mebibyte_takes_a_fraction_of_a_second(place: int) -> None:
    crc, compute = CRCS["crc32c"], checksum("crc32c")
    data = bytes(range(256)) * 4096
    flipped = changed(data, Window(place, 16, 0))
    with limit_cpu_time(2):  # 0.01 s on an idle machine
        found = find_windows(crc, syndrome_of(compute, data, flipped), len(data))
    assert Window(place, 16, 0) in found
