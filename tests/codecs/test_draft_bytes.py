"""KIP-98's first draft, beside bytes put together by hand from the field lists of the proposal.

The lists are in the section "Message Format" of the proposal's revision "Added message format changes":

    MessageSet => Offset int64, Length int32, CRC int32, Magic int8 (2), Attributes int16, OffsetDelta int32,
                  MaxTimestamp int64, PID int64, Epoch int16, Sequence int32, Messages
    Message => Length uintVar, Attributes int8, Timestamp int64, OffsetDelta uintVar, KeyLen uintVar [OPTIONAL],
               Key data [OPTIONAL], Value data [OPTIONAL], CRC int32
    ControlMessageKey => Version int16, ControlMessageType int16

"The message set CRC covers the header and message data"; the message's own stands at its end. Both are what "CRC" was
then: CRC-32.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest

import kafka_codecs
from codecgen.plan import make_plan
from codecgen.runtime.compression import compress, decompress
from codecgen.runtime.errors import (
    BuildError,
    ChecksumError,
    LengthError,
    LimitError,
    ParseError,
    ValueRefused,
)
from codecgen.runtime.located_bytes import Limits
from codecgen.schema.loader import load, read_files
from codecgen.schema.types import BitsType, BytesType, ScalarType
from kafka_codecs.drafts import kip_98
from kafka_codecs.drafts.kip_98 import (
    KIP_98_CONTROL_MESSAGE_KEY,
    KIP_98_MESSAGE,
    KIP_98_MESSAGE_SET,
)
from tests.paths import SCHEMAS

NULL_KEY, NULL_VALUE, CONTROL = 1, 2, 4
TIME = 0x0102030405060708
TRANSACTIONAL, LOG_APPEND_TIME = 0x10, 0x08


def uint_var(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes((*out, n))


def message(
    key: bytes | None, value: bytes | None, delta: int, flags: int = 0, time: int = TIME
) -> bytes:
    """A message as the list has it. The key's length stands there only when both key and value do."""
    flags |= (key is None) * NULL_KEY | (value is None) * NULL_VALUE
    body = struct.pack(">Bq", flags, time) + uint_var(delta)
    if key is not None and value is not None:
        body += uint_var(len(key))
    body += (key or b"") + (value or b"")
    body += struct.pack(">I", zlib.crc32(body))
    return uint_var(len(body)) + body


def message_set(attributes: int, run: bytes, magic: int = 2) -> bytes:
    body = struct.pack(
        ">bHiqqhi", magic, attributes, 0x11121314, 0x2122232425262728, 0x3132333435363738, 0x4142, 0x51525354
    )  # fmt: skip
    body += run
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0x6162636465666768, len(body)) + body


HEAD: dict[str, Any] = {
    "offset": 0x6162636465666768,
    "offset_delta": 0x11121314,
    "max_timestamp": 0x2122232425262728,
    "pid": 0x3132333435363738,
    "epoch": 0x4142,
    "sequence": 0x51525354,
}
MESSAGES: list[tuple[bytes | None, bytes | None, int, int]] = [
    (b"key", b"value", 0, 0),
    (b"", b"", 1, 0),
    (None, b"v" * 200, 127, 0),
    (b"k" * 130, None, 128, 0),
    (b"k" * 130, b"v", (1 << 32) - 1, 0),
    (None, None, 300, 0),
    (b"\0\0\0\0", None, 5, CONTROL),
]


def values(key: bytes | None, value: bytes | None, delta: int, flags: int) -> dict[str, Any]:
    attributes = {
        "null_key": key is None,
        "null_value": value is None,
        "control": bool(flags & CONTROL),
    }
    out: dict[str, Any] = {"attributes": attributes, "timestamp": TIME, "offset_delta": delta}
    return out | {"key": key, "value": value}


def test_the_package_does_not_export_the_draft() -> None:
    assert not [name for name in kafka_codecs.__all__ if name.lower().startswith("kip")]


@pytest.mark.parametrize("one", MESSAGES)
def test_a_message(one: tuple[bytes | None, bytes | None, int, int]) -> None:
    data = message(*one)
    assert KIP_98_MESSAGE.build(values(*one)) == data
    for strict in (True, False):
        parsed = KIP_98_MESSAGE.parse(data, strict=strict)
        assert (parsed.key, parsed.value, parsed.offset_delta) == one[:3]
        assert parsed.timestamp == TIME
        assert parsed.attributes.control == bool(one[3])
        both = one[0] is not None and one[1] is not None
        assert parsed.key_length == (len(one[0] or b"") if both else None)


def test_a_message_byte_by_byte() -> None:
    """Written out: 19 bytes follow, no flags, a timestamp of -1, offset delta 2, a key of 1 byte, "k", "v", a CRC."""
    body = bytes.fromhex("00 ffffffffffffffff 02 01 6b 76")
    data = bytes.fromhex("11") + body + zlib.crc32(body).to_bytes(4, "big")
    assert len(data) == 1 + 0x11
    parsed = KIP_98_MESSAGE.parse(data)
    assert (parsed.timestamp, parsed.offset_delta, parsed.key, parsed.value) == (-1, 2, b"k", b"v")
    assert KIP_98_MESSAGE.build(parsed) == data


@pytest.mark.parametrize("timestamp_type", [0, LOG_APPEND_TIME])
@pytest.mark.parametrize("transactional", [0, TRANSACTIONAL])
def test_a_message_set(timestamp_type: int, transactional: int) -> None:
    data = message_set(timestamp_type | transactional, b"".join(message(*m) for m in MESSAGES))
    assert len(message_set(0, b"")) == 45  # "the message set overhead is 45 bytes"
    attributes = {
        "timestamp_type": "log_append_time" if timestamp_type else "create_time",
        "transactional": bool(transactional),
    }
    given = HEAD | {"attributes": attributes, "messages": [values(*m) for m in MESSAGES]}
    assert KIP_98_MESSAGE_SET.build(given) == data
    parsed = KIP_98_MESSAGE_SET.parse(data)
    assert {name: parsed[name] for name in HEAD} == HEAD
    assert [(m.key, m.value, m.offset_delta) for m in parsed.messages] == [m[:3] for m in MESSAGES]
    assert parsed.attributes.timestamp_type == timestamp_type >> 3
    assert parsed.attributes.transactional == bool(transactional)
    assert parsed.magic == 2


@pytest.mark.parametrize(("code", "codec"), [(1, "gzip"), (2, "snappy"), (3, "lz4")])
def test_the_messages_are_compressed_as_one(code: int, codec: str) -> None:
    """The 3 bits of the codec are those of the message format before, and snappy has the framing that it had there."""
    variant = "xerial" if codec == "snappy" else None
    run = b"".join(message(*m) for m in MESSAGES)
    parsed = KIP_98_MESSAGE_SET.parse(message_set(code, compress(codec, run, variant=variant)))
    assert [(m.key, m.value) for m in parsed.messages] == [m[:2] for m in MESSAGES]
    given = HEAD | {
        "attributes": {"compression": codec},
        "messages": [values(*m) for m in MESSAGES],
    }
    built = KIP_98_MESSAGE_SET.build(given)
    assert built[17:19] == bytes((0, code))
    assert decompress(codec, built[45:], variant=variant, limit=1 << 20).data == run


@pytest.mark.parametrize("code", [4, 5, 7])
def test_codecs_that_came_later(code: int) -> None:
    """zstd came two years after the proposal: 4 is none of its codecs."""
    data = message_set(code, compress("zstd", message(*MESSAGES[0])))
    with pytest.raises(ValueRefused) as caught:
        KIP_98_MESSAGE_SET.parse(data)
    assert caught.value.where.path == "attributes.compression"
    with pytest.raises(ParseError) as refused:
        KIP_98_MESSAGE_SET.parse(data, strict=False)
    assert refused.value.where.path == "messages"
    with pytest.raises(BuildError) as unbuilt:
        KIP_98_MESSAGE_SET.build(HEAD | {"attributes": {"compression": code}, "messages": []})
    assert unbuilt.value.where.path == "attributes.compression"


@pytest.mark.parametrize("bit", range(5, 16))
def test_unused_bits_of_a_message_set(bit: int) -> None:
    """ "Unused (11)": strict readers want them 0; lenient ones keep them."""
    data = message_set(1 << bit, message(*MESSAGES[0]))
    with pytest.raises(ValueRefused) as caught:
        KIP_98_MESSAGE_SET.parse(data)
    assert caught.value.where.path == "attributes.unused"
    parsed = KIP_98_MESSAGE_SET.parse(data, strict=False)
    assert KIP_98_MESSAGE_SET.build(parsed, strict=False) == data
    with pytest.raises(BuildError, match="reserved bits are set"):
        KIP_98_MESSAGE_SET.build(parsed)


@pytest.mark.parametrize("bit", range(3, 8))
def test_unused_bits_of_a_message(bit: int) -> None:
    """ "Unused (5)"."""
    data = message(b"k", b"v", 0, 1 << bit)
    with pytest.raises(ValueRefused) as caught:
        KIP_98_MESSAGE.parse(data)
    assert caught.value.where.path == "attributes.unused"
    parsed = KIP_98_MESSAGE.parse(data, strict=False)
    assert KIP_98_MESSAGE.build(parsed, strict=False) == data


@pytest.mark.parametrize("magic", [1, 3, -2])
def test_another_magic(magic: int) -> None:
    """ "bump up to 2"."""
    with pytest.raises(ValueRefused) as caught:
        KIP_98_MESSAGE_SET.parse(message_set(0, b"", magic))
    assert caught.value.where.path == "magic"


def test_the_checksums_cover_what_they_should() -> None:
    """That of the set all after it; that of a message all between its length and itself."""
    data = message_set(0, message(*MESSAGES[0]))
    for at in range(len(data)):
        bent = data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]
        if at < 8:  # the offset stands before it: brokers set it in place
            assert KIP_98_MESSAGE_SET.parse(bent).offset == HEAD["offset"] ^ 1 << 8 * (7 - at)
            continue
        with pytest.raises(ParseError) as caught:
            KIP_98_MESSAGE_SET.parse(bent)
        assert isinstance(caught.value, ChecksumError) or 8 <= at < 12 or at == 16
    alone = message(*MESSAGES[0])
    for at in range(1, len(alone)):
        with pytest.raises(ParseError):
            KIP_98_MESSAGE.parse(alone[:at] + bytes((alone[at] ^ 1,)) + alone[at + 1 :])


def test_numbers_with_signs_and_without() -> None:
    """int64 and int32 have a sign, a uintVar has none, and a CRC is compared as bits."""
    body = struct.pack(">bHiqqhi", 2, 0, -1, -2, -3, -4, -5)
    data = struct.pack(">qiI", -6, len(body) + 4, zlib.crc32(body)) + body
    parsed = KIP_98_MESSAGE_SET.parse(data)
    found = [parsed[name] for name in ("offset_delta", "max_timestamp", "pid", "epoch", "sequence", "offset")]  # fmt: skip
    assert found == [-1, -2, -3, -4, -5, -6]
    assert KIP_98_MESSAGE_SET.build(parsed) == data
    assert KIP_98_MESSAGE.parse(message(b"", b"", 0xFFFFFFFF)).offset_delta == 0xFFFFFFFF
    for crc in range(256):  # some of these have the highest bit set
        one = message(None, bytes((crc,)), 0)
        assert KIP_98_MESSAGE.parse(one).crc == int.from_bytes(one[-4:], "big")


def test_lengths_that_lie() -> None:
    data = message_set(0, b"")
    for length in (-1, -(1 << 31)):
        with pytest.raises(LengthError, match="negative"):
            KIP_98_MESSAGE_SET.parse(data[:8] + struct.pack(">i", length) + data[12:])
    for size in (33, 32, 34):
        if size != 33:
            with pytest.raises(ParseError):
                KIP_98_MESSAGE_SET.parse(data[:8] + struct.pack(">i", size) + data[12:])
    for strict in (True, False):
        with pytest.raises(ParseError):
            KIP_98_MESSAGE.parse(message(b"k", b"v", 0) + b"\0", strict=strict)
        with pytest.raises(ParseError):
            KIP_98_MESSAGE_SET.parse(data + b"\0", strict=strict)


def test_what_a_builder_fills_in() -> None:
    """No offset yet, no producer: -1, as in the format that shipped. The delta is that of the last message."""
    built = KIP_98_MESSAGE_SET.build({"attributes": {}, "messages": [values(*MESSAGES[4])]} | {"offset_delta": 7})  # fmt: skip
    assert built[:8] == bytes(8)
    assert built[16] == 2
    assert built[17:23] == bytes.fromhex("0000 00000007")
    assert built[23:45] == b"\xff" * 22
    several = {"attributes": {}, "messages": [values(*MESSAGES[i]) for i in (1, 0, 5, 2)]}
    assert KIP_98_MESSAGE_SET.build(several)[19:23] == (127).to_bytes(4, "big")


def test_offsets() -> None:
    """ "The message's offset can then be calculated as the offset of the message set + offset delta"."""
    parsed = KIP_98_MESSAGE_SET.parse(message_set(0, message(b"k", b"v", 3)))
    assert kip_98.messages_offset(parsed, parsed.messages[0]) == 0x6162636465666768 + 3
    # The proposal's "offset + offset delta" for the next set is that of the last message: the next one is after it.
    assert kip_98.next_offset(parsed) == 0x6162636465666768 + 0x11121314 + 1
    far = KIP_98_MESSAGE_SET.parse(message_set(0, message(b"k", b"v", 0xFFFFFFFF)))
    assert kip_98.messages_offset(far, far.messages[0]) == 0x6162636465666768 + 0xFFFFFFFF


def test_control_messages() -> None:
    """ "0 indicates a COMMIT marker, and a control message type of 1 indicates an ABORT marker"."""
    assert KIP_98_CONTROL_MESSAGE_KEY.build({"control_message_type": "commit"}).hex() == "00000000"
    assert KIP_98_CONTROL_MESSAGE_KEY.build({"control_message_type": "abort"}).hex() == "00000001"
    parsed = KIP_98_CONTROL_MESSAGE_KEY.parse(bytes.fromhex("0102 0001"))
    assert (parsed.version, parsed.control_message_type) == (0x0102, 1)
    negative = {"version": -2, "control_message_type": 0}
    assert KIP_98_CONTROL_MESSAGE_KEY.build(negative).hex() == "fffe0000"
    for data in ("0000 0002", "0000 ffff", "0000 0000 00", "0000 00", "0000"):
        with pytest.raises(ParseError):
            KIP_98_CONTROL_MESSAGE_KEY.parse(bytes.fromhex(data))


@pytest.mark.parametrize("strict", [True, False])
def test_nobody_read_it_so_nobody_was_lenient(strict: bool) -> None:
    """No reader of the draft ever took more than it says: a uintVar in more bytes than it needs is an error."""
    body = bytes.fromhex(
        "03 ffffffffffffffff 8200"
    )  # no key, no value, an offset delta in two bytes
    long_delta = body + zlib.crc32(body).to_bytes(4, "big")
    body = bytes.fromhex("03 ffffffffffffffff 02")
    good = body + zlib.crc32(body).to_bytes(4, "big")
    assert KIP_98_MESSAGE.parse(bytes((len(good),)) + good, strict=strict).offset_delta == 2
    for data in (bytes((len(long_delta),)) + long_delta, bytes((len(good) | 0x80, 0)) + good):
        with pytest.raises(ParseError):
            KIP_98_MESSAGE.parse(data, strict=strict)
    after = bytes((len(good) + 1,)) + good + b"\0"
    with pytest.raises(ParseError):
        KIP_98_MESSAGE.parse(after, strict=strict)


def test_no_run_is_decompressed_without_a_bound() -> None:
    run = message(None, bytes(5000), 0)
    data = message_set(1, compress("gzip", run))
    assert len(KIP_98_MESSAGE_SET.parse(data, limits=Limits(decompressed=len(run))).messages) == 1
    with pytest.raises(LimitError):
        KIP_98_MESSAGE_SET.parse(data, limits=Limits(decompressed=len(run) - 1))


def test_a_run_may_decompress_to_256_mib() -> None:
    """As docs/policies.md has it for all formats."""
    assert KIP_98_MESSAGE_SET.by_name["messages"].codec.compressed.limit == 256 << 20


LISTS = {
    "kip_98_message_set": (
        "Offset int64, Length int32, CRC int32, Magic int8, Attributes int16, OffsetDelta int32, "
        "MaxTimestamp int64, PID int64, Epoch int16, Sequence int32"
    ),
    "kip_98_message": (
        "Length uintVar, Attributes int8, Timestamp int64, OffsetDelta uintVar, KeyLen uintVar, "
        "Key data, Value data, CRC int32"
    ),
    "kip_98_control_message_key": "Version int16, ControlMessageType int16",
}
"""The lists of the proposal, on one line each. Messages follow the fields of the set."""
TYPES = {"u32": "int32", "uvarint": "uintVar", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64"}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_the_lists_of_the_proposal(name: str) -> None:
    """Names, types and order. (A CRC is an unsigned number in an int32; "data" are bytes.)"""
    model, _ = load(read_files(SCHEMAS))
    assert model is not None
    plan = make_plan(model)
    found = []
    for field in model.layouts[name].fields:
        spelled = plan.spelling(field.name, field.spelled)
        match field.type:
            case ScalarType(type_):
                found.append(f"{spelled} {TYPES[type_]}")
            case BitsType(base):
                found.append(f"{spelled} {TYPES[base]}")
            case BytesType(text=False, null=None):
                found.append(f"{spelled} data")
    assert ", ".join(found).lower() == LISTS[name].lower()
