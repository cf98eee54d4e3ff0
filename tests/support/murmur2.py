"""Kafka's murmur2 hash in plain Python."""

from __future__ import annotations


def plain(data: bytes) -> int:
    """Kafka's Utils.murmur2, a byte at a time."""
    mask = 0xFFFFFFFF
    m = 0x5BD1E995
    h = (0x9747B28C ^ len(data)) & mask
    end = len(data) & ~3
    for i in range(0, end, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if data[end:]:
        h = (h ^ int.from_bytes(data[end:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15
