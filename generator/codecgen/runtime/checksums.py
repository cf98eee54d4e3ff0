"""Checksums by the names that layouts use."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from codecgen.runtime.errors import UnsupportedCodec

CHECKSUMS: tuple[str, ...] = ("crc32", "crc32c")


def checksum(name: str) -> Callable[[bytes | memoryview], int]:
    """The function that computes ``name`` over bytes, as an unsigned number."""
    if name == "crc32":
        return zlib.crc32
    if name == "crc32c":
        return _load_crc32c()
    raise UnsupportedCodec(f"unknown checksum {name!r} (known: {', '.join(CHECKSUMS)})")


def _load_crc32c() -> Callable[[bytes | memoryview], int]:
    # Imported on first use: a layout without this checksum runs without the package.
    try:
        from crc32c import crc32c
    except ImportError as cause:
        raise UnsupportedCodec(
            "checksum 'crc32c' needs the package crc32c: pip install crc32c"
        ) from cause

    compute: Callable[[bytes | memoryview], int] = crc32c
    return compute
