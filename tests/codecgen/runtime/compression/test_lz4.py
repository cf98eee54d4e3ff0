"""lz4: the frame, its options, and the blocks."""

from __future__ import annotations

import struct

import lz4.block
import lz4.frame
import pytest
import xxhash

from codecgen.runtime.compression import compress, decompress
from codecgen.runtime.errors import CompressionError, LimitError

ROOMY = 1 << 26
MAGIC = bytes.fromhex("04224d18")
END = bytes(4)
STORED = 0x80000000
# Written by the reference implementation: 52 times "a". The second has the old, wrong header checksum.
REFERENCE = bytes.fromhex("04224d186040820b0000001f6101001b50616161616100000000")
LEGACY = bytes.fromhex("04224d1860401a0b0000001f6101001b50616161616100000000")
PLAIN = b"a" * 52


def header(flg: int = 0x60, bd: int = 0x40, more: bytes = b"") -> bytes:
    descriptor = bytes((flg, bd)) + more
    return MAGIC + descriptor + bytes((xxhash.xxh32_intdigest(descriptor) >> 8 & 0xFF,))


def block(data: bytes, *, stored: bool = False, checksum: bool = False, wrong: int = 0) -> bytes:
    body = data if stored else lz4.block.compress(data, store_size=False)
    parts = [struct.pack("<I", len(body) | (STORED if stored else 0)), body]
    if checksum:
        parts.append(struct.pack("<I", xxhash.xxh32_intdigest(body) ^ wrong))
    return b"".join(parts)


def reason(data: bytes, variant: str | None = None) -> str:
    got = decompress("lz4", data, limit=ROOMY, variant=variant)
    assert isinstance(got.error, CompressionError)
    return got.error.reason.removesuffix(" of the compressed section")


def test_reads_what_the_reference_writes() -> None:
    got = decompress("lz4", REFERENCE, limit=ROOMY)
    assert (got.data, got.error, got.unused, got.notes) == (PLAIN, None, 0, ())


def test_header_checksum_is_verified_unless_told_otherwise() -> None:
    what = "the header has the checksum 0x82, but says 0x1a"
    assert reason(LEGACY) == f"lz4: {what} at byte 6"
    got = decompress("lz4", LEGACY, limit=ROOMY, variant="unchecked-header")
    assert (got.data, got.error, got.notes) == (PLAIN, None, ())
    other = LEGACY[:6] + b"\x1b" + LEGACY[7:]
    got = decompress("lz4", other, limit=ROOMY, variant="unchecked-header")
    assert (got.data, got.error) == (PLAIN, None)
    assert got.notes == ("lz4: the header has the checksum 0x82, but says 0x1b",)
    got = decompress("lz4", REFERENCE, limit=ROOMY, variant="unchecked-header")
    assert (got.data, got.error, got.notes) == (PLAIN, None, ())


def test_written_frame() -> None:
    assert compress("lz4", b"") == bytes.fromhex("04224d18604082 00000000")
    assert compress("lz4", PLAIN)[:7] == REFERENCE[:7]
    assert compress("lz4", PLAIN, variant="legacy-header-checksum")[:7] == LEGACY[:7]
    assert lz4.frame.decompress(compress("lz4", PLAIN)) == PLAIN


def test_written_blocks() -> None:
    noise = bytes(xxhash.xxh32_intdigest(struct.pack("<I", n)) & 0xFF for n in range(65536))
    packed = compress("lz4", bytes(65536) + noise + b"abc")
    (first,) = struct.unpack_from("<I", packed, 7)
    assert first < 1000
    at = 7 + 4 + first
    assert struct.unpack_from("<I", packed, at) == (65536 | STORED,)
    assert packed[at + 4 : at + 4 + 65536] == noise
    assert packed[at + 4 + 65536 :] == struct.pack("<I", 3 | STORED) + b"abc" + END
    assert lz4.frame.decompress(packed) == bytes(65536) + noise + b"abc"


@pytest.mark.parametrize("level", range(1, 18))
def test_levels(level: int) -> None:
    data = b"".join(b"line %d of some\n" % n for n in range(5000))
    packed = compress("lz4", data, level=level)
    assert lz4.frame.decompress(packed) == data
    if level == 9:
        assert packed == compress("lz4", data)
    elif level >= 3:
        assert len(packed) < len(compress("lz4", data))


@pytest.mark.parametrize("size", [0, 1, 2, 3])
@pytest.mark.parametrize("block_checksum", [False, True])
@pytest.mark.parametrize("content_checksum", [False, True])
@pytest.mark.parametrize("content_size", [False, True])
def test_frames_of_the_library(
    size: int, block_checksum: bool, content_checksum: bool, content_size: bool
) -> None:
    data = b"".join(b"%d " % (n * n) for n in range(30000)) + bytes(300_000)
    packed = lz4.frame.compress(
        data,
        block_size=4 + size,
        block_linked=False,
        block_checksum=block_checksum,
        content_checksum=content_checksum,
        store_size=content_size,
    )
    got = decompress("lz4", packed + b"tail", limit=ROOMY)
    assert (got.data, got.error, got.unused) == (data, None, 4)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "no data at byte 0"),
        (MAGIC, "the frame is cut off at byte 4"),
        (b"\x02\x21\x4c\x18" + bytes(20), "not an lz4 frame at byte 0"),
        (b"\x50\x2a\x4d\x18" + bytes(20), "not an lz4 frame at byte 0"),
        (MAGIC + b"\x60\x40", "the frame is cut off in its header at byte 6"),
        (header(0x68), "the frame is cut off in its header at byte 7"),
        (header(0x62), "reserved bits are set in the flags 0x62 at byte 4"),
        (header(0x61), "reserved bits are set in the flags 0x61 at byte 4"),
        (
            header(0x40),
            "blocks that depend on earlier blocks are not supported; the flags are at byte 4",
        ),
        (header(0xA0), "version 2 is not supported; the flags are at byte 4"),
        (header(0x20), "version 0 is not supported; the flags are at byte 4"),
        (header(bd=0xC0), "reserved bits are set in the block descriptor 0xc0 at byte 5"),
        (header(bd=0x41), "reserved bits are set in the block descriptor 0x41 at byte 5"),
        (header(bd=0x30), "block size code 3 is not one of 4 to 7 at byte 5"),
        (header()[:-1] + b"\x83", "the header has the checksum 0x82, but says 0x83 at byte 6"),
    ],
)
def test_headers_that_are_refused(data: bytes, expected: str) -> None:
    assert reason(data) == f"lz4: {expected}"
    assert decompress("lz4", data, limit=ROOMY).data == b""


@pytest.mark.parametrize(
    ("bd", "most"), [(0x40, 1 << 16), (0x50, 1 << 18), (0x60, 1 << 20), (0x70, 1 << 22)]
)
def test_largest_block(bd: int, most: int) -> None:
    whole = header(bd=bd) + block(b"x", stored=True) + block(bytes(most), stored=True) + END
    got = decompress("lz4", whole, limit=ROOMY)
    assert (got.data, got.error) == (b"x" + bytes(most), None)
    over = header(bd=bd) + block(b"x", stored=True) + block(bytes(most + 1), stored=True) + END
    assert (
        reason(over) == f"lz4: a block of {most + 1} bytes, where {most} are the most, at byte 12"
    )
    assert decompress("lz4", over, limit=ROOMY).data == b"x"
    # A compressed block that is small enough, but holds more than a block may.
    over = header(bd=bd) + block(b"x", stored=True) + block(bytes(most + 1)) + END
    assert reason(over) == "lz4: a block is damaged; it begins at byte 16"
    assert decompress("lz4", over, limit=ROOMY).data == b"x"


def test_block_checksums() -> None:
    good = block(PLAIN, checksum=True) + block(b"xyz", stored=True, checksum=True)
    got = decompress("lz4", header(0x70) + good + END, limit=ROOMY)
    assert (got.data, got.error) == (PLAIN + b"xyz", None)
    for stored in (False, True):
        bad = block(PLAIN, stored=stored, checksum=True, wrong=1)
        data = header(0x70) + good + bad + END
        at = 7 + len(good) + 4
        assert reason(data) == f"lz4: a block does not have its checksum; it begins at byte {at}"
        assert decompress("lz4", data, limit=ROOMY).data == PLAIN + b"xyz"


def test_block_checksum_of_damaged_data() -> None:
    data = header(0x70) + struct.pack("<I", 3) + b"\xf0\xff\xff"
    data += struct.pack("<I", xxhash.xxh32_intdigest(b"\xf0\xff\xff")) + END
    assert reason(data) == "lz4: a block is damaged; it begins at byte 11"


def test_content_size_is_not_believed() -> None:
    data = header(0x68, more=struct.pack("<Q", 99)) + block(PLAIN) + END
    got = decompress("lz4", data, limit=60)
    assert (got.data, got.error) == (PLAIN, None)
    assert got.notes == ("lz4: the header declares 99 bytes of content, the frame has 52",)
    data = header(0x68, more=struct.pack("<Q", 1 << 60)) + block(PLAIN) + END
    assert decompress("lz4", data, limit=60).data == PLAIN


def test_content_checksum_is_skipped() -> None:
    data = header(0x64) + block(PLAIN) + END
    got = decompress("lz4", data + b"\xde\xad\xbe\xef", limit=ROOMY)
    assert (got.data, got.error, got.unused, got.notes) == (PLAIN, None, 0, ())
    got = decompress("lz4", data + b"\xde\xad\xbe\xefmore", limit=ROOMY)
    assert (got.data, got.error, got.unused) == (PLAIN, None, 4)
    for cut in range(4):
        got = decompress("lz4", data + b"\xde\xad\xbe\xef"[:cut], limit=ROOMY)
        assert got.data == PLAIN
        assert got.error is not None
        assert "the content checksum is cut off" in got.error.reason


def test_what_follows_the_end_mark_is_ignored() -> None:
    for tail in (b"\xde\xad\xbe\xef", bytes(20), REFERENCE):
        got = decompress("lz4", REFERENCE + tail, limit=ROOMY)
        assert (got.data, got.error, got.unused) == (PLAIN, None, len(tail))
        assert got.notes == (f"lz4: {len(tail)} bytes after the frame are ignored",)


def test_end_mark_with_the_bit_of_a_stored_block() -> None:
    got = decompress("lz4", header() + block(PLAIN) + struct.pack("<I", STORED), limit=ROOMY)
    assert (got.data, got.error) == (PLAIN, None)
    assert len(got.notes) == 1


@pytest.mark.parametrize(("checksum", "flags"), [(False, 0x60), (True, 0x70)])
def test_places_of_blocks_that_hold_nothing(checksum: bool, flags: int) -> None:
    full, empty = (block(data, checksum=checksum) for data in (PLAIN, b""))
    got = decompress("lz4", header(flags) + empty + full + empty + empty + full + END, limit=ROOMY)
    assert (got.data, got.error, got.unused, got.pauses) == (2 * PLAIN, None, 0, {0, len(PLAIN)})
    places = (0, len(empty) + len(full), 2 * len(empty) + len(full))
    assert got.notes == tuple(
        f"lz4: the block at byte {at + 11} of the compressed section holds nothing" for at in places
    )
    got = decompress("lz4", header(flags) + full + empty + END[:3], limit=ROOMY)
    assert (got.data, got.pauses) == (PLAIN, {len(PLAIN)}) and got.error is not None


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_missing_end_mark_comes_after_all_data(cut: int) -> None:
    data = REFERENCE[:-cut]
    assert reason(data) == f"lz4: the frame is cut off before its end mark at byte {len(data)}"
    assert decompress("lz4", data, limit=ROOMY).data == PLAIN


def test_cut_block_keeps_those_before_it() -> None:
    data = header() + block(PLAIN) + block(b"xyz" * 40)[:-1]
    assert reason(data) == f"lz4: the frame is cut off in a block at byte {len(data)}"
    assert decompress("lz4", data, limit=ROOMY).data == PLAIN


def test_damaged_block_keeps_those_before_it() -> None:
    data = header() + block(PLAIN) + struct.pack("<I", 4) + b"\x10a\xff\xff" + END
    assert reason(data) == f"lz4: a block is damaged; it begins at byte {7 + len(block(PLAIN)) + 4}"
    assert decompress("lz4", data, limit=ROOMY).data == PLAIN


def test_limit_within_a_block() -> None:
    data = header() + block(PLAIN) + block(PLAIN) + END
    got = decompress("lz4", data, limit=60)
    assert isinstance(got.error, LimitError)
    assert got.data == b"a" * 60


def test_the_densest_block_is_read() -> None:
    """Almost all bytes of the block say 255 more: the most that a block can hold."""
    data = header(bd=0x70) + block(bytes(4 << 20)) + END
    assert len(data) < 17_000
    assert decompress("lz4", data, limit=ROOMY).data == bytes(4 << 20)


@pytest.mark.parametrize("size", range(15))
def test_header_checksum_of_any_length(size: int) -> None:
    from codecgen.runtime.compression.lz4 import _header_checksum

    data = bytes(range(200, 200 + size))
    assert _header_checksum(data) == xxhash.xxh32_intdigest(data) >> 8 & 0xFF
