"""Checksums by name: published check values, and any kind of buffer."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.checksums import CHECKSUMS, checksum
from codecgen.runtime.errors import UnsupportedCodec

# The check values of the CRC catalogues: the checksum of the nine digits.
CHECK = {"crc32": 0xCBF43926, "crc32c": 0xE3069283}


@pytest.mark.parametrize("name", CHECKSUMS)
def test_check_value(name: str) -> None:
    assert checksum(name)(b"123456789") == CHECK[name]
    assert checksum(name)(b"") == 0


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


def test_unknown_name() -> None:
    with pytest.raises(
        UnsupportedCodec, match=r"unknown checksum 'crc16' \(known: crc32, crc32c\)"
    ):
        checksum("crc16")


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crc32c", None)
    with pytest.raises(UnsupportedCodec, match="pip install crc32c"):
        checksum("crc32c")
    assert checksum("crc32")(b"123456789") == CHECK["crc32"]
