"""zstd: concatenated frames are one stream.

The blocks of a frame are counted before it is decompressed: their headers bound its contents, whatever size it
declares. A frame within the bound is decompressed in one call. Any other frame, and one that does not decompress,
goes block by block, so that nothing before the damage is lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
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

_NAME = "zstd"
_PACKAGE = "zstandard"
_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"  # after a byte 0x50 to 0x5f
_LARGEST_WINDOW = (1 << 27) + 1  # the default of libzstd's stream reader
_WINDOWS_END = 1 << 31  # libzstd reads no frame with a window of twice as many bytes
LARGEST_BLOCK = 128 << 10
_RAW, RLE, _COMPRESSED, RESERVED = range(4)  # kinds of blocks
_CUT_OFF = "the frame is cut off"
# A frame goes in one call when its blocks hold at most this, or this many times its compressed size:
# room is made for what they may hold, and many small blocks would ask for far more than they need.
_ONE_CALL, _ONE_CALL_RATIO = 4 << 20, 32


# What others read of a stream at a time. Where a frame ends in the last step, they do not notice that one after it is cut off.
_STEP = (128 << 10) + 3
# Room that others have for the output of a step.
_OUTPUT_STEP = 16 << 10


class _Header(NamedTuple):
    blocks_at: int
    block_size: int
    content_size: int | None
    checksum: bool
    window: int
    window_at: int


# No content size, no checksum, no dictionary, and a window of 128 KiB to 128 MiB.
USUAL_START, USUAL_WINDOWS = _MAGIC + b"\x00", range(0x38, 0x89)
_USUAL_HEADER = _Header(6, LARGEST_BLOCK, None, False, 0, 5)


def _usual(data: memoryview, limit: int) -> bytes | None:
    """Return the data of a section that is one zstd frame without content size, checksum and
    dictionary, whose blocks can hold at most 4 MiB or, if that is more, 32 times its size. Return
    None for any other section, and if it is damaged or does not fit ``limit``. Raise ImportError
    for such a section if zstandard is not installed.
    """
    if len(data) < 6 or data[:5] != USUAL_START or data[5] not in USUAL_WINDOWS:
        return None
    end, max_content = _measure(data, _USUAL_HEADER)
    if end != len(data) or not _fits_one_call(_USUAL_HEADER, end, max_content, limit):
        return None
    decompress, error = decompressor()
    try:
        return decompress(data, max_output_size=min(max_content, limit))
    except error:
        return None


def _read(data: memoryview, limit: int, variant: str | None) -> Decompressed:
    """Decompress all frames of ``data`` to at most ``limit`` bytes, skipping skippable ones; no
    data gives no bytes and no error. An error, such as a cut-off frame, is in the result, beside
    the bytes before it. A cut-off last frame is only a note if another is before it and it begins
    inside the last 128 KiB step of a stream reader. Raise UnsupportedCodec if zstandard is not
    installed.
    """
    try:
        import zstandard
    except ImportError as cause:
        raise missing_package_error(_NAME, _PACKAGE) from cause

    usual = _usual(data, limit)
    if usual is not None:
        return Decompressed(usual)
    decompressor = zstandard.ZstdDecompressor()
    out = BytesIO()
    at, end = 0, len(data)
    error: CompressionError | LimitError | None = None
    whole = 0
    notes: list[str] = []
    while at < end and error is None:
        whole = at
        if _is_skippable(data, at):
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            if at > end:
                error = damage_error(_NAME, "a skippable frame is cut off", end, out.tell())
            continue
        header = _frame_header(data, at, out.tell())
        if isinstance(header, CompressionError):
            error = header
            break
        room = limit - out.tell()
        frame_end, max_content = _measure(data, header)
        one_step = _is_one_step(header, at, frame_end)
        largest = 2 * _WINDOWS_END - 1 if one_step else _LARGEST_WINDOW
        if header.window > largest:
            what = f"the frame needs a window of {header.window} bytes, more than {largest},"
            error = damage_error(_NAME, what, header.window_at, out.tell())
            break
        if _fits_one_call(header, frame_end - at, max_content, room):
            try:
                got = decompressor.decompress(
                    data[at:frame_end], max_output_size=min(max_content, room)
                )
            except zstandard.ZstdError:
                pass  # damaged, or more than the limit: block by block
            else:
                if at == 0 and frame_end == end:
                    return Decompressed(got)
                out.write(got)
                at = frame_end
                continue
        at, error = _by_blocks(data, at, header, out, limit, one_step, notes)
    if error is not None and "cut off" in error.reason and whole > (end - 1) // _STEP * _STEP:
        add_note(notes, f"zstd: {error.reason}, which is passed over: a whole one is before it")
        error = None
    return Decompressed(out.getvalue(), error, 0, tuple(notes))


_KEPT = threading.local()
"""A decompressor for each thread: to make one takes longer than to decompress some KiB."""


def decompressor() -> tuple[Callable[..., bytes], type[Exception]]:
    """Return the function that decompresses one zstd frame, cached per thread, and the class of the
    exception that it raises. Raise ImportError if zstandard is not installed.
    """
    found: tuple[Callable[..., bytes], type[Exception]] | None = getattr(_KEPT, "found", None)
    if found is None:
        from zstandard import ZstdDecompressor, ZstdError

        found = _KEPT.found = ZstdDecompressor().decompress, ZstdError
    return found


def _is_skippable(data: memoryview, at: int) -> bool:
    """Return whether a skippable frame begins at ``at``, even if it is cut off within its magic."""
    magic = bytes(data[at + 1 : at + 4])
    return data[at] & 0xF0 == 0x50 and magic == _SKIPPABLE[: len(data) - at - 1]


def _frame_header(data: memoryview, at: int, delivered: int) -> _Header | CompressionError:
    """Return the parsed header of the zstd frame at ``at``. Return a CompressionError, not raised,
    if no frame begins there, its header is cut off, or its reserved bit is set; ``delivered`` bytes
    of output came before it.
    """
    end = len(data)
    if bytes(data[at : at + 4]) != _MAGIC[: end - at]:
        return damage_error(_NAME, "not a zstd frame", at, delivered)
    if end - at < 5:
        return damage_error(_NAME, _CUT_OFF + " in its header", end, delivered)
    descriptor = data[at + 4]
    if descriptor & 0x08:
        return damage_error(_NAME, "the reserved bit of the frame header is set", at + 4, delivered)
    single_segment = bool(descriptor & 0x20)
    window_at = at + 5
    dictionary_at = window_at + (0 if single_segment else 1)
    size_at = dictionary_at + (0, 1, 2, 4)[descriptor & 3]
    blocks_at = size_at + (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    if blocks_at > end:
        return damage_error(_NAME, _CUT_OFF + " in its header", end, delivered)
    content_size = None
    if blocks_at > size_at:
        content_size = int.from_bytes(data[size_at:blocks_at], "little")
        if blocks_at - size_at == 2:
            content_size += 256
    if single_segment:
        window = content_size or 0
    else:
        base = 1 << (10 + (data[window_at] >> 3))
        window = base + base // 8 * (data[window_at] & 7)
    checksum = bool(descriptor & 0x04)
    block_size = min(window, LARGEST_BLOCK)
    return _Header(blocks_at, block_size, content_size, checksum, window, window_at)


def _is_one_step(header: _Header, at: int, frame_end: int) -> bool:
    """Return whether libzstd's stream reader would decompress the frame at ``at`` in one call: it
    declares at most 16 KiB of content, its end ``frame_end`` is known (not 0), and it ends within
    the input step of 128 KiB that it begins in.

    It does so if the whole frame is in its input and the declared content fits its output. Then it allocates no
    window, and compares the content size also if the last block is empty.
    """
    if header.content_size is None or header.content_size > _OUTPUT_STEP:
        return False
    return 0 < frame_end <= (at // _STEP + 1) * _STEP


def _measure(data: memoryview, header: _Header) -> tuple[int, int]:
    """Return the index after the frame and the most bytes that its blocks can hold, read from the
    block headers alone. Return (0, 0) if the last block is missing or cut off, or a block has a
    reserved type or is too large.
    """
    at, max_content = header.blocks_at, 0
    while at + 3 <= len(data):
        word = int.from_bytes(data[at : at + 3], "little")
        kind, size = word >> 1 & 3, word >> 3
        if kind == RESERVED or size > header.block_size:
            break
        at += 3 + (1 if kind == RLE else size)
        max_content += size if kind in (_RAW, RLE) else header.block_size
        if word & 1:
            at += 4 if header.checksum else 0
            return (at, max_content) if at <= len(data) else (0, 0)
    return 0, 0


def _fits_one_call(header: _Header, size: int, max_content: int, room: int) -> bool:
    """Return whether a frame of ``size`` bytes may be decompressed in one call: its blocks hold
    between 1 byte and 4 MiB (32 times ``size`` if that is more), ``room`` is not 0, and a declared
    content size is neither 0 nor above ``max_content`` or ``room``.

    zstandard makes room for a declared content size, and takes a declared 0 without a look at the blocks.
    """
    if not 0 < max_content <= max(_ONE_CALL, _ONE_CALL_RATIO * size) or room == 0:
        return False
    return header.content_size is None or 0 < header.content_size <= min(max_content, room)


def _by_blocks(
    data: memoryview,
    at: int,
    header: _Header,
    out: BytesIO,
    limit: int,
    one_step: bool,
    notes: list[str],
) -> tuple[int, CompressionError | LimitError | None]:
    """Decompress a frame block by block into ``out``. Return the index after the frame and None, or
    an index and the error (not raised): damage, a cut-off frame, or more than ``limit`` bytes in
    ``out``, which is then cut to the limit. A wrong declared size is an error with ``one_step``,
    else a note.

    The window of a frame of ``one_step`` takes no more memory than its declared content.
    """
    from zstandard import ZstdDecompressor, ZstdError

    stream = ZstdDecompressor(max_window_size=_WINDOWS_END if one_step else 0).decompressobj()
    before = out.tell()
    end, to = len(data), header.blocks_at
    last = False
    while True:
        try:
            out.write(stream.decompress(data[at:to]))
        except ZstdError as error:
            why = str(error).rpartition(": ")[2]
            return at, damage_error(_NAME, f"the frame is damaged ({why})", at, out.tell())
        if out.tell() > limit:
            out.truncate(limit)
            return to, over_limit(_NAME, limit, to, limit)
        if stream.eof:
            # libzstd's stream reader does not compare if the last block is empty.
            if header.content_size not in (None, out.tell() - before):
                what = f"the frame declares {count_noun(header.content_size, 'byte')} of content, it has "
                what += f"{out.tell() - before}; it ends"
                if one_step:
                    return to, damage_error(_NAME, what, to, out.tell())
                add_note(notes, f"zstd: {what} at byte {to} of the compressed section")
            return to, None
        at = to
        if at == end:
            return at, damage_error(_NAME, _CUT_OFF, end, out.tell())
        if last:
            to = min(end, at + 4)  # the checksum
        elif end - at < 3:
            to = end
        else:
            word = int.from_bytes(data[at : at + 3], "little")
            last = bool(word & 1)
            to = min(end, at + 3 + (1 if word >> 1 & 3 == RLE else word >> 3))


def _write(data: memoryview, level: int | None, variant: str | None) -> bytes:
    """Return ``data`` as one zstd frame without a declared content size. A ``level`` of None is 3;
    ``variant`` has no effect. Raise UnsupportedCodec if zstandard is not installed.
    """
    try:
        import zstandard
    except ImportError as cause:
        raise missing_package_error(_NAME, _PACKAGE) from cause
    # The frame is written as a stream of unknown length, as by the reference: no declared content size,
    # a window that does not shrink to the data, and a flush before the end.
    stream = zstandard.ZstdCompressor(level=3 if level is None else level).compressobj()
    parts = []
    if len(data):
        parts = [stream.compress(data), stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)]
    return b"".join((*parts, stream.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH)))


CODEC = Codec(
    _NAME, _read, _write, _PACKAGE, levels=range(-131072, 23), default_level=3, usual=_usual
)
