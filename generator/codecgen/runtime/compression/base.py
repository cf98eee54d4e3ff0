"""What all codecs share: the result of reading, the description of a codec, the wording of errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from codecgen.runtime.errors import CompressionError, LimitError, UnsupportedCodec, Where

_MAX_NOTES = 16

PASSES_PAUSE = 2048
"""Bytes that the reference buffers of a decompressed stream. A read of as many bytes or more goes past the buffer."""


@dataclass(frozen=True, slots=True)
class Decompressed:
    """What a compressed section holds.

    ``data`` is everything that could be recovered, in order, up to the first error; ``error`` says why
    it ended there (None: the stream is whole); ``unused`` counts the compressed bytes after the end of
    the stream that were ignored; ``notes`` names spellings that a strict reader refuses. ``pauses`` are the
    positions in ``data`` at which the stream holds a piece of no bytes. The reference takes one for the end of the
    stream, and never sees what follows, unless it asks for ``PASSES_PAUSE`` bytes or more there.
    """

    data: bytes
    error: CompressionError | LimitError | None = None
    unused: int = 0
    notes: tuple[str, ...] = ()
    pauses: frozenset[int] = frozenset()


class Reader(Protocol):
    def __call__(self, data: memoryview, limit: int, variant: str | None, /) -> Decompressed: ...


class Usual(Protocol):
    def __call__(self, data: memoryview, limit: int, /) -> bytes | None: ...


class Writer(Protocol):
    def __call__(self, data: memoryview, level: int | None, variant: str | None, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Codec:
    """A codec. ``package`` is what pip installs for it (None: Python's own library is enough). ``usual`` reads a section with
    nothing odd about it in less time; None stands for all others."""

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
    """The error that ends a stream: at which compressed byte, after how many delivered bytes."""
    return CompressionError(
        f"{codec}: {what} at byte {at} of the compressed section", Where(stream_position=delivered)
    )


def over_limit(codec: str, limit: int, read: int, delivered: int) -> LimitError:
    return LimitError(
        f"{codec}: the section decompresses to more than the limit of {limit} bytes "
        f"({read} compressed bytes read)",
        Where(stream_position=delivered),
    )


def remark(notes: list[str], text: str) -> None:
    """Add a note, unless there are many: a stream may hold the same oddity a million times."""
    if len(notes) < _MAX_NOTES:
        notes.append(text)


def missing(codec: str, package: str) -> UnsupportedCodec:
    return UnsupportedCodec(f"codec {codec!r} needs the package {package}: pip install {package}")
