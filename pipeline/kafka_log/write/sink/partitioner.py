"""The partitioner of Kafka's producers, for many records at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

_SEED = np.uint32(0x9747B28C)
_M = np.uint32(0x5BD1E995)
_WORD = 4


def murmur2(keys: pa.Array) -> Any:
    """Return a NumPy array of Kafka's murmur2 hashes of an Arrow array, as unsigned 32-bit numbers;
    0 for null. The array must be of type binary or string: types with 64-bit offsets (large_binary)
    give wrong hashes without an error.
    """
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
    """Return the partitions of keys: the hash without its sign bit, modulo the number of partitions."""
    return (murmur2(keys) & np.uint32(0x7FFFFFFF)).astype(np.int64) % partitions


class StickyPartitioner:
    """Chooses partitions for records without a key: ``batch_bytes`` bytes of records go to one
    partition, then to the next.

    The first partition depends on the number of the task only, so that a retried task gives the same result.
    """

    def __init__(self, task: int, batch_bytes: int) -> None:
        self._task = task
        self._batch_bytes = batch_bytes
        self._bytes = 0

    def of(self, sizes: Any, partitions: int) -> Any:
        """Return an array with the partition, from 0 to ``partitions`` - 1, of each of the next
        records, by their sizes in bytes. It is the task's number, plus how many whole
        ``batch_bytes`` all records before it have, also those of earlier calls, modulo
        ``partitions``.
        """
        before = self._bytes + np.cumsum(sizes) - sizes
        if len(sizes):
            self._bytes = int(before[-1] + sizes[-1])
        return (self._task + before // self._batch_bytes) % partitions
