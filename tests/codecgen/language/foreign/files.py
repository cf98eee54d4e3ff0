"""Files and disks: ELF, Git, GPT, gzip, MBR, PNG, SQLite, tar."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from tests.codecgen.language.foreign import Case, put

ELF_TYPES = {1: "relocatable", 2: "executable", 3: "shared", 4: "core", 0x8182: 0x8182}
MACHINES = {0: "none", 3: "x86", 62: "x86_64", 183: "aarch64", 0x9192: 0x9192}


def elf() -> list[Case]:
    """As elf(5) has them: 32 and 64 bits, least and most significant byte first."""
    found = []
    for bits, word in ((32, "I"), (64, "Q")):
        for number, order in ((1, "<"), (2, ">")):
            found += elf_of(bits, word, number, order)
    return found


def elf_of(bits: int, word: str, number: int, order: str) -> list[Case]:
    name = f"ELF_{bits}_{'LITTLE' if order == '<' else 'BIG'}"
    high = 1 << bits - 1
    size = 52 if bits == 32 else 64
    magic = b"\x7fELF"
    if bits == 32:
        names = (
            "type",
            "offset",
            "virtual_address",
            "physical_address",
            "file_size",
            "memory_size",
            "flags",
            "alignment",
        )
        form = "IIIIIIII"
    else:
        names = (
            "type",
            "flags",
            "offset",
            "virtual_address",
            "physical_address",
            "file_size",
            "memory_size",
            "alignment",
        )
        form = "IIQQQQQQ"  # fmt: skip
    numbers = [(high if kind == "Q" else 1 << 31) + i for i, kind in enumerate(form)]
    segment = struct.pack(order + form, *numbers)
    of_segment = dict(zip(names, numbers, strict=True))

    def file(type_: int, machine: int, at: int, segments: int, **changed: int) -> bytes:
        told = {"format_version": 1, "version": 1, "header_size": size, **changed}
        head = magic + bytes([bits // 32, number, told["format_version"], 0x91, 0x92]) + bytes(7)
        head += struct.pack(f"{order}HHI{word}{word}{word}IHHHHHH", type_, machine, told["version"], high + 10, at, high + 12, 0x81828384, told["header_size"], 0x8384, segments, 0x8586, 0x8788, 0x898A)  # fmt: skip
        return head + segment * segments + b"\xff\xfe"

    data = file(0x8182, 0x9192, size, 2)
    values = {
        "magic": magic, "class_": bits // 32, "order": number, "format_version": 1, "abi": 0x91, "abi_version": 0x92,
        "unused": bytes(7), "type": 0x8182, "machine": 0x9192, "version": 1, "entry": high + 10, "segments_at": size,
        "sections_at": high + 12, "flags": 0x81828384, "header_size": size, "segment_size": 0x8384, "segment_count": 2,
        "section_size": 0x8586, "section_count": 0x8788, "names_index": 0x898A, "segments": [of_segment] * 2, "content": b"\xff\xfe",
    }  # fmt: skip
    none = {"segments_at": 0, "segment_count": 0, "segments": []}
    types = ((t, 0x9192, {"type": v}) for t, v in ELF_TYPES.items())
    machines = ((0x8182, m, {"machine": v}) for m, v in MACHINES.items())
    others = tuple((file(t, m, 0, 0), {**v, **none}) for t, m, v in (*types, *machines))
    many = file(1, 0, size, 0x8000)
    many_of = {"type": "relocatable", "machine": "none", "segment_count": 0x8000, "segments": [of_segment] * 0x8000}  # fmt: skip
    others += ((many, many_of),)
    fixed = ("magic", "class_", "order", "format_version", "unused", "version", "header_size")
    refused = (
        (put(data, 3, b"G"), "magic"),
        (put(data, 4, b"\0"), "class_"),
        (put(data, 5, b"\0"), "order"),
        (put(data, 15, b"\1"), "unused"),
        (file(1, 0, size, 0, format_version=2), "format_version"),
        (file(1, 0, size, 0, version=2), "version"),
        (file(1, 0, size, 0, header_size=size + 1), "header_size"),
        *((file(1, 0, at, 0), "segments_at") for at in (1, size - 1, size + 1)),
    )
    return [
        Case("elf", name, data, values, (*fixed, "segment_count"), others, refused, is_open=True),
        Case("elf", f"{name}_SEGMENT", segment, of_segment),
        Case("elf", "ELF", data, values, is_open=True),
        Case("elf", f"ELF_{bits}", data, values, is_open=True),
    ]  # fmt: skip


# ---------------------------------------------------------------- Git


def git() -> list[Case]:
    """As gitformat-index(5) and gitformat-pack(5) have them."""
    numbers = [0x81828384 + i for i in range(10)]
    object_ = bytes(range(0x80, 0x94))

    def entry(type_: int, unused: int, flags: int, more: int | None, removed: bytes) -> bytes:
        times = struct.pack(">IIIIII", *numbers[:6])
        mode = type_ << 12 | unused << 9 | 0o644
        rest = struct.pack(">IIII", mode, *numbers[6:9]) + object_ + struct.pack(">H", flags)
        more_flags = b"" if more is None else struct.pack(">H", more)
        return times + rest + more_flags + removed + b"\xc3\xa4.txt\0"

    changed = {"seconds": numbers[0], "nanoseconds": numbers[1]}
    modified = {"seconds": numbers[2], "nanoseconds": numbers[3]}
    types = {8: "file", 10: "link", 14: "submodule"}

    found: list[tuple[bytes, dict[str, Any]]] = []
    for type_, label in types.items():
        for length, stage, extended, valid in ((1, 0, 0, 0), (0xFFF, 3, 0, 1), (0x801, 2, 1, 0)):
            flags = valid << 15 | extended << 14 | stage << 12 | length
            more = 0x8586 if extended else None
            # removed: gitformat-pack's offset encoding, in which each longer form begins where the shorter one ends
            data = entry(type_, 5, flags, more, b"\x80\x80\x00")
            values = {
                "changed": changed,
                "modified": modified,
                "device": numbers[4],
                "inode": numbers[5],
                "mode": {"permissions": 0o644, "unused": 5, "type": label, "others": 0},
                "user": numbers[6],
                "group": numbers[7],
                "size": numbers[8],
                "object": object_,
                "flags": {
                    "name_length": length,
                    "stage": stage,
                    "is_extended": bool(extended),
                    "is_assumed_valid": bool(valid),
                },
                "more_flags": more,
                "removed": 16512,
                "name": "\u00e4.txt",
            }
            found.append((data, values))
    first, values = found[0]
    text = first.index(b"\xc3\xa4")
    refused = (
        (entry(9, 5, 1, None, b"\0"), "mode.type"),
        (entry(0x18, 5, 1, None, b"\0"), "mode.others"),
    )
    never = ((put(first, text, b"\xff"), "name"),)
    index = b"DIRC" + struct.pack(">II", 4, 2) + first + found[2][0] + b"\xff\xfe" + object_
    of_index = {"magic": b"DIRC", "version": 4, "entry_count": 2, "entries": [values, found[2][1]], "extensions": b"\xff\xfe", "hash": object_}  # fmt: skip
    wrong = ((put(index, 3, b"c"), "magic"), (put(index, 7, b"\3"), "version"))
    fan_out = [*range(253), 0x80, 0x81]
    pack = b"\xfftOc" + struct.pack(">I255II", 2, *fan_out, 0x82)
    names = [bytes([i]) * 20 for i in range(0x82)]
    pack += b"".join(names) + b"\xf1\xf2\xf3" + object_ + object_[::-1]
    of_pack = {"magic": b"\xfftOc", "version": 2, "fan_out": fan_out, "object_count": 0x82, "names": names, "tables": b"\xf1\xf2\xf3", "pack_hash": object_, "index_hash": object_[::-1]}  # fmt: skip
    high = put(pack, 8, struct.pack(">I", 0x81828384))
    fewer = put(pack, 8 + 4 * 254, struct.pack(">I", 0x83))
    same = put(pack, 8 + 4 * 254, struct.pack(">I", 0x82))
    wrong_pack = (
        (put(pack, 3, b"C"), "magic"),
        (put(pack, 7, b"\1"), "version"),
        (fewer, "object_count"),
    )
    return [
        Case("git", "TIME", first[:8], changed),
        Case("git", "INDEX_ENTRY", first, values, ("more_flags", "mode.others"), tuple(found[1:]), refused, never),
        Case("git", "INDEX", index, of_index, ("magic", "version", "entry_count"), (), wrong, is_open=True),
        Case("git", "PACK_INDEX", pack, of_pack, ("magic", "version", "object_count"), ((high, {"fan_out": [0x81828384, *fan_out[1:]]}), (same, {"fan_out": [*fan_out[:-1], 0x82]})), wrong_pack, is_open=True),
    ]  # fmt: skip


# ---------------------------------------------------------------- disks


def disks() -> list[Case]:
    def part(status: int) -> tuple[bytes, dict[str, Any]]:
        data = struct.pack("<B3sB3sII", status, b"\xa1\xa2\xa3", 0x83, b"\xb1\xb2\xb3", 0x81828384, 0x91929394)  # fmt: skip
        values = {"status": status, "first_place": [0xA1, 0xA2, 0xA3], "type": 0x83, "last_place": [0xB1, 0xB2, 0xB3], "first_sector": 0x81828384, "sectors": 0x91929394}  # fmt: skip
        return data, values

    boot = bytes(range(0x80, 0x100)) * 3 + bytes(56)
    data, values = part(0x80)
    plain, of_plain = part(0)
    record = boot + struct.pack("<IH", 0xC1C2C3C4, 0xD1D2) + (data + plain) * 2 + b"\x55\xaa"
    of_record = {"boot_code": boot, "disk_id": 0xC1C2C3C4, "copy_protected": 0xD1D2, "partitions": [values, of_plain] * 2, "signature": b"\x55\xaa"}  # fmt: skip
    zero = put(record, 444, b"\0\0")
    refused = tuple((put(data, 0, bytes([status])), "status") for status in (1, 0x7F, 0x81, 0xFF))
    names = ("my_sector", "other_sector", "first_usable", "last_usable", "disk", "entries_sector", "entry_count", "entry_size", "entries_crc")  # fmt: skip

    def table(count: int, size: int, **changed: Any) -> tuple[bytes, dict[str, Any]]:
        high = 1 << 63
        numbers = (high + 1, high + 2, high + 3, high + 4, bytes(range(0x80, 0x90)), high + 5, count, size, 0x91929394)  # fmt: skip
        fixed = {"signature": b"EFI PART", "revision": 0x10000, "header_size": 92} | changed
        head = struct.pack("<8sII", *fixed.values())
        after = struct.pack("<QQQQ16sQIII", *numbers)
        crc = zlib.crc32(head + bytes(8) + after)
        values = {**fixed, "header_crc": crc, "reserved": 0, **dict(zip(names, numbers, strict=True)), "unused": None}  # fmt: skip
        return head + struct.pack("<II", crc, 0) + after + bytes(420), values

    gpt, of_gpt = table(0x81828384, 0x85868788)
    small, of_small = table(1, 128)
    crcs = [table(count, 128) for count in range(8)]
    assert any(values["header_crc"] >> 31 for _, values in crcs)
    fixed = ("signature", "revision", "header_size", "header_crc", "reserved", "unused")
    wrong = (
        *((table(1, 128, **{name: value})[0], name) for name, value in (("signature", b"EFI part"), ("revision", 0x10001), ("header_size", 93))),
        (put(gpt, 20, b"\1"), "reserved"),
        (put(gpt, 16, b"\0\0"), "header_crc"),
        (put(gpt, 92, b"\1"), "unused"),
    )  # fmt: skip
    return [
        Case("mbr", "PARTITION", data, values, (), ((plain, of_plain),), refused),
        Case("mbr", "PARTITION", plain, of_plain, ("status",)),
        Case("mbr", "MASTER_BOOT_RECORD", record, of_record, ("signature",), (), ((put(record, 511, b"\xab"), "signature"),)),
        Case("mbr", "MASTER_BOOT_RECORD", zero, {**of_record, "copy_protected": 0}, ("copy_protected",)),
        Case("gpt", "HEADER", gpt, of_gpt, fixed, tuple(crcs), wrong),
        Case("gpt", "HEADER", small, of_small, (*fixed, "entry_size")),
    ]  # fmt: skip


# ---------------------------------------------------------------- tar and gzip


def tar() -> list[Case]:
    fields: dict[str, tuple[str | bytes, int]] = {
        "name": ("\u00e4n", 100), "mode": ("0000755", 8), "owner": ("0000001", 8), "group": ("0000002", 8),
        "size": ("00000000003", 12), "modified": ("00000000004", 12), "sum": (b"0012345\0", 8), "kind": ("5", 1),
        "link": ("\u00e4l", 100), "magic": (b"ustar", 6), "version": (b"00", 2), "owner_name": ("\u00e4o", 32),
        "group_name": ("\u00e4g", 32), "major": ("0000006", 8), "minor": ("0000007", 8), "prefix": ("\u00e4p", 155),
    }  # fmt: skip

    def header(**changed: str) -> tuple[bytes, dict[str, Any]]:
        values = {name: changed.get(name, value) for name, (value, _) in fields.items()}
        parts = [(v.encode() if isinstance(v, str) else v, fields[name][1]) for name, v in values.items()]  # fmt: skip
        return b"".join(d.ljust(n, b"\0") for d, n in parts).ljust(512, b"\0"), {**values, "unused": None}  # fmt: skip

    data, values = header()
    texts = [name for name, (value, _) in fields.items() if isinstance(value, str)]
    places = dict(zip(fields, (sum(n for _, n in list(fields.values())[:i]) for i in range(16)), strict=True))  # fmt: skip
    found = [
        Case("tar", "HEADER", data, values, ("magic", "version", "unused"), (), ((put(data, 261, b"R"), "magic"), (put(data, 264, b"1"), "version"), (put(data, 500, b"\1"), "unused")), tuple((put(data, places[name], b"\xff"), name) for name in texts))
    ]  # fmt: skip
    for name, text in (("mode", "0000644"), ("link", ""), ("prefix", "")):
        data, values = header(**{name: text})
        found.append(Case("tar", "HEADER", data, values, (name,)))
    return found


def gzip() -> list[Case]:
    """As RFC 1952 has it."""
    found = []
    bits = ("is_text", "has_crc", "has_extra", "has_name", "has_comment")
    for flags in (0, 1, 2, 4, 8, 16, 31):
        told = {name: bool(flags >> i & 1) for i, name in enumerate(bits)} | {"unused": 0}
        extra, name, comment, crc = (
            b"\xf1\xf2" * (0x4001 if flags == 31 else 1),
            b"n\xe4",
            b"c\xe4",
            0x8586,
        )
        data = b"\x1f\x8b\x08" + bytes([flags]) + struct.pack("<IBB", 0x81828384, 0x91, 0x92)
        data += struct.pack("<H", len(extra)) + extra if flags & 4 else b""
        data += name + b"\0" if flags & 8 else b""
        data += comment + b"\0" if flags & 16 else b""
        data += struct.pack("<H", crc) if flags & 2 else b""
        values = {
            "magic": b"\x1f\x8b", "method": 8, "flags": told, "modified": 0x81828384, "effort": 0x91, "system": 0x92,
            "extra": extra if flags & 4 else None, "name": name if flags & 8 else None,
            "comment": comment if flags & 16 else None, "crc": crc if flags & 2 else None, "content": b"\xff\xfe",
        }  # fmt: skip
        absent = tuple(name for name, value in values.items() if value is None)
        refused = ((put(data, 1, b"\x8c"), "magic"), (put(data, 2, b"\7"), "method"), (put(data, 3, bytes([flags | 0x20])), "flags.unused"))  # fmt: skip
        found.append(Case("gzip", "MEMBER", data + b"\xff\xfe", values, ("magic", "method", "flags.unused", *absent), (), refused, is_open=True))  # fmt: skip
    plain = b"\x1f\x8b\x08\0" + struct.pack("<IBB", 5, 0, 255) + b"\xff"
    values = {**found[0].values, "modified": 5, "effort": 0, "system": 255, "content": b"\xff"}
    found.append(Case("gzip", "MEMBER", plain, values, ("effort", "system"), is_open=True))
    return found


# ---------------------------------------------------------------- PNG


def png() -> list[Case]:
    def chunk(type_: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(type_ + data)
        return struct.pack(">I", len(data)) + type_ + data + struct.pack(">I", crc)

    def image(width: int, height: int, depth: int, color: int, interlaced: int, method: int = 0, filter_: int = 0) -> bytes:  # fmt: skip
        return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, method, filter_, interlaced))  # fmt: skip

    def of_image(data: bytes, *values: Any) -> dict[str, Any]:
        names = ("width", "height", "bit_depth", "color_type", "compression", "filter", "interlaced")  # fmt: skip
        return {"length": 13, "type": b"IHDR", **dict(zip(names, values, strict=True)), "crc": int.from_bytes(data[-4:], "big")}  # fmt: skip

    most = 0x7FFFFFFF
    data = image(most, 1, 16, 2, 1)
    values = of_image(data, most, 1, 16, "truecolor", 0, 0, True)
    colors = {0: "grayscale", 2: "truecolor", 3: "indexed", 4: "grayscale_alpha", 6: "truecolor_alpha"}  # fmt: skip
    others = tuple((d := image(1, most, 0, c, 0), of_image(d, 1, most, 0, label, 0, 0, False)) for c, label in colors.items())  # fmt: skip
    refused = (
        *((image(w, 1, 8, 0, 0), "width") for w in (0, most + 1, 0xFFFFFFFF)),
        *((image(1, h, 8, 0, 0), "height") for h in (0, most + 1, 0xFFFFFFFF)),
        (image(1, 1, 17, 0, 0), "bit_depth"),
        (image(1, 1, 0x90, 0, 0), "bit_depth"),
        (image(1, 1, 8, 1, 0), "color_type"),
        (image(1, 1, 8, 0, 2), "interlaced"),
        (image(1, 1, 8, 0, 0, method=1), "compression"),
        (image(1, 1, 8, 0, 0, filter_=1), "filter"),
        (put(data, 7, b"S"), "type"),
        (put(data, 3, b"\x0c"), "interlaced"),
        (put(data, 21, b"\0\0\0\0"), "crc"),
    )
    types = {b"IDAT": "IDAT", b"IEND": "IEND", b"tEXt": "tEXt", b"\xf9zzz": 0xF97A7A7A}
    chunks = [(d := chunk(t, b"\xff\xfe"), {"length": 2, "type": label, "data": b"\xff\xfe", "crc": int.from_bytes(d[-4:], "big")}) for t, label in types.items()]  # fmt: skip
    damaged = ((put(chunks[0][0], 9, b"\0"), "crc"),)
    first, end = chunks[0], (chunk(b"IEND", b""), {"length": 0, "type": "IEND", "data": b"", "crc": 0xAE426082})  # fmt: skip
    file = b"\x89PNG\r\n\x1a\n" + data + first[0] + end[0]
    of_file = {"signature": b"\x89PNG\r\n\x1a\n", "header": values, "chunks": [first[1], end[1]]}
    plain = image(1, 1, 8, 0, 0)
    of_plain = of_image(plain, 1, 1, 8, "grayscale", 0, 0, False)
    fixed = ("length", "type", "compression", "filter", "crc")
    return [
        Case("png", "IMAGE_HEADER", data, values, fixed, others, refused),
        Case("png", "IMAGE_HEADER", plain, of_plain, (*fixed, "interlaced")),
        Case("png", "CHUNK", *first, ("length", "crc"), tuple(chunks), damaged),
        Case("png", "PNG_FILE", file, of_file, ("signature", "chunks.crc", "chunks.length"), (), ((put(file, 1, b"p"), "signature"),)),
    ]  # fmt: skip


# ---------------------------------------------------------------- SQLite


def sqlite() -> list[Case]:
    """As https://sqlite.org/fileformat2.html has it."""
    numbers = [0x81828384 + i for i in range(15)]
    magic = b"SQLite format 3\0"

    def header(writes: int, reads: int, encoding: int, schema: int) -> bytes:
        head = magic + struct.pack(">HBBBBBB", 0x8182, writes, reads, 0x83, 64, 32, 32)
        head += struct.pack(">IIIIIIiIIIII", *numbers[:5], schema, -0x7D7E7F80, numbers[5], encoding, *numbers[6:9])  # fmt: skip
        return head + bytes(20) + struct.pack(">II", *numbers[9:11])

    values = {
        "magic": magic, "page_size": 0x8182, "write_version": "rollback", "read_version": "wal", "reserved_bytes": 0x83,
        "max_fraction": 64, "min_fraction": 32, "leaf_fraction": 32, "changes": numbers[0], "page_count": numbers[1],
        "first_free_page": numbers[2], "free_pages": numbers[3], "schema_cookie": numbers[4], "schema_format": 4,
        "cache_size": -0x7D7E7F80, "largest_root": numbers[5], "encoding": "utf16be", "user_version": numbers[6],
        "is_incremental": numbers[7], "application": numbers[8], "unused": bytes(20), "valid_for": numbers[9], "version": numbers[10],
    }  # fmt: skip
    data = header(1, 2, 3, 4)
    others = ((header(2, 1, 1, 1), {"write_version": "wal", "read_version": "rollback", "encoding": "utf8", "schema_format": 1}), (header(1, 2, 2, 4), {"encoding": "utf16le"}))  # fmt: skip
    fixed = ("magic", "max_fraction", "min_fraction", "leaf_fraction", "unused")
    refused = (
        (put(data, 15, b"\1"), "magic"),
        (header(3, 1, 1, 1), "write_version"),
        (header(1, 3, 1, 1), "read_version"),
        (header(1, 1, 4, 1), "encoding"),
        *((header(1, 1, 1, n), "schema_format") for n in (0, 5, 0xFFFFFFFF)),
        *((put(data, at, b"\x21"), name) for at, name in ((21, "max_fraction"), (22, "min_fraction"), (23, "leaf_fraction"))),
        (put(data, 91, b"\1"), "unused"),
    )  # fmt: skip
    pages = []
    for type_, label in {2: "interior_index", 5: "interior_table", 10: "leaf_index", 13: "leaf_table"}.items():  # fmt: skip
        is_interior = type_ in (2, 5)
        page = struct.pack(">BHHHB", type_, 0x8182, 2, 0x9192, 0x93)
        page += struct.pack(">I", 0xA1A2A3A4) if is_interior else b""
        page += struct.pack(">HH", 0xB1B2, 0xB3B4) + b"\xff\xfe"
        pages.append((page, {"type": label, "first_free": 0x8182, "cell_count": 2, "content_start": 0x9192, "fragments": 0x93, "right_page": 0xA1A2A3A4 if is_interior else None, "cells": [0xB1B2, 0xB3B4], "content": b"\xff\xfe"}))  # fmt: skip
    many = struct.pack(">BHHHB", 13, 1, 0x8000, 2, 3) + b"\xff\xfe" * 0x8000
    large = {"type": "leaf_table", "first_free": 1, "cell_count": 0x8000, "content_start": 2, "fragments": 3, "right_page": None, "cells": [0xFFFE] * 0x8000, "content": b""}  # fmt: skip
    unknown = tuple((put(pages[0][0], 0, bytes([n])), "type") for n in (0, 1, 3, 4, 6, 14))
    return [
        Case("sqlite", "FILE_HEADER", data, values, fixed, others, refused),
        *(Case("sqlite", "PAGE", *page, ("cell_count", *(("right_page",) if page[1]["right_page"] is None else ())), ((many, large),), unknown, is_open=True) for page in pages),
        Case("sqlite", "FIRST_PAGE", data + pages[0][0], {"header": values, "page": pages[0][1]}, is_open=True),
    ]  # fmt: skip


CASES = [*elf(), *git(), *disks(), *tar(), *gzip(), *png(), *sqlite()]
