"""Batches that lie: built field by field, so that any field can be wrong while what lies around it is right."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from crc32c import crc32c

from codecgen.runtime.compression import compress
from tests.paths import VECTORS
from tests.support.random_segments import CODES, entries, mutated, mutated_inside, sources

HEADER_START = struct.Struct(">hiqqqhii")
"""A record batch from its attributes to its count."""

Parts = list[bytes]


def varint(n: int) -> bytes:
    n = (n << 1 ^ n >> 63) & (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


NUMBERS = (0, 1, -1, -2, 2, 63, 64, 127, 128, 8191, 8192, 65535, 1 << 20, (1 << 31) - 1, -1 << 31)
LARGE = (*NUMBERS, (1 << 63) - 1, -1 << 63, 1 << 31, 1 << 32, -1 << 32)
VARINTS = [varint(n) for n in LARGE] + [
    b"\x80\x00",  # not the shortest form
    b"\x82\x80\x80\x80\x00",
    b"\xff\xff\xff\xff\x1f",  # more than 32 bits
    b"\xff" * 9 + b"\x03",  # more than 64
    b"\x80" * 9 + b"\x00",
    b"\xff" * 5,
    b"\xff" * 10,
    b"\x80" * 16,  # without an end
    b"",
]
TEXTS = [
    b"plain", "\u00e4\u20ac\U0001f600".encode(), b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"1234567\xf0",
    b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xff", b"eight by\xc3", b"", b"x" * 63 + b"\xe2",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Base:
    """A batch to begin with: ``items`` are its records, or the messages of a wrapper, in parts; ``built`` those as bytes."""

    items: list[Parts]
    built: list[bytes]
    attributes: int = 0


@dataclass(frozen=True, slots=True)
class Mutant:
    """Bytes, and where the entries in them were meant to begin."""

    shape: str
    data: bytes
    starts: tuple[int, ...] = (0,)


def some(r: random.Random, most: int) -> bytes:
    if r.random() < 0.7:
        return _filler(r, most)
    return r.randbytes(r.randrange(most if r.random() < 0.3 else 20))


def _filler(r: random.Random, most: int) -> bytes:
    return (b"%d, and the same " % r.randrange(1000) * (most // 16 + 1))[: r.randrange(most)]


# ------------------------------------------------------------ records of batches


def record_parts(r: random.Random, i: int) -> Parts:
    """Attributes, timestamp, offset, then lengths and bytes in turn, with the count of headers among them."""
    parts = [b"\0", varint(r.choice((i, i, r.choice(LARGE)))), varint(i)]
    for most in (40, 200):
        value = None if r.random() < 0.1 else some(r, most)
        parts += [varint(-1), b""] if value is None else [varint(len(value)), value]
    count = r.choice((0, 0, 0, 1, 2, 3, 5))
    parts.append(varint(count))
    for _ in range(count):
        key = r.choice(TEXTS[:2]) * r.randrange(4)
        value = None if r.random() < 0.2 else some(r, 30)
        parts += [varint(len(key)), key]
        parts += [varint(-1), b""] if value is None else [varint(len(value)), value]
    return parts


def record(parts: Parts) -> bytes:
    body = b"".join(parts)
    return varint(len(body)) + body


def bent_record(parts: Parts, r: random.Random) -> bytes:
    """A record of which a part or two are not what they should be, most often with a length that fits them."""
    parts = parts.copy()
    for _ in range(r.choice((1, 1, 1, 2))):
        i = r.randrange(len(parts))
        _bend(parts, i, r)
    body = b"".join(parts)
    kind = r.random()
    if kind < 0.8:
        return varint(len(body)) + body
    if kind < 0.9:
        return varint(len(body) + r.choice((-2, -1, 1, 2, 60, 64, 65))) + body
    return r.choice(VARINTS) + body


def _bend(parts: Parts, i: int, r: random.Random) -> None:
    part = parts[i]
    kind = r.randrange(10)
    if kind < 4:
        parts[i] = r.choice(VARINTS)
    elif kind == 4 and part:
        # off by little: of a length, the byte is twice as much
        parts[i] = bytes(((part[0] + r.choice((-4, -2, -1, 1, 2, 4))) & 255,)) + part[1:]
    elif kind == 5:
        rest = sum(map(len, parts[i + 1 :]))  # as long as all that follows, or a byte more
        parts[i] = varint(rest + r.choice((-1, 0, 0, 1)))
    elif kind == 6:
        parts[i] = r.choice(TEXTS)
    elif kind == 7:
        parts[i] = r.randbytes(r.choice((0, 1, 2, 9, 31, 32, 33, 64)))
    elif kind == 8:
        del parts[i:]
        parts.append(r.choice(VARINTS))
    elif part:
        at = r.randrange(len(part))
        parts[i] = part[:at] + bytes((part[at] ^ 1 << r.randrange(8),)) + part[at + 1 :]


def batch(base: Base, run: bytes, count: int, codec: int, r: random.Random, wild: float) -> bytes:
    """A record batch around a run. ``wild`` is how probable a lie is in a field of its head."""

    def lie(right: int, bits: int) -> int:
        if r.random() >= wild:
            return right
        low, high = -1 << bits - 1, (1 << bits - 1) - 1
        return max(low, min(high, r.choice((*LARGE, right + 1, right - 1, 20_000, 20_001))))

    attributes = base.attributes | codec
    if r.random() < wild:
        attributes ^= 1 << r.randrange(16)
        attributes = attributes - 65536 if attributes > 32767 else attributes
    rest = HEADER_START.pack(
        attributes,
        lie(count - 1, 32),
        lie(1_700_000_000_000, 64),
        lie(1_700_000_000_999, 64),
        lie(-1, 64),
        lie(-1, 16),
        lie(-1, 32),
        lie(count, 32),
    )
    rest += run
    crc = crc32c(rest)
    if r.random() < wild:
        crc ^= 1 << r.randrange(32)
    magic = r.choice((0, 1, 2, 3, -1, 127)) if r.random() < wild / 4 else 2
    length = lie(len(rest) + 9, 32) if r.random() < 0.3 else len(rest) + 9
    return struct.pack(">qiibI", lie(1000, 64), length, lie(3, 32), magic, crc) + rest


# ------------------------------------------------------------ messages


def message_parts(r: random.Random, magic: int, offset: int) -> Parts:
    parts = [struct.pack(">q", offset), bytes((magic, 8 * (magic and r.randrange(2))))]
    if magic:
        parts.append(struct.pack(">q", r.choice((-1, 1_700_000_000_000, *LARGE[-5:-3]))))
    for most in (40, 200):
        value = None if r.random() < 0.1 else some(r, most)
        parts += (
            [struct.pack(">i", -1), b""]
            if value is None
            else [struct.pack(">i", len(value)), value]
        )
    return parts


def message(parts: Parts, r: random.Random | None = None, wild: float = 0.0) -> bytes:
    body = b"".join(parts[1:])
    crc, size = zlib.crc32(body), len(body) + 4
    if r is not None and r.random() < wild:
        crc ^= 1 << r.randrange(32)
    if r is not None and r.random() < wild:
        size = r.choice((*NUMBERS, size - 1, size + 1, 13, 14))
    return parts[0] + struct.pack(">iI", size, crc) + body


def bent_message(parts: Parts, r: random.Random) -> bytes:
    parts = parts.copy()
    for _ in range(r.choice((1, 1, 2))):
        i = r.randrange(1, len(parts))
        part = parts[i]
        kind = r.randrange(6)
        if kind < 2 and len(part) == 4:
            rest = sum(map(len, parts[i + 1 :]))
            parts[i] = struct.pack(">i", r.choice((*NUMBERS, rest, rest + 1, rest - 1)))
        elif kind < 4 and part:
            at = r.randrange(len(part))
            parts[i] = part[:at] + bytes((part[at] ^ 1 << r.randrange(8),)) + part[at + 1 :]
        elif kind == 4:
            parts[i] = r.randbytes(r.choice((0, 1, 2, 4, 9, 32)))
        else:
            del parts[max(i, 2) :]
    return message(parts, r, 0.1)


def wrapper(magic: int, run: bytes, codec: int, r: random.Random, wild: float) -> bytes:
    parts = [struct.pack(">q", r.choice((0, 5, 1000, *LARGE[-5:-3]))), bytes((magic, codec))]
    if magic:
        parts.append(struct.pack(">q", 1_700_000_000_000))
    parts += [struct.pack(">i", -1), struct.pack(">i", len(run)), run]
    if r.random() < wild:
        return bent_message(parts, r)
    return message(parts, r, wild / 2)


# ------------------------------------------------------------ all together


class Mutants:
    """Makes mutants; the same ones from the same generator of random numbers."""

    def __init__(self, *, decompressed: int, bases: int = 400) -> None:
        r = random.Random(0)
        self.batches = [_batch_base(r) for _ in range(bases)]
        self.messages = [[_message_base(r, magic) for _ in range(bases // 2)] for magic in (0, 1)]
        vectors = sources(VECTORS, 6000)
        self.vectors = [data for data in vectors if list(entries(data))]
        self.plain = [data for data in self.vectors if all(_is_plain(data[a:b]) for a, b in entries(data))]  # fmt: skip
        self.bombs = [
            (codec, compress(codec, bytes(size)), size)
            for codec in CODES
            for size in (decompressed - 1, decompressed, decompressed + 1, 32 * decompressed)
        ]
        self.shapes: list[tuple[float, Callable[[random.Random], Mutant]]] = [
            (0.46, self.v2),
            (0.20, self.v2_compressed),
            (0.12, self.old),
            (0.12, self.wrapped),
            (0.05, self.of_numpy),
            (0.045, self.inside_vectors),
            (0.005, self.bomb),
        ]
        self._weights = [weight for weight, _ in self.shapes]
        self._makers = [maker for _, maker in self.shapes]

    def one(self, r: random.Random) -> Mutant:
        return r.choices(self._makers, self._weights)[0](r)

    def _run(self, base: Base, bend: Callable[[Parts, random.Random], bytes], r: random.Random) -> tuple[bytes, int]:  # fmt: skip
        """The items of a base, most often one of them bent, and how many they are."""
        built = base.built
        if r.random() < 0.85:
            built = built.copy()
            i = r.randrange(len(built))
            built[i] = bend(base.items[i], r)
        run = b"".join(built)
        if r.random() < 0.06:
            run = run[: r.randrange(len(run) + 1)]
        if r.random() < 0.03:
            run += r.choice(VARINTS)
        return run, len(built)

    def v2(self, r: random.Random) -> Mutant:
        base = r.choice(self.batches)
        run, count = self._run(base, bent_record, r)
        return Mutant("v2", batch(base, run, count, 0, r, r.choice((0.0, 0.0, 0.05, 0.3))))

    def v2_compressed(self, r: random.Random) -> Mutant:
        base = r.choice(self.batches)
        run, count = self._run(base, bent_record, r)
        codec = r.choice(tuple(CODES))
        packed = _dented(compress(codec, run, level=1 if codec == "gzip" else None), r)
        wild = r.choice((0.0, 0.0, 0.05, 0.2))
        return Mutant(f"v2 {codec}", batch(base, packed, count, CODES[codec], r, wild))

    def old(self, r: random.Random) -> Mutant:
        magic = r.randrange(2)
        base = r.choice(self.messages[magic])
        parts = r.choice(base.items)
        return Mutant(f"v{magic}", bent_message(parts, r) if r.random() < 0.85 else message(parts))

    def wrapped(self, r: random.Random) -> Mutant:
        magic = r.randrange(2)
        base = r.choice(self.messages[magic])
        run, _ = self._run(base, bent_message, r)
        codec = r.choice(("gzip", "snappy", "lz4"))
        old = magic == 0 and codec == "lz4" and r.random() < 0.7
        variant = "legacy-header-checksum" if old else None
        level = 1 if codec == "gzip" else None
        packed = _dented(compress(codec, run, level=level, variant=variant), r)
        made = wrapper(magic, packed, CODES[codec], r, r.choice((0.0, 0.0, 0.2)))
        return Mutant(f"v{magic} {codec}", made)

    def of_numpy(self, r: random.Random) -> Mutant:
        good = r.choice(self.vectors)
        starts = tuple(start for start, _ in entries(good))
        data = mutated(good, r)
        return Mutant("vectors", data, tuple(start for start in starts if start < len(data)))

    def inside_vectors(self, r: random.Random) -> Mutant:
        return Mutant("vectors recompressed", mutated_inside(r, self.plain))

    def bomb(self, r: random.Random) -> Mutant:
        codec, packed, size = r.choice(self.bombs)
        if r.random() < 0.3:
            packed = _dented(packed, r)
        if r.random() < 0.3 and codec != "zstd":
            return Mutant("bombs", wrapper(r.randrange(2), packed, CODES[codec], r, 0.0))
        count = r.choice((1, size, size // 7, 1 << 20, 20_000))
        base = self.batches[0]
        return Mutant("bombs", batch(base, packed, count, CODES[codec], r, 0.0))


def _dented(packed: bytes, r: random.Random) -> bytes:
    """Compressed bytes, now and then with some of them changed."""
    if r.random() >= 0.25 or not packed:
        return packed
    out = bytearray(packed)
    for _ in range(r.choice((1, 1, 2, 4))):
        # the head of a frame is where sizes are
        at = r.randrange(min(len(out), 24) if r.random() < 0.5 else len(out))
        out[at] = r.choice((0, 1, 0x7F, 0x80, 0xFF, out[at] ^ 1 << r.randrange(8)))
    if r.random() < 0.15:
        del out[r.randrange(len(out)) :]
    return bytes(out)


def _batch_base(r: random.Random) -> Base:
    items = [record_parts(r, i) for i in range(r.choice((1, 1, 2, 3, 5, 12, 30)))]
    attributes = sum(bit for bit in (8, 16, 32, 64) if r.random() < 0.25)
    return Base(items, [record(parts) for parts in items], attributes)


def _message_base(r: random.Random, magic: int) -> Base:
    items = [message_parts(r, magic, i) for i in range(r.choice((1, 2, 5, 15)))]
    return Base(items, [message(parts) for parts in items])


def _is_plain(entry: bytes) -> bool:
    return entry[22 if entry[16] == 2 else 17] & 7 == 0
