"""What stands before values of Confluent's serializers, beside what Confluent's own client writes and reads.

``tests/data/confluent_framing.jsonl`` was made by confluent-kafka 2.16.0 (``python -m tests.codecs.make_confluent_framing``).
"""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from codecgen.runtime.errors import CodecError
from kafka_codecs.wire.confluent import CONFLUENT_PROTOBUF_VALUE, CONFLUENT_VALUE
from tests.paths import ROOT

LINES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (ROOT / "tests" / "data" / "confluent_framing.jsonl")
    .read_text("utf-8")
    .splitlines()
]
WRITTEN = [line for line in LINES if "hex" in line]
READ = [line for line in LINES if "read" in line]


def ours(line: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Their words in ours. The first message of a schema has no indexes in the bytes."""
    value: dict[str, Any] = {"data": data}
    if line.get("guid"):
        value |= {"magic": 1, "schema_guid": uuid.UUID(line["guid"])}
    else:
        value |= {"magic": 0, "schema_id": line["id"]}
    if "indexes" in line:
        value["message_indexes"] = [] if line["indexes"] == [0] else line["indexes"]
    return value


def test_there_is_enough() -> None:
    assert len(WRITTEN) > 20
    assert sum("error" in line for line in READ) > 10
    assert sum("error" not in line for line in READ) > 10


@pytest.mark.parametrize("line", WRITTEN, ids=lambda line: line["hex"][:40])
def test_what_is_written(line: dict[str, Any]) -> None:
    codec = CONFLUENT_PROTOBUF_VALUE if "indexes" in line else CONFLUENT_VALUE
    for data in (b"", b"\x00payload"):
        value = ours(line, data)
        written = bytes.fromhex(line["hex"]) + data
        assert codec.parse(written) == value
        assert codec.build(value) == written


@pytest.mark.parametrize("line", READ, ids=lambda line: f"{line['kind']}-{line['read']}")
def test_what_is_read(line: dict[str, Any]) -> None:
    codec = CONFLUENT_PROTOBUF_VALUE if line["kind"] == "PROTOBUF" else CONFLUENT_VALUE
    data = bytes.fromhex(line["read"])
    if "error" in line:
        with pytest.raises(CodecError):
            codec.parse(data, strict=False)
        return
    found = codec.parse(data, strict=False)
    expected = ours(line, bytes.fromhex(line["rest"]))
    if "indexes" in line and line["read"] == "0000000007020000":  # the first message, spelled out
        expected["message_indexes"] = [0]
    assert found == expected


@pytest.mark.parametrize(("magic", "number"), [(0, "00000007"), (1, "00" * 16)])
def test_a_layout_knows_its_own_magic(magic: int, number: str) -> None:
    for codec in (CONFLUENT_VALUE, CONFLUENT_PROTOBUF_VALUE):
        layout = codec.cases[magic]
        name = "schema_guid" if magic else "schema_id"
        value = {name: uuid.UUID(int=0) if magic else 7, "data": b""}
        built = layout.build(
            value | ({"message_indexes": []} if codec is CONFLUENT_PROTOBUF_VALUE else {})
        )
        assert built.hex().startswith(f"{magic:02x}{number}")
        with pytest.raises(CodecError):
            layout.parse(bytes([1 - magic]) + built[1:])


@pytest.mark.parametrize("prefix", ["0000000007", "01" + "00" * 16])
def test_a_count_has_at_most_five_bytes(prefix: str) -> None:
    """As Kafka's readers of such numbers have it; a count of more bytes could stand for no array."""
    for count in ("82808080808000", "828080808080808000"):
        with pytest.raises(CodecError, match="varint"):
            CONFLUENT_PROTOBUF_VALUE.parse(bytes.fromhex(prefix + count + "02"), strict=False)


@pytest.mark.parametrize("frame", ["00 00000007", "01 0102030405060708090a0b0c0d0e0f10"])
def test_indexes_have_32_bits(frame: str) -> None:
    """Java reads the way to a message as numbers of 32 bits (ByteUtils.readVarint)."""
    start = bytes.fromhex(frame)
    largest = start + bytes.fromhex("02 feffffff0f")
    assert CONFLUENT_PROTOBUF_VALUE.parse(largest).message_indexes == [2**31 - 1]
    with pytest.raises(CodecError):
        CONFLUENT_PROTOBUF_VALUE.parse(start + bytes.fromhex("02 8080808010"))
