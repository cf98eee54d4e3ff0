"""Shared parts of all codecs: their description, the result of reading, and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from codecgen.runtime.errors import CompressionError, LimitError, UnsupportedCodec, Where
from codecgen.runtime.nouns import count_noun

_MAX_NOTES = 16

PASSES_PAUSE = 2048
"""Bytes that the reference buffers of a decompressed stream. A read of as many bytes or more goes past the buffer."""


@dataclass(frozen=True, slots=True)
class Decompressed:
    """Contents of a compressed section.

    Attributes:
        data: Everything that was recovered, in order, up to the first error.
        error: The error that ended the data; None if the stream is complete.
        unused: Number of compressed bytes after the end of the stream that were ignored.
        notes: Spellings that a strict reader refuses.
        pauses: Positions in ``data`` at which the stream has an empty piece. The reference takes one for the end of
            the stream, unless it asks for ``PASSES_PAUSE`` bytes or more there.
    """

    data: bytes
    error: CompressionError | LimitError | None = None
    unused: int = 0
    notes: tuple[str, ...] = ()
    pauses: frozenset[int] = frozenset()


class Reader(Protocol):
    """Decompresses a section; reports errors in the result."""

    def __call__(self, data: memoryview, limit: int, variant: str | None, /) -> Decompressed:
        """Return the decompressed bytes of ``data``, at most ``limit``, with the error that ended
        them, if there was one (it is not raised). ``variant`` names the codec's way of reading,
        None for the usual one.
        """


class Usual(Protocol):
    """Decompresses an ordinary section quickly; returns None for any other."""

    def __call__(self, data: memoryview, limit: int, /) -> bytes | None:
        """Return the decompressed bytes of ``data``, or None if it is unusual or has more than
        ``limit`` bytes.
        """


class Writer(Protocol):
    """Compresses data."""

    def __call__(self, data: memoryview, level: int | None, variant: str | None, /) -> bytes:
        """Return ``data`` as one compressed section. ``level`` is the codec's compression level,
        None for its default; ``variant`` names its way of writing, None for the usual one.
        """


@dataclass(frozen=True, slots=True)
class Codec:
    """A compression codec.

    Attributes:
        package: Package that pip installs for it; None if the standard library is enough.
        usual: Reads an ordinary section quickly, and returns None for any other section.
    """

    name: str
    read: Reader
    write: Writer
    package: str | None = None
    levels: range = range(0)
    default_level: int | None = None
    read_variants: tuple[str, ...] = ()
    write_variants: tuple[str, ...] = ()
    usual: Usual | None = None


def damage_error(codec: str, what: str, at: int, delivered: int) -> CompressionError:
    """Return, without raising it, the error that ends a stream of ``codec`` at compressed byte
    ``at``, after ``delivered`` bytes of data. ``what`` describes the damage.
    """
    return CompressionError(
        f"{codec}: {what} at byte {at} of the compressed section", Where(stream_position=delivered)
    )


def over_limit(codec: str, limit: int, read: int, delivered: int) -> LimitError:
    """Return, without raising it, a LimitError for a section that decompresses to more than
    ``limit`` bytes. ``read`` is the number of compressed bytes read, ``delivered`` the number of
    bytes before the error.
    """
    return LimitError(
        f"{codec}: the section decompresses to more than the limit of {count_noun(limit, 'byte')} "
        f"({read} compressed bytes read)",
        Where(stream_position=delivered),
    )


def add_note(notes: list[str], text: str) -> None:
    """Append ``text`` to ``notes``, or do nothing if there are 16 already: a stream may hold the
    same oddity a million times.
    """
    if len(notes) < _MAX_NOTES:
        notes.append(text)


def missing_package_error(codec: str, package: str) -> UnsupportedCodec:
    """Return, without raising it, the UnsupportedCodec for a codec whose package is not installed."""
    return UnsupportedCodec(f"codec {codec!r} needs the package {package}: pip install {package}")
