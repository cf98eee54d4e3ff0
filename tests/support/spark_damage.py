"""Damaged segments for Spark, one for each kind of damage."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka_log.segment.kernels import Engine
from tests.support.made_topics import within
from tests.support.spark_logs import TIME, batch, build, flipped, write

ENGINES: tuple[Engine, ...] = ("construct", "arrow")


PER = 5
"""Records of a batch; a segment has four batches."""


def segment(base: int, batches: int = 4, **fields: Any) -> bytes:
    return b"".join(one(base + n * PER, **fields) for n in range(batches))


def one(base: int, **fields: Any) -> bytes:
    return build(
        batch(
            base,
            [b"%d" % (base + i) for i in range(PER)],
            pad=40,
            **{"max_timestamp": TIME + PER - 1} | fields,
        )
    )


def checksum(data: bytes, at: int) -> bytes:
    return flipped(data, at + 80)


def cut_in_the_middle(data: bytes, at: int) -> bytes:
    return data[: at + 70]


def zeros(data: bytes, at: int) -> bytes:
    return data[:at] + bytes(200) + data[at + 200 :]


def noise(data: bytes, at: int) -> bytes:
    return data[:at] + random.Random(at).randbytes(200) + data[at + 200 :]


def a_length_that_cannot_be(data: bytes, at: int) -> bytes:
    return data[: at + 8] + b"\x7f\xff\xff\xff" + data[at + 12 :]


def too_late(data: bytes, at: int) -> bytes:
    """A time that microseconds cannot hold, in the first record."""
    base = int.from_bytes(data[at : at + 8], "big")
    late = one(base, base_timestamp=1 << 62, max_timestamp=1 << 62)
    size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    return data[:at] + late + data[at + size :]


def a_record_that_is_none(data: bytes, at: int) -> bytes:
    """A header that says one record more than there are, under a right checksum."""
    base = int.from_bytes(data[at : at + 8], "big")
    size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    head = bytearray(data[at : at + size])
    head[57:61] = (PER + 1).to_bytes(4, "big")
    crc = crc32c(bytes(head[21:]))
    head[17:21] = crc.to_bytes(4, "big")
    assert int.from_bytes(head[:8], "big") == base
    return data[:at] + bytes(head) + data[at + size :]


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


DAMAGES: tuple[Callable[[bytes, int], bytes], ...] = (
    checksum,
    cut_in_the_middle,
    zeros,
    noise,
    a_length_that_cannot_be,
    a_record_that_is_none,
    too_late,
)


def damaged(directory: Path, damage: Callable[[bytes, int], bytes], bad: int) -> Path:
    """Three segments of one partition, and one of another. The second has damage in its batch number ``bad``. Where that is."""
    for n in (0, 2):
        write(directory, "t", 0, n * 4 * PER, segment(n * 4 * PER))
    write(directory, "u", 0, 0, segment(0))
    data = segment(4 * PER)
    at = len(segment(4 * PER, bad))
    return write(directory, "t", 0, 4 * PER, damage(data, at))


def data(base: int, producer: int) -> bytes:
    return build(batch(base, [b"v"] * 2, pad=40, **within(producer)))
