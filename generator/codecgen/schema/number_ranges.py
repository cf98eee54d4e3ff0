"""Keys that are numbers, and ranges of numbers, which decide between the cases of a choice: ``0-3``."""

from __future__ import annotations

import re

from codecgen.schema.key_types import MapOf
from codecgen.schema.other_words import NAME

MOST = 1000
"""The most cases of a choice, and so the most numbers of one range: each is a case by itself."""

INTEGER = re.compile(r"-?([0-9]{1,20}|0x[0-9a-fA-F]{1,16})\Z", re.ASCII)
_NUMBERS = re.compile(r"([0-9]{1,9})-([0-9]{1,9})\Z", re.ASCII)


def is_key(text: str, kind: MapOf) -> bool:
    """Whether a text can be a key of a mapping."""
    number = kind.numbers and INTEGER.match(text)
    return bool(number or NAME.match(text) or (kind.ranges and _NUMBERS.match(text)))


def numbers_of(text: str) -> range | None:
    """The numbers of a range. None for what is none, goes down, or has too many."""
    found = _NUMBERS.match(text)
    if found is None:
        return None
    numbers = range(int(found[1]), int(found[2]) + 1)
    return numbers if 0 < len(numbers) <= MOST else None
