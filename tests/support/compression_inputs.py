"""Inputs for compressors, and mutations of compressed bytes."""

from __future__ import annotations

import random


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
