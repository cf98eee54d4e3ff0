"""What Python workers may take, where ``spark.executor.pyspark.memory`` says so: a limit of their address space."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from contextlib import suppress

LIMIT_MIB = "PYSPARK_EXECUTOR_MEMORY_MB"
"""The variable by which Spark tells its workers how much each may have."""

_M_ARENA_MAX = -8
"""That of malloc.h in glibc."""


def keep_limit(environment: Mapping[str, str] = os.environ) -> None:
    """Take the limit that Spark tells, as its own workers do, and leave out what sets addresses aside: Arrow's allocator does for a
    gigabyte, and each thread for more. Where nothing is told, or processes have no such limits, nothing is done."""
    told = int(environment.get(LIMIT_MIB, "-1"))
    if told <= 0:
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    most = told << 20
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY or most < soft:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    with suppress(OSError, AttributeError, TypeError):  # another C library, or none
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)  # a thread sets 64 MiB aside otherwise
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
