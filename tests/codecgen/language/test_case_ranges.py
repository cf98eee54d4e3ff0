"""Ranges of numbers as the cases of a choice, in decimal and in hexadecimal digits, and what errors say of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.runtime.enums import Enumeration, list_numbers
from codecgen.runtime.errors import BuildError, ValueRefused
from tests.codecgen.generated import package_of

SCHEMA = """
choice: value
doc: A value of MessagePack, by its first byte.
by: form
cases: {0-0x7f: number, 0x90-0x9f: number, 0xc0: number, 0xe0-0xff: number}
---
layout: number
fields: {form: u8}
"""


def test_a_range_in_hexadecimal_digits_stands_for_its_numbers(tmp_path: Path) -> None:
    value = package_of(SCHEMA, tmp_path, "ranged").VALUE
    known = [*range(0x80), *range(0x90, 0xA0), 0xC0, *range(0xE0, 0x100)]
    for form in range(256):
        if form in known:
            assert value.parse(bytes([form])).form == form
            continue
        with pytest.raises(ValueRefused) as raised:
            value.parse(bytes([form]))
        assert raised.value.reason == f"{form} is not one of 0-127, 144-159, 192, 224-255"
        with pytest.raises(BuildError) as unbuilt:
            value.build({"form": form})
        assert unbuilt.value.reason == "form must be one of 0-127, 144-159, 192, 224-255"


class _Colour(Enumeration):
    RED = 1
    BLUE = 2
    GREEN = 3


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([7], "7"),
        ([1, 0], "0, 1"),
        ([0, 1, 2], "0-2"),
        ([5, 3, 4, 9, 10, -1], "-1, 3-5, 9, 10"),
        ([-3, -2, -1, 0], "-3 to 0"),
        ([_Colour.RED, _Colour.BLUE, _Colour.GREEN], "red (1), blue (2), green (3)"),
        ([_Colour.RED, 2, 3, 4], "red (1), 2-4"),
    ],
)
def test_numbers_of_a_message(numbers: list[int], text: str) -> None:
    assert list_numbers(numbers) == text
