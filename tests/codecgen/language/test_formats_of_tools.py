"""Foreign formats beside bytes that other tools wrote: tests/data/foreign/README.md names the tools."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from codecgen.plan import make_plan
from codecgen.runtime.errors import BuildError, CodecError, ParseError
from codecgen.schema import loader
from tests.codecgen.schemas import checked, codecs_of
from tests.paths import FOREIGN


@cache
def codecs(name: str, file: str = "") -> Any:
    """The generated module of a schema file of a format."""
    plan = make_plan(checked(loader.read_files(FOREIGN / name)))
    return codecs_of(plan, f"{file or name}.yaml")


def sample(path: str) -> bytes:
    return (FOREIGN / path).read_bytes()


MIDI = bytes.fromhex(
    "4d546864000000060000000101e04d54726b0000003100ff510307a12000c00c00903c408360803c4064f004010203f7"
    "819c20e0644000ff03096d616465206865726500ff2f00"
)
PERSON = bytes.fromhex(
    "0a04416e6e6110feffffffffffffffff011a0c0a05456c6d2031153930000022040201d80429000000000000f83f827d"
    "02ffd8"
)
MESSAGEPACK = bytes.fromhex(
    "dc001601ff7fe0ccc8d09ccd012cd1fed4ce00011170d2fffeee90cf0000010000000000d3ffffff0000000000cb3ff8"
    "000000000000c0c3c2d92878787878787878787878787878787878787878787878787878787878787878787878787878"
    "787878c4020102d60561626364c70306616263dc0010000102030405060708090a0b0c0d0e0fde001000010102020303"
    "0404050506060707080809090a0a0b0b0c0c0d0d0e0e0f0f10"
)

WHOLE: dict[str, tuple[Callable[[], Any], bytes]] = {
    "pack index": (lambda: codecs("git").PACK_INDEX, sample("git/pack.idx")),
    "index": (lambda: codecs("git").INDEX, sample("git/index")),
    "midi": (lambda: codecs("midi").MIDI_FILE, MIDI),
    "protobuf, any message": (lambda: codecs("protobuf", "wire").MESSAGE, PERSON),
    "protobuf, a known message": (lambda: codecs("protobuf", "person").PERSON, PERSON),
    "messagepack": (lambda: codecs("messagepack").DOCUMENT, MESSAGEPACK),
    "pcapng": (lambda: codecs("pcapng").CAPTURE, sample("pcapng/capture.pcapng")),
    "elf, 64 bits": (lambda: codecs("elf").ELF, sample("elf/executable_64_little")),
    "elf, 32 bits": (lambda: codecs("elf").ELF, sample("elf/object_32_big")),
    "sqlite": (lambda: codecs("sqlite").FIRST_PAGE, sample("sqlite/database")[:512]),
    "sqlite, another page": (lambda: codecs("sqlite").PAGE, sample("sqlite/database")[512:]),
}
OPEN = {"elf, 64 bits": 120, "elf, 32 bits": 52, "sqlite": 110, "sqlite, another page": 12}
"""Formats whose end is content that has no length of its own: where that begins."""
ENDS = {"pack index": 1100, "index": 350}
"""Formats that end in bytes to the end, before hashes: a cut before this byte is noticed."""
BETWEEN = {"protobuf, any message", "protobuf, a known message", "pcapng"}
"""Formats that may end after each element."""


@pytest.mark.parametrize("name", WHOLE)
def test_bytes_of_tools_are_built_again(name: str) -> None:
    make, data = WHOLE[name]
    codec = make()
    parsed = codec.parse(data)
    assert codec.build(parsed) == data


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_cuts_and_flips(name: str) -> None:
    make, data = WHOLE[name]
    codec = make()
    for cut in range(min(len(data), 600)):
        try:
            parsed = codec.parse(data[:cut])
        except CodecError as error:
            assert error.where.position is None or error.where.position <= cut
        else:
            assert cut >= OPEN.get(name, ENDS.get(name, len(data))) or name in BETWEEN
            assert codec.build(parsed) == data[:cut]
    for at in range(min(len(data), 600)):
        flipped = data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1 :]
        try:
            parsed = codec.parse(flipped)
        except CodecError as error:
            assert error.where.position is None or error.where.position <= len(data)
        else:
            assert codec.build(parsed) == flipped


def refused(codec: Any, data: bytes, at: int, byte: int) -> str | None:
    """The path of the field at which bytes with another byte are refused."""
    with pytest.raises(ParseError) as caught:
        codec.parse(data[:at] + bytes([byte]) + data[at + 1 :])
    path: str | None = caught.value.where.path
    return path


# ---------------------------------------------------------------- Git


def test_pack_index() -> None:
    data = sample("git/pack.idx")
    parsed = codecs("git").PACK_INDEX.parse(data)
    assert parsed.object_count == len(parsed.names) == 6
    assert parsed.names == sorted(parsed.names)
    assert parsed.index_hash == hashlib.sha1(data[:-20]).digest()
    offsets = struct.unpack(">6I", parsed.tables[24:])
    assert min(offsets) == 12
    assert refused(codecs("git").PACK_INDEX, data, 7, 3) == "version"
    assert refused(codecs("git").PACK_INDEX, data, 8 + 4 * 255 - 1, 7) == "object_count"


def test_index_of_a_work_tree() -> None:
    data = sample("git/index")
    parsed = codecs("git").INDEX.parse(data)
    names, name = [], b""
    for entry in parsed.entries:
        name = name[: len(name) - entry.removed] + entry.name.encode()
        assert entry.flags.name_length == len(name)
        names.append(name)
    assert names == [b"a.txt", b"d" * 150 + b"/b.txt", b"e.txt"]
    assert [entry.removed for entry in parsed.entries] == [0, 5, 156]
    assert {entry.mode.type.label for entry in parsed.entries} == {"file"}
    assert parsed.hash == hashlib.sha1(data[:-20]).digest()
    assert parsed.entries[0].object == hashlib.sha1(b"blob 4\0one\n").digest()


# ---------------------------------------------------------------- MIDI


def test_midi() -> None:
    midi = codecs("midi").MIDI_FILE
    parsed = midi.parse(MIDI)
    (track,) = parsed.tracks
    assert [e.delta for e in track.events] == [0, 0, 0, 480, 100, 20000, 0, 0]
    assert [e.message.status >> 4 for e in track.events[1:4]] == [12, 9, 8]
    tempo, name = track.events[0].message, track.events[6].message
    assert (tempo.type.label, int.from_bytes(tempo.data, "big")) == ("set_tempo", 500_000)
    assert (name.type.label, name.data) == ("track_name", b"made here")
    assert track.events[4].message.data == b"\1\2\3\xf7"
    running = MIDI.index(b"\x83\x60\x80") + 2
    assert refused(midi, MIDI, running, 0x3C) == "tracks[0].events[3].message"


# ---------------------------------------------------------------- Protobuf


def test_any_message() -> None:
    message = codecs("protobuf", "wire").MESSAGE
    parsed = message.parse(PERSON)
    tags = [(e.tag.number, e.tag.wire_type.label) for e in parsed.entries]
    assert tags == [(1, "len"), (2, "varint"), (3, "len"), (4, "len"), (5, "i64"), (2000, "len")]
    home = message.parse(parsed.entries[2].data)
    assert (home.entries[0].data, home.entries[1].fixed32) == (b"Elm 1", 12345)
    assert refused(message, PERSON, 0, 0x02) == "entries[0].tag"
    assert refused(message, PERSON, 0, 0x0B) == "entries[0].tag.wire_type"
    ours = {"tag": {"number": 2000, "wire_type": "len"}, "data": b"\xff\xd8"}
    assert message.build({"entries": [ours]}) == PERSON[-5:]


def test_a_known_message() -> None:
    person = codecs("protobuf", "person").PERSON
    name, id_, home, scores, height, photo = person.parse(PERSON).entries
    assert (name.value, id_.value - (1 << 64), height.value) == ("Anna", -2, 1.5)
    assert [e.value for e in home.entries] == ["Elm 1", 12345]
    assert (scores.numbers, photo.value) == ([1, -1, 300], b"\xff\xd8")
    assert refused(person, PERSON, PERSON.index(b"Elm") - 3, 0x0D) is not None


# ---------------------------------------------------------------- MessagePack


def value_of(parsed: Any) -> Any:
    """What MessagePack's types mean."""
    if "items_" in parsed:
        return [value_of(item) for item in parsed.items_]
    if "entries" in parsed:
        return {value_of(e.key): value_of(e.value) for e in parsed.entries}
    if "extension" in parsed:
        return (parsed.extension, parsed.data)
    if "value" in parsed:
        return parsed.value
    other = {0xC0: None, 0xC2: False, 0xC3: True}
    return other.get(parsed.type, parsed.type - (256 if parsed.type >= 0xE0 else 0))


def test_messagepack() -> None:
    document = codecs("messagepack").DOCUMENT
    numbers = [1, -1, 127, -32, 200, -100, 300, -300, 70000, -70000, 1 << 40, -(1 << 40), 1.5]
    others = [None, True, False, "x" * 40, b"\1\2", (5, b"abcd"), (6, b"abc")]
    nested = [list(range(16)), {i: i + 1 for i in range(16)}]
    assert value_of(document.parse(MESSAGEPACK).value) == [*numbers, *others, *nested]
    assert refused(document, MESSAGEPACK, 3, 0xA1) == "value.items_[0]"
    with pytest.raises(ParseError):
        document.parse(b"\xdc\0\1" * 12 + b"\1")
    with pytest.raises(ParseError, match="count is 32768, but 0 bytes are left"):
        document.parse(b"\xde\x80\0")
    with pytest.raises(BuildError):
        document.build({"value": {"type": 0xCC, "value": 256}})


# ---------------------------------------------------------------- pcapng


def test_pcapng() -> None:
    data = sample("pcapng/capture.pcapng")
    module = codecs("pcapng")
    section, interface, first, second = module.CAPTURE.parse(data).blocks
    assert (section.major, section.section_length, interface.link_type) == (1, -1, 1)
    assert first.data.endswith(b"hi!") and second.data.endswith(b"x")
    assert (first.time_high << 32 | first.time_low) == 1_700_000_000_500_000
    (comment, *_) = module.OPTION_LIST.parse(first.options).options
    assert (comment.code.label, comment.value) == ("comment", b"made here")
    assert refused(module.CAPTURE, data, 24, 0x20) == "blocks[0].same_length"
    assert refused(module.CAPTURE, data, 8, 0x1A) == "blocks[0].byte_order"


# ---------------------------------------------------------------- ELF


def test_elf() -> None:
    elf = codecs("elf").ELF
    program = elf.parse(sample("elf/executable_64_little"))
    assert (program.type.label, program.machine.label, program.entry) == (
        "executable",
        "x86_64",
        0x400078,
    )
    (segment,) = program.segments
    assert (segment.offset, segment.file_size) == (0x78, 1)
    assert program.content[segment.offset - 120] == 0x90
    object_ = elf.parse(sample("elf/object_32_big"))
    assert (object_.type.label, object_.sections_at, object_.segments) == ("relocatable", 204, [])
    assert refused(elf, sample("elf/object_32_big"), 5, 3) == "order"
    assert refused(elf, sample("elf/executable_64_little"), 32, 65) == "segments_at"


# ---------------------------------------------------------------- SQLite


def test_sqlite() -> None:
    data = sample("sqlite/database")
    first = codecs("sqlite").FIRST_PAGE
    header = first.parse(data[:512]).header
    assert (header.page_size, header.page_count, header.user_version) == (512, 2, 7)
    assert (header.encoding.label, header.version) == ("utf8", 3_040_001)
    page = codecs("sqlite").PAGE.parse(data[512:])
    assert (page.type.label, page.cells) == ("leaf_table", [506, 499])
    assert refused(first, data[:512], 21, 63) == "header.max_fraction"
    assert refused(first, data[:512], 100, 1) == "page.type"
