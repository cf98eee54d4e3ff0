"""Laws that hold for all codecs and all data."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.compression import CODECS, compress, decompress
from codecgen.runtime.errors import CodecError, LimitError
from tests.shares import examples

ROOMY = 1 << 22


class How(NamedTuple):
    """A way to write, and the variant that reads it."""

    codec: str
    level: int | None = None
    variant: str | None = None
    read: str | None = None


WAYS = [
    How("none"),
    How("gzip"),
    *(How("gzip", level) for level in (-1, 1, 9)),
    How("snappy"),
    How("snappy", None, None, "xerial-or-raw"),
    How("snappy", None, "xerial-1k", "xerial-or-raw"),
    How("snappy", None, "xerial", "xerial"),
    How("lz4"),
    *(How("lz4", level) for level in (1, 9, 12, 17)),
    How("lz4", None, "legacy-header-checksum", "unchecked-header"),
    How("zstd"),
    *(How("zstd", level) for level in (-131072, -5, 1, 3, 7)),
]
ways = st.sampled_from(WAYS)

# Bytes, runs of one byte, and repeated words: what compresses well, badly and not at all.
payloads = st.one_of(
    st.binary(max_size=3000),
    st.builds(
        lambda byte, count: byte * count, st.binary(min_size=1, max_size=4), st.integers(0, 60_000)
    ),
    st.lists(
        st.sampled_from([b"key", b"value", b"\x00\x01", b"topic-", b"abcabc"]), max_size=400
    ).map(b"".join),
)


def pack(how: How, data: bytes | memoryview) -> bytes:
    return compress(how.codec, data, level=how.level, variant=how.variant)


@given(ways, payloads)
def test_round_trip(how: How, data: bytes) -> None:
    got = decompress(how.codec, pack(how, data), limit=len(data), variant=how.read)
    assert (got.data, got.error, got.unused) == (data, None, 0)


@given(ways, payloads)
def test_writing_is_deterministic(how: How, data: bytes) -> None:
    assert pack(how, data) == pack(how, memoryview(data))


@examples(300)
@given(ways, payloads, st.data())
def test_truncation_gives_a_prefix_and_an_error(how: How, data: bytes, draw: st.DataObject) -> None:
    packed = pack(how, data)
    cut = draw.draw(st.integers(0, max(0, len(packed) - 1)))
    got = decompress(how.codec, packed[:cut], limit=ROOMY, variant=how.read)
    assert data.startswith(got.data)
    if how.codec == "none" or (how.codec == "zstd" and cut == 0):
        assert got.error is None
    elif how.codec == "snappy" and how.variant is not None and got.error is None:
        # Chunks have no end mark: a stream that is cut between two is whole.
        assert cut - got.unused >= 16
        assert got.unused < 4
        assert len(got.data) % (1024 if how.variant == "xerial-1k" else 32768) == 0
    elif packed:
        assert got.error is not None
        assert got.error.where.stream_position == len(got.data)


@pytest.mark.slow
@examples(600)
@given(ways, payloads, st.data())
def test_flipped_bytes_never_surprise(how: How, data: bytes, draw: st.DataObject) -> None:
    packed = bytearray(pack(how, data))
    near = st.integers(0, max(0, min(30, len(packed) - 1)))
    anywhere = st.integers(0, max(0, len(packed) - 1))
    for at in draw.draw(st.lists(st.one_of(near, anywhere), min_size=1, max_size=3)):
        if packed:
            packed[at] ^= draw.draw(st.integers(1, 255))
    limit = draw.draw(st.sampled_from([0, 100, len(data), ROOMY]))
    got = decompress(how.codec, bytes(packed), limit=limit, variant=how.read)
    assert got.error is None or isinstance(got.error, CodecError)
    assert len(got.data) <= limit
    assert 0 <= got.unused <= len(packed)
    if got.error:
        assert got.error.where.stream_position == len(got.data)


@given(st.sampled_from(sorted(CODECS)), st.binary(max_size=300), st.integers(0, 1000))
def test_any_bytes_are_read_or_refused(codec: str, data: bytes, limit: int) -> None:
    got = decompress(codec, data, limit=limit)
    assert got.error is None or isinstance(got.error, CodecError)
    assert len(got.data) <= limit


@given(ways, payloads, st.data())
def test_limit_only_ever_cuts(how: How, data: bytes, draw: st.DataObject) -> None:
    limit = draw.draw(st.integers(0, len(data) + 1))
    got = decompress(how.codec, pack(how, data), limit=limit, variant=how.read)
    if limit >= len(data):
        assert (got.data, got.error) == (data, None)
    else:
        assert isinstance(got.error, LimitError)
        assert len(got.data) <= limit
        assert data.startswith(got.data)


@pytest.mark.parametrize(
    ("codec", "variant"), [("gzip", None), ("snappy", "xerial"), ("zstd", None)]
)
@given(parts=st.lists(payloads, min_size=1, max_size=4))
def test_streams_join(codec: str, variant: str | None, parts: list[bytes]) -> None:
    whole = b"".join(compress(codec, part, variant=variant) for part in parts)
    got = decompress(codec, whole, limit=ROOMY, variant=variant)
    assert (got.data, got.error, got.unused) == (b"".join(parts), None, 0)


@given(payloads, payloads)
def test_lz4_frames_do_not(first: bytes, second: bytes) -> None:
    tail = compress("lz4", second)
    got = decompress("lz4", compress("lz4", first) + tail, limit=ROOMY)
    assert (got.data, got.error, got.unused) == (first, None, len(tail))


@examples(200)
@given(st.sampled_from(["gzip", "lz4", "zstd"]), payloads, payloads, st.data())
def test_damage_never_reaches_what_lies_before_it(
    codec: str, data: bytes, more: bytes, draw: st.DataObject
) -> None:
    """What is delivered of a stream that is cut is delivered of the same stream with damage there."""
    packed = compress(codec, data + more)
    cut = draw.draw(st.integers(0, len(packed) - 1))
    before = decompress(codec, packed[:cut], limit=ROOMY).data
    after = decompress(
        codec, packed[:cut] + bytes((packed[cut] ^ 0xFF,)) + packed[cut + 1 :], limit=ROOMY
    ).data
    whole = len(before) // (128 << 10) * (128 << 10) if codec != "gzip" else max(0, len(before) - 1)
    assert after[:whole] == before[:whole]
