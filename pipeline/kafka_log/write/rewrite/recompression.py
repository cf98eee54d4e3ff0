"""Record batches with another codec: the header and the records keep their bytes, but for what says how they are compressed."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.runtime.compression import compress
from codecgen.runtime.editing import edit
from codecgen.runtime.errors import BuildError, CodecError
from codecgen.runtime.located_bytes import Session, Source
from kafka_codecs import LOG_ENTRY, Compression
from kafka_log.segment.versions import BATCH_VERSIONS, codecs_of, field_of
from kafka_log.write.encoding import CODECS


@dataclass(frozen=True, slots=True)
class Target:
    """What batches are converted to. ``codec`` None: as they are. With a ``level`` all are compressed anew. ``magic`` is the version of
    the format, None: record batches keep theirs, and messages become batches of the newest one."""

    codec: Compression | None = None
    level: int | None = None
    magic: int | None = None

    @property
    def of_messages(self) -> int:
        """The version in which messages of the legacy formats are written."""
        return BATCH_VERSIONS[-1] if self.magic is None else self.magic


def target(codec: str | None, level: int | None, magic: int | None = None) -> Target:
    """Return what people ask for. Raises ValueError for a codec, a level or a version that there is not."""
    if magic is not None and magic not in BATCH_VERSIONS:
        listed = ", ".join(map(str, BATCH_VERSIONS))
        raise ValueError(f"logs are not converted to version {magic}: known are {listed}")
    if codec is None:
        if level is not None:
            raise ValueError("a level needs a codec")
        return Target(magic=magic)
    if codec not in CODECS:
        raise ValueError(f"no codec is called {codec!r}; known: {', '.join(CODECS)}")
    if magic is not None and codec not in codecs_of(magic):
        raise ValueError(f"version {magic} does not use {codec}")
    try:
        compress(codec, b"", level=level)
    except CodecError as error:
        raise ValueError(error.reason) from None
    return Target(Compression[codec.upper()], level, magic)


def recompress(data: bytes, magic: int, to: Target, *, file: str, position: int) -> bytes:
    """Return the batch of ``data``, which lies at a ``position`` of a ``file``, with its records compressed by another codec.

    Raises:
        CodecError: if the records cannot be decompressed, or the codec cannot be used.
    """
    session = Session(strict=False, file=file, level=to.level)
    changes = {field_of(magic, "codec"): to.codec}
    try:
        return edit(
            LOG_ENTRY.cases[magic],
            Source(data, session, origin=position),
            changes,
            recompress=True,
        )
    except BuildError as error:
        raise error.located(position=position, file=file) from None
