"""Entries as bytes: taken from files, changed, and made right again; and compressed streams."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Sequence
from functools import cache

from crc32c import crc32c

from codecgen.runtime.compression import compress, decompress
from codecgen.runtime.errors import CodecError
from tests.paths import VECTORS

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
LARGEST_SEED = 6000
EDGES_8 = (0, 1, 2, 3, 4, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
EDGES_32 = (0, 1, 2, 13, 14, 22, 48, 49, -1, -2, 1 << 20, 2_000_001, (1 << 31) - 1, -(1 << 31))
EDGES_64 = (0, 1, -1, 5, 1 << 31, 1 << 40, (1 << 63) - 1, (1 << 63) - 2, -(1 << 63))

Draw = random.Random


@cache
def seeds() -> tuple[bytes, ...]:
    """All entries of the reference segments that are not large."""
    found = set()
    for path in sorted(VECTORS.rglob("*.log")):
        if path.stat().st_size <= LARGEST_SEED:
            found.update(entries(path.read_bytes()))
    return tuple(sorted(found))


def entries(data: bytes) -> Iterator[bytes]:
    """The entries of well-formed bytes."""
    at = 0
    while at + 17 < len(data):
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
        if end > len(data) or end < at + 26:
            return
        if data[at + 16] < 3 and end - at >= (26, 34, 61)[data[at + 16]]:
            yield data[at:end]
        at = end


def put(data: bytes | bytearray, at: int, value: int, size: int) -> bytes:
    """The bytes with a number put in."""
    return (
        bytes(data[:at])
        + (value % (1 << 8 * size)).to_bytes(size, "big")
        + bytes(data[at + size :])
    )


def sized(data: bytes) -> bytes:
    """An entry with its length made right."""
    return put(data, 8, len(data) - 12, 4)


def sealed(data: bytes) -> bytes:
    """An entry with its checksum made right."""
    if len(data) < 17:
        return data
    if data[16] < 2 or data[16] > 127:
        return put(data, 12, zlib.crc32(data[16:]), 4)
    return put(data, 17, crc32c(data[21:]), 4) if len(data) > 21 else data


def changed(data: bytes, r: Draw, number: int | None = None) -> bytes:
    """Some bits and bytes changed, put in or taken out."""
    out = bytearray(data)
    for _ in range(r.choice((1, 1, 1, 2, 4)) if number is None else number):
        at = r.randrange(len(out)) if out else 0
        kind = r.randrange(6)
        if kind == 0 and out:
            out[at] ^= 1 << r.randrange(8)
        elif kind <= 2 and out:
            out[at] = r.choice(EDGES_8)
        elif kind == 3:
            del out[at : at + r.choice((1, 1, 2, 9))]
        elif kind == 4:
            out[at:at] = bytes(r.choice(EDGES_8) for _ in range(r.choice((1, 1, 2, 9))))
        elif out:
            del out[at:]
    return bytes(out)


# ---------------------------------------------------------------- compressed streams


def unpacked(codec: int, data: bytes) -> bytes:
    name = CODECS[codec] if codec < len(CODECS) else None
    if name is None:
        return data
    variant = "xerial-or-raw" if name == "snappy" else "unchecked-header" if name == "lz4" else None
    try:
        return decompress(name, memoryview(data), limit=1 << 20, variant=variant).data
    except CodecError:
        return b""


EMPTY_BLOCK = b"\1\0\0\0\0"
"""A block of LZ4 that holds nothing: no known writer makes one."""


def lz4_frame(parts: Sequence[bytes], *, variant: str | None = None) -> bytes:
    """A frame with blocks for each part: of one that is empty such a block."""
    whole = [compress("lz4", part, variant=variant) for part in parts]
    blocks = [
        EMPTY_BLOCK if not part else frame[7:-4] for part, frame in zip(parts, whole, strict=True)
    ]
    return b"".join((whole[0][:7], *blocks, whole[0][-4:]))


def packed(codec: int, data: bytes, r: Draw, *, legacy: bool = False) -> bytes:
    """A stream as a writer may write it: in the framings that are read, in one piece or several; sometimes damaged."""
    name = CODECS[codec] if codec < len(CODECS) else None
    if name is None:
        return data
    variant = None
    if name == "snappy":
        variant = r.choice(("xerial", "xerial", "xerial-1k", None))
    if name == "lz4" and legacy:
        variant = "legacy-header-checksum"
    parts = [data]
    if r.random() < 0.15 and len(data) > 1:
        cut = r.randrange(1, len(data))
        parts = [data[:cut], data[cut:]]
    if r.random() < 0.05:
        parts.insert(r.randrange(len(parts) + 1), b"")
    if name == "lz4" and r.random() < 0.3:
        if r.random() < 0.3:
            parts.append(b"")
        out = lz4_frame(parts, variant=variant)
    else:
        out = b"".join(compress(name, part, variant=variant) for part in parts)
    kind = r.random()
    if kind < 0.10:
        out = changed(out, r)
    elif kind < 0.13:
        out = out[: r.randrange(len(out) + 1)]
    elif kind < 0.18:
        out += r.choice((b"\0", b"\0" * 4, b"\0" * 30, b"\xde\xad\xbe\xef", out[:10], out))
    return out
