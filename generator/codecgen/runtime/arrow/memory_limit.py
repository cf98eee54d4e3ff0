"""Whether there is room for a compiler, where the address space of a process is limited (``ulimit -v``, or Spark's
``spark.executor.pyspark.memory``)."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

KERNELS_NEED = 512 << 20
"""Bytes of address space that numba, LLVM and the kernels take with their buffers: 190 MiB are their libraries."""


def room() -> int | None:
    """Bytes that this process may still map; None: as many as there are."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    used = 0
    with suppress(OSError, ValueError):  # no /proc
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        used = pages * os.sysconf("SC_PAGE_SIZE")
    return max(0, limit - used)


def has_room_for_kernels() -> bool:
    """Whether kernels can be loaded without taking what is needed to read."""
    left = room()
    return left is None or left >= KERNELS_NEED
