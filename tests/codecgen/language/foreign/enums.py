"""The names and numbers of values, as the specifications of the formats have them."""

from __future__ import annotations

from collections.abc import Mapping

ENUMS: Mapping[tuple[str, str], Mapping[str, int]] = {
    ("elf", "ObjectType"): {"relocatable": 1, "executable": 2, "shared": 3, "core": 4},
    ("elf", "Machine"): {"none": 0, "x86": 3, "x86_64": 62, "aarch64": 183},
    ("git", "FileType"): {"file": 0o10, "link": 0o12, "submodule": 0o16},
    ("leveldb", "Part"): {
        "whole": 1, "start": 2, "middle": 3, "end": 4,
        "recyclable_whole": 5, "recyclable_start": 6,
        "recyclable_middle": 7, "recyclable_end": 8,
    },
    ("leveldb", "Operation"): {"delete": 0, "put": 1},
    ("midi", "Format"): {"single": 0, "parallel": 1, "sequential": 2},
    ("midi", "MetaType"): {"text": 1, "track_name": 3, "end_of_track": 0x2F, "set_tempo": 0x51},
    ("pcapng", "OptionCode"): {"end": 0, "comment": 1},
    ("png", "ColorType"): {
        "grayscale": 0, "truecolor": 2, "indexed": 3,
        "grayscale_alpha": 4, "truecolor_alpha": 6,
    },
    ("png", "ChunkType"): {
        name: int.from_bytes(spelled, "big")
        for name, spelled in (("pixels", b"IDAT"), ("end", b"IEND"), ("text", b"tEXt"))
    },
    ("protobuf/wire", "WireType"): {"varint": 0, "i64": 1, "len": 2, "i32": 5},
    ("sqlite", "Journal"): {"rollback": 1, "wal": 2},
    ("sqlite", "Encoding"): {"utf8": 1, "utf16le": 2, "utf16be": 3},
    ("sqlite", "PageType"): {"interior_index": 2, "interior_table": 5, "leaf_index": 10, "leaf_table": 13},
    ("tls", "ContentType"): {"alert": 21, "handshake": 22},
    ("tls", "HandshakeType"): {"client_hello": 1, "server_hello": 2},
}  # fmt: skip
