"""Mutations of encoded batches."""

from __future__ import annotations

import random

from tests.paths import VECTORS
from tests.support.random_segments import entries, mutated, mutated_inside, sources


def mutants(number: int, seed: int) -> list[bytes]:
    r = random.Random(seed)
    good = sources(VECTORS, 6000)
    plain = [data for data in good if all(is_plain(data[a:b]) for a, b in entries(data))]
    plain = [data for data in plain if list(entries(data))]
    assert len(plain) > 10
    return [
        mutated_inside(r, plain) if i % 2 else mutated(r.choice(good), r) for i in range(number)
    ]


def is_plain(entry: bytes) -> bool:
    """Whether an entry is not compressed."""
    return entry[22 if entry[16] == 2 else 17] & 7 == 0
