"""Values as bytes: Avro, MessagePack, Protobuf, and the events of MIDI."""

from __future__ import annotations

import struct
from typing import Any

from tests.codecgen.language.foreign import Case, put


def avro() -> list[Case]:
    """Avro's longs: 2 n for n of 0 and more, -2 n - 1 below 0, in groups of seven bits from the least significant."""
    sync = bytes(range(0x80, 0x90))
    count = b"\xff\xff\xff\xff\xff\x3f"  # -(1 << 40)
    block = count + b"\x06\xa1\xa2\xa3" + sync
    values = {"count": -(1 << 40), "objects": b"\xa1\xa2\xa3", "sync": sync}
    file = b"Obj\x01" + b"\x02\x06\xc3\xa4k\x04\xff\xfe" + b"\0" + sync[::-1] + block
    head = {
        "magic": b"Obj\x01",
        "metadata": [{"count": 1, "entries": [{"key": "\u00e4k", "value": b"\xff\xfe"}]}, {"count": 0, "entries": []}],
        "sync": sync[::-1],
        "blocks": [values],
    }  # fmt: skip
    return [
        Case("avro", "BLOCK", block, values, never=((put(block, 5, b"\xbf\0"), "count"),)),
        Case(
            "avro",
            "OBJECT_CONTAINER",
            file,
            head,
            ("magic", "metadata.count"),
            refused=((put(file, 3, b"\2"), "magic"),),
            never=(
                (put(file, 6, b"\xff"), "metadata[0].entries[0].key"),
                (file[:4] + b"\x82\0" + file[5:], "metadata[0].count"),
                (file + b"\0", "blocks[1].objects"),
            ),
            is_open=True,
        ),
    ]


# ---------------------------------------------------------------- MessagePack

SCALARS: list[tuple[str, int, str, Any]] = [
    ("FLOAT32", 0xCA, ">f", -1.5),
    ("FLOAT64", 0xCB, ">d", -1.5e300),
    ("UINT8", 0xCC, ">B", 0x81),
    ("UINT16", 0xCD, ">H", 0x8182),
    ("UINT32", 0xCE, ">I", 0x81828384),
    ("UINT64", 0xCF, ">Q", 0x8182838485868788),
    ("INT8", 0xD0, ">b", -0x7F),
    ("INT16", 0xD1, ">h", -0x7D7F),
    ("INT32", 0xD2, ">i", -0x7D7E7F80),
    ("INT64", 0xD3, ">q", -0x7C7D7E7F80818283),
]
LENGTHS: list[tuple[str, int, str, Any, int]] = [
    ("BIN8", 0xC4, ">B", b"\xff\xfe", 0xFF),
    ("BIN16", 0xC5, ">H", b"\xff\xfe", 0xFFFF),
    ("STR8", 0xD9, ">B", "\u00e4", 0xFF),
    ("STR16", 0xDA, ">H", "\u00e4", 0xFFFF),
]


def constants() -> list[Case]:
    """The types whose bytes are their values, by the specification's table."""
    types = [*range(0x80), 0xC0, 0xC2, 0xC3, *range(0xE0, 0x100)]
    others = tuple((bytes([n]), {"type": n}) for n in types)
    return [
        Case("messagepack", "CONSTANT", b"\x00", {"type": 0}, (), others),
        Case(
            "messagepack",
            "DOCUMENT",
            b"\xc0",
            {"value": {"type": 0xC0}},
            (),
            tuple((data, {"value": values}) for data, values in others),
            tuple((bytes([n]) + bytes(9), "value") for n in (0x80, 0x90, 0xA0, 0xBF, 0xC1, 0xC6, 0xC8, 0xC9, 0xD4, 0xD5, 0xD7, 0xD8, 0xDB, 0xDD, 0xDF)),
        ),
    ]  # fmt: skip


def messagepack() -> list[Case]:
    found = constants()
    bodies: list[tuple[str, int, bytes, dict[str, Any]]] = []
    for name, type_, form, number in SCALARS:
        bodies.append((name, type_, struct.pack(form, number), {"value": number}))
    for name, type_, form, short, most in LENGTHS:
        for value in (
            short,
            short[:0],
            short[:1] * (most // len(short[:1].encode() if isinstance(short, str) else short[:1])),
        ):
            data = value if isinstance(value, bytes) else value.encode()
            bodies.append((name, type_, struct.pack(form, len(data)) + data, {"value": value}))
    four = {"extension": -0x7F, "data": b"\x91\x92\x93\x94"}
    bodies.append(("FIXEXT4", 0xD6, b"\x81\x91\x92\x93\x94", four))
    for size in (3, 0xFF):
        values = {"size": size, "extension": -0x7F, "data": b"\x91" * size}
        bodies.append(("EXT8", 0xC7, bytes([size, 0x81]) + b"\x91" * size, values))
    ones = {"items_": [{"type": 0xFF}] * 2}
    bodies.append(("ARRAY16", 0xDC, b"\0\2\xff\xff", ones))
    pair = {"key": {"type": 1}, "value": {"type": 0xD9, "value": "y"}}
    bodies.append(("MAP16", 0xDE, b"\0\1\1\xd9\1y", {"entries": [pair]}))
    many = {
        "ARRAY16": ((b"\xdc\x80\0" + b"\1" * 0x8000, {"items_": [{"type": 1}] * 0x8000}),),
    }
    for name, type_, body, values in bodies:
        values = {"type": type_, **values}
        data = bytes([type_]) + body
        left_out = ("type", "size") if "size" in values else ("type",)
        wrong = bytes([type_ ^ 0x20]) + body
        never: tuple[tuple[bytes, str], ...] = ()
        if name in ("STR8", "STR16") and len(data) > 3:
            never = ((data[:-1] + b"\xff", "value"),)
        others = many.get(name, ())
        found.append(
            Case("messagepack", name, data, values, left_out, others, ((wrong, "type"),), never)
        )
        whole = {"value": values}
        found.append(
            Case(
                "messagepack",
                "DOCUMENT",
                data,
                whole,
                never=never and ((never[0][0], "value.value"),),
            )
        )
    found.append(Case("messagepack", "MAP_ENTRY", b"\1\xd9\1y", pair))
    return found


def nested() -> list[Case]:
    """Arrays and maps in each other, as deep as the schema lets them be, and one level more."""
    found = []
    for head, path in ((b"\xdc\0\1", "items_"), (b"\xde\0\1\1", "entries")):
        values: dict[str, Any] = {"type": 1}
        for _ in range(8):
            inner = values if path == "items_" else {"key": {"type": 1}, "value": values}
            values = {"type": head[0], path: [inner]}
        step = "items_[0]" if path == "items_" else "entries[0].value"
        refused = ((head * 9 + b"\1", f"value.{f'{step}.' * 8}{path}"),)
        found.append(
            Case("messagepack", "DOCUMENT", head * 8 + b"\1", {"value": values}, refused=refused)
        )
    return found


# ---------------------------------------------------------------- Protobuf


def protobuf() -> list[Case]:
    types = {"varint": 0, "i64": 1, "len": 2, "i32": 5}
    fields: dict[str, tuple[str, bytes, Any]] = {
        "varint": ("number", b"\x82\x83\x84\x85\x86\x87\x88\x89\x81\x01", 0x81120F0C14183082),
        "i64": ("fixed64", bytes.fromhex("8887868584838281"), 0x8182838485868788),
        "len": ("data", b"\x03\xf1\xf2\xf3", b"\xf1\xf2\xf3"),
        "i32": ("fixed32", bytes.fromhex("84838281"), 0x81828384),
    }
    number = sum((b & 0x7F) << 7 * i for i, b in enumerate(fields["varint"][1]))
    fields["varint"] = ("number", fields["varint"][1], number)
    found = []
    for label, (field, data, value) in fields.items():
        largest = (1 << 29) - 1
        tag = {"wire_type": label, "number": largest}
        head = bytes([0xF8 | types[label], 0xFF, 0xFF, 0xFF, 0x0F])
        low = bytes([8 | types[label]])
        values = {"tag": tag, "number": None, "fixed64": None, "data": None, "fixed32": None}
        values[field] = value
        found.append(
            Case(
                "protobuf/wire",
                "ENTRY",
                head + data,
                values,
                tuple(name for name, other in values.items() if other is None),
                ((low + data, {"tag": {"wire_type": label, "number": 1}}),),
                ((bytes([types[label]]) + data, "tag"), (bytes([8 | 3]) + data, "tag.wire_type"), (b"\x0c", "tag.wire_type")),
                ((bytes([0x88 | types[label], 0]) + data, "tag"),),
            )
        )  # fmt: skip
        found.append(
            Case("protobuf/wire", "MESSAGE", low + data, {"entries": [{**values, "tag": {"wire_type": label, "number": 1}}]}, is_open=True, never=((low + data + b"\0", "entries[1].tag"),))
        )  # fmt: skip
    text = b"\x02\xc3\xa4"
    known: list[tuple[str, bytes, dict[str, Any], tuple[tuple[bytes, str], ...]]] = [
        ("NAME", b"\x0a" + text, {"tag": 0x0A, "value": "\u00e4"}, ((b"\x0a\x01\xff", "value"), (b"\x0a\x82\0\xc3\xa4", "value"))),
        ("ID", b"\x10" + fields["varint"][1], {"tag": 0x10, "value": number}, ((b"\x10\x81\0", "value"),)),
        ("HOME", b"\x1a\x09\x0a\x02\xc3\xa4\x15\x84\x83\x82\x81", {"tag": 0x1A, "size": 9, "entries": [{"tag": 0x0A, "value": "\u00e4"}, {"tag": 0x15, "value": 0x81828384}]}, ((b"\x1a\x80\0", "size"),)),
        ("SCORES", b"\x22\x03\x01\xd8\x04", {"tag": 0x22, "numbers": [-1, 300]}, ((b"\x22\x83\0\x01\xd8\x04", "numbers"), (b"\x22\x02\x81\0", "numbers[0]"), (b"\x22\x06\x80\x80\x80\x80\x80\x01", "numbers[0]"))),
        ("HEIGHT", b"\x29" + struct.pack("<d", -1.5e300), {"tag": 0x29, "value": -1.5e300}, ()),
        ("PHOTO", b"\x82\x7d\x03\xf1\xf2\xf3", {"tag": 16002, "value": b"\xf1\xf2\xf3"}, ((b"\x82\x7d\x83\0\xf1\xf2\xf3", "value"),)),
        ("STREET", b"\x0a" + text, {"tag": 0x0A, "value": "\u00e4"}, ((b"\x0a\x01\xff", "value"), (b"\x0a\x82\0\xc3\xa4", "value"))),
        ("ZIP", b"\x15\x84\x83\x82\x81", {"tag": 0x15, "value": 0x81828384}, ()),
    ]  # fmt: skip
    for name, data, values, never in known:
        wide = (
            bytes([data[0] | 0x80])
            + (b"\0" if name != "PHOTO" else b"\xfd\0")
            + data[1 + (name == "PHOTO") :]
        )
        left_out = ("tag", "size") if name == "HOME" else ("tag",)
        found.append(
            Case("protobuf/person", name, data, values, left_out, (), ((b"\x78" + data[1:], "tag"),), ((wide, "tag"), *never))
        )  # fmt: skip
        if name not in ("STREET", "ZIP"):
            found.append(
                Case("protobuf/person", "PERSON", data, {"entries": [values]}, is_open=True)
            )
    return found


# ---------------------------------------------------------------- MIDI


def events() -> list[tuple[str, bytes, dict[str, Any]]]:
    """Return the messages of the specification: name of the layout, bytes and values."""
    found: list[tuple[str, bytes, dict[str, Any]]] = []
    for status in range(0x80, 0xB0):
        found.append(("NOTE", bytes([status, 0x7E, 0x7F]), {"status": status, "key": 0x7E, "velocity": 0x7F}))  # fmt: skip
    for status in range(0xB0, 0xC0):
        found.append(("CONTROL_CHANGE", bytes([status, 0x7E, 0x7F]), {"status": status, "control": 0x7E, "value": 0x7F}))  # fmt: skip
    for status in range(0xC0, 0xE0):
        found.append(("ONE_VALUE", bytes([status, 0x7F]), {"status": status, "value": 0x7F}))
    for status in range(0xE0, 0xF0):
        found.append(("PITCH_WHEEL", bytes([status, 0x7E, 0x7F]), {"status": status, "low": 0x7E, "high": 0x7F}))  # fmt: skip
    long = b"\xf1" * 200
    for status in (0xF0, 0xF7):
        found.append(("EXCLUSIVE", bytes([status, 0x81, 0x48]) + long, {"status": status, "data": long}))  # fmt: skip
    types = {1: "text", 3: "track_name", 0x2F: "end_of_track", 0x51: "set_tempo", 0x7F: 0x7F}
    for type_, label in types.items():
        found.append(("META", bytes([0xFF, type_, 0x81, 0x48]) + long, {"status": 0xFF, "type": label, "data": long}))  # fmt: skip
    return found


def midi() -> list[Case]:
    found = []
    every = events()
    for name, data, values in {name: (name, *one) for name, *one in reversed(every)}.values():
        others = tuple((d, v) for n, d, v in every if n == name)
        refused: tuple[tuple[bytes, str], ...] = ()
        never: tuple[tuple[bytes, str], ...] = ()
        if "data" in values:
            at = data.index(b"\x81\x48")
            others += ((data[:at] + b"\0", {**values, "data": b""}),)
            never = ((put(data, at, b"\x80\x48"), "data"),)
        else:
            refused = tuple((put(data, i, b"\x80"), list(values)[i]) for i in range(1, len(data)))
        if name == "META":
            refused = ((put(data, 0, b"\xfe"), "status"),)
        derived = ("status",) if name == "META" else ()
        found.append(Case("midi", name, data, values, derived, others, refused, never))
    head = b"\0\xc0\x7f"
    one = {"delta": 0, "message": {"status": 0xC0, "value": 0x7F}}
    wide = b"\x80\0" + head[1:]
    five = b"\x81\x80\x80\x80\x00" + head[1:]
    unknown = tuple(
        (bytes([0, status, 0, 0]), "message") for status in (0x7F, 0xF1, 0xF6, 0xF8, 0xFE)
    )
    others = tuple((b"\xff\xff\xff\x7f" + data, {"delta": 0x0FFFFFFF, "message": v}) for _, data, v in every)  # fmt: skip
    found.append(Case("midi", "EVENT", head, one, (), others, ((five, "delta"), *unknown), ((wide, "delta"),)))  # fmt: skip
    track = b"MTrk\0\0\0\3" + head
    track_values = {"magic": b"MTrk", "length": 3, "events": [one]}
    found.append(
        Case("midi", "TRACK", track, track_values, ("magic", "length"), refused=((put(track, 3, b"K"), "magic"),))
    )  # fmt: skip
    for number, label in enumerate(("single", "parallel", "sequential")):
        data = b"MThd" + struct.pack(">IHHH", 6, number, 2, 0x8182) + track * 2
        values = {"magic": b"MThd", "header_length": 6, "format": label, "track_count": 2, "division": 0x8182, "tracks": [track_values] * 2}  # fmt: skip
        many = b"MThd" + struct.pack(">IHHH", 6, number, 0x8000, 0x8182) + b"MTrk\0\0\0\0" * 0x8000
        empty = {"magic": b"MTrk", "length": 0, "events": []}
        others = (
            ((many, {"track_count": 0x8000, "tracks": [empty] * 0x8000}),) if number == 1 else ()
        )
        refused = ((put(data, 3, b"D"), "magic"), (put(data, 7, b"\5"), "division"), (put(data, 9, b"\3"), "format"))  # fmt: skip
        found.append(
            Case("midi", "MIDI_FILE", data, values, ("magic", "header_length", "track_count"), others, refused)
        )  # fmt: skip
    return found


CASES = [*avro(), *messagepack(), *nested(), *protobuf(), *midi()]
