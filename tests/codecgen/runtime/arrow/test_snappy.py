"""The kernel for snappy takes what usual writers write, and nothing that the reference codec refuses."""

from __future__ import annotations

import random

import cramjam
import numpy as np
import pytest

from codecgen.runtime.arrow import snappy as kernel
from codecgen.runtime.arrow.decompressor import KERNELS_OF_CODECS
from codecgen.runtime.arrow.primitives import compiling, memory
from codecgen.runtime.compression import compress, decompress
from tests.shares import draw_seeds
from tests.support.compression_inputs import TEXTS, mutated

SLACK = memory.SLACK


RAW: list[str | None] = [None, "xerial-or-raw"]
FRAMED = ["xerial", "xerial-or-raw"]


@compiling.jit
def stream(p: int, end: int, to: int, to_end: int, kind: int) -> int:
    return kernel.stream(p, end, to, to_end, kind)


def plain(run: bytes, room: int, variant: str | None = "xerial-or-raw") -> bytes | None:
    """What the kernel makes of a run, read as a variant; None when it leaves it to others."""
    kind = KERNELS_OF_CODECS["snappy"][variant]
    source = np.frombuffer(run + bytes(SLACK), np.uint8)
    out = np.full(room + 2 * SLACK, 0xEE, np.uint8)
    start = out.ctypes.data + SLACK
    after = stream(source.ctypes.data, source.ctypes.data + len(run), start, start + room, kind)
    assert (out[:SLACK] == 0xEE).all()
    return None if after == 0 else out[SLACK : SLACK + after - start].tobytes()


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("written", "read", "other"),
    [("xerial", FRAMED, None), ("xerial-1k", FRAMED, None), (None, RAW, "xerial")],
)
def test_what_is_written_is_read(
    written: str | None, read: list[str | None], other: str | None
) -> None:
    for text in TEXTS:
        run = compress("snappy", text, variant=written)
        for variant in read:
            assert plain(run, len(text), variant) == text
        assert plain(run, len(text), other) is None


@pytest.mark.slow
def test_every_kind_of_element() -> None:
    """Literals whose lengths take 0 to 4 bytes, copies with offsets of 1, 2 and 4 bytes."""
    text = bytes(range(256)) * 300
    literals = (
        bytes([(60 - 1) << 2]) + text[:60],
        bytes([60 << 2, 99]) + text[:100],
        bytes([61 << 2]) + (999).to_bytes(2, "little") + text[:1000],
        bytes([62 << 2]) + (69_999).to_bytes(3, "little") + text[:70_000],
        bytes([63 << 2]) + (69_999).to_bytes(4, "little") + text[:70_000],
    )
    copies = (
        bytes([(11 - 4) << 2 | 1, 7]),
        bytes([63 << 2 | 2]) + (33).to_bytes(2, "little"),
        bytes([63 << 2 | 3]) + (60).to_bytes(4, "little"),
    )
    for literal in literals:
        for copy in copies:
            for size in range(30, 71_000):
                whole = varint(size) + literal + copy
                try:
                    expected = bytes(cramjam.snappy.decompress_raw(whole))
                except cramjam.DecompressionError:
                    continue
                assert plain(whole, 71_000) == expected
                break
            else:
                raise AssertionError("no length is right")


def varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes((*out, n))


def test_what_does_not_fit_is_left_alone() -> None:
    for text in TEXTS:
        if text:
            for written in (None, "xerial"):
                run = compress("snappy", text, variant=written)
                assert plain(run, len(text) - 1) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", draw_seeds(1, first=3))
def test_nothing_is_taken_that_the_reference_refuses(seed: int) -> None:
    r = random.Random(seed)
    small = [text for text in TEXTS if len(text) <= 3000]
    runs = [
        compress("snappy", text, variant=v) for text in small for v in ("xerial", None, "xerial-1k")
    ]
    taken = refused = 0
    for _ in range(30_000 if compiling.JIT else 300):
        run = mutated(r, r.choice(runs))
        variant = r.choice((None, "xerial", "xerial-or-raw"))
        found = plain(run, 5000, variant)
        if found is None:
            refused += 1
            continue
        taken += 1
        known = decompress("snappy", run, limit=5000, variant=variant)
        assert (known.data, known.error, known.unused, known.notes) == (found, None, 0, ())
    assert taken > 20
    assert refused > 100
