"""Which partition a record goes to: Kafka's own rules, for many records at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

_SEED = np.uint32(0x9747B28C)
_M = np.uint32(0x5BD1E995)
_WORD = 4


def murmur2(keys: pa.Array) -> Any:
    """Kafka's murmur2 of binary values, as unsigned 32-bit numbers. That of a null is 0; no key is hashed to say so."""
    offsets = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
    data = keys.buffers()[2]
    size = 0 if data is None else data.size
    text = np.zeros(size + _WORD, np.uint8)
    if size:
        text[:size] = np.frombuffer(data, np.uint8)
    # A word at each byte, wherever that lies.
    words = np.ndarray((size + 1,), np.dtype("<u4"), text.data, strides=(1,))
    start, length = offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64)
    order = np.argsort(length, kind="stable")
    start, length = start[order], length[order]
    hashed = _SEED ^ length.astype(np.uint32)
    whole = length // _WORD
    for i in range(int(whole[-1]) if len(whole) else 0):
        long = int(np.searchsorted(whole, i, side="right"))  # those with a word more: the last ones
        word = words[start[long:] + i * _WORD] * _M
        word = (word ^ (word >> np.uint32(24))) * _M
        hashed[long:] = (hashed[long:] * _M) ^ word
    rest = length % _WORD
    tail = words[start + whole * _WORD] & (
        (np.uint32(1) << (rest * 8).astype(np.uint32)) - np.uint32(1)
    )
    hashed = np.where(rest > 0, (hashed ^ tail) * _M, hashed)
    hashed = (hashed ^ (hashed >> np.uint32(13))) * _M
    hashed ^= hashed >> np.uint32(15)
    found = np.empty(len(keys), np.uint32)
    found[order] = hashed
    if keys.null_count:
        found[np.asarray(keys.is_null())] = 0
    return found


def partition_by_key(keys: pa.Array, partitions: int) -> Any:
    """The partitions of keys, as Kafka's producers choose them: the hash without its sign, modulo the number of partitions."""
    return (murmur2(keys) & np.uint32(0x7FFFFFFF)).astype(np.int64) % partitions


class StickyPartitioner:
    """Partitions of records without a key: one takes ``batch_bytes`` bytes, then it is the next one's turn. Where a task begins is in its
    number alone, so that a task that is tried again spreads its records in the same way."""

    def __init__(self, task: int, batch_bytes: int) -> None:
        self._task = task
        self._batch_bytes = batch_bytes
        self._bytes = 0

    def of(self, sizes: Any, partitions: int) -> Any:
        """Those of the next records, which have so many bytes."""
        before = self._bytes + np.cumsum(sizes) - sizes
        if len(sizes):
            self._bytes = int(before[-1] + sizes[-1])
        return (self._task + before // self._batch_bytes) % partitions
