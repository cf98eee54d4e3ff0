"""gzip: members one after the other are one stream, and what follows the last one is ignored.

The members are walked here and only the deflate data goes to zlib. zlib's own gzip reader refuses what
others accept (bytes after the last member, reserved flag bits) and drops the output of a call that fails.
"""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import Any

from codecgen.runtime.compression.base import Codec, Decompressed, bad, over_limit
from codecgen.runtime.errors import CompressionError, LimitError

_NAME = "gzip"
_MAGIC = b"\x1f\x8b"
_DEFLATE = 8
_FHCRC, _FEXTRA, _FNAME, _FCOMMENT, _RESERVED = 0x02, 0x04, 0x08, 0x10, 0xE0
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # no time, no extra flags, system unknown
_TRAILER = struct.Struct("<II")
# A whole member after another one takes a header and a trailer more: fewer bytes are never looked at.
_SHORTEST_NEXT = 10 + 8 + 1
# One call to zlib when a member inflates to no more than this; above it the output goes to a buffer that
# grows in place, because zlib's own growing output is copied once more when it is finished.
_ONE_CALL = 4 << 20
_STEP = 1 << 18


class _Header(Exception):
    """A member does not begin here."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(what)
        self.what = what
        self.at = at


def _read(data: memoryview, limit: int, variant: str | None) -> Decompressed:
    notes: list[str] = []
    try:
        start = _member_header(data, 0, notes)
    except _Header as error:
        return Decompressed(b"", bad(_NAME, error.what, error.at, 0))
    out: BytesIO | None = None
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        first = inflater.decompress(data[start:], min(limit + 1, _ONE_CALL))
    except zlib.error:
        inflater, first = zlib.decompressobj(-zlib.MAX_WBITS), b""
    if inflater.eof and len(first) <= limit:
        at = len(data) - len(inflater.unused_data)
        if problem := _trailer(data, at, zlib.crc32(first), len(first), len(first)):
            return Decompressed(first, problem, 0, tuple(notes))
        at += _TRAILER.size
        if at == len(data):
            return Decompressed(first, None, 0, tuple(notes))
        out = BytesIO()
        out.write(first)
    else:
        # Too large for one call, damaged or cut: from the beginning, in steps.
        out = BytesIO()
        del first, inflater
        at, error_ = _member(data, start, out, limit)
        if error_:
            return Decompressed(out.getvalue(), error_, 0, tuple(notes))
    return _more_members(data, at, out, limit, notes)


def _more_members(
    data: memoryview, at: int, out: BytesIO, limit: int, notes: list[str]
) -> Decompressed:
    """Members until the end, or until something that is none."""
    while len(data) - at >= _SHORTEST_NEXT:
        try:
            start = _member_header(data, at, notes)
        except _Header:
            break
        at, error = _member(data, start, out, limit)
        if error:
            return Decompressed(out.getvalue(), error, 0, tuple(notes))
    unused = len(data) - at
    if unused:
        notes.append(f"gzip: {unused} bytes after the last member are ignored")
    return Decompressed(out.getvalue(), None, unused, tuple(notes))


def _member_header(data: memoryview, at: int, notes: list[str]) -> int:
    """Where the deflate data of the member at ``at`` begins."""
    if len(data) == at:
        raise _Header("no data where a member is expected", at)
    if bytes(data[at : at + 2]) != _MAGIC:
        raise _Header("not a gzip member", at)
    if len(data) - at < len(_HEADER):
        raise _Header("the member's header is cut off", len(data))
    if data[at + 2] != _DEFLATE:
        raise _Header(f"unknown compression method {data[at + 2]}", at + 2)
    flags = data[at + 3]
    end = at + len(_HEADER)
    if flags & _FEXTRA:
        if len(data) - end < 2:
            raise _Header("the member's header is cut off", len(data))
        end += 2 + int.from_bytes(data[end : end + 2], "little")
    for flag in (_FNAME, _FCOMMENT):
        if flags & flag:
            end = _after_zero(data, end)
    if flags & _FHCRC:
        if len(data) - end < 2:
            raise _Header("the member's header is cut off", len(data))
        if int.from_bytes(data[end : end + 2], "little") != zlib.crc32(data[at:end]) & 0xFFFF:
            raise _Header("the header's checksum is wrong", end)
        end += 2
    if end > len(data):
        raise _Header("the member's header is cut off", len(data))
    if flags & _RESERVED:
        notes.append(f"gzip: reserved flag bits are set in byte {at + 3}")
    return end


def _after_zero(data: memoryview, at: int) -> int:
    while at < len(data):
        piece = bytes(data[at : at + 256])
        zero = piece.find(0)
        if zero >= 0:
            return at + zero + 1
        at += len(piece)
    raise _Header("the member's header is cut off", len(data))


def _member(
    data: memoryview, at: int, out: BytesIO, limit: int
) -> tuple[int, CompressionError | LimitError | None]:
    """Inflate the member whose deflate data begins at ``at``; return where the next one may begin."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    crc, size = 0, 0
    # The pieces grow: a long member takes few calls, and a run of tiny ones does not copy the rest each time.
    piece, pending, length = b"", False, 512
    while True:
        if not piece and not pending:
            piece = bytes(data[at : at + length])
            at += len(piece)
            length = min(length * 4, _STEP)
        before = inflater.copy()
        room = limit - out.tell()
        try:
            got = inflater.decompress(piece, min(room + 1, _STEP))
        except zlib.error as error:
            left = _salvage(before, piece, out, limit)
            if out.tell() > limit:
                return at, _cut(out, limit, at - left)
            why = str(error).rpartition(": ")[2]
            return at, bad(_NAME, f"deflate data is damaged ({why})", at - left, out.tell())
        crc, size = zlib.crc32(got, crc), size + len(got)
        out.write(got)
        if out.tell() > limit:
            return at, _cut(out, limit, at - len(inflater.unconsumed_tail or inflater.unused_data))
        if inflater.eof:
            at -= len(inflater.unused_data)
            problem = _trailer(data, at, crc, size, out.tell())
            return at + _TRAILER.size, problem
        piece, pending = inflater.unconsumed_tail, len(got) == _STEP
        if not piece and not pending and at == len(data):
            return at, bad(_NAME, "the deflate data is cut off", at, out.tell())


def _salvage(inflater: Any, piece: bytes, out: BytesIO, limit: int) -> int:
    """Write what inflates before the damage; return how much of ``piece`` is left.

    A call that fails loses its output, so the last byte that can be fed is found by halving, and then how
    much comes out of the byte after it. zlib looks ahead: a byte that comes out together with the damage is lost.
    """
    feed, most = len(piece), _STEP
    while feed and most and out.tell() <= limit:
        trial = inflater.copy()
        try:
            got = trial.decompress(piece[:feed], min(most, limit + 1 - out.tell()))
        except zlib.error:
            feed, most = (feed // 2, most) if feed > 1 else (feed, most // 2)
            continue
        out.write(got)
        inflater, piece = trial, trial.unconsumed_tail + piece[feed:]
        feed = min(feed, len(piece))
    return len(piece)


def _cut(out: BytesIO, limit: int, read: int) -> LimitError:
    out.truncate(limit)
    return over_limit(_NAME, limit, read, limit)


def _trailer(
    data: memoryview, at: int, crc: int, size: int, delivered: int
) -> CompressionError | None:
    if len(data) - at < _TRAILER.size:
        return bad(_NAME, "the member's trailer is cut off", len(data), delivered)
    stored_crc, stored_size = _TRAILER.unpack_from(data, at)
    if stored_crc != crc:
        what = f"the data has the CRC {crc:#010x}, but the trailer says {stored_crc:#010x},"
        return bad(_NAME, what, at, delivered)
    if stored_size != size & 0xFFFFFFFF:
        what = f"the data has {size} bytes, but the trailer says {stored_size},"
        return bad(_NAME, what, at + 4, delivered)
    return None


def _write(data: memoryview, level: int | None, variant: str | None) -> bytes:
    deflater = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflater.compress(data)
    trailer = _TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join((_HEADER, body, deflater.flush(), trailer))


CODEC = Codec(_NAME, _read, _write, levels=range(1, 10), default_level=-1)
