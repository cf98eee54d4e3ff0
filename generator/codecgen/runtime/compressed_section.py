"""Compression of an array by the codec that a field before it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codecgen.runtime.compression import compress, decompress
from codecgen.runtime.errors import (
    BuildError,
    CodecError,
    CompressionError,
    UnsupportedCodec,
    ValueRefused,
)
from codecgen.runtime.located_bytes import Condition, Limits, Session, Source


class Compressed:
    """Compression of a section, by the codec that ``by`` finds in the fields before it.

    Attributes:
        codecs: Name of the codec by number; None for no compression.
        limit: Maximum bytes of the decompressed section and the compressed ones before it in the layout, together, if the
            caller sets no limit.
        variants: Variants of a codec to (write, read) here, by its name.
    """

    def __init__(
        self,
        by: Condition,
        codecs: Mapping[int, str | None],
        limit: int,
        variants: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self.by = by
        self.codecs = codecs
        self.limit = limit
        self.variants = variants or {}

    def codec(self, this: Any) -> str | None:
        """Return the name of the codec that the fields ``this`` select, or None for no compression.
        Raise ValueRefused if the field is None or its number is no codec's; UnsupportedCodec if an
        enum knows the codec but the format does not use it.
        """
        number = self.by(this)
        if number is None:
            raise ValueRefused(
                "the field that names the compression codec is missing, so that the section cannot be decompressed"
            )
        if int(number) in self.codecs:
            return self.codecs[int(number)]
        label = getattr(number, "label", None)
        if label is None:
            raise ValueRefused(f"{number} is not the number of a compression codec of this format")
        raise UnsupportedCodec(f"the compression codec {label} is not used in this format")

    def open(self, source: Source, this: Any) -> Source:
        """Decompress the rest of the window, move ``source`` to its end, and return the result as a
        new Source; without compression, return ``source`` itself, unmoved. Damage, or more bytes
        than the limit, is no error here: it becomes ``pending``, which is raised where the data
        ends. Raise ValueRefused or UnsupportedCodec for an unknown codec or a missing package.
        Unusual spellings are a CompressionError in a strict session, and findings in a lenient one.
        """
        try:
            codec = self.codec(this)
        except CodecError as error:
            where = source.where()
            raise error.located(position=where.position, file=where.file) from None
        if codec is None:
            size = source.end - source.pos
            source.session.count_section(size, size)
            return source
        start = source.pos
        limit = self.remaining_limit(source.session.limits, source.session.decompressed)
        variant = self.variants[codec][1] if codec in self.variants else None
        data = memoryview(source.data)[start : source.end]
        source.pos = source.end
        stream = decompress(codec, data, limit=limit, variant=variant)
        source.session.count_section(len(data), len(stream.data))
        source.session.decompressed += len(stream.data)
        where = source.where(start)
        for note in stream.notes:
            finding = CompressionError(note).located(position=where.position, file=where.file)
            source.session.tolerate(finding)
        if source.session.trace is not None:
            source.session.trace.append((source.session.path, 0, len(stream.data), True))
        pending = stream.error
        if pending is not None:
            pending.located(position=where.position, file=where.file)
        return Source(
            stream.data,
            source.session,
            origin=where.position or 0,
            inner=True,
            pending=pending,
            pauses=stream.pauses,
        )

    def remaining_limit(self, limits: Limits, before: int) -> int:
        """Return the most bytes that the section may decompress to: the caller's limit
        ``limits.decompressed``, or that of the schema if it is None, less the ``before`` bytes of
        other sections of the layout. It is at least 0.
        """
        limit = self.limit if limits.decompressed is None else limits.decompressed
        return max(0, limit - before)

    def pack(self, data: bytes, this: Any, session: Session) -> bytes:
        """Return ``data`` compressed by the codec that the fields ``this`` select, unchanged for no
        compression. Raise BuildError if there is no such codec or it lacks the session's level;
        UnsupportedCodec if its package is not installed.
        """
        try:
            codec = self.codec(this)
        except CodecError as error:
            raise BuildError(error.reason) from None
        if codec is None:
            return data
        variant = self.variants[codec][0] if codec in self.variants else None
        return compress(codec, data, level=session.level, variant=variant)
