"""Record batches with another codec: the header and the records keep their bytes, but for what says how they are compressed."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from codecgen.runtime.compression import compress
from codecgen.runtime.construct import Array, Bytes, Compressed, Layout
from codecgen.runtime.errors import BuildError, CodecError
from codecgen.runtime.located_bytes import Limits, Session, Source
from kafka_codecs import RECORD_BATCH, Compression
from kafka_log.write.encoding import CODECS

_RECORDS = "records"


@dataclass(frozen=True, slots=True)
class Target:
    """How batches are compressed. ``codec`` None: as they are. With a ``level`` all are compressed anew."""

    codec: Compression | None = None
    level: int | None = None


def target(codec: str | None, level: int | None) -> Target:
    """What people ask for. Raises ValueError for a codec or a level that there is not."""
    if codec is None:
        if level is not None:
            raise ValueError("a level needs a codec")
        return Target()
    if codec not in CODECS:
        raise ValueError(f"no codec is called {codec!r}; known: {', '.join(CODECS)}")
    try:
        compress(codec, b"", level=level)
    except CodecError as error:
        raise ValueError(error.reason) from None
    return Target(Compression[codec.upper()], level)


def _compressed() -> Compressed:
    array = RECORD_BATCH.codec_of(_RECORDS)
    assert isinstance(array, Array) and array.compressed is not None
    return array.compressed


def _without_records() -> Layout:
    """The layout of a record batch whose records are bytes, compressed as they are. Its own fields: a layout relates them."""
    fields = [copy.copy(field) for field in RECORD_BATCH.fields]
    for field in fields:
        if field.name == _RECORDS:
            field.codec = Bytes(None)
    return Layout(RECORD_BATCH.layout_name, *fields, source=RECORD_BATCH.source_file)


_SECTION = _compressed()
_BATCH = _without_records()


def recompressed(
    data: bytes | memoryview,
    codec: Compression,
    level: int | None,
    *,
    file: str,
    position: int,
    limits: Limits | None = None,
) -> bytes:
    """The record batch of ``data``, which lies at a ``position`` of a ``file``, with its records compressed by another codec.

    Raises :class:`~codecgen.runtime.errors.CodecError` for records that cannot be decompressed, and where the codec has no such
    level.
    """
    batch = _BATCH.parse(data, file=file, position=position, strict=False)
    plain = _decompressed(
        batch, Session(strict=False, limits=limits or Limits(), file=file), position
    )
    batch.attributes.compression = codec
    try:
        batch[_RECORDS] = _SECTION.pack(plain, batch, Session(level=level))
        return bytes(_BATCH.build(batch))
    except BuildError as error:
        raise error.located(position=position, file=file) from None


def _decompressed(batch: Any, session: Session, position: int) -> bytes:
    given = Source(batch[_RECORDS], session, origin=position)
    stream = _SECTION.open(given, batch)
    if stream.pending is not None:
        raise stream.pending
    return bytes(memoryview(stream.data)[stream.pos : stream.end])
