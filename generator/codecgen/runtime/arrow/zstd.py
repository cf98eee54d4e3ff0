"""Many runs of zstd at once: which of them are single frames of one block, as most writers write them.

What is said of one run in :mod:`codecgen.runtime.compression.zstd` takes a fifth of the time in which its data comes; here NumPy looks
at all of them together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codecgen.runtime.compression import zstd

_HEAD, _TAIL = np.arange(zstd.USUAL_HEAD), np.arange(-len(zstd.NO_MORE), 0)
_START = np.frombuffer(zstd.USUAL_START, np.uint8)
_END = np.frombuffer(zstd.NO_MORE, np.uint8)
_LEAST = len(_HEAD) + len(_TAIL)


def reader() -> tuple[Callable[[memoryview, int], bytes], type[Exception]]:
    """What decompresses a run with room for so many bytes, and what it raises. ImportError without the library."""
    return zstd.decompressor()


def rooms(data: Any, starts: Any, ends: Any, limit: int) -> list[int]:
    """How many bytes each run may hold at most; 0 where it has to be looked at more closely, or holds more than ``limit``.

    ``data`` are bytes as an array, and ``starts`` and ``ends`` places in it.
    """
    sizes = ends - starts
    usual = (sizes >= _LEAST) & (limit > 0)
    starts, ends = np.where(usual, starts, 0), np.where(usual, ends, _LEAST)
    head = data[starts[:, None] + _HEAD].astype(np.int64)
    usual &= (head[:, : len(_START)] == _START).all(axis=1)
    window = head[:, len(_START)]
    usual &= (window >= zstd.USUAL_WINDOWS.start) & (window < zstd.USUAL_WINDOWS.stop)
    block = head[:, -3] | head[:, -2] << 8 | head[:, -1] << 16
    left = sizes - len(_HEAD) - (block >> 3)
    nothing_more = (left == len(_TAIL)) & (data[ends[:, None] + _TAIL] == _END).all(axis=1)
    usual &= np.where(block & 1, left == 0, nothing_more)
    usual &= (block >> 1 & 3 == zstd.COMPRESSED) & (block >> 3 <= zstd.LARGEST_BLOCK)
    found: list[int] = np.where(usual, min(zstd.LARGEST_BLOCK, limit), 0).tolist()
    return found
