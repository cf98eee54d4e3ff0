"""Record batches with another codec: the header and the records keep their bytes, but for what says how they are compressed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from construct import Container

from codecgen.runtime.compression import compress
from codecgen.runtime.construct import Array, Compressed, Field
from codecgen.runtime.errors import BuildError, CodecError, CompressionError
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


_SECTION = _compressed()
_HEADER = RECORD_BATCH.offset_of(_RECORDS)
_LENGTH = next(field for field in RECORD_BATCH.fields if field.measures is not None)
_CRC = next(field for field in RECORD_BATCH.fields if field.checksum is not None)
_ATTRIBUTES = RECORD_BATCH.by_name["attributes"]


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
    session = Session(strict=False, limits=limits or Limits(), file=file, level=level)
    start = RECORD_BATCH.offset_of(_ATTRIBUTES.name)
    end = start + RECORD_BATCH.size_of(_ATTRIBUTES.name)
    before, after, attributes = _changed(bytes(data[start:end]), codec)
    stream = _SECTION.open(Source(data, session, pos=_HEADER, origin=position), before)
    if stream.pending is not None:
        raise stream.pending
    if stream.pauses:
        what = f"the records may end at byte {min(stream.pauses)} of the stream, where it holds nothing"
        raise CompressionError(what).located(position=position, file=file)
    plain = memoryview(stream.data)[stream.pos : stream.end]
    try:
        records = _SECTION.pack(bytes(plain), after, session)
        header = bytearray(data[:_HEADER])
        header[start:end] = attributes
        return _built(header, records)
    except BuildError as error:
        raise error.located(position=position, file=file) from None


@lru_cache(maxsize=64)
def _changed(attributes: bytes, codec: Compression) -> tuple[Container, Container, bytes]:
    """A batch that has attributes only, the same with another codec, and the bytes of its attributes: there are few of them."""
    session = Session(strict=False)
    before, after = (_ATTRIBUTES.codec.read(Source(attributes, session), None) for _ in range(2))
    after.compression = codec
    batch = Container(attributes=after)
    written = _ATTRIBUTES.codec.write(after, batch, session)
    return Container(attributes=before), batch, bytes(written)


def _built(header: bytearray, records: bytes) -> bytes:
    """A batch with other attributes and records: its length and checksum are those of these."""
    assert _LENGTH.measures is not None and _CRC.checksum is not None
    session = Session()

    def put(field: Field, value: int) -> None:
        at = RECORD_BATCH.offset_of(field.name)
        data = field.codec.write(value, None, session)
        header[at : at + len(data)] = data

    size = len(header) + len(records)
    put(_LENGTH, size - RECORD_BATCH.offset_of(_LENGTH.measures[0]))
    ((first, _),) = _CRC.covers
    put(_CRC, _CRC.checksum(bytes(header[RECORD_BATCH.offset_of(first) :]) + records))
    return bytes(header) + records
