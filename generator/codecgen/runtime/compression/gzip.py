"""gzip: concatenated members are one stream; bytes after the last member are ignored.

This module reads the members and gives only the deflate data to zlib. zlib's own gzip reader refuses what others
accept (bytes after the last member, reserved flag bits). An ordinary single member, which most writers write, goes
to isal if it is installed: that takes half the time.
"""

from __future__ import annotations

import importlib
import struct
import zlib
from functools import cache
from io import BytesIO
from typing import Any

from codecgen.runtime.compression.base import (
    Codec,
    Decompressed,
    add_note,
    damage_error,
    over_limit,
)
from codecgen.runtime.errors import CompressionError, LimitError
from codecgen.runtime.nouns import count_noun

_NAME = "gzip"
_MAGIC = b"\x1f\x8b"
_DEFLATE = 8
_FHCRC, _FEXTRA, _FNAME, _FCOMMENT, _RESERVED = 0x02, 0x04, 0x08, 0x10, 0xE0
HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # no time, no extra flags, system unknown
USUAL_HEADER = HEADER[:4]  # no flags: the deflate data begins after ten bytes
TRAILER = struct.Struct("<II")
# After a member, fewer bytes than a header and a trailer with something between are not looked at.
_SHORTEST_NEXT = 10 + 8 + 1
# The first call to zlib takes and gives at most this. What comes after it goes in steps, to a buffer that
# grows in place: a call copies the input that it leaves, and once more the output that grew within it.
_ONE_CALL = 1 << 20
_STEP = 1 << 18


@cache
def _fastest() -> Any:
    """Return the module ``isal.isal_zlib`` if it is installed, else the standard ``zlib``. The
    answer is cached.
    """
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return zlib


def _usual(data: memoryview, limit: int) -> bytes | None:
    """Return the data of a section that is one gzip member without header flags, of at most 1 MiB
    compressed. Return None for any other section, and if it is damaged, has a wrong checksum or
    size, or holds more than ``limit`` bytes.
    """
    start, end = len(HEADER), len(data) - TRAILER.size
    if not start < end <= _ONE_CALL or bytes(data[: len(USUAL_HEADER)]) != USUAL_HEADER:
        return None
    crc, size = TRAILER.unpack_from(data, end)
    if size > limit:
        return None
    library = _fastest()
    inflater = library.decompressobj(-zlib.MAX_WBITS)
    try:
        found: bytes = inflater.decompress(data[start:], size + 1)
    except library.error:
        return None
    whole = inflater.eof and len(inflater.unused_data) == TRAILER.size
    return found if whole and len(found) == size and library.crc32(found) == crc else None


def _read(data: memoryview, limit: int, variant: str | None) -> Decompressed:
    """Decompress all members of a gzip stream to at most ``limit`` bytes. An error, also for no
    data, is in the result, beside the bytes before it. Bytes that follow a member and begin no
    other are ignored, with a note. ``variant`` has no effect.
    """
    usual = _usual(data, limit)
    if usual is not None:
        return Decompressed(usual)
    notes: list[str] = []
    start = _member_header(data, 0, 0, notes)
    if isinstance(start, CompressionError):
        return Decompressed(b"", start)
    error: CompressionError | LimitError | None
    out = BytesIO()
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    fed = min(len(data), start + _ONE_CALL)
    try:
        first = inflater.decompress(data[start:fed], min(limit + 1, _ONE_CALL))
    except zlib.error:
        # Damaged: from the beginning, in steps that keep what comes before the damage.
        inflater, first, at = zlib.decompressobj(-zlib.MAX_WBITS), b"", start
    else:
        at = fed - len(inflater.unconsumed_tail) - len(inflater.unused_data)
        if len(first) > limit:
            return Decompressed(first[:limit], over_limit(_NAME, limit, at, limit))
        if inflater.eof:
            error = _trailer(data, at, zlib.crc32(first), len(first), len(first))
            at += TRAILER.size
            if error or at == len(data):
                return Decompressed(first, error, 0, tuple(notes))
    out.write(first)
    if not inflater.eof:
        crc, size = zlib.crc32(first), len(first)
        del first
        at, error = _inflate(inflater, data, at, out, limit, crc, size)
        if error:
            return Decompressed(out.getvalue(), error, 0, tuple(notes))
    return _more_members(data, at, out, limit, notes)


def _more_members(
    data: memoryview, at: int, out: BytesIO, limit: int, notes: list[str]
) -> Decompressed:
    """Append the members from byte ``at`` on to ``out``, and return all that is in it. An error
    inside a member is in the result. Bytes that begin no member, or are too few for one, are
    counted as ``unused``, with a note.
    """
    while len(data) - at >= _SHORTEST_NEXT:
        start = _member_header(data, at, out.tell(), notes)
        if isinstance(start, CompressionError):
            break
        at, error = _inflate(zlib.decompressobj(-zlib.MAX_WBITS), data, start, out, limit)
        if error:
            return Decompressed(out.getvalue(), error, 0, tuple(notes))
    unused = len(data) - at
    if unused:
        add_note(
            notes,
            f"gzip: {count_noun(unused, 'byte after the last member is', 'bytes after the last member are')} ignored",
        )
    return Decompressed(out.getvalue(), None, unused, tuple(notes))


def _member_header(
    data: memoryview, at: int, delivered: int, notes: list[str]
) -> int | CompressionError:
    """Return the index of the deflate data of the gzip member at ``at``. Return a CompressionError,
    without raising it, if no member begins there, its compression method is not deflate, or its
    header is cut off or has a wrong checksum. Reserved flag bits add a note.
    """
    if at == len(data):
        return damage_error(_NAME, "no data", at, delivered)
    if bytes(data[at : at + 2]) != _MAGIC[: len(data) - at]:
        return damage_error(_NAME, "not a gzip member", at, delivered)
    if len(data) - at < len(HEADER):
        return _header_cut_off(data, delivered)
    if data[at + 2] != _DEFLATE:
        what = f"unknown compression method {data[at + 2]}"
        return damage_error(_NAME, what, at + 2, delivered)
    flags = data[at + 3]
    end = at + len(HEADER)
    if flags & _FEXTRA:
        end += 2 + int.from_bytes(data[end : end + 2], "little")
    for flag in (_FNAME, _FCOMMENT):
        if flags & flag:
            end = _after_zero(data, end)
    if flags & _FHCRC:
        end += 2
    if end > len(data):
        return _header_cut_off(data, delivered)
    if flags & _FHCRC:
        stored = int.from_bytes(data[end - 2 : end], "little")
        if stored != zlib.crc32(data[at : end - 2]) & 0xFFFF:
            return damage_error(_NAME, "the header's checksum is wrong", end - 2, delivered)
    if flags & _RESERVED:
        add_note(notes, f"gzip: reserved flag bits are set in the header at byte {at}")
    return end


def _header_cut_off(data: memoryview, delivered: int) -> CompressionError:
    """Return, without raising it, the error for a member's header that is cut off at the end of
    ``data``; ``delivered`` bytes of output came before.
    """
    return damage_error(_NAME, "the member's header is cut off", len(data), delivered)


def _after_zero(data: memoryview, at: int) -> int:
    """Return the index after the next zero byte from ``at`` on, or ``len(data) + 1`` if there is
    none.
    """
    while at < len(data):
        piece = bytes(data[at : at + 256])
        zero = piece.find(0)
        if zero >= 0:
            return at + zero + 1
        at += len(piece)
    return len(data) + 1


def _inflate(
    inflater: Any,
    data: memoryview,
    at: int,
    out: BytesIO,
    limit: int,
    crc: int = 0,
    size: int = 0,
) -> tuple[int, CompressionError | LimitError | None]:
    """Inflate the rest of a gzip member from index ``at`` of ``data`` into ``out``, and check its
    trailer. Return the index after the trailer and None, or an index and the error (not raised):
    damage, a cut-off stream, a wrong checksum or size, or more than ``limit`` bytes in ``out``,
    which is then cut to the limit.

    ``crc`` and ``size`` are those of the part that was inflated already.
    """
    # The pieces grow: a long member takes few calls, and tiny ones do not copy the rest each time.
    piece, pending, length = b"", size > 0, 512
    while True:
        if not piece and not pending:
            piece = bytes(data[at : at + length])
            at += len(piece)
            length = min(length * 4, _STEP)
        before = inflater.copy()
        room = limit - out.tell()
        try:
            got = inflater.decompress(piece, min(room + 1, _STEP))
        except zlib.error as failure:
            left = _salvage(before, piece, out, limit)
            if out.tell() > limit:
                return at, _cut_to_limit(out, limit, at - left)
            why = str(failure).rpartition(": ")[2]
            return at, damage_error(
                _NAME, f"deflate data is damaged ({why})", at - left, out.tell()
            )
        crc, size = zlib.crc32(got, crc), size + len(got)
        out.write(got)
        if out.tell() > limit:
            return at, _cut_to_limit(
                out, limit, at - len(inflater.unconsumed_tail or inflater.unused_data)
            )
        if inflater.eof:
            at -= len(inflater.unused_data)
            return at + TRAILER.size, _trailer(data, at, crc, size, out.tell())
        piece, pending = inflater.unconsumed_tail, len(got) == _STEP
        if not piece and not pending and at == len(data):
            return at, damage_error(_NAME, "the deflate data is cut off", at, out.tell())


def _salvage(inflater: Any, piece: bytes, out: BytesIO, limit: int) -> int:
    """Write what ``inflater`` can inflate before the damage in ``piece`` to ``out``, at most one
    byte more than ``limit`` in all. Return the number of bytes of ``piece`` that are left.

    A call that fails loses its output, so the last byte that can be fed is found by halving, and then
    how much comes out of the byte after it.
    """
    feed, max_output = len(piece), _STEP
    while feed and max_output and out.tell() <= limit:
        trial = inflater.copy()
        try:
            got = trial.decompress(piece[:feed], min(max_output, limit + 1 - out.tell()))
        except zlib.error:
            feed, max_output = (feed // 2, max_output) if feed > 1 else (feed, max_output // 2)
            continue
        out.write(got)
        inflater, piece = trial, trial.unconsumed_tail + piece[feed:]
        feed = min(feed, len(piece))
    return len(piece)


def _cut_to_limit(out: BytesIO, limit: int, read: int) -> LimitError:
    """Cut ``out`` to ``limit`` bytes, and return, without raising it, the LimitError for it.
    ``read`` is the number of compressed bytes read.
    """
    out.truncate(limit)
    return over_limit(_NAME, limit, read, limit)


def _trailer(
    data: memoryview, at: int, crc: int, size: int, delivered: int
) -> CompressionError | None:
    """Compare the trailer at ``at`` with the CRC-32 and the size of the data. Return None if both
    are equal, else a CompressionError, not raised, which also says if the trailer is cut off;
    ``delivered`` bytes of output came before it.
    """
    if len(data) - at < TRAILER.size:
        return damage_error(_NAME, "the member's trailer is cut off", len(data), delivered)
    stored_crc, stored_size = TRAILER.unpack_from(data, at)
    if stored_crc != crc:
        what = f"the data has the CRC {crc:#010x}, but the trailer says {stored_crc:#010x},"
        return damage_error(_NAME, what, at, delivered)
    if stored_size != size & 0xFFFFFFFF:
        what = f"the data has {count_noun(size, 'byte')}, but the trailer says {stored_size},"
        return damage_error(_NAME, what, at + 4, delivered)
    return None


def _write(data: memoryview, level: int | None, variant: str | None) -> bytes:
    """Return ``data`` as one gzip member without a name or time. A ``level`` of None is zlib's
    default; ``variant`` has no effect.
    """
    deflater = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflater.compress(data)
    trailer = TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join((HEADER, body, deflater.flush(), trailer))


CODEC = Codec(_NAME, _read, _write, levels=range(1, 10), default_level=-1, usual=_usual)
