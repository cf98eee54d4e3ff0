"""Segments with something wrong in them, at any depth: what lies around it (lengths, checksums, compression) is mostly made right
again, so that readers get there."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
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
    out = b"".join(compress(name, part, variant=variant) for part in parts)
    kind = r.random()
    if kind < 0.10:
        out = changed(out, r)
    elif kind < 0.13:
        out = out[: r.randrange(len(out) + 1)]
    elif kind < 0.18:
        out += r.choice((b"\0", b"\0" * 4, b"\0" * 30, b"\xde\xad\xbe\xef", out[:10], out))
    return out


# ---------------------------------------------------------------- record batches


def varint(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def odd_varint(r: Draw) -> bytes:
    """A varint of any number, or bytes that are none."""
    kind = r.randrange(8)
    if kind < 3:
        return varint(r.randrange(-3, 70))
    if kind == 3:
        return varint(r.choice(EDGES_32))
    if kind == 4:
        return varint(r.choice(EDGES_64))
    if kind == 5:
        plain = bytearray(varint(r.randrange(-2, 20)))
        plain[-1] |= 0x80
        return (
            bytes(plain)
            + b"\x80" * r.randrange(9)
            + r.choice((b"\0", b"\1", b"\x0f", b"\x10", b"\x7f"))
        )
    return b"\xff" * r.randrange(1, 11) + r.choice((b"\0", b"\1", b"\x7f", b""))


Piece = tuple[str, bytes]
"""A part of a record, and what it is: ``number``, ``bytes``."""


def record_pieces(data: bytes) -> list[list[Piece]]:
    """The records of a well-formed section, each in pieces without its length."""
    found: list[list[Piece]] = []
    at = 0

    def number() -> tuple[int, bytes]:
        nonlocal at
        start, value = at, 0
        while True:
            byte = data[at]
            value |= (byte & 0x7F) << 7 * (at - start)
            at += 1
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1), data[start:at]

    def text(pieces: list[Piece]) -> None:
        nonlocal at
        size, raw = number()
        pieces.append(("number", raw))
        if size > 0:
            pieces.append(("bytes", data[at : at + size]))
            at += size

    try:
        while at < len(data):
            size, _ = number()
            end = at + size
            pieces: list[Piece] = [("bytes", data[at : at + 1])]
            at += 1
            pieces += [("number", number()[1]), ("number", number()[1])]
            text(pieces)
            text(pieces)
            count, raw = number()
            pieces.append(("number", raw))
            for _ in range(2 * min(count, 100)):
                text(pieces)
            if at != end:
                break
            found.append(pieces)
    except IndexError:
        pass
    return found


def record_bytes(pieces: list[Piece], length: Callable[[int], bytes] = varint) -> bytes:
    body = b"".join(raw for _, raw in pieces)
    return length(len(body)) + body


def records(data: bytes, r: Draw) -> tuple[bytes, int]:
    """A section of records with something wrong in one of them, and how many there are."""
    found = record_pieces(data)
    if not found:
        return changed(data, r), 1
    kind = r.randrange(10)
    if kind == 0 and len(found) > 1:
        found.pop(r.randrange(len(found)))
    elif kind == 1:
        found.insert(r.randrange(len(found) + 1), r.choice(found))
    parts = [record_bytes(pieces) for pieces in found]
    if 2 <= kind <= 6:
        i = r.randrange(len(found))
        pieces = list(found[i])
        j = r.randrange(len(pieces))
        what, raw = pieces[j]
        if what == "number":
            pieces[j] = (what, odd_varint(r))
        else:
            pieces[j] = (what, changed(raw, r, 1))
        delta = r.choice((0, 0, 0, 0, 1, -1, -3))
        parts[i] = record_bytes(pieces, lambda n: varint(n + delta))
    elif kind == 7:
        i = r.randrange(len(found))
        body = b"".join(raw for _, raw in found[i])
        parts[i] = odd_varint(r) + body
    joined = b"".join(parts)
    if kind == 8:
        joined = changed(joined, r)
    elif kind == 9:
        joined += r.choice((b"\0", b"\0" * 20, b"\x01", b"\x0c\0\0\0\x01\x01\0", r.randbytes(5)))
    return joined, len(parts)


HEADER_FIELDS = (
    (0, 8),
    (12, 4),
    (22, 1),
    (21, 2),
    (23, 4),
    (27, 8),
    (35, 8),
    (43, 8),
    (51, 2),
    (53, 4),
)


def batch(data: bytes, r: Draw) -> bytes:
    """A record batch with something wrong in its header, its records or their stream."""
    codec = data[22] & 7
    section = unpacked(codec, data[61:])
    if r.random() < 0.7:
        section, count = records(section, r)
        if r.random() < 0.8:
            data = put(data, 57, count, 4)
    if r.random() < 0.15:
        around = int.from_bytes(data[57:61], "big") + r.choice((-1, 1, 2))
        data = put(data, 57, r.choice((around, around, r.choice(EDGES_32))), 4)
    if r.random() < 0.4:
        codec = r.randrange(5)
        data = data[:22] + bytes((data[22] & 0xF8 | codec,)) + data[23:]
    data = data[:61] + packed(codec, section, r)
    if r.random() < 0.25:
        at, size = r.choice(HEADER_FIELDS)
        edges = {1: EDGES_8, 2: EDGES_32, 4: EDGES_32, 8: EDGES_64}[size]
        data = put(data, at, r.choice(edges), size)
    if r.random() < 0.03:
        data = data[: r.randrange(22, 62)]
    if r.random() < 0.03:
        data = data[:16] + bytes((r.choice((3, 4, 127)),)) + data[17:]
    return sized(data)


# ---------------------------------------------------------------- messages


def pieces_of(data: bytes) -> tuple[bytes, int, bytes | None, bytes | None]:
    """The head of a message up to its key, its magic, key and value."""
    magic = data[16]
    at = 26 if magic else 18
    parts: list[bytes | None] = []
    start = at
    for _ in range(2):
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        parts.append(None if size < 0 else data[at : at + size])
        at += max(size, 0)
    return data[:start], magic, parts[0], parts[1]


def nullable(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else len(data).to_bytes(4, "big") + data


def built(head: bytes, key: bytes | None, value: bytes | None) -> bytes:
    return sealed(sized(head + nullable(key) + nullable(value)))


def message(data: bytes, r: Draw) -> bytes:
    """A message with something wrong in a field of it; its checksum is right, and mostly its length."""
    head, _, key, value = pieces_of(data)
    kind = r.randrange(9)
    key_at = len(head)
    value_at = key_at + len(nullable(key))
    if kind == 0:
        data = put(data, key_at, r.choice((*EDGES_32, len(data))), 4)
    elif kind == 1:
        data = put(
            data, value_at, r.choice((*EDGES_32, len(value or b"") + r.choice((-1, 1, 5)))), 4
        )
    elif kind == 2:
        data = (
            data[:17]
            + bytes((r.randrange(256) if r.random() < 0.5 else r.randrange(16),))
            + data[18:]
        )
    elif kind == 3:
        data = data[:16] + bytes((r.choice((0, 1, 2, 3, 127, 128, 255)),)) + data[17:]
    elif kind == 4:
        data = put(data, 0, r.choice(EDGES_64), 8)
    elif kind == 5:
        data = sized(data + r.choice((b"\0", b"\0" * 8, r.randbytes(3))))
    elif kind == 6:
        data = sized(data[: r.randrange(17, len(data) + 1)])
    elif kind == 7:
        data = data[:16] + changed(data[16:], r)
        data = sized(data) if len(data) > 17 else built(head, key, value)
    else:
        return put(data, 12, r.getrandbits(32), 4)
    return sealed(data)


def inner_messages(known: tuple[bytes, ...], r: Draw, magic: int) -> list[bytes]:
    """Messages for a wrapper, with offsets that rise."""
    plain = [m for m in known if m[16] == magic and not m[17] & 7]
    picked = [r.choice(plain) for _ in range(r.choice((1, 2, 3, 3, 5)))]
    offset = r.choice((0, 0, 0, 40))
    out = []
    for m in picked:
        out.append(put(m, 0, offset, 8))
        offset += r.choice((1, 1, 1, 3))
    return out


def wrapped(data: bytes, known: tuple[bytes, ...], r: Draw) -> bytes:
    """A wrapper with something wrong in it, in an inner message, in their order or in their stream."""
    magic = data[16]
    inner = inner_messages(known, r, magic)
    last = int.from_bytes(inner[-1][:8], "big")
    kind = r.randrange(12)
    i = r.randrange(len(inner))
    if kind <= 3:
        inner[i] = message(inner[i], r)
    elif kind == 4:
        inner[i] = put(
            inner[i], 8, r.choice((*EDGES_32, len(inner[i]) - 12 + r.choice((-1, 1, 9)))), 4
        )
    elif kind == 5:
        inner[i] = wrapped(inner[i], known, r) if r.random() < 0.5 else r.choice(known)
    elif kind == 6:
        other = inner_messages(known, r, 1 - magic)[0]
        inner[i] = put(other, 0, int.from_bytes(inner[i][:8], "big"), 8)
    elif kind == 7:
        r.shuffle(inner)
    elif kind == 8:
        inner.append(
            r.choice(
                (b"\0" * 12, b"\0" * 26, b"\0" * 5, inner[-1][:-1], inner[0][:12], inner[0][:11])
            )
        )
    elif kind == 9:
        inner = []
    section = b"".join(inner)
    if kind == 10:
        section = changed(section, r)
    codec = r.choice((1, 2, 3))
    attributes = codec | (r.choice((0, 0, 8)) if magic else 0)
    if r.random() < 0.05:
        attributes = r.choice((4, 5, 6, 7, 0x80 | codec, 0x40 | codec))
    offset = last + r.choice((0, 0, 0, 5, -1, -2, 1000)) if r.random() < 0.7 else r.choice(EDGES_64)
    value: bytes | None = packed(codec, section, r, legacy=magic == 0 and r.random() < 0.8)
    if r.random() < 0.02:
        value = r.choice((None, b""))
    key = r.choice((None,) * 20 + (b"", b"key"))
    head = (
        bytes(16)
        + bytes((magic, attributes))
        + (r.choice(EDGES_64).to_bytes(8, "big", signed=True) if magic else b"")
    )
    data = built(put(head, 0, offset, 8), key, value)
    if r.random() < 0.06:
        data = message(data, r)
    return data
