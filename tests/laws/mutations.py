"""Bytes that are not what they were."""

from __future__ import annotations

import random
from collections.abc import Iterator

EDGES = (0, 1, 2, 127, 128, 129, 254, 255)


def mutated(data: bytes, r: random.Random, number: int) -> Iterator[bytes]:
    """Some mutants: a cut, a flipped bit, other bytes, bytes more or less, a varint with another end."""
    for _ in range(number):
        part = bytearray(data)
        for _ in range(r.choice((1, 1, 1, 2))):
            _mutate(part, r)
        yield bytes(part)


def _mutate(part: bytearray, r: random.Random) -> None:
    kind = r.randrange(7)
    at = r.randrange(len(part)) if part else 0
    if kind == 0:
        del part[at:]
    elif kind == 1 and part:
        part[at] ^= 1 << r.randrange(8)
    elif kind == 2 and part:
        part[at] = r.choice(EDGES)
    elif kind == 3:
        part[at:at] = bytes(r.choice(EDGES) for _ in range(r.choice((1, 1, 2, 9))))
    elif kind == 4:
        del part[at : at + r.choice((1, 1, 2, 4))]
    elif kind == 5:
        part += bytes(r.choice(EDGES) for _ in range(r.choice((1, 2, 8))))
    elif part:
        # A varint that goes on: one byte more, with the same number or another one.
        part[at] |= 0x80
        part[at + 1 : at + 1] = r.choice((b"\0", b"\x80\0", b"\x01", b"\xff" * 9))
