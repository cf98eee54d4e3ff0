"""Errors name the field with indices, the byte in the file, the byte in the decompressed stream, and the YAML line."""

from __future__ import annotations

import pickle
import tracemalloc
import zlib
from typing import Any

import pytest

from codecgen.runtime.checksums import checksum
from codecgen.runtime.errors import (
    BuildError,
    ChecksumError,
    CompressionError,
    LengthError,
    LimitError,
    ParseError,
    TrailingError,
    TruncatedError,
    ValueRefused,
)
from codecgen.runtime.located_bytes import Limits
from kafka_codecs import LOG_ENTRY, MESSAGE_V1, RECORD, RECORD_BATCH, Compression
from kafka_codecs.drafts.kip_98 import KIP_98_MESSAGE
from tests.paths import SCHEMAS

HEADERS = [{"key": "a", "value": b"1"}, {"key": "b", "value": None}, {"key": "c", "value": b"3"}]


def batch(codec: str = "none", count: int = 3) -> bytearray:
    records = [
        {"offset_delta": i, "key": b"key", "value": b"value", "headers": HEADERS}
        for i in range(count)
    ]
    values = {"attributes": {"compression": codec}, "last_offset_delta": 2, "records": records}
    return bytearray(RECORD_BATCH.build(values))


def with_payload(payload: bytes, codec: Compression, count: int) -> bytes:
    """A batch whose records are these bytes, with a right checksum."""
    data = batch(count=0)
    data[22] = int(codec)
    data[57:61] = count.to_bytes(4, "big", signed=True)
    data += payload
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[17:21] = checksum("crc32c")(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def place(error: ParseError) -> tuple[str | None, int | None, int | None]:
    return error.where.path, error.where.position, error.where.stream_position


def test_the_place_of_a_header_in_an_uncompressed_batch() -> None:
    plain = bytes(batch()[61:])
    at = plain.index(b"\x02b", 60)  # the second header's key in the third record
    bad = plain[:at] + b"\x7f" + plain[at + 1 :]
    with pytest.raises(LengthError) as caught:
        RECORD_BATCH.parse(with_payload(bad, Compression.NONE, 3), file="x.log", position=5000)
    assert place(caught.value) == ("records[2].headers[1].key", 5061 + at, None)
    text = str(caught.value)
    assert "records[2].headers[1].key" in text
    assert f"byte {5061 + at} of x.log" in text
    line = next(
        i
        for i, line in enumerate((SCHEMAS / "records/header.yaml").read_text().splitlines(), 1)
        if line.strip().startswith("key:")
    )
    assert text.endswith(f"records/header.yaml:{line})")


def test_the_place_inside_a_compressed_stream() -> None:
    plain = bytes(batch()[61:])
    at = plain.index(b"\x02b", 60)
    bad = plain[:at] + b"\x7f" + plain[at + 1 :]
    compressor = zlib.compressobj(wbits=31)
    payload = compressor.compress(bad) + compressor.flush()
    with pytest.raises(LengthError) as caught:
        RECORD_BATCH.parse(with_payload(payload, Compression.GZIP, 3), file="x.log", position=5000)
    assert place(caught.value) == ("records[2].headers[1].key", 5061, at)
    assert f"byte {at} of the decompressed stream" in str(caught.value)


@pytest.mark.parametrize(
    ("length", "error", "path"),
    [
        (1000, LengthError, "batch_length"),
        (-1, ValueRefused, "batch_length"),
        (13, ValueRefused, "batch_length"),
        (40, ChecksumError, "crc"),
    ],
)
def test_a_lying_length(length: int, error: type[ParseError], path: str) -> None:
    data = batch()
    data[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(error) as caught:
        RECORD_BATCH.parse(bytes(data))
    assert caught.value.where.path == path
    assert caught.value.where.position == RECORD_BATCH.offset_of(path)


def test_a_length_that_cuts_the_header_short() -> None:
    data = batch()
    data[8:12] = (40).to_bytes(4, "big")
    data[17:21] = checksum("crc32c")(bytes(data[21:52])).to_bytes(4, "big")
    with pytest.raises(TruncatedError) as caught:
        RECORD_BATCH.parse(bytes(data))
    assert caught.value.where.path == "producer_epoch"


@pytest.mark.parametrize(
    ("count", "error", "reason"),
    [
        (-1, LengthError, "cannot be negative"),
        (2, TrailingError, "bytes follow the last of 2 elements"),
        (4, TruncatedError, "1 byte is needed"),
        (0, TrailingError, "follow a count of 0"),
        (2**31 - 1, LimitError, "more than the limit"),
    ],
)
def test_lying_counts(count: int, error: type[ParseError], reason: str) -> None:
    with pytest.raises(error, match=reason) as caught:
        RECORD_BATCH.parse(with_payload(bytes(batch()[61:]), Compression.NONE, count))
    assert (caught.value.where.path or "").startswith("records")


def test_a_count_of_headers_that_cannot_be() -> None:
    record = bytearray(RECORD.build({"offset_delta": 0, "key": None, "value": None}))
    record[-1] = 0x7E  # 63 headers
    with pytest.raises(LengthError, match="count is 63, but 0 bytes are left"):
        RECORD.parse(bytes(record))


@pytest.mark.slow
def test_a_bomb_stops_at_the_limit() -> None:
    compressor = zlib.compressobj(9, wbits=31)
    length = RECORD.by_name["length"].codec.build(300 << 20)
    parts = [compressor.compress(length)]
    parts += [compressor.compress(bytes(1 << 20)) for _ in range(300)]
    payload = b"".join([*parts, compressor.flush()])
    data = with_payload(payload, Compression.GZIP, 1)
    tracemalloc.start()
    with pytest.raises(LimitError, match="limit of 1048576 bytes"):
        RECORD_BATCH.parse(data, limits=Limits(decompressed=1 << 20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_a_wrapper_in_a_wrapper_is_refused() -> None:
    inner = {"magic": 1, "attributes": {"compression": "gzip"}, "key": None, "timestamp": 1}
    deepest = {"magic": 1, "key": b"k", "value": b"v", "timestamp": 1}
    nested = MESSAGE_V1.build(inner | {"messages": [deepest]})
    compressor = zlib.compressobj(wbits=31)
    run = compressor.compress(nested) + compressor.flush()
    wrapper = bytearray(MESSAGE_V1.build(inner | {"messages": [deepest]}))
    head = wrapper[: wrapper.index(b"\xff\xff\xff\xff") + 4]
    data = bytearray(head + len(run).to_bytes(4, "big") + run)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[12:16] = checksum("crc32")(bytes(data[16:])).to_bytes(4, "big")
    for strict in (True, False):
        with pytest.raises(ValueRefused, match="must not hold such an array") as caught:
            LOG_ENTRY.parse(bytes(data), strict=strict)
        assert caught.value.where.path == "messages[0].messages"


def test_an_unknown_codec_names_the_bits() -> None:
    data = with_payload(bytes(batch()[61:]), Compression(0), 3)
    raw = bytearray(data)
    raw[22] = 5
    raw[17:21] = checksum("crc32c")(bytes(raw[21:])).to_bytes(4, "big")
    with pytest.raises(ValueRefused, match="5 is not a Compression") as caught:
        RECORD_BATCH.parse(bytes(raw))
    assert place(caught.value) == ("attributes.compression", 21, None)


def test_a_codec_that_the_version_does_not_have() -> None:
    with pytest.raises(BuildError, match="zstd may not stand here"):
        MESSAGE_V1.build(
            {
                "attributes": {"compression": "zstd"},
                "key": None,
                "messages": [{"magic": 1, "value": b""}],
            }
        )


def test_damage_in_the_compressed_bytes_says_where() -> None:
    data = batch("gzip")
    with pytest.raises(CompressionError, match="gzip") as caught:
        RECORD_BATCH.parse(with_payload(bytes(data[61:-12]), Compression.GZIP, 3), file="x.log")
    assert caught.value.where.position == 61
    assert (caught.value.where.path or "").startswith("records")


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"base_ofset": 1}, None, "did you mean 'base_offset'"),
        ({"base_offset": 2**63, "records": []}, "base_offset", "does not fit int64"),
        ({"base_offset": "1", "records": []}, "base_offset", "a whole number is needed"),
        ({"attributes": {"compression": "lzo"}, "records": []}, "attributes.compression", "'lzo'"),
        ({"attributes": {"compresion": 1}, "last_offset_delta": 0}, "attributes", "'compresion'"),
        ({"records": [{"offset_delta": 0, "key": "text"}]}, "records[0].key", "bytes are needed"),
        ({"records": []}, "last_offset_delta", "a value is needed: it is missing or null"),
        ({"records": [{"offset": "7"}]}, "records[0].offset", "a whole number is needed, not '7'"),
        ({"records": [{"timestamp_delta": "7"}, {}]}, "records[0].timestamp_delta", "needed"),
        (
            {"records": [{"offset_delta": "7"}]},
            "records[0].offset_delta",
            "a whole number is needed",
        ),
        ({"records": 3, "last_offset_delta": 0}, "records", "a list is needed"),
        ({"records": 3}, "records", "a list is needed, not 3"),
        ({"records": None}, "records", "a list is needed, not None"),
        ({"records": iter([{}])}, "records", "a list is needed, not <list_iterator"),
        ({"records": [{"key": {"type": 1}}]}, "records[0].key", "bytes are needed, not a mapping"),
        ({"records": [{"key": [1]}]}, "records[0].key", "bytes are needed, not a list"),
        ({"records": ["x", "y"], "last_offset_delta": 1}, "records[0]", "a dict"),
    ],
)
def test_build_errors(value: dict[str, Any], path: str | None, reason: str) -> None:
    with pytest.raises(BuildError, match=reason) as caught:
        RECORD_BATCH.build(value)
    assert caught.value.where.path == path
    if path is not None:
        assert (caught.value.where.schema or "").startswith("records/")


def test_a_value_for_a_field_that_is_not_there() -> None:
    with pytest.raises(BuildError, match="does not have the field under these values"):
        KIP_98_MESSAGE.build(
            {
                "attributes": {"null_key": True},
                "timestamp": 0,
                "offset_delta": 0,
                "key": b"k",
                "value": b"",
            }
        )


def test_errors_can_be_shipped() -> None:
    with pytest.raises(ParseError) as caught:
        RECORD_BATCH.parse(b"\0" * 30, file="x.log", position=7)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.where == caught.value.where


def test_lenient_parsing_notes_what_strict_refuses() -> None:
    findings: list[ParseError] = []
    body = bytes([0, 0, 0, 9, 9, 0])  # null key and value as -5
    parsed = RECORD.parse(bytes([0x8C, 0x00]) + body, strict=False, findings=findings)
    assert parsed.key is None
    assert parsed.value is None
    assert [f.where.path for f in findings] == ["length", "key", "value"]
    for first in (bytes([0x8C, 0x00]), bytes([0x0C])):
        with pytest.raises(ParseError):
            RECORD.parse(first + body)


def test_construct_can_hold_our_layouts() -> None:
    import construct

    both = construct.Struct("tag" / construct.Byte, "record" / RECORD, "tail" / construct.Bytes(2))
    data = b"\x07" + RECORD.build({"offset_delta": 0, "key": b"k", "value": b"v"}) + b"ok"
    parsed = both.parse(data)
    assert (parsed.tag, parsed.record.key, parsed.tail) == (7, b"k", b"ok")
    assert both.build(parsed) == data
