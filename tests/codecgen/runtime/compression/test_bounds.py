"""A run never takes more memory than the limit, whatever it holds or claims to hold."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from collections.abc import Callable

import lz4.frame
import pytest
import zstandard

from codecgen.runtime.compression import Decompressed, compress, decompress
from codecgen.runtime.errors import LimitError

MIB = 1 << 20
LIMIT = 4 * MIB


def _gzip() -> bytes:
    stream = zlib.compressobj(9, wbits=31)
    return b"".join(stream.compress(bytes(MIB)) for _ in range(256)) + stream.flush()


def _gzip_members() -> bytes:
    return compress("gzip", bytes(3 * MIB)) * 100


def _zstd() -> bytes:
    stream = zstandard.ZstdCompressor().compressobj()
    return b"".join(stream.compress(bytes(MIB)) for _ in range(256)) + stream.flush()


def _zstd_repeats() -> bytes:
    block = struct.pack("<I", (128 << 10) << 3 | 2)[:3] + b"x"
    return bytes.fromhex("28b52ffd0088") + block * 8000 + b"\x01\x00\x00"


def _zstd_declares() -> bytes:
    """Says 256 MiB, which its blocks may hold, and holds them."""
    block = struct.pack("<I", (128 << 10) << 3 | 2)[:3] + b"x"
    size = struct.pack("<I", 2048 * (128 << 10))
    return bytes.fromhex("28b52ffd8058") + size + block * 2048 + b"\x01\x00\x00"


def _lz4_large_blocks() -> bytes:
    packed: bytes = lz4.frame.compress(
        bytes(64 * MIB),
        block_size=lz4.frame.BLOCKSIZE_MAX4MB,
        block_linked=False,
        block_checksum=True,
    )
    return packed


def _snappy_framed() -> bytes:
    return compress("snappy", bytes(64 * MIB), variant="xerial")


def read(codec: str, data: bytes, limit: int) -> Decompressed:
    """Read a run; ``snappy/xerial`` is a codec in a variant."""
    name, _, variant = codec.partition("/")
    return decompress(name, data, limit=limit, variant=variant or None)


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("codec", "make"),
    [
        ("gzip", _gzip),
        ("gzip", _gzip_members),
        ("zstd", _zstd),
        ("zstd", _zstd_repeats),
        ("zstd", _zstd_declares),
        ("lz4", lambda: compress("lz4", bytes(64 * MIB))),
        ("lz4", _lz4_large_blocks),
        ("snappy", lambda: compress("snappy", bytes(64 * MIB))),
        ("snappy/xerial", _snappy_framed),
    ],
    ids=[
        "gzip",
        "gzip members",
        "zstd",
        "zstd repeats",
        "zstd declares",
        "lz4",
        "lz4 large blocks",
        "snappy",
        "snappy framed",
    ],
)
def test_bombs_stop_at_the_limit(codec: str, make: Callable[[], bytes]) -> None:
    data = make()
    tracemalloc.start()
    try:
        got = read(codec, data, LIMIT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(got.error, LimitError)
    assert len(got.data) <= LIMIT
    # The result, an eighth that a growing buffer has in reserve, and a block. The largest are of 4 MiB,
    # and the lz4 package holds a block twice while it hands it over.
    assert peak < LIMIT + LIMIT // 8 + (9 if make is _lz4_large_blocks else 3) * MIB


WRONG_SIZE = bytes.fromhex("28b52ffdc08800000000ffffff7f010000")
"""A zstd frame that declares a large content, and has one empty block."""


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        ("snappy", b"\xff\xff\xff\xff\x07" + bytes(100)),
        (
            "snappy/xerial",
            bytes.fromhex("82534e415050590000000001000000010000000affffffff07") + bytes(5),
        ),
        ("zstd", bytes.fromhex("28b52ffde0000000400000000001000061")),
        ("zstd", WRONG_SIZE),
        ("lz4", bytes.fromhex("04224d186870ffffffffffffff7f") + b"\x00" * 5),
        ("gzip", bytes.fromhex("1f8b08000000000000ff0300") + b"\xff" * 8),
    ],
)
def test_claims_cost_nothing(codec: str, data: bytes) -> None:
    name = codec.partition("/")[0]
    decompress(name, compress(name, b""), limit=1)  # loads the library
    tracemalloc.start()
    try:
        got = read(codec, data, 1 << 34)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if data == WRONG_SIZE:  # libzstd's stream reader does not compare it
        assert (got.data, got.error, len(got.notes)) == (b"", None, 1)
        assert "declares 9223372032559808512 bytes of content, it has 0" in got.notes[0]
    else:
        assert got.error is not None
    assert got.data == b""
    assert peak < MIB


def test_room_is_made_for_what_comes_out() -> None:
    """Compressed blocks of a few bytes each: any of them may hold 128 KiB."""
    stream = zstandard.ZstdCompressor().compressobj()
    parts: list[bytes] = []
    for n in range(2000):
        parts += (stream.compress(b"%d " % n * 40), stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
    data = b"".join((*parts, stream.flush()))
    tracemalloc.start()
    try:
        got = decompress("zstd", data, limit=1 << 30)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert got.error is None
    assert len(got.data) == sum(len(b"%d " % n) * 40 for n in range(2000))
    assert peak < 2 * MIB


def test_what_comes_after_the_limit_is_not_copied() -> None:
    """A tiny member, then one that is stored in 16 MiB: few of its bytes are fed."""
    stored = b"\x00\xff\xff\x00\x00" + bytes(65535)
    data = compress("gzip", b"x") + b"\x1f\x8b\x08" + bytes(7) + stored * 256
    for run in (data, data[len(compress("gzip", b"x")) :]):
        tracemalloc.start()
        try:
            got = decompress("gzip", run, limit=MIB)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert isinstance(got.error, LimitError)
        assert len(got.data) == MIB
        assert peak < 5 * MIB


@pytest.mark.share(5)
@pytest.mark.parametrize("codec", ["gzip", "snappy", "snappy/xerial", "lz4", "zstd"])
def test_a_large_run_is_not_held_twice(codec: str) -> None:
    plain = bytes(48 * MIB)
    name, _, variant = codec.partition("/")
    data = compress(name, plain, variant=variant or None)
    tracemalloc.start()
    try:
        got = read(codec, data, len(plain))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert got.error is None
    assert got.data == plain
    assert peak < len(plain) * 5 // 4


def test_many_tiny_pieces() -> None:
    """A piece costs what it is long, not what is left after it."""
    count = 20_000
    gzip = compress("gzip", b"x")
    framed = compress("snappy", b"x", variant="xerial")
    assert decompress("gzip", gzip * count, limit=count).data == b"x" * count
    assert decompress("zstd", compress("zstd", b"x") * count, limit=count).data == b"x" * count
    assert read("snappy/xerial", framed * count, count).data == b"x" * count
