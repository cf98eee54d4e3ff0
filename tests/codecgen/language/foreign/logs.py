"""Entries of logs and captures: BookKeeper, LevelDB, Redpanda, RocketMQ, pcapng."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import crc32c

from tests.codecgen.language.foreign import Case, put


def bookkeeper() -> list[Case]:
    numbers = (-(1 << 62) - 3, -(1 << 62) - 2, -(1 << 62) - 1, -(1 << 62))
    head, payload = struct.pack(">qqqq", *numbers), b"\xff\xfe\xfd"
    names = ("ledger_id", "entry_id", "last_add_confirmed", "length")
    values = dict(zip(names, numbers, strict=True))
    crc32 = zlib.crc32(head + payload)
    found = []
    for text in (payload, b"\xff\xfe\xf1"):  # digests with and without their first bit
        digest = crc32c.crc32c(head + text)
        data = head + struct.pack(">I", digest) + text
        entry = {**values, "digest": digest, "payload": text}
        found.append(Case("bookkeeper", "LEDGER_ENTRY", data, entry, ("digest",), is_open=True))
    assert any(case.values["digest"] >> 31 for case in found)
    data = head + struct.pack(">Q", crc32) + payload
    entry = {**values, "high": 0, "digest": crc32, "payload": payload}
    high = ((put(data, 32, b"\1"), "high"),)
    found.append(Case("bookkeeper", "LEDGER_ENTRY_CRC32", data, entry, ("high", "digest"), (), high, is_open=True))  # fmt: skip
    return found


# ---------------------------------------------------------------- LevelDB and RocksDB

PARTS = {1: "whole", 2: "start", 3: "middle", 4: "end"}
"""As leveldb/db/log_format.h has them; those of RocksDB's recyclable records follow in the same order."""


def log_record(type_: int, data: bytes, number: int | None = None) -> tuple[bytes, dict[str, Any]]:
    """Return a record of a log with its masked checksum, and what it says."""
    label = PARTS[type_] if number is None else f"recyclable_{PARTS[type_ - 4]}"
    body = bytes([type_]) + (b"" if number is None else struct.pack("<I", number)) + data
    sum_ = crc32c.crc32c(body)
    masked = ((sum_ >> 15 | sum_ << 17) + 0xA282EAD8) & 0xFFFFFFFF
    values: dict[str, Any] = {"crc": masked, "length": len(data), "type": label}
    values |= {} if number is None else {"log_number": number}
    return struct.pack("<IH", masked, len(data)) + body, {**values, "data": data}


def leveldb() -> list[Case]:
    found = []
    long = b"\xff" * 0x7FF0
    for codec, types, number in (
        ("LOG_RECORD", (1, 2, 3, 4), None),
        ("RECYCLABLE_RECORD", (5, 6, 7, 8), 0x81828384),
    ):
        data, values = log_record(types[0], b"\xff\xfe", number)
        others = (
            *(log_record(type_, b"\xf1\xf2", number) for type_ in types),
            log_record(types[0], long, number),
            log_record(types[0], b"\xff" * 0x8000, number),
        )
        other = log_record(5 if number is None else 1, b"", None if number else 7)[0]
        refused = (
            (other, "type"),
            (put(data, 0, b"\0\0\0\0"), "crc"),
            (put(data, 6, b"\x09"), "type"),
        )
        found.append(
            Case("leveldb", codec, data, values, ("crc", "length"), others, refused, is_open=True)
        )
        found.append(Case("leveldb", "LOG_ENTRY", data, values, (), others, is_open=True))
    puts = {"operation": "put", "key": b"\xff" * 200, "value": b"\xfe" * 201}
    put_ = b"\1\xc8\1" + b"\xff" * 200 + b"\xc9\1" + b"\xfe" * 201
    deleted = {"operation": "delete", "key": b"\xfd", "value": None}
    delete = b"\0\1\xfd"
    unknown = ((b"\2\1\xfd", "operation"),)
    found.append(
        Case(
            "leveldb",
            "WRITE",
            put_,
            puts,
            refused=unknown,
            never=((b"\1\1\xff\x81\0\xfe", "value"),),
        )
    )
    found.append(
        Case("leveldb", "WRITE", delete, deleted, ("value",), never=((b"\0\x81\0\xfd", "key"),))
    )
    batch = struct.pack("<QI", 0x8182838485868788, 2) + put_ + delete
    values = {"sequence": 0x8182838485868788, "count": 2, "operations": [puts, deleted]}
    found.append(Case("leveldb", "WRITE_BATCH", batch, values, ("count",)))
    return found


# ---------------------------------------------------------------- Redpanda


def redpanda() -> list[Case]:
    names = (
        *("base_offset", "type", "crc", "attributes", "last_offset_delta", "first_timestamp"),
        *("max_timestamp", "producer_id", "producer_epoch", "base_sequence", "record_count"),
    )

    def batch(numbers: tuple[int, ...], records: bytes) -> tuple[bytes, dict[str, Any]]:
        rest = struct.pack("<iqbihiqqqhii", 61 + len(records), *numbers)
        sum_ = crc32c.crc32c(rest)
        values = {"header_crc": sum_, "size_bytes": 61 + len(records)}
        values |= dict(zip(names, numbers, strict=True))
        return struct.pack("<I", sum_) + rest + records, {**values, "records": records}

    high = 1 << 62
    numbers = (-high - 1, -0x7F, -0x7D7E7F80, -0x7E7F, -0x7D7E7F81, -high - 2, -high - 3, -high - 4, -0x7E80, -0x7D7E7F82, -0x7D7E7F83)  # fmt: skip
    data, values = batch(numbers, b"\xff\xfe")
    wrong = ((put(data, 9, b"\0"), "header_crc"),)
    sums = ("header_crc", "size_bytes")
    found = [Case("redpanda", "BATCH", data, values, sums, (), wrong, is_open=True)]
    for n in range(4):
        times = (1_700_000_000_000, 1_700_000_000_500)
        data, values = batch((n, *numbers[1:5], *times, -1, -1, -1, -1), b"")
        producer = ("producer_id", "producer_epoch", "base_sequence")
        found.append(Case("redpanda", "BATCH", data, values, (*sums, *producer), is_open=True))
    assert any(case.values["header_crc"] >> 31 for case in found)
    return found


# ---------------------------------------------------------------- RocketMQ


def rocketmq() -> list[Case]:
    high = 1 << 62

    def message(body: bytes, plain: bool = False, topic: str = "\u00e4t", properties: str = "\u00e4p") -> tuple[bytes, dict[str, Any]]:  # fmt: skip
        flag, again, prepared = (0, 0, 0) if plain else (-0x7D7E7F81, -0x7D7E7F82, -high - 5)
        born, stored = (1_700_000_000_000, 1_700_000_000_500) if plain else (-high - 3, -high - 4)
        sum_ = zlib.crc32(body) & 0x7FFFFFFF
        after = struct.pack(">IIiiqqiq4siq4siiqi", 0xDAA320A7, sum_, -0x7D7E7F80, flag, -high - 1, -high - 2, 0, born, b"\xa1\xa2\xa3\xa4", -0x7D7E7F83, stored, b"\xb1\xb2\xb3\xb4", -0x7D7E7F84, again, prepared, len(body))  # fmt: skip
        names, told = topic.encode(), properties.encode()
        after += body + bytes([len(names)]) + names + struct.pack(">H", len(told)) + told
        values = {
            "total_size": 4 + len(after), "magic_code": 0xDAA320A7, "body_crc": sum_, "queue_id": -0x7D7E7F80, "flag": flag,
            "queue_offset": -high - 1, "physical_offset": -high - 2, "sys_flag": 0, "born_timestamp": born,
            "born_host": {"address": b"\xa1\xa2\xa3\xa4", "port": -0x7D7E7F83}, "store_timestamp": stored,
            "store_host": {"address": b"\xb1\xb2\xb3\xb4", "port": -0x7D7E7F84}, "reconsume_times": again,
            "prepared_transaction_offset": prepared, "body_length": len(body), "body": body, "topic": topic, "properties": properties,
        }  # fmt: skip
        return struct.pack(">i", 4 + len(after)) + after, values

    bodies = [b"\xff\xfe" + bytes([n]) for n in range(6)]
    assert {zlib.crc32(body) >> 31 for body in bodies} == {
        0,
        1,
    }  # with and without the bit that is masked
    data, values = message(bodies[0])
    others = (*map(message, bodies[1:]), message(b"", topic="t" * 255, properties="p" * 0xFFFF))
    sums = ("magic_code", "sys_flag", "body_crc", "body_length", "total_size")
    plain, of_plain = message(b"b", plain=True, properties="")
    at = data.index("\u00e4t".encode())
    refused = ((put(data, 8, b"\0"), "body_crc"), (put(data, 39, b"\1"), "sys_flag"))
    never = ((put(data, at, b"\xff"), "topic"), (put(data, len(data) - 3, b"\xff"), "properties"))
    more = ("flag", "reconsume_times", "prepared_transaction_offset", "properties")
    blank = struct.pack(">iI", 11, 0xCBD43194) + b"\xff\xfe\xfd"
    of_blank = {"total_size": 11, "magic_code": 0xCBD43194, "unused": b"\xff\xfe\xfd"}
    empty = struct.pack(">iI", 8, 0xCBD43194)
    of_empty = {"total_size": 8, "magic_code": 0xCBD43194, "unused": b""}
    other = ((put(blank, 4, b"\0"), "magic_code"),)
    return [
        Case("rocketmq", "MESSAGE", data, values, sums, others, refused, never, is_open=True),
        Case("rocketmq", "MESSAGE", plain, of_plain, (*sums, *more), is_open=True),
        Case("rocketmq", "LOG_ENTRY", data, values, is_open=True),
        Case("rocketmq", "BLANK", blank, of_blank, ("total_size", "magic_code"), (), other, is_open=True),
        Case("rocketmq", "BLANK", empty, of_empty, ("total_size", "magic_code", "unused"), is_open=True),
        Case("rocketmq", "LOG_ENTRY", blank, of_blank, is_open=True),
    ]  # fmt: skip


# ---------------------------------------------------------------- pcapng


def pcapng() -> list[Case]:
    def block(type_: int, body: bytes) -> bytes:
        return struct.pack("<II", type_, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    options = b"\xff\xfe\xfd\xfc"
    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0x8182, -(1 << 62)) + options)
    of_section = {"type": 0x0A0D0D0A, "length": 32, "byte_order": 0x1A2B3C4D, "major": 1, "minor": 0x8182, "section_length": -(1 << 62), "options": options, "same_length": 32}  # fmt: skip
    unknown = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0x8182, -1) + options)
    interface = block(1, struct.pack("<HHI", 0x8182, 0, 0x81828384) + options)
    of_interface = {"type": 1, "length": 24, "link_type": 0x8182, "reserved": 0, "snap_length": 0x81828384, "options": options, "same_length": 24}  # fmt: skip
    ethernet = block(1, struct.pack("<HHI", 1, 0, 0x81828384) + options)
    data = b"\xf1\xf2\xf3\xf4\xf5"
    numbers = (0x81828384, 0x91929394, 0xA1A2A3A4)
    packet = block(6, struct.pack("<IIIII", *numbers, 5, 0xB1B2B3B4) + data + bytes(3) + options)
    of_packet = {"type": 6, "length": 44, "interface": numbers[0], "time_high": numbers[1], "time_low": numbers[2], "captured_length": 5, "original_length": 0xB1B2B3B4, "data": data, "filler": None, "options": options, "same_length": 44}  # fmt: skip
    option = struct.pack("<HH", 0x8182, 3) + b"\xe1\xe2\xe3\0"
    of_option = {"code": 0x8182, "length": 3, "value": b"\xe1\xe2\xe3", "filler": None}
    codes = ((struct.pack("<HH", 0, 0), "end", b""), (struct.pack("<HH", 1, 4) + b"text", "comment", b"text"))  # fmt: skip
    others = tuple((d, {"code": c, "length": len(v), "value": v, "filler": None}) for d, c, v in codes)  # fmt: skip
    long = b"\xff" * 0x8000
    others += ((struct.pack("<HH", 0x8182, 0x8000) + long, {"length": 0x8000, "value": long}),)
    sizes = ("type", "length")

    def lengths(data: bytes) -> tuple[tuple[bytes, str], ...]:
        return ((put(data, len(data) - 4, b"\0"), "same_length"), (put(data, 0, b"\2"), "type"))

    return [
        Case("pcapng", "SECTION_HEADER", section, of_section, (*sizes, "byte_order", "major"), (), (*lengths(section), (put(section, 8, b"\0"), "byte_order"), (put(section, 12, b"\2"), "major"))),
        Case("pcapng", "SECTION_HEADER", unknown, {**of_section, "section_length": -1}, (*sizes, "byte_order", "major", "section_length")),
        Case("pcapng", "INTERFACE_DESCRIPTION", interface, of_interface, (*sizes, "reserved"), (), (*lengths(interface), (put(interface, 10, b"\1"), "reserved"))),
        Case("pcapng", "INTERFACE_DESCRIPTION", ethernet, {**of_interface, "link_type": 1}, (*sizes, "reserved", "link_type")),
        Case("pcapng", "ENHANCED_PACKET", packet, of_packet, (*sizes, "captured_length"), (), (*lengths(packet), (put(packet, 33, b"\1"), "filler"))),
        Case("pcapng", "CAPTURE", section + interface + packet, {"blocks": [of_section, of_interface, of_packet]}, is_open=True),
        Case("pcapng", "OPTION", option, of_option, ("length",), others, ((put(option, 7, b"\1"), "filler"),)),
        Case("pcapng", "OPTION_LIST", option, {"options": [of_option]}, is_open=True),
    ]  # fmt: skip


CASES = [*bookkeeper(), *leveldb(), *redpanda(), *rocketmq(), *pcapng()]
