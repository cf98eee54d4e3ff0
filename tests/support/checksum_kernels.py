"""The checksums of kernels by name, and the numbers that they return."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

from codecgen.runtime.arrow.primitives import checksums
from codecgen.runtime.checksums import CHECKSUMS
from codecgen.targets.arrow import primitive_imports

CHECKSUM_KERNELS: Mapping[str, Callable[[int, int], int]] = {
    name: getattr(importlib.import_module(f"{checksums.__package__}.{module}"), name)
    for module in ("checksums", "table_checksums", "xxhash")
    for name in primitive_imports.MODULES[module]
    if name in CHECKSUMS
}
"""Each checksum's function of an address and a size."""


def to_signed(value: int) -> int:
    """Return the signed number with the 64 bits of ``value``, as kernels return checksums."""
    return value - (1 << 64) if value >> 63 else value
