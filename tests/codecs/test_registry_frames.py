"""What stands before values of the serializers of AWS Glue and Apicurio, beside the bytes that these write.

``tests/data/registry_frames.jsonl`` was made by schema-registry-serde 1.1.24 and apicurio-registry-serdes-avro-serde 2.6.13.Final
(``python -m tests.codecs.make_registry_frames``).
"""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from codecgen.runtime.errors import CodecError
from kafka_codecs import (
    APICURIO_ID_HEADER,
    APICURIO_VALUE,
    CONFLUENT_VALUE,
    FRAMED_VALUE,
    GLUE_PROTOBUF_DATA,
    GLUE_VALUE,
    GlueCompression,
)
from tests.support.registry_frames import APICURIO, AVRO, DATA, GLUE, GUID, IDS, MESSAGES


def test_there_is_enough() -> None:
    assert {line["compression"] for line in GLUE} == {"NONE", "ZLIB"}
    assert {line["type"] for line in GLUE} == {"AVRO", "JSON", "PROTOBUF"}
    assert len(APICURIO) == 16


@pytest.mark.parametrize(
    "line", GLUE, ids=lambda line: f"{line['type']}-{line['compression']}-{line['message']}"
)
def test_what_glue_writes(line: dict[str, Any]) -> None:
    written = bytes.fromhex(line["hex"])
    found: Any = GLUE_VALUE.parse(written)
    assert found.schema_version_id == GUID
    assert found.compression == GlueCompression[line["compression"]]
    is_compressed = found.compression == GlueCompression.ZLIB
    data = zlib.decompress(found.data) if is_compressed else found.data
    if line["type"] == "PROTOBUF":
        message: Any = GLUE_PROTOBUF_DATA.parse(data)
        assert MESSAGES[message.message_number] == line["message"]
        assert message.data == b"\x08\x07"
        assert GLUE_PROTOBUF_DATA.build(message) == data
    else:
        assert data == DATA[line["type"]]
    assert GLUE_VALUE.build(found) == written
    assert FRAMED_VALUE.parse(written) == found


@pytest.mark.parametrize("line", APICURIO, ids=lambda line: f"{line['part']}-{line['configs']}")
def test_what_apicurio_writes(line: dict[str, Any]) -> None:
    """The id in a header, in 8 bytes, or in 4 as Confluent's serializers write it."""
    configs, written = line["configs"], bytes.fromhex(line["hex"])
    kind = configs["apicurio.registry.use-id"]
    if "apicurio.registry.headers.enabled" not in configs:
        header = bytes.fromhex(line["headers"][f"apicurio.{line['part']}.{kind}"])
        assert APICURIO_ID_HEADER.parse(header).id == IDS[kind]
        assert APICURIO_ID_HEADER.build({"id": IDS[kind]}) == header
    elif "apicurio.registry.as-confluent" in configs:
        found: Any = CONFLUENT_VALUE.parse(written)
        assert (found.schema_id, found.data) == (IDS[kind], AVRO)
    else:
        found = APICURIO_VALUE.parse(written)
        assert (found.id, found.data) == (IDS[kind], AVRO)
        assert APICURIO_VALUE.build({"id": IDS[kind], "data": AVRO}) == written


@pytest.mark.parametrize("wrong", ["", "03", "0300", "0305" + "00" * 15, "0301" + "00" * 16, "0200" + "00" * 16, "fd00" + "00" * 16])  # fmt: skip
def test_wrong_frames_of_glue(wrong: str) -> None:
    for codec in (GLUE_VALUE, FRAMED_VALUE):
        with pytest.raises(CodecError):
            codec.parse(bytes.fromhex(wrong))


@pytest.mark.parametrize("frame", ["0000000007", "01" + GUID.hex])
def test_frames_of_confluent(frame: str) -> None:
    data = bytes.fromhex(frame) + b"data"
    assert FRAMED_VALUE.parse(data) == CONFLUENT_VALUE.parse(data)


def test_overlong_message_numbers() -> None:
    with pytest.raises(CodecError):
        GLUE_PROTOBUF_DATA.parse(b"\x80\x00")
    with pytest.raises(CodecError):
        GLUE_PROTOBUF_DATA.parse(b"\x80\x80\x80\x80\x80\x00", strict=False)


@pytest.mark.parametrize("wrong", ["", "00" * 8, "01" + "00" * 8])
def test_wrong_values_of_apicurio(wrong: str) -> None:
    with pytest.raises(CodecError):
        APICURIO_VALUE.parse(bytes.fromhex(wrong))


@pytest.mark.parametrize("wrong", ["", "00" * 7, "00" * 9])
def test_wrong_headers_of_apicurio(wrong: str) -> None:
    for strict in (True, False):
        with pytest.raises(CodecError):
            APICURIO_ID_HEADER.parse(bytes.fromhex(wrong), strict=strict)


@pytest.mark.parametrize(("number", "size"), [("8000", 2), ("ffffffff0f", 5)])
def test_message_numbers(number: str, size: int) -> None:
    """Unsigned numbers of 32 bits, as Protobuf's readers take them."""
    found: Any = GLUE_PROTOBUF_DATA.parse(bytes.fromhex(number) + b"x", strict=False)
    assert found.data == b"x"
    assert found.message_number == (0 if size == 2 else 2**32 - 1)


def test_numbers_are_signed() -> None:
    """As Java reads them."""
    assert GLUE_VALUE.parse(b"\3\x85" + GUID.bytes, strict=False).compression == -123
    assert APICURIO_ID_HEADER.parse(b"\xff" * 8).id == -1
    assert APICURIO_VALUE.parse(b"\0" + b"\xff" * 8).id == -1
