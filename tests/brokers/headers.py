"""The few header bytes that these tests read themselves, apart from the code under test."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

TIMESTAMP_TYPE = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40


@dataclass(frozen=True)
class Header:
    """One batch of v2, or one message or wrapper of v0 and v1 (which have no count)."""

    base_offset: int
    magic: int
    attributes: int
    last_offset: int
    count: int | None

    @property
    def codec(self) -> int:
        return self.attributes & 0x07


def walk(path: Path) -> list[Header]:
    """The headers of a segment file that is whole; anything left over is an error."""
    content = path.read_bytes()
    headers = []
    at = 0
    while at < len(content):
        offset, size = struct.unpack_from(">qi", content, at)
        magic = content[at + 16]
        if magic == 2:
            (attributes,) = struct.unpack_from(">h", content, at + 21)
            (delta,) = struct.unpack_from(">i", content, at + 23)
            (count,) = struct.unpack_from(">i", content, at + 57)
            headers.append(Header(offset, magic, attributes, offset + delta, count))
        else:
            # The offset of a wrapper is that of its last message.
            headers.append(Header(offset, magic, content[at + 17], offset, None))
        at += 12 + size
    if at != len(content):
        raise AssertionError(f"{path}: a batch ends at byte {at} of {len(content)}")
    return headers


def walk_partition(directory: Path) -> list[Header]:
    return [header for path in sorted(directory.glob("*.log")) for header in walk(path)]
