"""The command ``python -m pyspark_kafka_log.warm``: compile all kernels and the connector ahead of their first use, for images.

The machine code is written next to the modules, or into the cache of the user if the modules are read-only, as numba does. It is for the
processor of this machine. NUMBA_CPU_NAME=generic compiles for all processors of its architecture.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator

MODULES = (
    "codecgen.runtime.arrow.gzip",
    "codecgen.runtime.arrow.header_reads",
    "codecgen.runtime.arrow.lz4",
    "codecgen.runtime.arrow.snappy",
    "codecgen.runtime.arrow.zstd",
    "kafka_log.read.schemas.avro_kernel",
)
"""Modules with kernels, in addition to the modules of the views."""


def kernel_modules() -> list[str]:
    """Return the names of all modules with kernels."""
    views = importlib.import_module("kafka_codecs.arrow")
    of_views = (f"{views.__name__}.{found.name}" for found in pkgutil.iter_modules(views.__path__))
    return [*MODULES, *(n for n in of_views if n.endswith(("_kernels", "_encoders")))]


def warm() -> Iterator[tuple[str, int]]:
    """Compile the functions of each kernel module that numba caches on disk and whose arguments all
    are ints, or load them from the cache; yield the module's name and how many are ready. Yield
    nothing without numba, or with NUMBA_DISABLE_JIT. Errors of numba pass.
    """
    from codecgen.runtime.arrow.primitives.compiling import JIT, compile_ahead

    for name in kernel_modules() if JIT else ():
        yield name, len(compile_ahead(importlib.import_module(name)))


def main() -> int:
    """Compile kernels and the Spark connector, and print the result. Return 1 if the connector
    cannot be compiled, else 0, also without numba. Raise PySparkException if Java does not start.
    """
    from pyspark_kafka_log.connector import ConnectorError, jar_path

    count = 0
    for name, ready in warm():
        print(f"{name}: {ready}", file=sys.stderr)
        count += ready
    print(
        f"{count} kernels are ready"
        if count
        else "numba is not installed: kernels are not compiled"
    )
    try:
        print(f"the connector is ready: {jar_path()}")
    except ConnectorError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
