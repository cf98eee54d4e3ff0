"""lz4: one frame of independent blocks.

The frame is read here, the blocks by liblz4. Readers of whole frames refuse what the reference skips
(content checksum, content size) and accept what it refuses (linked blocks).
"""

from __future__ import annotations

import struct
from io import BytesIO
from typing import NamedTuple

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

_NAME = "lz4"
_MAGIC = b"\x04\x22\x4d\x18"
_SIZE = struct.Struct("<I")
_CONTENT_SIZE = struct.Struct("<Q")
_STORED = 0x80000000
_FLG_WRITTEN, _BD_WRITTEN, _BLOCK_WRITTEN = 0x60, 0x40, 64 << 10
_BLOCK_SIZES = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}
# A byte of a block stands for at most 255 bytes of data.
_MAX_PER_BYTE = 255
_CUT_OFF = "the frame is cut off"
_DEFAULT_LEVEL = 9
# liblz4 has no higher one; the levels above are accepted and mean this one.
_HIGHEST_LEVEL = 12

UNCHECKED_HEADER = "unchecked-header"
LEGACY_HEADER_CHECKSUM = "legacy-header-checksum"


class _Frame(NamedTuple):
    blocks_at: int
    block_size: int
    bd: int
    block_checksums: bool
    content_checksum: bool
    content_size: int | None


# What most writers write: known without a look at each bit.
_USUAL_HEADER = _MAGIC + b"\x60\x40\x82"
_USUAL_FRAME = _Frame(len(_USUAL_HEADER), 64 << 10, 0x40, False, False, None)


def _read(data: memoryview, limit: int, variant: str | None) -> Decompressed:
    """Decompress one LZ4 frame to at most ``limit`` bytes. An error, also for no data, is in the
    result, beside the bytes before it; bytes after the frame are ignored, with a note. The variant
    ``unchecked-header`` tolerates a wrong header checksum. Raise UnsupportedCodec if lz4 is not
    installed and the header is valid.
    """
    notes: list[str] = []
    frame = _frame_header(data, variant == UNCHECKED_HEADER, notes)
    if isinstance(frame, CompressionError):
        return Decompressed(b"", frame)
    out = BytesIO()
    pauses: set[int] = set()
    at, error = _blocks(data, frame, out, limit, notes, pauses)
    if error is None:
        at, error = _after_blocks(data, at, frame, out, notes)
    unused = 0 if error else len(data) - at
    if unused:
        add_note(
            notes,
            f"lz4: {count_noun(unused, 'byte after the frame is', 'bytes after the frame are')} ignored",
        )
    return Decompressed(out.getvalue(), error, unused, tuple(notes), frozenset(pauses))


def _blocks(
    data: memoryview,
    frame: _Frame,
    out: BytesIO,
    limit: int,
    notes: list[str],
    pauses: set[int],
) -> tuple[int, CompressionError | LimitError | None]:
    """Decompress the blocks of a frame into ``out``, at most ``limit`` bytes. Return the index of
    the end mark and None. At the first damage, or beyond the limit, return an index without
    meaning and the error (not raised), which names the byte; ``out`` keeps the bytes before it.
    Empty blocks add a note, and their position in ``out`` to ``pauses``. Raise UnsupportedCodec if
    lz4 is not installed.
    """
    try:
        import lz4.block
        import lz4.frame
    except ImportError as cause:
        raise missing_package_error(_NAME, _NAME) from cause

    at, end, total = frame.blocks_at, len(data), 0
    while True:
        if end - at < _SIZE.size:
            return at, damage_error(_NAME, _CUT_OFF + " before its end mark", end, total)
        (word,) = _SIZE.unpack_from(data, at)
        size = word & ~_STORED
        if size == 0:
            return at, None
        if size > frame.block_size:
            what = f"a block of {size} bytes, where {frame.block_size} are the most,"
            return at, damage_error(_NAME, what, at, total)
        start = at + _SIZE.size
        at = start + size + (_SIZE.size if frame.block_checksums else 0)
        if at > end:
            return at, damage_error(_NAME, _CUT_OFF + " in a block", end, total)
        if frame.block_checksums:
            try:
                lz4.frame.decompress(_stored_block(frame, data[start:at], size))
            except RuntimeError:
                return at, damage_error(
                    _NAME, "a block does not have its checksum; it begins", start, total
                )
        block: bytes | memoryview = data[start : start + size]
        if not word & _STORED:
            max_size = min(frame.block_size, _MAX_PER_BYTE * size)
            try:
                block = lz4.block.decompress(block, uncompressed_size=max_size)
            except lz4.block.LZ4BlockError:
                return at, damage_error(_NAME, "a block is damaged; it begins", start, total)
        if not len(block):
            add_note(
                notes, f"lz4: the block at byte {start} of the compressed section holds nothing"
            )
            pauses.add(total)
        total += len(block)
        if total > limit:
            out.write(memoryview(block)[: limit - total])  # less than 0: all but what is too much
            return at, over_limit(_NAME, limit, at, limit)
        out.write(block)


def _frame_header(data: memoryview, unchecked: bool, notes: list[str]) -> _Frame | CompressionError:
    """Return the parsed header of the frame. Return a CompressionError, not raised, if it is cut
    off, no LZ4 frame, has linked blocks, reserved bits or an unknown version or block size, or a
    wrong checksum. With ``unchecked``, a wrong checksum only adds a note, and that of old Kafka
    clients (over the magic number too) not even that.
    """
    if bytes(data[: len(_USUAL_HEADER)]) == _USUAL_HEADER:
        return _USUAL_FRAME
    if len(data) < 6:
        return damage_error(_NAME, _CUT_OFF if data else "no data", len(data), 0)
    if bytes(data[:4]) != _MAGIC:
        return damage_error(_NAME, "not an lz4 frame", 0, 0)
    flg, bd = data[4], data[5]
    if flg & 0x03:
        return damage_error(_NAME, f"reserved bits are set in the flags {flg:#04x}", 4, 0)
    if not flg & 0x20:
        return damage_error(
            _NAME, "blocks that depend on earlier blocks are not supported; the flags are", 4, 0
        )
    if flg >> 6 != 1:
        return damage_error(_NAME, f"version {flg >> 6} is not supported; the flags are", 4, 0)
    if bd & 0x8F:
        return damage_error(_NAME, f"reserved bits are set in the block descriptor {bd:#04x}", 5, 0)
    if bd >> 4 not in _BLOCK_SIZES:
        return damage_error(_NAME, f"block size code {bd >> 4} is not one of 4 to 7", 5, 0)
    checksum_at = 6 + (_CONTENT_SIZE.size if flg & 0x08 else 0)
    if len(data) <= checksum_at:
        return damage_error(_NAME, _CUT_OFF + " in its header", len(data), 0)
    content_size = _CONTENT_SIZE.unpack_from(data, 6)[0] if flg & 0x08 else None
    stored, computed = data[checksum_at], _header_checksum(bytes(data[4:checksum_at]))
    if stored != computed:
        what = f"the header has the checksum {computed:#04x}, but says {stored:#04x}"
        if not unchecked:
            return damage_error(_NAME, what, checksum_at, 0)
        # Nothing is odd about the legacy checksum where headers go unchecked.
        if stored != _header_checksum(bytes(data[:checksum_at])):
            add_note(notes, f"lz4: {what}")
    return _Frame(
        checksum_at + 1, _BLOCK_SIZES[bd >> 4], bd, bool(flg & 0x10), bool(flg & 0x04), content_size
    )


def _after_blocks(
    data: memoryview, at: int, frame: _Frame, out: BytesIO, notes: list[str]
) -> tuple[int, CompressionError | None]:
    """Skip the end mark at ``at`` and the content checksum, which is not verified. Return the index
    after the frame, and None or the error if the checksum is cut off. An end mark with the bit of a
    stored block, and a declared content size that differs, add a note each.
    """
    if data[at + 3]:
        add_note(notes, f"lz4: the end mark at byte {at} has the bit of a stored block")
    at += _SIZE.size
    if frame.content_checksum:
        # Skipped and not verified: so does the reference.
        at += _SIZE.size
        if at > len(data):
            return at, damage_error(_NAME, "the content checksum is cut off", len(data), out.tell())
    if frame.content_size not in (None, out.tell()):
        add_note(
            notes,
            f"lz4: the header declares {count_noun(frame.content_size, 'byte')} of content, "
            f"the frame has {out.tell()}",
        )
    return at, None


def _stored_block(frame: _Frame, block: memoryview, size: int) -> bytes:
    """Return an LZ4 frame of one block with its checksum, marked as stored, so that liblz4 verifies
    the checksum and decompresses nothing. ``block`` is the block's bytes, compressed or not,
    followed by their 4-byte checksum; ``size`` is without the checksum. Of ``frame`` only the
    largest block size is used.

    The checksum covers the bytes of the block, compressed or not. The frame is no larger than the block needs.
    """
    descriptor = bytes((0x70, frame.bd))
    header = (_MAGIC, descriptor, bytes((_header_checksum(descriptor),)))
    return b"".join((*header, _SIZE.pack(size | _STORED), block, bytes(_SIZE.size)))


def _header_checksum(data: bytes) -> int:
    """Return byte 1 (the second lowest) of XXH32 with seed 0 over ``data``, which must have fewer
    than 16 bytes.
    """
    mask = 0xFFFFFFFF
    value = (0x165667B1 + len(data)) & mask
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        value = (value + int.from_bytes(data[at : at + 4], "little") * 0xC2B2AE3D) & mask
        value = ((value << 17 | value >> 15) * 0x27D4EB2F) & mask
    for byte in data[whole:]:
        value = (value + byte * 0x165667B1) & mask
        value = ((value << 11 | value >> 21) * 0x9E3779B1) & mask
    value = ((value ^ value >> 15) * 0x85EBCA77) & mask
    value = ((value ^ value >> 13) * 0xC2B2AE3D) & mask
    value ^= value >> 16
    return value >> 8 & 0xFF


def _write(data: memoryview, level: int | None, variant: str | None) -> bytes:
    """Return ``data`` as one LZ4 frame of independent blocks of 64 KiB, stored where compression
    does not help. Level None or 9 is the fast compressor; others are high compression, at most
    level 12. The variant ``legacy-header-checksum`` writes the header checksum of old Kafka
    clients, over the magic number too. Raise UnsupportedCodec if lz4 is not installed.
    """
    try:
        import lz4.block
    except ImportError as cause:
        raise missing_package_error(_NAME, _NAME) from cause
    # As in the reference, the default level is the fast compressor, every other one the high one.
    how: dict[str, str | int] = {"store_size": False}
    if level not in (None, _DEFAULT_LEVEL):
        how |= {"mode": "high_compression", "compression": min(level or 0, _HIGHEST_LEVEL)}
    descriptor = bytes((_FLG_WRITTEN, _BD_WRITTEN))
    hashed = _MAGIC + descriptor if variant == LEGACY_HEADER_CHECKSUM else descriptor
    parts: list[bytes | memoryview] = [_MAGIC, descriptor, bytes((_header_checksum(hashed),))]
    for at in range(0, len(data), _BLOCK_WRITTEN):
        plain = data[at : at + _BLOCK_WRITTEN]
        block = lz4.block.compress(plain, **how)
        if len(block) < len(plain):
            parts += (_SIZE.pack(len(block)), block)
        else:
            parts += (_SIZE.pack(len(plain) | _STORED), plain)
    parts.append(bytes(_SIZE.size))
    return b"".join(parts)


CODEC = Codec(
    _NAME,
    _read,
    _write,
    _NAME,
    levels=range(1, 18),
    default_level=_DEFAULT_LEVEL,
    read_variants=(UNCHECKED_HEADER,),
    write_variants=(LEGACY_HEADER_CHECKSUM,),
)
