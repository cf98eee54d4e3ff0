"""snappy: raw blocks, the xerial framing as a variant, and what readers make of odd ones."""

from __future__ import annotations

import struct

import pytest

from codecgen.runtime import compression
from codecgen.runtime.compression import Decompressed, compress
from codecgen.runtime.errors import CompressionError, LimitError
from codecgen.runtime.nouns import count_noun

ROOMY = 1 << 26
HEADER = bytes.fromhex("82534e4150505900 00000001 00000001")
PLAIN = bytes.fromhex(
    "2c000000046b310476310604683104763104683201000010000a02010476320010000104046b3301000c000206000000"
)
REFERENCE = bytes.fromhex(
    "82534e415050590000000001000000010000003130302c000000046b3104763106046801077804683201000010000a0201"
    "0476320010000104046b3301000c000206000000"
)


def decompress(
    data: bytes, *, limit: int = ROOMY, variant: str | None = "xerial-or-raw"
) -> Decompressed:
    return compression.decompress("snappy", data, limit=limit, variant=variant)


def raw(data: bytes) -> bytes:
    """One raw block of literals, made by hand: its length, then pieces of up to 60 bytes."""
    size, parts = len(data), []
    while size >= 0x80:
        parts.append(bytes((size & 0x7F | 0x80,)))
        size >>= 7
    parts.append(bytes((size,)))
    for at in range(0, len(data), 60):
        piece = data[at : at + 60]
        parts += (bytes((len(piece) - 1 << 2,)), piece)
    return b"".join(parts)


def chunk(block: bytes) -> bytes:
    return struct.pack(">i", len(block)) + block


def header(version: int, compatible: int) -> bytes:
    return HEADER[:8] + struct.pack(">ii", version, compatible)


def test_reads_what_the_reference_writes() -> None:
    got = decompress(REFERENCE)
    assert (got.data, got.error, got.notes) == (PLAIN, None, ())


def test_reads_blocks_made_by_hand() -> None:
    text = bytes(range(256)) * 5
    assert decompress(raw(text)).data == text
    assert decompress(HEADER + chunk(raw(text)) * 3).data == text * 3


@pytest.mark.parametrize(("variant", "block"), [("xerial", 32768), ("xerial-1k", 1024)])
def test_written_blocks(variant: str, block: int) -> None:
    data = bytes(block * 2 + 100)
    packed = compress("snappy", data, variant=variant)
    assert packed[:16] == HEADER
    sizes, at = [], 16
    while at < len(packed):
        (length,) = struct.unpack_from(">i", packed, at)
        sizes.append(len(decompress(packed[at + 4 : at + 4 + length], variant=None).data))
        at += 4 + length
    assert sizes == [block, block, 100]


def test_written_empty_data() -> None:
    assert compress("snappy", b"", variant="xerial") == HEADER
    assert compress("snappy", b"") == b"\x00"
    got = decompress(HEADER, limit=0)
    assert (got.data, got.error) == (b"", None)


def test_snappy_alone_is_a_raw_block() -> None:
    packed = compress("snappy", PLAIN)
    assert packed[0] == len(PLAIN)
    assert decompress(packed).data == PLAIN
    assert decompress(packed, variant=None).data == PLAIN


@pytest.mark.parametrize("block", [PLAIN, bytes(200_000)], ids=["small", "large"])
def test_raw_block_of_any_size(block: bytes) -> None:
    packed = compress("snappy", block)
    assert decompress(packed, limit=len(block)).data == block
    damaged = packed[:-1]
    got = decompress(damaged)
    assert got.data == b""
    assert isinstance(got.error, CompressionError)


def test_variant_asks_for_one_framing() -> None:
    packed = compress("snappy", PLAIN)
    got = decompress(packed, variant="xerial")
    assert got.error is not None
    assert "not a xerial header" in got.error.reason
    framed = decompress(REFERENCE, variant=None)
    assert framed.data == b""
    assert framed.error is not None


@pytest.mark.parametrize(("version", "compatible"), [(99, 99), (0, 0), (2, 2), (1, 0), (-1, 1)])
def test_first_header_may_have_any_version(version: int, compatible: int) -> None:
    got = decompress(header(version, compatible) + chunk(raw(b"abc")))
    assert (got.data, got.error) == (b"abc", None)
    assert got.notes == (
        f"snappy: the header at byte 0 has version {version}, compatible with {compatible}, not 1 and 1",
    )


@pytest.mark.parametrize("version", [0, -1, -(2**31)])
def test_later_header_may_not(version: int) -> None:
    data = HEADER + chunk(raw(b"abc")) + header(version, 1) + chunk(raw(b"def"))
    got = decompress(data)
    assert got.data == b"abc"
    assert got.error is not None
    assert got.error.reason == (
        f"snappy: a repeated header has the version {version} at byte 33 of the compressed section"
    )


def test_streams_follow_each_other() -> None:
    data = REFERENCE + REFERENCE + HEADER + HEADER + chunk(raw(b"abc"))
    got = decompress(data)
    assert (got.data, got.error, got.notes) == (PLAIN * 2 + b"abc", None, ())
    got = decompress(REFERENCE + header(7, 1))
    assert (got.data, got.error) == (PLAIN, None)
    assert "has version 7, compatible with 1" in got.notes[0]


def test_repeated_header_with_another_magic_is_passed_over_once() -> None:
    other = b"\x82SNA" + bytes(12)
    got = decompress(REFERENCE + other + chunk(raw(b"abc")) + other + chunk(raw(b"def")))
    assert (got.data, got.error) == (PLAIN + b"abcdef", None)
    assert got.notes[0] == (
        f"snappy: the repeated header at byte {len(REFERENCE)} has another magic"
    )
    for data, given in ((HEADER + other, b""), (REFERENCE + other + other, PLAIN)):
        got = decompress(data + chunk(raw(b"abc")))
        assert got.data == given
        assert got.error is not None
        assert "a repeated header has another magic" in got.error.reason


def test_repeated_header_that_is_cut_off() -> None:
    for tail in (HEADER[:4], HEADER[:15], b"\x82SNA" + bytes(11)):
        got = decompress(REFERENCE + tail)
        assert got.data == PLAIN
        assert got.error is not None
        assert "a repeated header" in got.error.reason


@pytest.mark.parametrize("tail", [b"\x00", b"\x00\x00", b"\xff\xff\xff"])
def test_up_to_three_bytes_at_the_end_are_ignored(tail: bytes) -> None:
    got = decompress(REFERENCE + tail)
    assert (got.data, got.error, got.unused) == (PLAIN, None, len(tail))
    after = count_noun(len(tail), "byte after the last chunk is", "bytes after the last chunk are")
    assert got.notes == (f"snappy: {after} ignored",)


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        (0, "a chunk has the length 0"),
        (-1, "a chunk has the length -1"),
        (-2030693189, "a chunk has the length -2030693189"),
        (2147483647, "a chunk has the length 2147483647"),
        (5, "a chunk of 5 bytes, but 4 are left,"),
        (1 << 20, "a chunk of 1048576 bytes, but 4 are left,"),
    ],
)
def test_chunk_lengths_that_cannot_be(size: int, reason: str) -> None:
    got = decompress(REFERENCE + struct.pack(">i", size) + b"\x03\x08ab")
    assert got.data == PLAIN
    assert got.error is not None
    assert (
        got.error.reason == f"snappy: {reason} at byte {len(REFERENCE)} of the compressed section"
    )
    assert got.error.where.stream_position == len(PLAIN)


def test_damaged_chunk_keeps_those_before_it() -> None:
    bad_copy = b"\x08\x00a\x09\xff"  # copies from before the beginning
    got = decompress(REFERENCE + chunk(bad_copy) + chunk(raw(b"abc")))
    assert got.data == PLAIN
    assert got.error is not None
    assert got.error.reason == (
        f"snappy: a block is damaged; it begins at byte {len(REFERENCE) + 4} of the compressed section"
    )


@pytest.mark.parametrize("data", [HEADER[:8], HEADER[:15], b"\x82", b"sNaPpY\xff\x06\x00\x00" * 3])
def test_anything_else_is_a_raw_block(data: bytes) -> None:
    got = decompress(data)
    assert got.data == b""
    assert isinstance(got.error, CompressionError)


@pytest.mark.parametrize(
    "preamble", [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\x81\x80\x80\x20"]
)
def test_declared_length_is_held_against_the_limit(preamble: bytes) -> None:
    for data in (preamble + b"\x00a", HEADER + chunk(preamble + b"\x00a")):
        got = decompress(data, limit=1 << 20)
        assert got.data == b""
        assert isinstance(got.error, LimitError)


def test_declared_length_is_held_against_the_block() -> None:
    """Room for 60 MB is not made because two bytes ask for it."""
    got = decompress(b"\x80\x80\x80\x1c\x00a", limit=1 << 30)
    assert got.data == b""
    assert isinstance(got.error, CompressionError)
    assert "a block of 6 bytes claims to hold 58720256" in got.error.reason


@pytest.mark.parametrize(
    "preamble", [b"\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\x1f", b"\x80\x80"]
)
def test_declared_length_that_is_no_number(preamble: bytes) -> None:
    got = decompress(preamble)
    assert got.error is not None
    assert "a block does not begin with its length" in got.error.reason


def test_the_densest_block_is_read() -> None:
    """Copies of 64 bytes, three bytes each: the most that a block can hold."""
    copies = 30_000
    size = 1 + 64 * copies
    length = bytes((size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14))
    block = length + b"\x00a" + b"\xfe\x01\x00" * copies
    assert decompress(block).data == b"a" * size
