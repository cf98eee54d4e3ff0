"""gzip: members, headers, trailers, garbage, damage."""

from __future__ import annotations

import gzip
import struct
import zlib

import pytest

from codecgen.runtime.compression import compress, decompress
from codecgen.runtime.errors import CompressionError, LimitError

ROOMY = 1 << 26
PLAIN = bytes.fromhex(
    "2c000000046b310476310604683104763104683201000010000a02010476320010000104046b3301000c000206000000"
)
# The same, as the reference implementation writes it.
REFERENCE = bytes.fromhex(
    "1f8b08000000000000ffd361606060c9366429336463c900512c19468c0c0c020c5c4c8c2c65464006230b4bb63123030f03131b50"
    "2d00c1bf2da830000000"
)


def member(
    data: bytes, flags: int = 0, extras: bytes = b"", *, crc: int = 0, size: int = 0
) -> bytes:
    """A member; ``crc`` and ``size`` are added to the true ones."""
    deflater = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = deflater.compress(data) + deflater.flush()
    header = b"\x1f\x8b\x08" + bytes((flags,)) + b"\x01\x02\x03\x04\x02\x03" + extras
    return header + body + struct.pack("<II", zlib.crc32(data) + crc & 0xFFFFFFFF, len(data) + size)


def test_reads_what_the_reference_writes() -> None:
    assert decompress("gzip", REFERENCE, limit=ROOMY).data == PLAIN


def test_writes_the_header_of_the_reference() -> None:
    assert compress("gzip", PLAIN)[:10].hex() == "1f8b08000000000000ff"
    assert compress("gzip", PLAIN)[-8:] == REFERENCE[-8:]
    assert gzip.decompress(compress("gzip", PLAIN)) == PLAIN


@pytest.mark.parametrize("level", [-1, *range(1, 10)])
def test_levels(level: int) -> None:
    data = b"".join(b"line %d\n" % n for n in range(20000))
    packed = compress("gzip", data, level=level)
    assert gzip.decompress(packed) == data
    assert packed[:10].hex() == "1f8b08000000000000ff"
    if level == -1:
        assert packed == compress("gzip", data) == compress("gzip", data, level=6)
    elif level == 9:
        assert len(packed) < len(compress("gzip", data, level=1))


@pytest.mark.parametrize("parts", [2, 3, 500])
def test_members_are_one_stream(parts: int) -> None:
    texts = [b"member %d " % n * 30 for n in range(parts)]
    got = decompress("gzip", b"".join(member(text) for text in texts), limit=ROOMY)
    assert (got.data, got.error, got.unused, got.notes) == (b"".join(texts), None, 0, ())


def test_a_long_member_after_another() -> None:
    long = bytes(range(256)) * 40000
    got = decompress("gzip", member(b"short") + member(long) + member(b"end"), limit=ROOMY)
    assert got.error is None
    assert got.data == b"short" + long + b"end"


def test_a_member_larger_than_one_call() -> None:
    long = bytes(9 << 20) + b"end"
    assert decompress("gzip", member(long), limit=ROOMY).data == long
    got = decompress("gzip", member(long) + member(b"!"), limit=len(long))
    assert isinstance(got.error, LimitError)
    assert got.data == long


def test_empty_members() -> None:
    got = decompress("gzip", member(b"") + member(b"abc") + member(b""), limit=ROOMY)
    assert (got.data, got.error, got.unused) == (b"abc", None, 0)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xde\xad\xbe\xef",
        bytes(20),
        b"\x1f\x8b",
        REFERENCE[:9],
        REFERENCE[:18],
        b"\x1f\x8b\x07" + bytes(40),
    ],
)
def test_garbage_after_the_last_member_is_ignored(garbage: bytes) -> None:
    got = decompress("gzip", member(b"abc") + member(b"def") + garbage, limit=ROOMY)
    assert (got.data, got.error, got.unused) == (b"abcdef", None, len(garbage))
    assert got.notes == (f"gzip: {len(garbage)} bytes after the last member are ignored",)


def test_a_second_member_that_is_cut_off() -> None:
    got = decompress("gzip", member(b"abc") + REFERENCE[:-12], limit=ROOMY)
    assert got.data.startswith(b"abc")
    assert PLAIN.startswith(got.data[3:])
    assert isinstance(got.error, CompressionError)


HEADER_CRC = zlib.crc32(b"\x1f\x8b\x08\x02\x01\x02\x03\x04\x02\x03") & 0xFFFF


@pytest.mark.parametrize(
    ("flags", "extras"),
    [
        (0x01, b""),
        (0x04, b"\x03\x00abc"),
        (0x04, b"\x00\x00"),
        (0x08, b"name\x00"),
        (0x08, b"n" * 1000 + b"\x00"),
        (0x10, b"comment\x00"),
        (0x1C, b"\x02\x00abname\x00\x00"),
        (0x02, struct.pack("<H", HEADER_CRC)),
    ],
)
def test_optional_header_fields(flags: int, extras: bytes) -> None:
    got = decompress("gzip", member(PLAIN, flags, extras), limit=ROOMY)
    assert (got.data, got.error, got.notes) == (PLAIN, None, ())


def test_reserved_flags_are_noted() -> None:
    got = decompress("gzip", member(PLAIN, 0x80), limit=ROOMY)
    assert (got.data, got.error) == (PLAIN, None)
    assert got.notes == ("gzip: reserved flag bits are set in the header at byte 0",)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x1f\x8c" + REFERENCE[2:], "not a gzip member at byte 0"),
        (zlib.compress(PLAIN), "not a gzip member at byte 0"),
        (b"\x1f\x8b\x07" + REFERENCE[3:], "unknown compression method 7 at byte 2"),
        (b"\x1f", "the member's header is cut off at byte 1"),
        (REFERENCE[:9], "the member's header is cut off at byte 9"),
        (member(b"", 0x04)[:11], "the member's header is cut off at byte 11"),
        (member(b"", 0x04, b"\xff\xff")[:30], "the member's header is cut off at byte 22"),
        (b"\x1f\x8b\x08\x08" + b"\x01" * 700, "the member's header is cut off at byte 704"),
        (
            member(PLAIN, 0x02, struct.pack("<H", HEADER_CRC ^ 1)),
            "the header's checksum is wrong at byte 10",
        ),
    ],
)
def test_a_header_that_is_none(data: bytes, reason: str) -> None:
    got = decompress("gzip", data, limit=ROOMY)
    assert got.data == b""
    assert isinstance(got.error, CompressionError)
    assert got.error.reason == f"gzip: {reason} of the compressed section"


def test_wrong_trailer_comes_after_all_data() -> None:
    got = decompress("gzip", member(PLAIN, crc=1), limit=ROOMY)
    assert got.data == PLAIN
    assert got.error is not None
    assert "the data has the CRC" in got.error.reason
    assert got.error.where.stream_position == len(PLAIN)
    got = decompress("gzip", member(PLAIN, size=1), limit=ROOMY)
    assert got.data == PLAIN
    assert got.error is not None
    assert "the data has 48 bytes, but the trailer says 49" in got.error.reason


@pytest.mark.parametrize("left", range(8))
def test_truncated_trailer_comes_after_all_data(left: int) -> None:
    data = REFERENCE[: len(REFERENCE) - 8 + left]
    got = decompress("gzip", data, limit=ROOMY)
    assert got.data == PLAIN
    assert got.error is not None
    assert (
        got.error.reason
        == f"gzip: the member's trailer is cut off at byte {len(data)} of the compressed section"
    )


def test_wrong_trailer_of_a_later_member() -> None:
    got = decompress("gzip", member(b"abc") + member(PLAIN, crc=1) + member(b"def"), limit=ROOMY)
    assert got.data == b"abc" + PLAIN
    assert got.error is not None


def test_truncated_deflate_gives_the_prefix() -> None:
    text = b"".join(b"%d," % (n * n) for n in range(200000))
    packed = member(text)
    got = decompress("gzip", packed[: len(packed) // 2], limit=ROOMY)
    assert got.error is not None
    assert "the deflate data is cut off" in got.error.reason
    assert text.startswith(got.data)
    assert len(got.data) > len(text) // 3


def test_damaged_deflate_gives_every_byte_before_it() -> None:
    """A stored block, then a block of a type that does not exist."""
    stored = b"abcde" * 13000
    body = b"\x00" + struct.pack("<HH", len(stored), len(stored) ^ 0xFFFF) + stored + b"\x07"
    packed = b"\x1f\x8b\x08" + bytes(7) + body + bytes(100)
    got = decompress("gzip", packed, limit=ROOMY)
    assert got.data == stored
    assert got.error is not None
    assert f"(invalid block type) at byte {10 + len(body) - 1} of" in got.error.reason
    assert got.error.where.stream_position == len(stored)


def test_damage_beyond_the_limit_is_a_limit_error() -> None:
    stored = b"abcde" * 13000
    body = b"\x00" + struct.pack("<HH", len(stored), len(stored) ^ 0xFFFF) + stored + b"\x07"
    got = decompress("gzip", b"\x1f\x8b\x08" + bytes(7) + body, limit=1000)
    assert got.data == stored[:1000]
    assert isinstance(got.error, LimitError)


def test_notes_do_not_pile_up() -> None:
    got = decompress("gzip", member(b"", 0x80) * 1000, limit=ROOMY)
    assert got.error is None
    assert len(got.notes) == 16
