"""Ranges of offsets and of timestamps."""

from __future__ import annotations

from operator import index
from typing import Any

Range = tuple[int | None, int | None]
"""The first is in, the end is not; None is open."""

EVERYTHING: Range = (None, None)

MAX_OFFSET = (1 << 63) - 1
"""The names of files have room for larger ones."""


def checked_range(name: str, bounds: Any) -> Range:
    """A range of 64-bit numbers; None is everything. Raises ValueError, which says ``name``."""
    if bounds is None:
        return EVERYTHING
    try:
        low, high = (None if bound is None else index(bound) for bound in bounds)
    except (TypeError, ValueError):
        reason = "it must be (first, end), two integers or None"
        raise ValueError(f"{name} is {bounds!r}: {reason}") from None
    if any(bound is not None and not -(1 << 63) <= bound < 1 << 63 for bound in (low, high)):
        raise ValueError(f"{name} is {bounds!r}: these must be numbers of 64 bits")
    if low is not None and high is not None and low > high:
        raise ValueError(f"{name} is {bounds!r}: the first is above the end")
    return low, high
