"""The partition of an internal topic that coordinates a group, a transactional id or a share partition."""

from __future__ import annotations

from kafka_log.logs.partitions import NotFoundError

DEFAULT_PARTITIONS = 50
"""Number of partitions that brokers create by default."""


def java_hash(text: str) -> int:
    """Return Java's ``String.hashCode`` of a text, a signed 32-bit number. Raise NotFoundError if
    the text has unpaired surrogates, which stand for bytes that are not UTF-8.
    """
    try:
        units = text.encode("utf-16-be")  # Java hashes UTF-16 code units
    except UnicodeEncodeError:
        raise NotFoundError(
            f"the name {text!a} is not text in UTF-8, so that Kafka has no coordinator for it: correct the name"
        ) from None
    found = 0
    for i in range(0, len(units), 2):
        found = (31 * found + (units[i] << 8) + units[i + 1]) & 0xFFFF_FFFF
    return found - (1 << 32) if found >= 1 << 31 else found


def coordinator_partition(key: str, partitions: int = DEFAULT_PARTITIONS) -> int:
    """Return the partition of ``__consumer_offsets`` or ``__transaction_state``, with
    ``partitions`` partitions, that coordinates a group or transactional id. Raise NotFoundError if
    the key is not valid UTF-8, or ``partitions`` is below 1.

    The smallest hash has no absolute value in 32 bits; Kafka uses 0 for it.
    """
    if partitions < 1:
        raise NotFoundError(f"{partitions} is not a number of partitions: a topic has at least 1")
    found = java_hash(key)
    return 0 if found == -(1 << 31) else abs(found) % partitions
