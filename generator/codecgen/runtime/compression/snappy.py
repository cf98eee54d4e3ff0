"""snappy: one raw block, or, as variants, blocks in the framing of the xerial library.

A block begins with its length. The length is compared with the limit, and with what the block can hold at all,
before memory is allocated.
"""

from __future__ import annotations

import struct
from io import BytesIO
from types import ModuleType

from codecgen.runtime.compression.base import (
    Codec,
    Decompressed,
    add_note,
    damage_error,
    missing_package_error,
    over_limit,
)
from codecgen.runtime.errors import CompressionError, LimitError
from codecgen.runtime.nouns import count_noun

_NAME = "snappy"
_PACKAGE = "cramjam"
_MAGIC = b"\x82SNAPPY\x00"
_HEADER = _MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_VERSIONS = struct.Struct(">ii")
_CHUNK = struct.Struct(">i")
_REPEATED = _CHUNK.unpack(_MAGIC[:4])[0]
_LARGEST_CHUNK = 512 << 20
# Three bytes copy at most 64: a block that claims more per byte does not hold it.
_MAX_PER_BYTE = 22
# A block of at most this is decompressed apart and copied, which is quicker for small ones.
_COPIED = 64 << 10
_BLOCKS = {"xerial": 32 << 10, "xerial-1k": 1 << 10}

XERIAL = "xerial"
XERIAL_OR_RAW = "xerial-or-raw"


def _library() -> ModuleType:
    """Import the package cramjam, which has snappy, and return it. Raise UnsupportedCodec if it is
    not installed.
    """
    try:
        import cramjam
    except ImportError as cause:
        raise missing_package_error(_NAME, _PACKAGE) from cause
    return cramjam


def _read(data: memoryview, limit: int, variant: str | None) -> Decompressed:
    """Decompress one raw block to at most ``limit`` bytes. The variant ``xerial`` needs chunks
    behind a xerial header, ``xerial-or-raw`` takes both. An error, also for no data, is in the
    result, beside the bytes before it. Raise UnsupportedCodec if there is data and cramjam is not
    installed.
    """
    if not data:
        return Decompressed(b"", damage_error(_NAME, "no data", 0, 0))
    framed = (
        variant is not None and len(data) >= len(_HEADER) and bytes(data[: len(_MAGIC)]) == _MAGIC
    )
    library = _library()
    if not framed and variant != XERIAL:
        out = BytesIO()
        error = _block(library, data, 0, len(data), out, limit)
        return Decompressed(out.getvalue(), error)
    if not framed:
        return Decompressed(b"", damage_error(_NAME, "not a xerial header", 0, 0))
    return _read_framed(library, data, limit)


def _read_framed(library: ModuleType, data: memoryview, limit: int) -> Decompressed:
    """Decompress the chunks behind a xerial header to at most ``limit`` bytes. An error is in the
    result, beside the bytes before it. Repeated headers are skipped; fewer than four bytes after
    the last chunk are ignored, with a note.
    """
    out = BytesIO()
    notes: list[str] = []
    _note_versions(data, 0, notes)
    at, end = len(_HEADER), len(data)
    begun = 0
    error: CompressionError | LimitError | None = None
    while end - at >= _CHUNK.size:
        (size,) = _CHUNK.unpack_from(data, at)
        if size == _REPEATED:
            is_other = bytes(data[at : at + len(_MAGIC)]) != _MAGIC
            error = _repeated_header(data, at, out.tell(), is_other and out.tell() == begun)
            if error:
                break
            if is_other:
                add_note(notes, f"snappy: the repeated header at byte {at} has another magic")
                begun = out.tell()
            else:
                _note_versions(data, at, notes)
            at += len(_HEADER)
            continue
        if size <= 0 or size > _LARGEST_CHUNK:
            error = damage_error(_NAME, f"a chunk has the length {size}", at, out.tell())
        elif size > end - at - _CHUNK.size:
            rest = end - at - _CHUNK.size
            error = damage_error(
                _NAME,
                f"a chunk of {count_noun(size, 'byte')}, but {count_noun(rest, 'is', 'are')} left,",
                at,
                out.tell(),
            )
        else:
            at += _CHUNK.size
            error = _block(library, data, at, at + size, out, limit)
            at += size
        if error:
            break
    unused = 0 if error else end - at
    if unused:
        add_note(
            notes,
            f"snappy: {count_noun(unused, 'byte after the last chunk is', 'bytes after the last chunk are')} ignored",
        )
    return Decompressed(out.getvalue(), error, unused, tuple(notes))


def _repeated_header(
    data: memoryview, at: int, delivered: int, ends: bool
) -> CompressionError | None:
    """Return a CompressionError, not raised, if the xerial header at ``at`` between chunks is cut
    off, has a version below 1, or has another magic and ``ends`` is set (no data came since the
    last such header). Return None if it can be skipped. ``delivered`` bytes of output came before.

    Unlike those of the first header, its numbers matter. The library skips a header with another magic, unless it
    ``ends`` the stream.
    """
    if len(data) - at < len(_HEADER):
        return damage_error(_NAME, "a repeated header is cut off", len(data), delivered)
    if bytes(data[at : at + len(_MAGIC)]) != _MAGIC:
        return (
            damage_error(_NAME, "a repeated header has another magic", at, delivered)
            if ends
            else None
        )
    version, _ = _VERSIONS.unpack_from(data, at + len(_MAGIC))
    if version < 1:
        at += len(_MAGIC)
        return damage_error(_NAME, f"a repeated header has the version {version}", at, delivered)
    return None


def _note_versions(data: memoryview, at: int, notes: list[str]) -> None:
    """Add a note to ``notes`` if the xerial header at ``at`` has other version numbers than 1 and
    1.
    """
    version, compatible = _VERSIONS.unpack_from(data, at + len(_MAGIC))
    if (version, compatible) != (1, 1):
        add_note(
            notes,
            f"snappy: the header at byte {at} has version {version}, compatible with {compatible}, "
            "not 1 and 1",
        )


def _block(
    library: ModuleType, data: memoryview, start: int, end: int, out: BytesIO, limit: int
) -> CompressionError | LimitError | None:
    """Decompress the raw block from ``start`` to ``end`` (excluded) to the end of ``out``, and
    return None. Return an error, not raised, and leave ``out`` as it was if the block is damaged,
    claims more than it can hold, or makes ``out`` longer than ``limit``.
    """
    done = out.tell()
    size, after = _read_declared_size(data, start, end)
    if size < 0:
        return damage_error(_NAME, "a block does not begin with its length", start, done)
    if size > limit - done:
        return over_limit(_NAME, limit, after, done)
    if size > _MAX_PER_BYTE * (end - start):
        what = f"a block of {count_noun(end - start, 'byte')} claims to hold {size}"
        return damage_error(_NAME, what, start, done)
    block = data[start:end]
    try:
        if size <= _COPIED:
            got = out.write(library.snappy.decompress_raw(block))
        else:
            # Straight to its place: the buffer is stretched, filled, and later handed out uncopied.
            out.seek(done + size - 1)
            out.write(b"\x00")
            with out.getbuffer() as room, room[done:] as place:
                got = library.snappy.decompress_raw_into(block, place)
    except library.DecompressionError:
        got = -1
    if got == size:
        return None
    out.seek(done)
    out.truncate()
    plain = _decode_elements(bytes(data[after:end]), size)
    if plain is None:
        return damage_error(_NAME, "a block is damaged; it begins", start, done)
    out.write(plain)
    return None


def _decode_elements(block: bytes, size: int) -> bytes | None:
    """Decode the elements of a raw block in plain Python, and return ``size`` bytes. Return None if
    an element is cut off, copies from before the start, or the result has another size.

    cramjam refuses long forms of literals near the end of a block, because it loads four bytes for each length.
    """
    out = bytearray()
    at, end = 0, len(block)
    while at < end:
        tag = block[at]
        kind = tag & 3
        width = max(0, (tag >> 2) - 59) if kind == 0 else (1, 2, 4)[kind - 1]
        number = int.from_bytes(block[at + 1 : at + 1 + width], "little")
        at += 1 + width
        if at > end:
            return None
        if kind == 0:
            # The reference counts in 32 bits, so that the longest length means none.
            length = (number + 1) & 0xFFFFFFFF if width else (tag >> 2) + 1
            if length > end - at or length > size - len(out):
                return None
            out += block[at : at + length]
            at += length
            continue
        length = (tag >> 2) + 1 if kind > 1 else (tag >> 2 & 7) + 4
        offset = number if kind > 1 else (tag >> 5) << 8 | number
        if not 0 < offset <= len(out) or length > size - len(out):
            return None
        start = len(out) - offset
        copied = out[start : start + length]
        out += (copied * (length // offset + 1))[:length]
    return bytes(out) if len(out) == size else None


def _read_declared_size(data: memoryview, start: int, end: int) -> tuple[int, int]:
    """Return the decompressed size that a raw block states in its first bytes, and the index after
    them. The size is -1 if the varint is cut off or has more than 32 bits.
    """
    value = 0
    for index in range(min(5, end - start)):
        byte = data[start + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value if value <= 0xFFFFFFFF else -1, start + index + 1
    return -1, start


def _write(data: memoryview, level: int | None, variant: str | None) -> bytes:
    """Return ``data`` as one raw block, or, with the variant ``xerial`` or ``xerial-1k``, as chunks
    of 32 KiB or 1 KiB behind a xerial header. ``level`` has no effect. Raise UnsupportedCodec if
    cramjam is not installed.
    """
    compress_raw = _library().snappy.compress_raw
    if variant is None:
        return bytes(compress_raw(data))
    parts: list[bytes] = [_HEADER]
    step = _BLOCKS[variant]
    for at in range(0, len(data), step):
        block = bytes(compress_raw(data[at : at + step]))
        parts += (_CHUNK.pack(len(block)), block)
    return b"".join(parts)


CODEC = Codec(
    _NAME,
    _read,
    _write,
    _PACKAGE,
    read_variants=(XERIAL, XERIAL_OR_RAW),
    write_variants=tuple(_BLOCKS),
)
