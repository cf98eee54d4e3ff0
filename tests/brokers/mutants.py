"""Segments with something wrong in them, at any depth: what lies around it (lengths, checksums, compression) is mostly made right
again, so that readers get there."""

from __future__ import annotations

from .mutant_batches import batch
from .mutant_bytes import EDGES_32, Draw, changed, put, sealed, seeds
from .mutant_messages import message, wrapped


class Mutants:
    """Mutants, one after the other, from the reference segments."""

    def __init__(self, r: Draw) -> None:
        self.r = r
        self.seeds = seeds()

    def one(self) -> bytes:
        """A file of one to three entries, one of them a mutant at least, with what stands around it as it was."""
        r = self.r
        parts = [self.entry() for _ in range(r.choice((1, 1, 2)))]
        for _ in range(r.randrange(3)):
            parts.insert(r.randrange(len(parts) + 1), r.choice(self.seeds))
        data = b"".join(parts)
        kind = r.random()
        if kind < 0.04:
            data = data[: r.randrange(len(data) + 1)]
        elif kind < 0.07:
            data += bytes(r.choice((1, 8, 12, 16, 17, 18, 30, 60)))
        elif kind < 0.09:
            data += r.randbytes(r.randrange(1, 40))
        return data

    def entry(self) -> bytes:
        """One mutant."""
        r = self.r
        data = r.choice(self.seeds)
        if data[16] == 2:
            data = batch(data, r)
        else:
            data = wrapped(data, self.seeds, r) if r.random() < 0.75 else message(data, r)
        kind = r.random()
        if kind < 0.08:
            data = changed(data, r)
        elif kind < 0.12:
            return put(data, 8, r.choice(EDGES_32) if r.random() < 0.5 else r.randrange(80), 4)
        return data if r.random() < 0.05 else sealed(data)
