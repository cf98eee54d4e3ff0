"""Record batches with something wrong in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

from tests.paths import ROOT

from .mutant_bytes import EDGES_8, EDGES_32, EDGES_64, Draw, changed, packed, put, sized, unpacked

CONTROL_VALUES = ROOT / "tests" / "data" / "control_values.jsonl"


def varint(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def odd_varint(r: Draw) -> bytes:
    """A varint of any number, or bytes that are none."""
    kind = r.randrange(8)
    if kind < 3:
        return varint(r.randrange(-3, 70))
    if kind == 3:
        return varint(r.choice(EDGES_32))
    if kind == 4:
        return varint(r.choice(EDGES_64))
    if kind == 5:
        plain = bytearray(varint(r.randrange(-2, 20)))
        plain[-1] |= 0x80
        return (
            bytes(plain)
            + b"\x80" * r.randrange(9)
            + r.choice((b"\0", b"\1", b"\x0f", b"\x10", b"\x7f"))
        )
    return b"\xff" * r.randrange(1, 11) + r.choice((b"\0", b"\1", b"\x7f", b""))


Piece = tuple[str, bytes]
"""A part of a record, and what it is: ``number``, ``bytes``."""


def record_pieces(data: bytes) -> list[list[Piece]]:
    """The records of a well-formed section, each in pieces without its length."""
    found: list[list[Piece]] = []
    at = 0

    def number() -> tuple[int, bytes]:
        nonlocal at
        start, value = at, 0
        while True:
            byte = data[at]
            value |= (byte & 0x7F) << 7 * (at - start)
            at += 1
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1), data[start:at]

    def text(pieces: list[Piece]) -> None:
        nonlocal at
        size, raw = number()
        pieces.append(("number", raw))
        if size > 0:
            pieces.append(("bytes", data[at : at + size]))
            at += size

    try:
        while at < len(data):
            size, _ = number()
            end = at + size
            pieces: list[Piece] = [("bytes", data[at : at + 1])]
            at += 1
            pieces += [("number", number()[1]), ("number", number()[1])]
            text(pieces)
            text(pieces)
            count, raw = number()
            pieces.append(("number", raw))
            for _ in range(2 * min(count, 100)):
                text(pieces)
            if at != end:
                break
            found.append(pieces)
    except IndexError:
        pass
    return found


def record_bytes(pieces: list[Piece], length: Callable[[int], bytes] = varint) -> bytes:
    body = b"".join(raw for _, raw in pieces)
    return length(len(body)) + body


@cache
def control_values() -> tuple[bytes, ...]:
    """Return the values of control records that Kafka's classes were asked about."""
    answers = map(json.loads, CONTROL_VALUES.read_text("utf-8").splitlines())
    return tuple(bytes.fromhex(answer["hex"]) for answer in answers if "hex" in answer)


def control_record(r: Draw) -> bytes:
    """Return a control record of any type, with a value that is damaged half of the time."""
    key = bytes(2) + r.choice((*range(8), 0xFFFF)).to_bytes(2, "big")
    value = r.choice(control_values())
    if r.random() < 0.5:
        value = changed(value, r, 1)
    if r.random() < 0.1:
        key = changed(key, r, 1)
    pieces = [b"\0\0\0", varint(len(key)), key, varint(len(value)), value, b"\0"]
    return record_bytes([("bytes", piece) for piece in pieces])


def records(data: bytes, r: Draw) -> tuple[bytes, int]:
    """A section of records with something wrong in one of them, and how many there are."""
    found = record_pieces(data)
    if not found:
        return changed(data, r), 1
    kind = r.randrange(10)
    if kind == 0 and len(found) > 1:
        found.pop(r.randrange(len(found)))
    elif kind == 1:
        found.insert(r.randrange(len(found) + 1), r.choice(found))
    parts = [record_bytes(pieces) for pieces in found]
    if 2 <= kind <= 6:
        i = r.randrange(len(found))
        pieces = list(found[i])
        j = r.randrange(len(pieces))
        what, raw = pieces[j]
        if what == "number":
            pieces[j] = (what, odd_varint(r))
        else:
            pieces[j] = (what, changed(raw, r, 1))
        delta = r.choice((0, 0, 0, 0, 1, -1, -3))
        parts[i] = record_bytes(pieces, lambda n: varint(n + delta))
    elif kind == 7:
        i = r.randrange(len(found))
        body = b"".join(raw for _, raw in found[i])
        parts[i] = odd_varint(r) + body
    joined = b"".join(parts)
    if kind == 8:
        joined = changed(joined, r)
    elif kind == 9:
        joined += r.choice((b"\0", b"\0" * 20, b"\x01", b"\x0c\0\0\0\x01\x01\0", r.randbytes(5)))
    return joined, len(parts)


HEADER_FIELDS = (
    (0, 8),
    (12, 4),
    (22, 1),
    (21, 2),
    (23, 4),
    (27, 8),
    (35, 8),
    (43, 8),
    (51, 2),
    (53, 4),
)


def batch(data: bytes, r: Draw) -> bytes:
    """A record batch with something wrong in its header, its records or their stream."""
    codec = data[22] & 7
    section = unpacked(codec, data[61:])
    is_control = data[22] & 0x20 or r.random() < 0.02
    if is_control and r.random() < 0.6:
        data = put(put(data, 22, data[22] | 0x20, 1), 57, 1, 4)
        section = control_record(r)
    elif r.random() < 0.7:
        section, count = records(section, r)
        if r.random() < 0.8:
            data = put(data, 57, count, 4)
    if r.random() < 0.15:
        around = int.from_bytes(data[57:61], "big") + r.choice((-1, 1, 2))
        data = put(data, 57, r.choice((around, around, r.choice(EDGES_32))), 4)
    if r.random() < 0.4:
        codec = r.randrange(5)
        data = data[:22] + bytes((data[22] & 0xF8 | codec,)) + data[23:]
    data = data[:61] + packed(codec, section, r)
    if r.random() < 0.25:
        at, size = r.choice(HEADER_FIELDS)
        edges = {1: EDGES_8, 2: EDGES_32, 4: EDGES_32, 8: EDGES_64}[size]
        data = put(data, at, r.choice(edges), size)
    if r.random() < 0.03:
        data = data[: r.randrange(22, 62)]
    if r.random() < 0.03:
        data = data[:16] + bytes((r.choice((3, 4, 127)),)) + data[17:]
    return sized(data)
