"""Checksums by the names that layouts use."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from codecgen.runtime.errors import UnsupportedCodec

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Crc:
    """A cyclic redundancy check, with the parameters of the CRC catalogues. ``check`` is its value for the digits
    ``123456789``.
    """

    title: str
    width: int
    poly: int
    init: int
    refin: bool
    refout: bool
    xorout: int
    check: int


@dataclass(frozen=True, slots=True)
class XxHash:
    """A hash of the xxHash family with the seed 0. ``function`` is its name in the package xxhash, ``check`` its value
    for the digits ``123456789``.
    """

    title: str
    function: str
    width: int
    check: int


@dataclass(frozen=True, slots=True)
class Mask:
    """How a checksum is changed before it is stored: ``rotate_right`` by some bits, ``add`` a number modulo 2 to the power of its
    width, ``keep`` some bits (all, if it is None).
    """

    keep: int | None = None
    rotate_right: int = 0
    add: int = 0

    def apply(self, value: int, width: int) -> int:
        """Return what is stored for the checksum ``value`` of ``width`` bits."""
        value = value >> self.rotate_right | value << width - self.rotate_right
        value = value + self.add & (1 << width) - 1
        return value if self.keep is None else value & self.keep


_ALL_32, _ALL_64 = (1 << 32) - 1, (1 << 64) - 1

CHECKSUMS: Mapping[str, Crc | XxHash] = {
    "crc16_arc": Crc("CRC-16/ARC", 16, 0x8005, 0, True, True, 0, 0xBB3D),
    "crc16_ibm_3740": Crc("CRC-16/IBM-3740", 16, 0x1021, 0xFFFF, False, False, 0, 0x29B1),
    "crc16_ibm_sdlc": Crc("CRC-16/IBM-SDLC", 16, 0x1021, 0xFFFF, True, True, 0xFFFF, 0x906E),
    "crc16_kermit": Crc("CRC-16/KERMIT", 16, 0x1021, 0, True, True, 0, 0x2189),
    "crc16_modbus": Crc("CRC-16/MODBUS", 16, 0x8005, 0xFFFF, True, True, 0, 0x4B37),
    "crc16_xmodem": Crc("CRC-16/XMODEM", 16, 0x1021, 0, False, False, 0, 0x31C3),
    "crc24_openpgp": Crc("CRC-24/OPENPGP", 24, 0x864CFB, 0xB704CE, False, False, 0, 0x21CF02),
    "crc32": Crc("CRC-32", 32, 0x04C11DB7, _ALL_32, True, True, _ALL_32, 0xCBF43926),
    "crc32_bzip2": Crc("CRC-32/BZIP2", 32, 0x04C11DB7, _ALL_32, False, False, _ALL_32, 0xFC891918),
    "crc32_mpeg_2": Crc("CRC-32/MPEG-2", 32, 0x04C11DB7, _ALL_32, False, False, 0, 0x0376E6E7),
    "crc32c": Crc("CRC-32C", 32, 0x1EDC6F41, _ALL_32, True, True, _ALL_32, 0xE3069283),
    "crc64_ecma_182": Crc(
        "CRC-64/ECMA-182", 64, 0x42F0E1EBA9EA3693, 0, False, False, 0, 0x6C40DF5F0B497347
    ),
    "crc64_nvme": Crc(
        "CRC-64/NVME", 64, 0xAD93D23594C93659, _ALL_64, True, True, _ALL_64, 0xAE8B14860A799888
    ),
    "crc64_redis": Crc(
        "CRC-64/REDIS", 64, 0xAD93D23594C935A9, 0, True, True, 0, 0xE9C6D914C4B8D9CA
    ),
    "crc64_xz": Crc(
        "CRC-64/XZ", 64, 0x42F0E1EBA9EA3693, _ALL_64, True, True, _ALL_64, 0x995DC9BBDF1939FA
    ),
    "xxh3_64": XxHash("XXH3 with 64 bits", "xxh3_64_intdigest", 64, 0x72DCB18B67A17DFF),
    "xxh64": XxHash("XXH64", "xxh64_intdigest", 64, 0x8CB841DB40E6AE83),
}
"""The checksums that layouts can name."""


def checksum(name: str, mask: Mask | None = None) -> Callable[[Buffer], int]:
    """Return the function that computes the checksum ``name`` over bytes, as an unsigned number, and
    changes it as ``mask`` says. Raise UnsupportedCodec if the name is unknown, or if it is
    ``crc32c`` and the package crc32c is not installed. The package xxhash is loaded at the first
    call of the function: that call raises UnsupportedCodec if the package is not installed.
    """
    if name not in CHECKSUMS:
        raise UnsupportedCodec(f"unknown checksum {name!r} (known: {', '.join(CHECKSUMS)})")
    kind = CHECKSUMS[name]
    compute: Callable[[Buffer], int]
    if name == "crc32":
        compute = zlib.crc32
    elif name == "crc32c":
        compute = _load_crc32c()
    else:
        compute = function_of(kind) if isinstance(kind, Crc) else _load_later(name, kind)
    width = kind.width
    return compute if mask is None else lambda data: mask.apply(compute(data), width)


@cache
def function_of(crc: Crc) -> Callable[[Buffer], int]:
    """Return a function that computes a CRC over bytes, as an unsigned number, with a table of 256
    entries, one byte at a time, in plain Python. It is made once for each CRC.
    """
    mask, top = (1 << crc.width) - 1, crc.width - 8
    table = first_table(crc)
    first = _reflected(crc.init, crc.width) if crc.refin else crc.init

    def compute(data: Buffer) -> int:
        """Return the CRC of ``data``."""
        value = first
        if crc.refin:
            for byte in data:
                value = value >> 8 ^ table[(value ^ byte) & 0xFF]
        else:
            for byte in data:
                value = (value << 8 & mask) ^ table[value >> top ^ byte]
        if crc.refin != crc.refout:
            value = _reflected(value, crc.width)
        return value ^ crc.xorout

    return compute


def first_table(crc: Crc) -> tuple[int, ...]:
    """Return the CRC register after each byte from 0 to 255, from a register of 0."""
    return tuple(_entry(crc, byte) for byte in range(256))


def _entry(crc: Crc, byte: int) -> int:
    """Return the table entry for a byte: its remainder after eight steps of the CRC, in the bit
    order of the CRC (``refin``).
    """
    if crc.refin:
        poly, value = _reflected(crc.poly, crc.width), byte
        for _ in range(8):
            value = value >> 1 ^ (poly if value & 1 else 0)
        return value
    value = byte << crc.width - 8
    for _ in range(8):
        value = value << 1 ^ (crc.poly if value >> crc.width - 1 else 0)
        value &= (1 << crc.width) - 1
    return value


def _reflected(value: int, width: int) -> int:
    """Return a number of ``width`` bits with the order of its bits reversed."""
    return int(f"{value:0{width}b}"[::-1], 2)


def _load_later(name: str, kind: XxHash) -> Callable[[Buffer], int]:
    """Return a function that computes a hash with the package xxhash. Its call raises
    UnsupportedCodec if the package is not installed.
    """
    found: list[Callable[[Buffer], int]] = []

    def compute(data: Buffer) -> int:
        """Return the hash of ``data``. Raise UnsupportedCodec if the package is not installed."""
        if not found:
            try:
                found.append(getattr(import_module("xxhash"), kind.function))
            except ImportError as cause:
                raise UnsupportedCodec(
                    f"checksum {name!r} needs the package xxhash: pip install xxhash"
                ) from cause
        return found[0](data)

    return compute


def _load_crc32c() -> Callable[[Buffer], int]:
    # Imported on first use: a layout without this checksum runs without the package.
    """Import the package crc32c, and return its function. Raise UnsupportedCodec if it is not
    installed.
    """
    try:
        from crc32c import crc32c
    except ImportError as cause:
        raise UnsupportedCodec(
            "checksum 'crc32c' needs the package crc32c: pip install crc32c"
        ) from cause

    compute: Callable[[Buffer], int] = crc32c
    return compute
