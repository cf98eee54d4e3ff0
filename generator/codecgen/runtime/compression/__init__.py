"""Compress and decompress whole sections by the name of a codec, with a limit.

A codec reads what the most lenient reader in wide use reads. It reports where it had to stop, and notes spellings
that a strict reader refuses. Bad data never raises: the error is part of the result, beside the bytes recovered
before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from codecgen.runtime.compression import gzip, lz4, snappy, zstd
from codecgen.runtime.compression.base import Codec, Decompressed, over_limit
from codecgen.runtime.errors import BuildError, UnsupportedCodec

__all__ = ["CODECS", "Codec", "Decompressed", "compress", "decompress"]


def _read_uncompressed(data: memoryview, limit: int, variant: str | None) -> Decompressed:
    """Return a copy of a section that is not compressed, with an error if it has more than ``limit`` bytes."""
    if len(data) > limit:
        return Decompressed(bytes(data[:limit]), over_limit("none", limit, limit, limit))
    return Decompressed(bytes(data))


def _write_uncompressed(data: memoryview, level: int | None, variant: str | None) -> bytes:
    """Return a copy of ``data``; there is nothing to compress."""
    return bytes(data)


_NONE = Codec("none", _read_uncompressed, _write_uncompressed)
CODECS: Mapping[str, Codec] = MappingProxyType(
    {codec.name: codec for codec in (_NONE, gzip.CODEC, snappy.CODEC, lz4.CODEC, zstd.CODEC)}
)


def decompress(
    codec: str, data: bytes | memoryview, *, limit: int, variant: str | None = None
) -> Decompressed:
    """Decompress one whole section to at most ``limit`` bytes. Damage and more bytes than the limit
    are not raised: they are the ``error`` of the result, beside the bytes before them. Raise
    UnsupportedCodec if the codec or variant does not exist, or its package is not installed;
    ValueError if ``limit`` is negative.

    Args:
        codec: Name of the codec, such as ``zstd``; see :data:`CODECS`.
        data: The compressed section.
        limit: Maximum bytes of the result.
        variant: A variant of the codec's format.
    """
    if limit < 0:
        raise ValueError(f"limit is {limit}, but a limit is at least 0")
    found = _codec(codec)
    if variant is not None and variant not in found.read_variants:
        raise _no_variant("read", codec, variant, found.read_variants)
    return found.read(_view(data), limit, variant)


def compress(
    codec: str, data: bytes | memoryview, *, level: int | None = None, variant: str | None = None
) -> bytes:
    """Return ``data`` compressed to one whole section. A ``level`` of None takes the codec's
    default. Raise UnsupportedCodec if the codec or variant does not exist, or its package is not
    installed; BuildError if the codec does not have the level.

    Args:
        codec: Name of the codec; see :data:`CODECS`.
        data: The bytes.
        level: Compression level; None for the default of the reference.
        variant: A variant of the codec's format.
    """
    found = _codec(codec)
    if variant is not None and variant not in found.write_variants:
        raise _no_variant("write", codec, variant, found.write_variants)
    if level is not None and level not in found.levels and level != found.default_level:
        if not found.levels:
            known = ", ".join(name for name, one in CODECS.items() if one.levels)
            raise BuildError(
                f"codec {codec!r} has no levels, but level {level} was given; leave it out "
                f"(codecs with levels: {known})"
            )
        first, last = found.levels[0], found.levels[-1]
        raise BuildError(f"codec {codec!r} has the levels {first} to {last}, not {level}")
    return found.write(_view(data), found.default_level if level is None else level, variant)


def _view(data: bytes | memoryview) -> memoryview:
    """Return the data as a one-dimensional view of bytes."""
    view = memoryview(data)
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def _codec(name: str) -> Codec:
    """Return the codec with a name, such as ``zstd``. Raise UnsupportedCodec if there is none."""
    try:
        return CODECS[name]
    except KeyError:
        raise UnsupportedCodec(f"unknown codec {name!r} (known: {', '.join(CODECS)})") from None


def _no_variant(verb: str, codec: str, variant: str, known: tuple[str, ...]) -> UnsupportedCodec:
    """Return, without raising it, an UnsupportedCodec for a variant that the codec cannot ``verb``
    ("read" or "write"). Its message lists the ``known`` ones.
    """
    names = ", ".join(known) or "none"
    return UnsupportedCodec(
        f"codec {codec!r} has no variant {variant!r} to {verb} (known: {names})"
    )
