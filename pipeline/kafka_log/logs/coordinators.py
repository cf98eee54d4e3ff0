"""Which partition of Kafka's own topics holds what is known of a group, a transactional id, or a share partition."""

from __future__ import annotations

from kafka_log.logs.partitions import NotFoundError

DEFAULT_PARTITIONS = 50
"""Partitions that brokers give each of these topics, unless told otherwise."""


def java_hash(text: str) -> int:
    """``String.hashCode`` of Java, a signed 32-bit number. Raises NotFoundError (a ValueError) for what is no text (unpaired surrogates, which
    stand for bytes that are no UTF-8)."""
    try:
        units = text.encode("utf-16-be")  # the hash is one of UTF-16 code units, not of characters
    except UnicodeEncodeError:
        raise NotFoundError(f"{text!a} is no text in UTF-8") from None
    found = 0
    for i in range(0, len(units), 2):
        found = (31 * found + (units[i] << 8) + units[i + 1]) & 0xFFFF_FFFF
    return found - (1 << 32) if found >= 1 << 31 else found


def coordinator_partition(key: str, partitions: int = DEFAULT_PARTITIONS) -> int:
    """The partition of a key in a topic with so many. The smallest hash has no absolute value in 32 bits: Kafka
    takes 0 for it. Raises NotFoundError (a ValueError) for a key that is no text, or fewer than one partition."""
    if partitions < 1:
        raise NotFoundError(f"a topic has at least one partition, not {partitions}")
    found = java_hash(key)
    return 0 if found == -(1 << 31) else abs(found) % partitions
