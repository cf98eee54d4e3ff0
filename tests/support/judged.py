"""Files on which Kafka's own reader was asked, and what it gives: tests/brokers asks it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codecgen.runtime.compression import compress
from kafka_codecs import LOG_ENTRY, RECORD_BATCH
from tests.brokers.mutant_bytes import lz4_frame, put, sealed, sized

Read = tuple[list[int], list[int], bool]
"""Offsets and timestamps of the records of a batch, and whether there is an error after them."""

GOOD: Read = ([900], [5], False)


@dataclass(frozen=True)
class Case:
    """A file between two good batches, and what is read of it."""

    entry: bytes
    read: Read

    @property
    def data(self) -> bytes:
        return GOOD_BATCH + self.entry + GOOD_BATCH


def message(offset: int, magic: int = 1, *, attributes: int = 0, key: bytes = b"k") -> bytes:
    """A message with the timestamp 1000 + its offset."""
    stamp = (1000 + offset).to_bytes(8, "big") if magic else b""
    head = offset.to_bytes(8, "big", signed=True) + bytes(8) + bytes((magic, attributes)) + stamp
    return sealed(sized(head + len(key).to_bytes(4, "big") + key + b"\0\0\0\1v"))


def wrapper(
    messages: Sequence[bytes],
    offset: int,
    magic: int = 1,
    *,
    attributes: int = 1,
    timestamp: int = 7,
    more: bytes = b"",
) -> bytes:
    """A gzip wrapper."""
    value = compress("gzip", b"".join(messages) + more)
    stamp = timestamp.to_bytes(8, "big") if magic else b""
    head = offset.to_bytes(8, "big", signed=True) + bytes(8) + bytes((magic, attributes)) + stamp
    return sealed(sized(head + b"\xff" * 4 + len(value).to_bytes(4, "big") + value))


def batch(base_offset: int, records: int = 1, codec: str = "none", *, value: bytes = b"v") -> bytes:
    fields = {
        "base_offset": base_offset,
        "attributes": {"compression": codec},
        "base_timestamp": 5,
        "last_offset_delta": max(records - 1, 0),
        "records": [{"offset_delta": i, "value": value} for i in range(records)],
    }
    return RECORD_BATCH.build(fields, strict=False)


GOOD_BATCH = batch(900)
THREE = [message(0), message(1), message(2)]
LONG_KEY = sealed(put(message(1), 26, 1000, 4))
LONG_VALUE = message(0, key=bytes(5000))
NESTED = wrapper([message(0)], 1)
LONG = batch(50, value=bytes(5000))
ZSTD = batch(50, 2, "zstd")
PLAIN = batch(50, 2)
RECORDS = PLAIN[61:]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WIDE = batch(50, 2, value=bytes(65_000))
"""A batch that is longer than what Kafka reads of a zstd stream at a time: 131,075 bytes."""
BOTH: Read = ([50, 51], [5, 5], False)
NONE: Read = ([], [], True)


def with_section(entry: bytes, codec: str, section: bytes) -> bytes:
    """Return an entry with another compressed section, of a codec."""
    number = CODECS.index(codec)
    if entry[16] == 2:
        return sealed(sized(put(entry, 22, number, 1)[:61] + section))
    head = put(entry, 17, number, 1)[:30]
    return sealed(sized(head + len(section).to_bytes(4, "big") + section))


def lz4(entry: bytes, parts: Sequence[bytes], *, cut: int = 0) -> bytes:
    """An entry of lz4 with blocks that hold the parts, and so many bytes fewer at the end of the frame."""
    frame = lz4_frame(parts)
    return with_section(entry, "lz4", frame[: len(frame) - cut])


def snappy_block(data: bytes, last: int, width: int, length: int | None = None) -> bytes:
    """Return a raw block whose last ``last`` bytes are a literal with its length in ``width`` bytes."""
    size, front = len(data), data[: len(data) - last]
    preamble = bytes((size & 0x7F | 0x80, size >> 7))
    parts = [
        bytes((len(p) - 1 << 2,)) + p for p in (front[i : i + 60] for i in range(0, len(front), 60))
    ]
    number = (last - 1 if length is None else length).to_bytes(width, "little")
    return preamble + b"".join(parts) + bytes((59 + width << 2,)) + number + data[size - last :]


def xerial(block: bytes) -> bytes:
    """Return one block in the framing of the xerial library."""
    return (
        bytes.fromhex("82534e4150505900 00000001 00000001") + len(block).to_bytes(4, "big") + block
    )


def zstd_frame(parts: Sequence[bytes], *, window: int = 17, declared: int | None = None) -> bytes:
    """Return a zstd frame of raw blocks, with a window of ``2**window`` bytes, that may declare its content."""
    head = bytes((0 if declared is None else 0x80, window - 10 << 3))
    size = b"" if declared is None else declared.to_bytes(4, "little")
    last = len(parts) - 1
    blocks = [(len(p) << 3 | (i == last)).to_bytes(3, "little") + p for i, p in enumerate(parts)]
    return bytes.fromhex("28b52ffd") + head + size + b"".join(blocks)


def zstd_frames_to(data: bytes, end: int) -> bytes:
    """Return two zstd frames of ``data``, of which the second has a large window and ends at the byte ``end``."""
    tail = data[-400:]
    large = zstd_frame([tail], window=28, declared=len(tail))
    half = len(data) // 2
    front = data[: -len(tail)]
    first = zstd_frame([front[:half], front[half:]])
    skipped = end - len(first) - len(large) - 8
    return first + b"\x50\x2a\x4d\x18" + skipped.to_bytes(4, "little") + bytes(skipped) + large


def magic_of(entry: bytes, magic: int) -> bytes:
    return sealed(put(entry, 16, magic, 1))


CASES = {
    "a wrapper": Case(
        wrapper(THREE, 52, timestamp=1002), ([50, 51, 52], [1000, 1001, 1002], False)
    ),
    "offset 0": Case(wrapper(THREE, 0, timestamp=1002), ([0, 1, 2], [1000, 1001, 1002], False)),
    "offset below the last inner one": Case(wrapper(THREE, 1), ([], [], True)),
    "negative offset": Case(wrapper(THREE, -1), ([], [], True)),
    "version 0, offset below the last inner one": Case(
        wrapper([message(5, 0), message(6, 0)], 1, 0), ([5, 6], [-1, -1], False)
    ),
    "a key that is too long": Case(
        wrapper([message(0), LONG_KEY, message(2)], 52), ([50], [1000], True)
    ),
    "the first key is too long": Case(wrapper([LONG_KEY, message(2)], 52), ([], [], True)),
    "a wrapper inside": Case(wrapper([message(0), NESTED, message(2)], 52), ([50], [1000], True)),
    "an unknown codec inside": Case(
        wrapper([message(0), message(1, attributes=5), message(2)], 52), ([50], [1000], True)
    ),
    "zeros after the messages": Case(wrapper(THREE, 52, more=bytes(30)), ([], [], True)),
    "few zeros after them": Case(
        wrapper(THREE, 52, more=bytes(11)), ([50, 51, 52], [1000, 1001, 1002], False)
    ),
    "a size above the largest array": Case(
        wrapper([*THREE, put(message(3), 8, (1 << 31) - 1, 4)], 52), ([], [], True)
    ),
    "a size that is not there": Case(
        wrapper([*THREE, put(message(3), 8, 50, 4)], 52), ([50, 51, 52], [1000, 1001, 1002], False)
    ),
    "LogAppendTime over version 0": Case(
        wrapper([message(0, 0), message(1)], 52, attributes=9), ([51, 52], [-1, 7], False)
    ),
    "magic 2 inside": Case(
        wrapper([message(0), put(message(1), 16, 2, 1)], 52, attributes=9),
        ([51, 52], [7, 1001], False),
    ),
    "magic -1 inside": Case(
        wrapper([message(0), magic_of(message(1), -1)], 52), ([51, 52], [1000, 1001], False)
    ),
    "magic -1": Case(magic_of(message(60), -1), ([60], [1060], False)),
    "a wrapper of magic -1": Case(magic_of(wrapper(THREE, 52), -1), ([], [], True)),
    "14 bytes of a batch": Case(sized(batch(60)[:26]), ([], [], True)),
    "48 bytes of a batch": Case(sized(batch(60)[:60]), ([], [], True)),
    "20 bytes of a message": Case(sized(message(60)[:32]), ([], [], True)),
    "a count above 2,000,000": Case(
        sealed(put(batch(60, 2), 57, 2_000_001, 4)), ([60, 61], [5, 5], True)
    ),
    "the largest offset": Case(batch((1 << 63) - 1), ([(1 << 63) - 1], [5], False)),
    "offsets that wrap": Case(
        batch((1 << 63) - 1, 2), ([(1 << 63) - 1, -(1 << 63)], [5, 5], False)
    ),
    "a zstd frame that is cut off after a whole one": Case(
        sealed(sized(ZSTD + ZSTD[61:67])), ([50, 51], [5, 5], False)
    ),
    "nothing in a block after the records, and no end": Case(
        lz4(batch(50), [batch(50)[61:], b""], cut=1), ([50], [5], False)
    ),
    "a record after nothing in a block": Case(
        lz4(batch(50), [batch(50)[61:], b"", batch(50)[61:]]), ([50], [5], False)
    ),
    "nothing in a block within a long record": Case(
        lz4(LONG, [LONG[61:1000], b"", b"", LONG[1000:]]), ([50], [5], False)
    ),
    "a message after nothing in a block": Case(
        lz4(wrapper(THREE, 52), [THREE[0] + THREE[1], b"", THREE[2]]),
        ([51, 52], [1000, 1001], False),
    ),
    "nothing in a block within a message": Case(
        lz4(wrapper(THREE, 52), [THREE[0] + THREE[1][:20], b"", THREE[1][20:] + THREE[2]]),
        ([52], [1000], False),
    ),
    "nothing in a block within the length of a message, and no end": Case(
        lz4(wrapper(THREE, 52), [THREE[0] + THREE[1][:10], b"", THREE[1][10:]], cut=1),
        ([52], [1000], False),
    ),
    "nothing in a block within a long message": Case(
        lz4(wrapper(THREE, 52), [LONG_VALUE[:1000], b"", LONG_VALUE[1000:] + THREE[1]]),
        ([51, 52], [1000, 1001], False),
    ),
    "nothing in a block near the end of a long message": Case(
        lz4(wrapper(THREE, 52), [THREE[0] + LONG_VALUE[:3000], b"", LONG_VALUE[3000:]]),
        ([52], [1000], False),
    ),
    "nothing in the first block of a wrapper": Case(
        lz4(wrapper(THREE, 52), [b"", *THREE]), ([], [], True)
    ),
    "nothing in a block between records": Case(
        lz4(PLAIN, [RECORDS[:8], b"", RECORDS[8:]]), ([50], [5], True)
    ),
    "nothing in a block within a short record": Case(
        lz4(PLAIN, [RECORDS[:10], b"", RECORDS[10:]]), ([50], [5], True)
    ),
    "nothing in a block within the first record": Case(
        lz4(PLAIN, [RECORDS[:3], b"", RECORDS[3:]]), NONE
    ),
    "nothing in a block within the length of a long record": Case(
        lz4(LONG, [LONG[61:62], b"", LONG[62:]]), NONE
    ),
    "nothing in a block 2048 bytes before the end of a record": Case(
        lz4(LONG, [LONG[61:-2048], b"", LONG[-2048:]]), ([50], [5], False)
    ),
    "nothing in a block 2047 bytes before the end of a record": Case(
        lz4(LONG, [LONG[61:-2047], b"", LONG[-2047:]]), NONE
    ),
    "nothing in two blocks of a long record": Case(
        lz4(LONG, [LONG[61:1000], b"", LONG[1000:-9], b"", LONG[-9:]]), NONE
    ),
    **{
        f"a snappy literal of {last} bytes with {width} bytes of length, {framing}": Case(
            with_section(PLAIN, "snappy", frame(snappy_block(RECORDS, last, width))), BOTH
        )
        for last in (1, 2, 3)
        for width in (1, 2, 3, 4)
        for framing, frame in (("framed", xerial), ("raw", bytes))
    },
    "a snappy literal that is longer than its block": Case(
        with_section(PLAIN, "snappy", xerial(snappy_block(RECORDS, 2, 1, 2))), NONE
    ),
    "a snappy literal of 2^32 bytes": Case(
        with_section(PLAIN, "snappy", xerial(snappy_block(RECORDS, 2, 4, (1 << 32) - 1))), NONE
    ),
    "a snappy literal of 2^32 bytes, which is none": Case(
        with_section(
            PLAIN,
            "snappy",
            snappy_block(RECORDS + b"..", 2, 4, (1 << 32) - 1)[:-2].replace(
                bytes((len(RECORDS) + 2 | 0x80, 0)), bytes((len(RECORDS) | 0x80, 0)), 1
            ),
        ),
        BOTH,
    ),
    "a zstd window of 256 MiB": Case(
        with_section(PLAIN, "zstd", zstd_frame([RECORDS], window=28)), NONE
    ),
    "a zstd window of 256 MiB and a declared size": Case(
        with_section(PLAIN, "zstd", zstd_frame([RECORDS], window=28, declared=len(RECORDS))), BOTH
    ),
    "a zstd window of 2 GiB and a declared size": Case(
        with_section(PLAIN, "zstd", zstd_frame([RECORDS], window=31, declared=len(RECORDS))), BOTH
    ),
    "a zstd window of 4 GiB and a declared size": Case(
        with_section(PLAIN, "zstd", zstd_frame([RECORDS], window=32, declared=len(RECORDS))), NONE
    ),
    "a zstd window of 256 MiB and a declared size that is wrong": Case(
        with_section(PLAIN, "zstd", zstd_frame([RECORDS], window=28, declared=len(RECORDS) + 1)),
        NONE,
    ),
    "a zstd window of 256 MiB and a declared size of 16,385": Case(
        with_section(PLAIN, "zstd", zstd_frame([RECORDS, b""], window=28, declared=16385)), NONE
    ),
    "a wrong size above 16 KiB and an empty last zstd block": Case(
        with_section(PLAIN, "zstd", zstd_frame([RECORDS, b""], declared=16385)), BOTH
    ),
    "a wrong size above 16 KiB and a last zstd block with data": Case(
        with_section(PLAIN, "zstd", zstd_frame([RECORDS], declared=16385)), NONE
    ),
    **{
        f"a zstd frame with a large window that ends at byte {end} of the section": Case(
            with_section(WIDE, "zstd", zstd_frames_to(WIDE[61:], end)),
            ([50, 51], [5, 5], False) if end <= 131_075 else ([50], [5], True),
        )
        for end in (131_075, 131_076)
    },
    "an unknown codec and no records": Case(
        sealed(put(put(batch(60, 0), 22, 7, 1), 57, 0, 4)), ([], [], True)
    ),
}

assert LOG_ENTRY.build(
    {"magic": 1, "offset": 1, "timestamp": 1001, "key": b"k", "value": b"v"}
) == message(1)
