"""Batches for tests: generated, mutated, and with their checksums put right."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crc32c import crc32c
from hypothesis import strategies as st

from codecgen.runtime.compression import compress
from kafka_codecs import MESSAGE_V0, MESSAGE_V1, RECORD_BATCH, Compression
from tests.codecs import strategies

I64 = st.integers(-(1 << 63), (1 << 63) - 1)
I32 = st.integers(-(1 << 31), (1 << 31) - 1)
SMALL = st.integers(-3, 300)
BYTES = st.none() | st.binary(max_size=200)


@st.composite
def record_batches(draw: st.DrawFn) -> bytes:
    """Batches that meet the rules of their layout, with no control records."""
    batch = draw(strategies.record_batches())
    return RECORD_BATCH.build(batch | {"attributes": batch["attributes"] | {"is_control": False}})


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Messages and wrappers that meet the rules of their layouts."""
    version = draw(st.integers(0, 1))
    layout = (MESSAGE_V0, MESSAGE_V1)[version]
    codecs = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4]

    def one(offset: int, compression: Compression) -> dict[str, Any]:
        attributes: dict[str, Any] = {"compression": compression}
        item: dict[str, Any] = {"offset": offset, "magic": version, "attributes": attributes}
        if version:
            attributes["timestamp_type"] = draw(st.integers(0, 1))
            item["timestamp"] = draw(I64)
        return item

    def plain(offset: int) -> dict[str, Any]:
        return one(offset, Compression.NONE) | {"key": draw(BYTES), "value": draw(BYTES)}

    if draw(st.booleans()):
        return layout.build(plain(draw(I64)))
    drawn = draw(st.lists(SMALL | I64, min_size=1, max_size=6, unique=True))
    inner = [plain(offset) for offset in sorted(drawn)]
    last = max(drawn)  # a wrapper of version 1 may have 0 or a larger offset
    offsets = st.just(0) | st.integers(last, (1 << 63) - 1) if version else st.just(last)
    wrapper = one(draw(offsets), draw(st.sampled_from(codecs)))
    if version and wrapper["attributes"]["timestamp_type"] == 0:
        wrapper["timestamp"] = max(item["timestamp"] for item in inner)
    return layout.build(wrapper | {"key": None, "messages": inner})


segments = st.lists(record_batches() | messages(), min_size=1, max_size=4).map(b"".join)


def entries(data: bytes) -> Iterator[tuple[int, int]]:
    """(start, end) of the entries of well-formed bytes."""
    at = 0
    while at + 17 < len(data):
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
        if end > len(data) or end <= at + 17:
            return
        yield at, end
        at = end


def mutated(data: bytes, r: random.Random) -> bytes:
    """A few bytes changed, most often with checksums that are right nevertheless."""
    out = bytearray(data)
    for _ in range(r.choice((1, 1, 1, 2, 3, 8))):
        at = r.randrange(len(out))
        out[at] = r.choice(
            (0, 1, 2, 0x7F, 0x80, 0xFF, out[at] ^ 1 << r.randrange(8), r.randrange(256))
        )
    if r.random() < 0.85:
        for start, end in list(entries(bytes(out))):
            part = out[start:end]
            if part[16] == 2 and len(part) > 21:
                out[start + 17 : start + 21] = crc32c(bytes(part[21:])).to_bytes(4, "big")
            elif part[16] < 2:
                out[start + 12 : start + 16] = zlib.crc32(part[16:]).to_bytes(4, "big")
    return bytes(out[: r.randrange(len(out))] if r.random() < 0.05 else out)


def sources(folder: Path, most: int) -> list[bytes]:
    """The bytes of the files of a folder that are not large."""
    found = (path.read_bytes() for path in sorted(folder.rglob("*.log")))
    return [data for data in found if 0 < len(data) <= most]


def mutated_inside(r: random.Random, runs: list[bytes]) -> bytes:
    """A batch whose compressed section was mutated before it was compressed."""
    codec = r.choice(("gzip", "snappy", "lz4", "zstd"))
    data = r.choice(runs)
    start, end = r.choice(list(entries(data)))
    entry = bytearray(data[start:end])
    if entry[16] == 2:
        run = bytearray(mutated_bytes(entry[61:], r))
        entry[22] = entry[22] & 0xF8 | CODES[codec]
        framing = r.choice(("xerial", None)) if codec == "snappy" else None
        entry[61:] = compress(codec, bytes(run), variant=framing)
        entry[8:12] = (len(entry) - 12).to_bytes(4, "big")
        entry[17:21] = crc32c(bytes(entry[21:])).to_bytes(4, "big")
        return bytes(entry)
    whole = b"".join(data[a:b] for a, b in entries(data) if data[a + 16] == entry[16])
    run = bytearray(mutated(whole, r))
    magic = entry[16]
    variant = "legacy-header-checksum" if (codec, magic) == ("lz4", 0) else None
    value = compress(codec, bytes(run), variant=variant)
    head = bytes((magic, CODES[codec])) + (bytes(8) if magic else b"")
    body = head + b"\xff\xff\xff\xff" + len(value).to_bytes(4, "big") + value
    crc = zlib.crc32(body).to_bytes(4, "big")
    offset = r.choice((0, 5, 1 << 40)).to_bytes(8, "big")
    return offset + (len(body) + 4).to_bytes(4, "big") + crc + body


def mutated_bytes(data: bytes | bytearray, r: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(r.choice((0, 1, 1, 2))):
        if out:
            out[r.randrange(len(out))] = r.choice((0, 1, 0x7F, 0x80, 0xFF, r.randrange(256)))
    return bytes(out)


CODES = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
