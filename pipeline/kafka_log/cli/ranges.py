"""Ranges as people write them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kafka_log.segment.ranges import Range, counts_from_end, is_negative
from kafka_log.segment.times import TIMES, RangeError, milliseconds, present

T = TypeVar("T")

_DASHED = re.compile(r"-(?!h\Z)[^-]", re.S)
"""What begins with one dash and is not ``-h``: no option of this tool."""
_OPTION = re.compile(r"--[a-z-]+\Z")


def time_range(text: str, now: int | None = None) -> Range:
    """``A:B``, of which each may be left out. Times have colons too: it is cut where both sides are times. Raises ValueError."""
    found = []
    why: RangeError | None = None
    for at in (i for i, c in enumerate(text) if c == ":"):
        try:
            found.append(_pair(text[:at], text[at + 1 :], lambda part: milliseconds(part, now)))
        except RangeError as error:
            why = error
        except ValueError:
            continue
    if not found:
        raise why or ValueError(f"{text!r} is no range of times: write A:B, A: or :B, each {TIMES}")
    if len(found) > 1:
        raise ValueError(f"{text!r} can be read in two ways: write the seconds of both times")
    return found[0]


@dataclass(frozen=True, slots=True)
class Times:
    """Range of times as typed, with the present that relative times refer to."""

    text: str
    now: int

    @classmethod
    def of(cls, text: str) -> Times:
        """Raises ValueError for what is no range of times."""
        made = cls(text, present())
        made.range(made.now)
        return made

    def range(self, now: int) -> Range:
        """Return the range in milliseconds; relative times count from the present."""
        return time_range(self.text, now)

    @property
    def is_relative(self) -> bool:
        """Return whether the range depends on the present."""
        try:
            return self.range(self.now) != self.range(self.now + 1)
        except ValueError:  # they become empty
            return True


def offset_range(text: str) -> Range:
    """``A:B``, of which each may be left out; negative ones count from the end. Raises ValueError."""
    low, colon, high = text.partition(":")
    if not colon:
        raise ValueError(f"{text!r} is no range of offsets: write A:B, A: or :B")
    begin, end = (_offset(part) if part else None for part in (low, high))
    if (
        begin is not None
        and end is not None
        and begin > end
        and is_negative(begin) == is_negative(end)
    ):
        raise RangeError(f"{low} is after {high}")
    return begin, end


def plain_offset_range(text: str) -> Range:
    """Parse an offset range that cannot count from the end of a log. Raises ValueError."""
    found = offset_range(text)
    if counts_from_end(found):
        raise ValueError(
            f"{text!r} counts from the end of a partition, which this command cannot: write offsets from 0 on"
        )
    return found


def _offset(text: str) -> int:
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"{text!r} is no offset")
    if len(digits) > 19 or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError(f"the offset {text} is more than 64 bits can hold")
    return int(text)


def _pair(low: str, high: str, parse: Callable[[str], int]) -> Range:
    begin, end = (parse(part) if part else None for part in (low, high))
    if begin is not None and end is not None and begin > end:
        raise RangeError(f"{low} is after {high}")
    return begin, end


def argument_type(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return ``parse`` as an argparse type, whose error messages are those of its ValueErrors."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def join_dashed_values(argv: Sequence[str]) -> list[str]:
    """Return ``--time -2h:`` as ``--time=-2h:`` and ``--topic -name`` as ``--topic=-name``: argparse takes a value that begins with a dash, and is no number,
    for an option."""
    out: list[str] = []
    for text in argv:
        before = out[-1] if out else ""
        if _DASHED.match(text) and _OPTION.match(before) and "--" not in out:
            out[-1] = f"{before}={text}"
        else:
            out.append(text)
    return out
