"""The kernel for frames of LZ4 takes what usual writers write, and nothing that the reference codec refuses."""

from __future__ import annotations

import random

import lz4.block
import lz4.frame
import numpy as np
import pytest

from codecgen.runtime.arrow import lz4 as kernel
from codecgen.runtime.arrow.primitives import compiling, memory
from codecgen.runtime.compression import compress, decompress
from tests.shares import draw_seeds
from tests.support.compression_inputs import TEXTS, mutated

SLACK = memory.SLACK


@compiling.jit
def frame(p: int, end: int, to: int, to_end: int, kind: int) -> int:
    return kernel.frame(p, end, to, to_end, kind)


def plain(run: bytes, room: int, kind: int = kernel.CHECKED) -> bytes | None:
    """What the kernel makes of a run; None when it leaves it to others. Bytes around the room stay as they are."""
    source = np.frombuffer(run + bytes(SLACK), np.uint8)
    out = np.full(room + 2 * SLACK, 0xEE, np.uint8)
    start = out.ctypes.data + SLACK
    after = frame(source.ctypes.data, source.ctypes.data + len(run), start, start + room, kind)
    assert (out[:SLACK] == 0xEE).all()
    return None if after == 0 else out[SLACK : SLACK + after - start].tobytes()


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("level", [None, 9, 12])
def test_what_is_written_is_read(level: int | None) -> None:
    for text in TEXTS:
        assert plain(compress("lz4", text, level=level), len(text)) == text


@pytest.mark.slow
def test_frames_of_other_writers() -> None:
    for text in TEXTS:
        for size in (4, 5, 6, 7):
            run = lz4.frame.compress(text, block_size=size, block_linked=False, store_size=True)
            assert plain(run, len(text)) == text
            run = lz4.frame.compress(text, block_size=size, block_linked=False, store_size=False)
            assert plain(run, len(text)) == text


def test_a_header_with_the_old_checksum() -> None:
    run = compress("lz4", b"some text", variant="legacy-header-checksum")
    assert plain(run, 9) is None
    assert plain(run, 9, kernel.UNCHECKED) == b"some text"


def test_what_does_not_fit_is_left_alone() -> None:
    for text in TEXTS:
        if text:
            assert plain(compress("lz4", text), len(text) - 1) is None


def test_blocks_that_hold_nothing_are_left_alone() -> None:
    run = compress("lz4", b"some text")
    assert plain(run, 9) == b"some text"
    for at in (7, len(run) - 4):
        assert plain(run[:at] + b"\1\0\0\0\0" + run[at:], 9) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", draw_seeds(1, first=2))
def test_nothing_is_taken_that_the_reference_refuses(seed: int) -> None:
    r = random.Random(seed)
    small = [text for text in TEXTS if len(text) <= 3000]
    runs = [compress("lz4", text) for text in small]
    runs += [compress("lz4", text, variant="legacy-header-checksum") for text in small[::5]]
    taken = refused = 0
    for _ in range(30_000 if compiling.JIT else 300):
        run = mutated(r, r.choice(runs))
        for kind, variant in ((kernel.CHECKED, None), (kernel.UNCHECKED, "unchecked-header")):
            found = plain(run, 5000, kind)
            if found is None:
                refused += 1
                continue
            taken += 1
            known = decompress("lz4", run, limit=5000, variant=variant)
            assert (known.data, known.error, known.unused, known.notes) == (found, None, 0, ())
    assert taken > 20
    assert refused > 100
