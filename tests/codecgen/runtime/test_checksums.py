"""Checksums by name: published check values, and any kind of buffer."""

from __future__ import annotations

import binascii
import lzma
import sys
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.checksums import CHECKSUMS, Crc, Mask, checksum, function_of
from codecgen.runtime.errors import UnsupportedCodec

# The check values of the CRC catalogues: the checksum of the nine digits.
CHECK = {name: kind.check for name, kind in CHECKSUMS.items()}
CRCS = {name: kind for name, kind in CHECKSUMS.items() if isinstance(kind, Crc)}
OURS = [name for name in CHECKSUMS if name not in ("crc32", "crc32c")]


@pytest.mark.parametrize("name", CHECKSUMS)
def test_check_value(name: str) -> None:
    assert checksum(name)(b"123456789") == CHECK[name]


@pytest.mark.parametrize("name", CHECKSUMS)
def test_takes_a_slice_of_a_larger_buffer(name: str) -> None:
    assert checksum(name)(memoryview(b"xx123456789yy")[2:-2]) == CHECK[name]


def test_crc32c_of_32_bytes() -> None:
    """The test patterns of RFC 3720, appendix B.4."""
    crc32c = checksum("crc32c")
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(bytes(reversed(range(32)))) == 0x113FDB5C


def _bit_by_bit(polynomial: int) -> Callable[[bytes], int]:
    def compute(data: bytes) -> int:
        value = 0xFFFFFFFF
        for byte in data:
            value ^= byte
            for _ in range(8):
                value = value >> 1 ^ (polynomial if value & 1 else 0)
        return value ^ 0xFFFFFFFF

    return compute


@given(st.binary(max_size=200))
def test_same_as_bit_by_bit(data: bytes) -> None:
    assert checksum("crc32c")(data) == _bit_by_bit(0x82F63B78)(data)
    assert checksum("crc32")(data) == _bit_by_bit(0xEDB88320)(data) == zlib.crc32(data)


def _long_division(crc: Crc, data: bytes) -> int:
    """The remainder of the bits of the message, one at a time, most significant first."""

    def turned(value: int, width: int) -> int:
        return sum((value >> i & 1) << width - 1 - i for i in range(width))

    value = crc.init
    for byte in data:
        byte = turned(byte, 8) if crc.refin else byte
        for i in reversed(range(8)):
            top = value >> crc.width - 1 ^ byte >> i & 1
            value = (value << 1 & (1 << crc.width) - 1) ^ (crc.poly if top else 0)
    return (turned(value, crc.width) if crc.refout else value) ^ crc.xorout


@pytest.mark.parametrize("name", CRCS)
@given(data=st.binary(max_size=40))
def test_same_as_long_division(name: str, data: bytes) -> None:
    assert checksum(name)(data) == _long_division(CRCS[name], data)
    assert function_of(CRCS[name])(memoryview(data)) == checksum(name)(data)


def test_a_check_that_is_reflected_on_one_side_only() -> None:
    crc = Crc("made up", 16, 0x1021, 0x89EC, True, False, 3, 0)
    assert function_of(crc)(b"123456789") == _long_division(crc, b"123456789")


@pytest.mark.parametrize(
    ("name", "compute"),
    [
        ("crc16_xmodem", lambda data: binascii.crc_hqx(data, 0)),
        ("crc16_ibm_3740", lambda data: binascii.crc_hqx(data, 0xFFFF)),
        ("crc64_xz", lambda data: int.from_bytes(lzma.compress(data, check=4)[-28:-20], "little")),
    ],
)
@given(data=st.binary(max_size=40))
def test_same_as_the_standard_library(
    name: str, compute: Callable[[bytes], int], data: bytes
) -> None:
    if name == "crc64_xz" and not data:
        return  # an empty file has no block, and no check
    assert checksum(name)(data) == compute(data)


def test_unknown_name() -> None:
    with pytest.raises(
        UnsupportedCodec, match=r"unknown checksum 'crc16' \(known: crc16_arc, .*, crc32c, "
    ):
        checksum("crc16")


def test_check_values_from_elsewhere() -> None:
    """Those of the NVM Express specification, of the CRC catalogues, and of the tool xxhsum."""
    values = {"crc64_nvme": 0xAE8B14860A799888, "crc64_xz": 0x995DC9BBDF1939FA}
    values |= {"xxh64": 0x8CB841DB40E6AE83, "xxh3_64": 0x72DCB18B67A17DFF}
    assert {name: CHECK[name] for name in values} == values
    # NVM Command Set specification, figures of the guard tags of 4 KiB blocks.
    crc64_nvme = checksum("crc64_nvme")
    assert crc64_nvme(bytes(4096)) == 0x6482D367EB22B64E
    assert crc64_nvme(b"\xff" * 4096) == 0xC0DDBA7302ECA3AC
    assert crc64_nvme(bytes(i & 0xFF for i in range(4096))) == 0x3E729F5F6750449C
    assert crc64_nvme(bytes(255 - (i & 0xFF) for i in range(4096))) == 0x9A2DF64B8E9E517E


def _masked_as_leveldb(crc: int) -> int:
    """Mask of util/crc32c.h: ``((crc >> 15) | (crc << 17)) + kMaskDelta`` in 32 bits."""
    return ((crc >> 15 | crc << 17) & 0xFFFFFFFF) + 0xA282EAD8 & 0xFFFFFFFF


@given(st.binary(max_size=40))
def test_masks(data: bytes) -> None:
    crc = checksum("crc32c")(data)
    mask = Mask(rotate_right=15, add=0xA282EAD8)
    assert checksum("crc32c", mask)(data) == _masked_as_leveldb(crc)
    assert checksum("crc32c", Mask(keep=0x7F))(data) == crc & 0x7F
    assert checksum("crc32c", Mask(add=1))(data) == (crc + 1) % (1 << 32)
    whole = checksum("crc64_nvme")(data)
    turned = whole >> 1 | (whole & 1) << 63
    assert checksum("crc64_nvme", Mask(rotate_right=1))(data) == turned


@pytest.mark.parametrize("name", ["xxh64", "xxh3_64"])
def test_xxhash_is_needed_when_it_is_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)
    compute = checksum(name)
    with pytest.raises(UnsupportedCodec, match=f"checksum '{name}' needs .*: pip install xxhash"):
        compute(b"123456789")
    monkeypatch.undo()
    assert compute(b"123456789") == CHECK[name]  # installed in the meantime


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crc32c", None)
    with pytest.raises(UnsupportedCodec, match="pip install crc32c"):
        checksum("crc32c")
    assert checksum("crc32")(b"123456789") == CHECK["crc32"]
