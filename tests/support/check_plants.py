"""Damage, planted in a copy of a broker's directory: each kind changes one thing, and says what is to be found."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import crc32c

from kafka_log import SegmentReader

PLAIN = "segments.small-0"
"""Four segments of seven batches with six records each, without transactions."""
TX = "segments.small-1"
FIRST, SECOND, THIRD, ACTIVE = (f"{base:020d}" for base in (0, 42, 84, 126))


@dataclass(frozen=True)
class Plant:
    """What is done to a directory, and what a check must say: code, file below the directory, byte, severity; and nothing else. ``also`` are
    codes of other findings, if one change makes several files wrong."""

    name: str
    plant: Callable[[Path], None]
    code: str
    file: str
    byte: int | None
    severity: str = "error"
    also: tuple[str, ...] = ()


def flip(path: Path, at: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(bytes(data))


def change(path: Path, start: int, stop: int, data: bytes) -> None:
    """Other bytes in the place of some."""
    before = path.read_bytes()
    path.write_bytes(before[:start] + data + before[stop:])


def put(file: str, start: int, stop: int, data: bytes) -> Callable[[Path], None]:
    """Other bytes in the place of some."""
    return lambda root: change(root / file, start, stop, data)


HEADER = {
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp": (27, ">q"),
    "max_timestamp": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "record_count": (57, ">i"),
}
"""Fields of the header of a record batch under its checksum: where they lie, and their form."""


def restamp(path: Path, position: int, **fields: int) -> None:
    """Other values in the header of a record batch, and the checksum that fits them."""
    data = bytearray(path.read_bytes())
    for name, value in fields.items():
        at, form = HEADER[name]
        struct.pack_into(form, data, position + at, value)
    (length,) = struct.unpack_from(">i", data, position + 8)
    checksum = crc32c.crc32c(bytes(data[position + 21 : position + 12 + length]))
    struct.pack_into(">I", data, position + 17, checksum)
    path.write_bytes(bytes(data))


def exchange(path: Path, at: int, size: int) -> None:
    """Two entries of a file change places."""
    data = path.read_bytes()
    change(path, at, at + 2 * size, data[at + size : at + 2 * size] + data[at : at + size])


def pieces(path: Path) -> list[bytes]:
    """The bytes of each batch."""
    data = path.read_bytes()
    return [data[b.position : b.position + b.size] for b in SegmentReader(path)]


def rearranged(path: Path, order: list[int]) -> None:
    found = pieces(path)
    path.write_bytes(b"".join(found[i] for i in order))


def without_last(path: Path) -> None:
    path.write_bytes(b"".join(pieces(path)[:-1]))


def renumbered(path: Path, order: list[int]) -> None:
    """Batches in another order, some of them more or less than once, with offsets that follow on each other."""
    found, offset, data = pieces(path), 0, b""
    for i in order:
        data += struct.pack(">q", offset) + found[i][8:]
        offset += struct.unpack_from(">i", found[i], 23)[0] + 1
    path.write_bytes(data)


def rename_segment(directory: Path, old: int, new: int) -> None:
    for path in sorted(directory.glob(f"{old:020d}.*[gx]")):  # its log and its indexes
        path.rename(directory / path.name.replace(f"{old:020d}", f"{new:020d}"))


def remove_segment(directory: Path, base: int) -> None:
    for path in directory.glob(f"{base:020d}.*"):
        path.unlink()


def copy_segment(directory: Path, old: int, new: int, *suffixes: str) -> None:
    for suffix in suffixes:
        shutil.copy(directory / f"{old:020d}{suffix}", directory / f"{new:020d}{suffix}")


def copied(old: Path, new: Path) -> None:
    if old.is_dir():
        shutil.copytree(old, new)
    else:
        shutil.copy(old, new)


def without_line(path: Path, i: int) -> None:
    """A checkpoint without one of its entries, with the right count."""
    version, count, *entries = path.read_text(encoding="utf-8").splitlines()
    del entries[i]
    lines = [version, str(int(count) - 1), *entries]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def transaction_entry(producer: int, first: int, last: int, stable: int) -> bytes:
    return struct.pack(">hqqqq", 0, producer, first, last, stable)
