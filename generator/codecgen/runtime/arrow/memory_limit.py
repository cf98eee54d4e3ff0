"""What there is room for where the address space of a process is limited (``ulimit -v``, or Spark's ``spark.executor.pyspark.memory``):
buffers, and a compiler.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

KERNELS_NEED = 512 << 20
"""Bytes of address space that numba, LLVM and the kernels take with their buffers: 190 MiB are their libraries."""

PLENTY = 2 << 30
"""Bytes of address space from which on buffers are as large as is fastest."""


def limit() -> int | None:
    """Return the address space limit of this process (``ulimit -v``) in bytes. Return None if there
    is no limit, and on Windows.
    """
    try:
        import resource
    except ImportError:  # Windows
        return None
    maximum = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if maximum == resource.RLIM_INFINITY else maximum


def limit_size(size: int) -> int:
    """Return ``size``, reduced in proportion if the address space limit is below PLENTY, but at least 1."""
    maximum = limit()
    return size if maximum is None or maximum >= PLENTY else max(1, size * maximum // PLENTY)


def room() -> int | None:
    """Return how many bytes of address space this process may still map, at least 0. Return None if
    there is no limit. Where ``/proc`` is missing, return the whole limit.
    """
    maximum = limit()
    if maximum is None:
        return None
    used = 0
    with suppress(OSError, ValueError):  # no /proc
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        used = pages * os.sysconf("SC_PAGE_SIZE")
    return max(0, maximum - used)


def has_room_for_kernels() -> bool:
    """Return whether KERNELS_NEED bytes of address space are free, which leaves memory to read
    with. True if there is no limit.
    """
    left = room()
    return left is None or left >= KERNELS_NEED
