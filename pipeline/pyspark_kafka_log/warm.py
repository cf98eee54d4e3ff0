"""``python -m pyspark_kafka_log.warm``: compile all that is compiled on first use, so that no task waits for it. For images.

The machine code goes where the process finds it again: beside the modules, or into the user's cache, as numba's own does; it is of this
machine's processor, and of this user where the modules cannot be written to. NUMBA_CPU_NAME=generic makes code that all processors of its kind take.
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
)
"""Modules with kernels, beside those of the views."""


def kernel_modules() -> list[str]:
    """The modules that have kernels."""
    views = importlib.import_module("kafka_codecs.arrow")
    of_views = (f"{views.__name__}.{found.name}" for found in pkgutil.iter_modules(views.__path__))
    return [*MODULES, *(n for n in of_views if n.endswith(("_kernels", "_encoders")))]


def warm() -> Iterator[tuple[str, int]]:
    """Compile the kernels, or load those that are there. The name of each module, and how many of its functions are ready; none without numba."""
    from codecgen.runtime.arrow.primitives.compiling import JIT, compile_ahead

    for name in kernel_modules() if JIT else ():
        yield name, len(compile_ahead(importlib.import_module(name)))


def main() -> int:
    """Compile kernels and the connector, and say so."""
    from pyspark_kafka_log.connector import ConnectorError, jar_path

    count = 0
    for name, ready in warm():
        print(f"{name}: {ready}", file=sys.stderr)
        count += ready
    print(f"{count} kernels are ready" if count else "there is no numba: kernels are not compiled")
    try:
        print(f"the connector is ready: {jar_path()}")
    except ConnectorError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
