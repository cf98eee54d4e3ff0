"""No compression: the section is the data."""

from __future__ import annotations

from codecgen.runtime.compression.base import Codec, Decompressed, over_limit


def _read(data: memoryview, limit: int, variant: str | None) -> Decompressed:
    if len(data) > limit:
        return Decompressed(bytes(data[:limit]), over_limit("none", limit, limit, limit))
    return Decompressed(bytes(data))


def _write(data: memoryview, level: int | None, variant: str | None) -> bytes:
    return bytes(data)


CODEC = Codec("none", _read, _write)
