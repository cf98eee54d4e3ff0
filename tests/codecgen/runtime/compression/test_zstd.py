"""zstd: frames, blocks, and damage."""

from __future__ import annotations

import struct

import pytest
import zstandard

from codecgen.runtime.compression import compress, decompress
from codecgen.runtime.errors import CompressionError, LimitError

ROOMY = 1 << 26
MAGIC = bytes.fromhex("28b52ffd")
TEXT = b"".join(b"%d " % (n * n) for n in range(60000))
RAW, RLE, COMPRESSED, RESERVED = range(4)


def block(kind: int, size: int, body: bytes, *, last: bool = False) -> bytes:
    return struct.pack("<I", size << 3 | kind << 1 | last)[:3] + body


def frame(*blocks: bytes, descriptor: int = 0, rest: bytes = b"\x58") -> bytes:
    return MAGIC + bytes((descriptor,)) + rest + b"".join(blocks)


def skippable(data: bytes, number: int = 0) -> bytes:
    return struct.pack("<II", 0x184D2A50 + number, len(data)) + data


HELLO = frame(block(RAW, 5, b"hello", last=True))


def test_reads_frames_made_by_hand() -> None:
    data = frame(block(RAW, 3, b"abc"), block(RLE, 1000, b"x"), block(RAW, 0, b"", last=True))
    got = decompress("zstd", data, limit=ROOMY)
    assert (got.data, got.error, got.unused, got.notes) == (b"abc" + b"x" * 1000, None, 0, ())


def test_writes_as_the_reference_does() -> None:
    assert compress("zstd", b"a" * 9).hex() == "28b52ffd0058480000616161616161616161010000"
    assert compress("zstd", b"").hex() == "28b52ffd2000010000"


@pytest.mark.slow
@pytest.mark.parametrize("level", [-131072, -7, -1, 0, 1, 3, 6, 12, 19])
def test_levels(level: int) -> None:
    packed = compress("zstd", TEXT, level=level)
    assert decompress("zstd", packed, limit=ROOMY).data == TEXT
    parameters = zstandard.get_frame_parameters(packed)
    assert parameters.content_size == zstandard.CONTENTSIZE_UNKNOWN
    assert not parameters.has_checksum
    if level in (0, 3):
        assert packed == compress("zstd", TEXT)
        assert parameters.window_size == 1 << 21


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("content_size", [False, True])
def test_frames_of_the_library(checksum: bool, content_size: bool) -> None:
    compressor = zstandard.ZstdCompressor(
        level=1, write_checksum=checksum, write_content_size=content_size
    )
    for text in (b"x", b"x" * 300, TEXT, bytes(5 << 20)):
        got = decompress("zstd", compressor.compress(text), limit=ROOMY)
        assert (got.data, got.error) == (text, None)


def test_frames_are_one_stream() -> None:
    empty = compress("zstd", b"")
    data = (
        empty
        + HELLO
        + skippable(b"skip me", 15)
        + compress("zstd", TEXT)
        + skippable(b"")
        + HELLO
        + empty
    )
    got = decompress("zstd", data, limit=ROOMY)
    assert (got.data, got.error, got.unused) == (b"hello" + TEXT + b"hello", None, 0)


def test_only_skippable_frames() -> None:
    got = decompress("zstd", skippable(b"abc") * 3, limit=0)
    assert (got.data, got.error) == (b"", None)


def test_many_flushed_blocks() -> None:
    stream = zstandard.ZstdCompressor().compressobj()
    parts: list[bytes] = []
    for n in range(2000):
        parts += (stream.compress(b"%d " % n), stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
    packed = b"".join((*parts, stream.flush()))
    expected = b"".join(b"%d " % n for n in range(2000))
    assert decompress("zstd", packed, limit=len(expected)).data == expected
    got = decompress("zstd", packed, limit=len(expected) - 1)
    assert got.data == expected[:-1]
    assert isinstance(got.error, LimitError)


@pytest.mark.parametrize("size", [1, 4, 5, 8, 100])
def test_garbage_after_a_frame_is_an_error(size: int) -> None:
    got = decompress("zstd", HELLO + b"\xde" * size, limit=ROOMY)
    assert (got.data, got.unused) == (b"hello", 0)
    assert got.error is not None
    assert (
        got.error.reason == f"zstd: not a zstd frame at byte {len(HELLO)} of the compressed section"
    )
    assert got.error.where.stream_position == 5


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x28", "the frame is cut off in its header at byte 1"),
        (MAGIC, "the frame is cut off in its header at byte 4"),
        (MAGIC + b"\xc0\x58" + bytes(7), "the frame is cut off in its header at byte 13"),
        (MAGIC + b"\x00\x58", "the frame is cut off at byte 6"),
        (MAGIC + b"\x00\x58\x01", "the frame is cut off at byte 7"),
        (b"\x27\xb5\x2f\xfd\x00\x58", "not a zstd frame at byte 0"),
        (b"\x50\x2a\x4d", "a skippable frame is cut off at byte 3"),
        (skippable(b"abc")[:-1], "a skippable frame is cut off at byte 10"),
        (frame(descriptor=0x08), "the reserved bit of the frame header is set at byte 4"),
        (
            frame(rest=b"\x89"),
            "the frame needs a window of 150994944 bytes, more than 134217729, at byte 5",
        ),
        (frame(rest=b"\xff"), "more than 134217729, at byte 5"),
        (
            frame(descriptor=0xE0, rest=struct.pack("<Q", 1 << 28)),
            "the frame needs a window of 268435456 bytes, more than 134217729, at byte 5",
        ),
    ],
)
def test_headers_that_are_refused(data: bytes, expected: str) -> None:
    got = decompress("zstd", data, limit=ROOMY)
    assert got.data == b""
    assert isinstance(got.error, CompressionError)
    assert got.error.reason.endswith(f"{expected} of the compressed section")


def test_a_frame_for_a_dictionary_is_refused() -> None:
    data = frame(block(RAW, 3, b"abc", last=True), descriptor=0x01, rest=b"\x58\x07")
    got = decompress("zstd", data, limit=ROOMY)
    assert got.data == b""
    assert got.error is not None
    assert "damaged (Dictionary mismatch)" in got.error.reason


def test_largest_window() -> None:
    data = frame(block(RAW, 5, b"hello", last=True), rest=b"\x88")
    assert decompress("zstd", data, limit=5).data == b"hello"


def test_truncation_gives_whole_blocks_and_what_is_there_of_raw_ones() -> None:
    packed = compress("zstd", TEXT)
    got = decompress("zstd", packed[: len(packed) * 2 // 3], limit=ROOMY)
    assert got.error is not None
    assert "the frame is cut off" in got.error.reason
    assert len(got.data) >= 128 << 10
    assert TEXT.startswith(got.data)
    got = decompress("zstd", HELLO[:-2], limit=ROOMY)
    assert got.data == b"hel"
    assert got.error is not None


def test_a_block_of_a_reserved_kind() -> None:
    data = frame(block(RAW, 5, b"hello"), block(RESERVED, 1, b"x", last=True))
    got = decompress("zstd", data, limit=ROOMY)
    assert got.data == b"hello"
    assert got.error is not None
    assert "the frame is damaged" in got.error.reason
    assert "at byte 14 of" in got.error.reason


def test_damage_in_a_later_block_keeps_those_before_it() -> None:
    data = frame(block(RLE, 131072, b"a") * 1, block(COMPRESSED, 4, b"\xff\xff\xff\xff", last=True))
    got = decompress("zstd", HELLO + data, limit=ROOMY)
    assert got.data == b"hello" + b"a" * 131072
    assert got.error is not None
    assert got.error.where.stream_position == len(got.data)


def test_a_block_larger_than_any_may_be() -> None:
    for kind in (RAW, RLE):
        size = (128 << 10) + 1
        body = bytes(size) if kind == RAW else b"x"
        got = decompress(
            "zstd", frame(block(RAW, 5, b"hello"), block(kind, size, body, last=True)), limit=ROOMY
        )
        assert got.data == b"hello"
        assert isinstance(got.error, CompressionError)


def test_wrong_checksum_comes_after_all_data() -> None:
    packed = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)
    wrong = packed[:-1] + bytes((packed[-1] ^ 1,))
    for data in (wrong, packed[:-1], packed[:-4]):
        got = decompress("zstd", data, limit=ROOMY)
        assert got.data == TEXT
        assert isinstance(got.error, CompressionError)


@pytest.mark.parametrize("declared", [0, 1, 4, 6, 200])
def test_a_declared_size_that_is_wrong(declared: int) -> None:
    data = frame(block(RAW, 5, b"hello", last=True), descriptor=0x20, rest=bytes((declared,)))
    got = decompress("zstd", data, limit=ROOMY)
    assert isinstance(got.error, CompressionError)
    assert b"hello".startswith(got.data)
    data = MAGIC + b"\x80\x58" + struct.pack("<I", declared) + data[6:]
    assert isinstance(decompress("zstd", data, limit=ROOMY).error, CompressionError)
    empty = frame(block(RAW, 0, b"", last=True), descriptor=0x20, rest=bytes((declared,)))
    assert (decompress("zstd", empty, limit=ROOMY).error is None) == (declared == 0)


@pytest.mark.parametrize("size", [256, 300, 65791])
def test_a_declared_size_of_two_bytes(size: int) -> None:
    """It counts from 256."""
    data = frame(
        block(RLE, size, b"x", last=True), descriptor=0x60, rest=struct.pack("<H", size - 256)
    )
    got = decompress("zstd", data, limit=size)
    assert (got.data, got.error) == (b"x" * size, None)


def test_a_declared_size_is_not_a_reason_to_stop() -> None:
    """A frame that says more than the limit, and holds less, is damaged rather than too large."""
    data = frame(
        block(RAW, 5, b"hello", last=True),
        descriptor=0xC0,
        rest=b"\x58" + struct.pack("<Q", 1 << 40),
    )
    got = decompress("zstd", data, limit=1000)
    assert b"hello".startswith(got.data)
    assert isinstance(got.error, CompressionError)


def test_limit_across_frames() -> None:
    got = decompress("zstd", HELLO * 3, limit=12)
    assert got.data == b"hellohellohe"
    assert isinstance(got.error, LimitError)
