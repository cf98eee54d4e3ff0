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


def texts() -> list[bytes]:
    r = random.Random(1)
    words = [r.randbytes(r.randint(1, 40)) for _ in range(60)]
    out = [b"", b"a", b"ab" * 6, bytes(13), bytes(100_000), r.randbytes(70_000)]
    for size in (5, 11, 12, 13, 14, 30, 64, 100, 1000, 65535, 65536, 65537, 200_000):
        out.append(b"".join(r.choices(words, k=size))[:size])
        out.append(bytes(r.choices(b"abc", k=size)))
    for period in range(1, 40):
        out.append(r.randbytes(period) * (3000 // period))
    return out


TEXTS = texts()


@pytest.mark.share(3)
@pytest.mark.parametrize("level", [None, 9, 12])
def test_what_is_written_is_read(level: int | None) -> None:
    for text in TEXTS:
        assert plain(compress("lz4", text, level=level), len(text)) == text


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


def mutated(r: random.Random, run: bytes) -> bytes:
    data = bytearray(run)
    for _ in range(r.randint(1, 3)):
        if not data:
            break
        at = r.randrange(len(data))
        how = r.randrange(4)
        if how == 0:
            data[at] = r.randrange(256)
        elif how == 1:
            data[at] ^= 1 << r.randrange(8)
        elif how == 2:
            data[at] = r.choice((0, 0x0F, 0xF0, 0xFF))
        else:
            del data[at : at + r.randint(1, 4)]
    return bytes(data)


@pytest.mark.slow
def test_nothing_is_taken_that_the_reference_refuses() -> None:
    r = random.Random(2)
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
