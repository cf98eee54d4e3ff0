"""Files of vectors and made files, and ways to damage their bytes."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.paths import VECTORS
from tests.support.batches import batch, message
from tests.support.vector_segments import SEGMENTS

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


MADE = [
    part
    for i in range(12)
    for part in (batch(i * 20, CODECS[i % 5], 4 + i, 40), message(i * 20 + 18))
]


VECTOR_FILES = [f for f in sorted(SEGMENTS) if (VECTORS / f).stat().st_size < 20_000]


@st.composite
def hurt(draw: st.DrawFn, data: bytes, entries: list[tuple[int, int]]) -> bytes:
    """Bits flipped, bytes zeroed, sectors lost, the end cut off. The first offsets of entries stay: no checksum is over them."""
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(out) - 1))
        kind = draw(st.sampled_from(("bit", "zeros", "sector", "cut")))
        if kind == "bit":
            out[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "zeros":
            count = min(draw(st.integers(1, 40)), len(out) - at)
            out[at : at + count] = bytes(count)
        elif kind == "sector":
            start = at // 512 * 512
            count = min(512, len(out) - start)
            out[start : start + count] = draw(st.binary(min_size=1, max_size=1)) * count
        else:
            del out[at + 1 :]
    for start, _ in entries:
        there = len(out[start : start + 8])
        out[start : start + there] = data[start : start + there]
    return bytes(out)
