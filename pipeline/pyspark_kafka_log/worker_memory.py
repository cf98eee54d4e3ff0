"""Limit the memory of Python workers as ``spark.executor.pyspark.memory`` says, and keep their garbage collections short."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

LIMIT_MIB = "PYSPARK_EXECUTOR_MEMORY_MB"
"""Environment variable in which Spark passes the memory limit of each worker, in MiB."""

MIN_MIB = 352
"""Minimum limit in MiB: a worker needs it for its libraries and a small log."""

_SETTING = "spark.executor.pyspark.memory"
_LIBRARY_SETTINGS = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
"""Environment variables for libraries. Arrow's default allocator reserves up to 1 GiB of addresses, and OpenBLAS, which is not needed,
40 MiB for each processor."""

_M_ARENA_MAX = -8
"""Value of M_ARENA_MAX in glibc's malloc.h."""

_STACK_BYTES = 4 << 20
"""Stack size of each thread that Python starts, half of the usual one. With 2 MiB a recursion up to Python's limit crashes the process."""

_NO_THREAD = "can't start new thread"
"""Message of Python if there is no memory for the stack of a thread."""


class WorkerMemoryError(MemoryError):
    """The memory limit of a Python worker is too low."""


def apply_memory_limit(environment: Mapping[str, str] = os.environ) -> None:
    """Limit the address space of this process to the MiB that ``environment`` sets for Spark's
    Python workers, and keep allocators and threads from reserving addresses. Never raise an
    existing lower limit. Raise :class:`WorkerMemoryError` if the setting is below 352 MiB,
    ValueError if it is no integer. Do nothing without a positive setting; on Windows only check it.
    """
    told = memory_limit_mib(environment)
    if told is None:
        return
    if told < MIN_MIB:
        raise WorkerMemoryError(
            f"kafka-log: {_SETTING} lets each Python worker have {told} MiB, it needs {MIN_MIB} at least and 512 for most logs: raise it"
        )
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
    threading.stack_size(_STACK_BYTES)
    for name, value in _LIBRARY_SETTINGS.items():
        os.environ.setdefault(name, value)
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())  # it may have been loaded before


def memory_limit_mib(environment: Mapping[str, str] = os.environ) -> int | None:
    """Return the MiB that Spark allows this worker, None for no limit."""
    told = int(environment.get(LIMIT_MIB, "-1"))
    return told if told > 0 else None


@contextmanager
def explain_memory_errors() -> Iterator[None]:
    """Turn a MemoryError, or a failure to start a thread, into a :class:`WorkerMemoryError` that
    names the setting to raise, if a memory limit is set. Let all other errors pass unchanged.
    """
    try:
        yield
    except WorkerMemoryError:
        raise
    except (MemoryError, RuntimeError) as error:
        told = memory_limit_mib()
        if told is None or (isinstance(error, RuntimeError) and str(error) != _NO_THREAD):
            raise
        raise WorkerMemoryError(
            f"kafka-log: there is not enough memory ({error}): {_SETTING} lets each Python worker have {told} MiB;"
            " raise it, or read fewer rows at once (batchRows), as long as no batch of the log is too large by itself"
        ) from error


MIN_OBJECTS = 50_000
"""Number of objects that the garbage collector scans in 10 ms."""


@contextmanager
def freeze_loaded_objects() -> Iterator[None]:
    """Run the block; then, also after an error, collect garbage and exclude all remaining objects
    from later collections, both only if more than MIN_OBJECTS exist.

    Spark's daemon collects garbage before a worker's next task. With PySpark, Arrow and the kernels loaded this takes 60 ms, as long as decoding 30 MiB.
    """
    try:
        yield
    finally:
        if len(gc.get_objects()) > MIN_OBJECTS:
            gc.collect()
            gc.freeze()
