"""Parsers for ranges of offsets and times on the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kafka_log.segment.ranges import Range, counts_from_end, is_negative
from kafka_log.segment.times import RangeError, parse_time_range, present

T = TypeVar("T")

MAX_INT64 = (1 << 63) - 1

_DASHED = re.compile(r"-(?![fhin]\Z)[^-]", re.S)
"""Argument that begins with one dash and is not ``-f``, ``-h``, ``-i`` or ``-n``: a value, because all other options begin with two."""
_OPTION = re.compile(r"--[a-z-]+\Z")


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Range of times as typed, with the present that relative times refer to."""

    text: str
    now: int

    @classmethod
    def parse(cls, text: str) -> TimeRange:
        """Return the range of times in ``text``, with the present for relative ones. Raise
        ValueError if the text is no range of times or can be read in two ways, or its begin is
        after its end.
        """
        parsed = cls(text, present())
        parsed.resolve(parsed.now)
        return parsed

    def resolve(self, now: int) -> Range:
        """Return the range in milliseconds with relative times counted from ``now``. Raise ValueError if it begins after its end."""
        return parse_time_range(self.text, now)

    @property
    def is_relative(self) -> bool:
        """Return whether the range depends on the present: a millisecond later its bounds differ,
        or its begin is after its end.
        """
        try:
            return self.resolve(self.now) != self.resolve(self.now + 1)
        except ValueError:  # they become empty
            return True


def parse_offset_range(text: str) -> Range:
    """Parse ``A:B``, ``A:`` or ``:B`` (A included, B excluded); a missing bound is None, a negative
    bound counts from the end of the log. Raise ValueError for other text and numbers of more than
    64 bits; RangeError, a ValueError, if A is after B and both count from the same end.
    """
    return _parse_bounds(
        text, "a whole number, such as 100, or -100 to count from the end of the log"
    )


def _parse_bounds(text: str, expected: str) -> Range:
    """Parse ``A:B``, ``A:`` or ``:B``; a missing bound is None, a bound may be negative. Raise
    ValueError for other text, for a bound that is no number, with the advice to write ``expected``,
    and for numbers of more than 64 bits; RangeError, a ValueError, if A is after B and both have
    the same sign.
    """
    low, colon, high = text.partition(":")
    if not colon:
        raise ValueError(
            f"{text!r} is not a range of offsets: write A:B, A: or :B, such as 100:200"
        )
    begin, end = (_parse_offset(part, expected) if part else None for part in (low, high))
    if (
        begin is not None
        and end is not None
        and begin > end
        and is_negative(begin) == is_negative(end)
    ):
        raise RangeError(f"the offset {low} is after {high}: write the lower one first")
    return begin, end


def parse_plain_offset_range(text: str) -> Range:
    """Parse ``A:B``, ``A:`` or ``:B`` (A included, B excluded), both from 0 on; a missing bound is
    None. Raise ValueError for other text, negative numbers and numbers of more than 64 bits;
    RangeError, a ValueError, if A is after B.
    """
    found = _parse_bounds(text, "a whole number from 0 on")
    if counts_from_end(found):
        raise ValueError(
            f"{text!r} counts from the end of the log, which this command does not support: write offsets from 0 on"
        )
    return found


def _parse_offset(text: str, expected: str) -> int:
    """Parse an offset, which may be negative. Raise ValueError if it is no number, with the advice
    to write ``expected``, or if it does not fit 64 bits.
    """
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"{text!r} is not an offset: write {expected}")
    if len(digits) > 19 or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError(f"the offset {text} does not fit 64 bits")
    return int(text)


def parse_number(text: str, low: int, high: int, what: str) -> int:
    """Parse a decimal number from ``low`` to ``high`` (included). Raise ValueError that names ``what``, such as "an offset", and the bounds."""
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) < 20
    if not is_number or not low <= int(text) <= high:
        raise ValueError(f"{text!r} is not {what}: write a whole number from {low} to {high}")
    return int(text)


def number_type(what: str, low: int = 0, high: int = MAX_INT64) -> Callable[[str], int]:
    """Return an argparse type for a decimal number from ``low`` to ``high`` (both included). For
    other text the type raises ArgumentTypeError, whose message calls the value ``what``, such as
    "an offset".
    """
    return argument_type(lambda text: parse_number(text, low, high, what))


def parse_byte_position(text: str) -> int:
    """Parse a number of bytes: decimal with at most 18 digits, or after ``0x`` hexadecimal with at
    most 15. Raise ValueError for other text.
    """
    if re.fullmatch(r"[0-9]{1,18}|0[xX][0-9a-fA-F]{1,15}", text) is None:
        raise ValueError(f"{text!r} is not a byte position: write a number such as 500 or 0x1f4")
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)


def argument_type(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return ``parse`` as an argparse type: its ValueError becomes an ArgumentTypeError with the
    same text, which argparse prints.
    """

    def parse_argument(text: str) -> T:
        """Parse a value. Raise ArgumentTypeError with the text of a ValueError."""
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse_argument


def join_dashed_values(argv: Sequence[str]) -> list[str]:
    """Return the arguments with a value such as ``-2h:`` joined to the long option before it
    (``--time=-2h:``). Without that argparse takes the value for an option. The options ``-f``,
    ``-h``, ``-i`` and ``-n``, and all arguments after ``--``, stay as they are.
    """
    out: list[str] = []
    for text in argv:
        before = out[-1] if out else ""
        if _DASHED.match(text) and _OPTION.match(before) and "--" not in out:
            out[-1] = f"{before}={text}"
        else:
            out.append(text)
    return out
