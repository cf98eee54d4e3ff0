"""Segments for the benchmarks: a few shapes of records, in record batches of a size and in the older messages."""

from __future__ import annotations

import json
import random
import struct
import zlib

from crc32c import crc32c

from codecgen.runtime.compression import compress

Headers = tuple[tuple[bytes, bytes | None], ...]
Shape = tuple[bytes | None, bytes | None, Headers]

NAMES = {
    "A": "16-byte key, 100-byte value",
    "B": "A with 3 headers",
    "C": "16-byte key, 1 KiB value",
    "D": "10-byte value",
    "E": "lengths that vary, nulls, 0 to 4 headers",
    "J": "events as JSON, some 270 bytes",
}
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_THREE: Headers = ((b"trace-id", b"0123456789abcdef"), (b"source", b"web"), (b"n", b"12345678"))


def _words(count: int, seed: int) -> list[bytes]:
    r = random.Random(seed)
    return [r.randbytes(12).hex().encode() for _ in range(count)]


_WORDS = _words(200, 5)


def text(n: int, r: random.Random) -> bytes:
    """Bytes that compress somewhat."""
    return b"".join(r.choice(_WORDS) for _ in range(n // 24 + 1))[:n]


def event(r: random.Random) -> bytes:
    """What a shop may tell of a visit: half of it compresses well, half hardly."""
    words = [_WORDS[r.randrange(200)][:8].decode() for _ in range(4)]
    fields = {
        "event_id": r.randbytes(16).hex(),
        "type": r.choice(("view", "click", "search", "add_to_cart", "purchase")),
        "time": f"2026-11-{r.randint(1, 30):02}T{r.randint(0, 23):02}:00:{r.randint(0, 59):02}Z",
        "user": {"id": r.randrange(100_000), "session": r.randbytes(8).hex()},
        "page": f"/{words[0]}/{words[1]}/{r.randrange(5000)}",
        "referrer": f"https://example.org/{words[2]}?q={words[3]}",
        "amount": round(r.lognormvariate(3, 1), 2),
        "agent": f"browser/{r.randint(90, 140)}.0",
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def shape(name: str, r: random.Random) -> Shape:
    key = r.randbytes(8).hex().encode()
    if name == "A":
        return key, text(100, r), ()
    if name == "B":
        return key, text(100, r), _THREE
    if name == "C":
        return key, text(1024, r), ()
    if name == "D":
        return None, text(10, r), ()
    if name == "J":
        return b"user-%d" % r.randrange(100_000), event(r), ()
    varied = None if r.random() < 0.1 else r.randbytes(r.randint(1, 20)).hex().encode()
    value = None if r.random() < 0.02 else text(min(4000, int(r.lognormvariate(4.5, 1))), r)
    count = r.randint(0, 4)
    headers = tuple(
        (b"h%d" % r.randint(0, 20), None if r.random() < 0.05 else text(r.randint(0, 30), r))
        for _ in range(count)
    )
    return varied, value, headers


def _varint(n: int) -> bytes:
    n = (n << 1 ^ n >> 63) & (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _bytes(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def record(i: int, item: Shape) -> bytes:
    key, value, headers = item
    parts = [b"\0", _varint(i), _varint(i), _bytes(key), _bytes(value), _varint(len(headers))]
    parts += [_bytes(part) for header in headers for part in header]
    body = b"".join(parts)
    return _varint(len(body)) + body


def compressed(codec: str, data: bytes) -> bytes:
    """What a producer of Kafka's writes: Snappy in the framing of the xerial library."""
    return compress(codec, data, variant="xerial" if codec == "snappy" else None)


def batch(base: int, records: list[bytes], codec: str) -> bytes:
    run = b"".join(records)
    if codec != "none":
        run = compressed(codec, run)
    n, now = len(records), 1_700_000_000_000
    numbers = (CODECS[codec], n - 1, now, now + n - 1, -1, -1, -1, n)
    rest = struct.pack(">hiqqqhii", *numbers) + run
    return struct.pack(">qiibI", base, len(rest) + 9, 0, 2, crc32c(rest)) + rest


def message(offset: int, item: Shape, codec: str = "none") -> bytes:
    """A message of version 1; a wrapper when there is a codec."""
    parts = [bytes((1, CODECS[codec])), struct.pack(">q", 1_700_000_000_000)]
    for data in item[:2]:
        parts.append(struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data)
    body = b"".join(parts)
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def segment(name: str, batch_bytes: int, total: int, codec: str = "none") -> bytes:
    """About ``total`` bytes of records in batches of about ``batch_bytes`` before compression."""
    r = random.Random(1)
    out: list[bytes] = []
    records: list[bytes] = []
    size = done = base = 0
    while done < total:
        records.append(record(len(records), shape(name, r)))
        size += len(records[-1])
        if size >= batch_bytes:
            out.append(batch(base, records, codec))
            base += len(records)
            done += size
            records, size = [], 0
    return b"".join(out)


def messages(name: str, total: int) -> bytes:
    r = random.Random(1)
    out: list[bytes] = []
    done = 0
    while done < total:
        out.append(message(len(out), shape(name, r)))
        done += len(out[-1])
    return b"".join(out)


def wrappers(name: str, batch_bytes: int, total: int, codec: str) -> bytes:
    """About ``total`` bytes of messages in wrappers of about ``batch_bytes`` before compression."""
    r = random.Random(1)
    out: list[bytes] = []
    inner: list[bytes] = []
    size = done = base = 0
    while done < total:
        inner.append(message(len(inner), shape(name, r)))
        size += len(inner[-1])
        if size >= batch_bytes:
            base += len(inner)
            out.append(message(base - 1, (None, compressed(codec, b"".join(inner)), ()), codec))
            done += size
            inner, size = [], 0
    return b"".join(out)
