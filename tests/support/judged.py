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
    more: bytes = b"",
) -> bytes:
    """A gzip wrapper with the timestamp 7."""
    value = compress("gzip", b"".join(messages) + more)
    stamp = (7).to_bytes(8, "big") if magic else b""
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
    return RECORD_BATCH.build(fields)


GOOD_BATCH = batch(900)
THREE = [message(0), message(1), message(2)]
LONG_KEY = sealed(put(message(1), 26, 1000, 4))
LONG_VALUE = message(0, key=bytes(5000))
NESTED = wrapper([message(0)], 1)
LONG = batch(50, value=bytes(5000))
ZSTD = batch(50, 2, "zstd")


def lz4(entry: bytes, parts: Sequence[bytes], *, cut: int = 0) -> bytes:
    """An entry of lz4 with blocks that hold the parts, and so many bytes fewer at the end of the frame."""
    frame = lz4_frame(parts)
    frame = frame[: len(frame) - cut]
    if entry[16] == 2:
        return sealed(sized(put(entry, 22, 3, 1)[:61] + frame))
    head = put(entry, 17, 3, 1)[:30]
    return sealed(sized(head + len(frame).to_bytes(4, "big") + frame))


def magic_of(entry: bytes, magic: int) -> bytes:
    return sealed(put(entry, 16, magic, 1))


CASES = {
    "a wrapper": Case(wrapper(THREE, 52), ([50, 51, 52], [1000, 1001, 1002], False)),
    "offset 0": Case(wrapper(THREE, 0), ([0, 1, 2], [1000, 1001, 1002], False)),
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
    "an unknown codec and no records": Case(
        sealed(put(put(batch(60, 0), 22, 7, 1), 57, 0, 4)), ([], [], True)
    ),
}

assert LOG_ENTRY.build(
    {"magic": 1, "offset": 1, "timestamp": 1001, "key": b"k", "value": b"v"}
) == message(1)
