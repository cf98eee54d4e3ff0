"""Messages of networks and buses."""

from __future__ import annotations

import struct
from typing import Any

import crc32c

from tests.codecgen.language.foreign import Case, put


def crc16_modbus(data: bytes) -> int:
    """Return the check of a Modbus frame: the polynomial 0xA001, from 0xFFFF on, least significant bit first."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def request(count: int, function: int = 3) -> bytes:
    """Return a request of unit 0x91 to read registers from 0x8182 on."""
    head = struct.pack(">BBHH", 0x91, function, 0x8182, count)
    return head + struct.pack("<H", crc16_modbus(head))


def modbus() -> list[Case]:
    def values(count: int) -> dict[str, int]:
        check = int.from_bytes(request(count)[-2:], "little")
        return {"unit": 0x91, "function": 3, "address": 0x8182, "count": count, "check": check}

    return [
        Case(
            "modbus",
            "READ_REGISTERS",
            request(10),
            values(10),
            ("function", "check"),
            tuple((request(count), values(count)) for count in (1, 125)),
            (
                (request(0), "count"),
                (request(126), "count"),
                (request(10, 4), "function"),
                (request(10)[:-2] + request(10)[-1:] + request(10)[-2:-1], "check"),
            ),
        )
    ]


def guid() -> list[Case]:
    values = {
        "time_low": 0x81828384,
        "time_mid": 0x9192,
        "time_high": 0xA1A2,
        "clock": 0xB1B2,
        "node": b"\xc1\xc2\xc3\xc4\xc5\xc6",
    }
    return [Case("guid", "GUID", bytes.fromhex("84838281 9291 a2a1 b1b2 c1c2c3c4c5c6"), values)]


def sctp() -> list[Case]:
    head = struct.pack(">HHI", 0x8182, 0x9192, 0xA1A2A3A4)
    data = struct.pack(">BBH", 0x80, 0x90, 7) + b"\xc3\xc4\xc5"
    plain = struct.pack(">BBH", 0x81, 0, 4)
    large = struct.pack(">BBH", 0x80, 0x90, 0x9000) + bytes(0x8FFC)

    def packet(chunks: bytes) -> bytes:
        return head + struct.pack("<I", crc32c.crc32c(head + bytes(4) + chunks)) + chunks

    def values(data: bytes, *chunks: dict[str, Any]) -> dict[str, Any]:
        sum_ = int.from_bytes(data[8:12], "little")
        ports = {"source_port": 0x8182, "destination_port": 0x9192, "verification_tag": 0xA1A2A3A4}
        return {**ports, "checksum": sum_, "chunks": list(chunks)}

    first = {"type": 0x80, "flags": 0x90, "length": 7, "value": b"\xc3\xc4\xc5", "filler": None}
    second = {"type": 0x81, "flags": 0, "length": 4, "value": b"", "filler": None}
    whole = packet(plain + data + b"\0")
    return [
        Case(
            "sctp",
            "PACKET",
            whole,
            values(whole, second, first),
            ("checksum", "chunks.length"),
            (
                (packet(plain), values(packet(plain), second)),
                (
                    packet(large),
                    values(packet(large), {**first, "length": 0x9000, "value": bytes(0x8FFC)}),
                ),
            ),
            (
                (packet(b""), "chunks"),
                (packet(put(plain, 3, b"\3")), "chunks[0].length"),
                (packet(plain + data + b"\1"), "chunks[1].filler"),
            ),
            never=((packet(plain + b"\0"), "chunks[1].flags"),),
            is_open=True,
        ),
        Case("sctp", "CHUNK", data + b"\0", first, ("length",)),
        Case("sctp", "CHUNK", plain, second, ("flags", "length")),
    ]


def hello(
    content: int = 22, type_: int = 1, version: int = 0x0303, suites: bytes = b"\x93\x94\xa3\xa4", methods: bytes = b"\x80",
    session: bytes = b"\xf1\xf2\xf3", extension: bytes = b"\xe1\xe2\xe3",
) -> bytes:  # fmt: skip
    """Return the first message of a client with made-up values, but for those given."""
    body = struct.pack(">H", version) + bytes(range(0x80, 0xA0)) + bytes([len(session)]) + session
    body += struct.pack(">H", len(suites)) + suites + bytes([len(methods)]) + methods
    whole = struct.pack(">HH", 0x8586, len(extension)) + extension
    body += struct.pack(">H", len(whole)) + whole
    message = struct.pack(">B", type_) + len(body).to_bytes(3, "big") + body
    return struct.pack(">BHH", content, 0x8301, len(message)) + message


def tls() -> list[Case]:
    values = {
        "content_type": "handshake",
        "version": 0x8301,
        "length": 59,
        "type": "client_hello",
        "message_length": 55,
        "legacy_version": 0x0303,
        "random": bytes(range(0x80, 0xA0)),
        "session": b"\xf1\xf2\xf3",
        "cipher_suites": [0x9394, 0xA3A4],
        "compression_methods": [0x80],
        "extensions": [{"type": 0x8586, "data": b"\xe1\xe2\xe3"}],
    }
    large = b"\xff" * 0x9000

    def sizes(more: int) -> dict[str, int]:
        return {"length": 59 + more, "message_length": 55 + more}

    return [
        Case(
            "tls",
            "HELLO_RECORD",
            hello(),
            values,
            ("content_type", "length", "type", "message_length", "legacy_version"),
            (
                (
                    hello(suites=large, methods=b"\xff" * 255),
                    {
                        **sizes(0x9000 - 4 + 254),
                        "cipher_suites": [0xFFFF] * 0x4800,
                        "compression_methods": [0xFF] * 255,
                    },
                ),
                (hello(suites=b"\x93\x94"), {**sizes(-2), "cipher_suites": [0x9394]}),
                (
                    hello(session=b"\xf1" * 200, extension=b"\xe1" * 0x8000),
                    {
                        **sizes(197 + 0x8000 - 3),
                        "session": b"\xf1" * 200,
                        "extensions": [{"type": 0x8586, "data": b"\xe1" * 0x8000}],
                    },
                ),
            ),
            (
                (hello(content=21), "content_type"),
                (hello(type_=2), "type"),
                (hello(version=0x0304), "legacy_version"),
                (put(hello(), 3, b"\0\x3c"), "length"),
                (put(hello(), 8, b"\x3c"), "message_length"),
                (put(hello(), 47, b"\0\0"), "cipher_suites"),
                (hello(methods=b""), "compression_methods"),
            ),
        )
    ]


CASES = [*modbus(), *guid(), *sctp(), *tls()]
