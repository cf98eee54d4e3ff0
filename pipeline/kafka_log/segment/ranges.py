"""Ranges of offsets and of timestamps."""

from __future__ import annotations

from operator import index
from typing import Any

Range = tuple[int | None, int | None]
"""First (included) and end (excluded) of a range; None for no bound."""

EVERYTHING: Range = (None, None)

MAX_OFFSET = (1 << 63) - 1
"""Largest offset. The digits of a file name can hold larger numbers."""


def checked_range(name: str, bounds: Any) -> Range:
    """Return a pair (first, end) of integers or None as a Range; (None, None) for None. Raise
    ValueError, whose message names ``name``, if ``bounds`` is no such pair (a bool is no integer),
    a number needs more than 64 bits, or the first is above the end.
    """
    low, high = _checked_pair(name, bounds)
    if low is not None and high is not None and low > high:
        raise ValueError(
            f"{name} is {bounds!r}: the first is above the end: give the lower one first"
        )
    return low, high


def _checked_pair(name: str, bounds: Any) -> Range:
    """Return a pair of bounds as integers or None; (None, None) for None. The order is not checked.
    Raise ValueError, whose message names ``name``, if ``bounds`` is no pair of integers (a bool is
    no integer) or None, or a number needs more than 64 bits.
    """
    if bounds is None:
        return EVERYTHING
    try:
        low, high = (None if bound is None else _integer(bound) for bound in bounds)
    except (TypeError, ValueError):
        reason = "it must be (first, end), each an integer or None"
        raise ValueError(f"{name} is {bounds!r}: {reason}") from None
    if any(bound is not None and not -(1 << 63) <= bound < 1 << 63 for bound in (low, high)):
        raise ValueError(f"{name} is {bounds!r}: both must fit 64 bits")
    return low, high


def _integer(bound: Any) -> int:
    """Return a bound as int. Raises TypeError for a bool or a value that is no integer."""
    if isinstance(bound, bool):
        raise TypeError("True and False are not numbers")
    return index(bound)


def checked_offsets(name: str, bounds: Any) -> Range:
    """Return a pair (first, end) of offsets or None as a Range; (None, None) for None. Negative
    ones, which count from the end of a log, are returned unchanged. Raise ValueError, whose message
    names ``name``, if ``bounds`` is no pair of 64-bit integers or None, or if the first is above
    the end and both or neither are negative.

    As in Python slices, (-5, None) are the last 5 offsets.
    """
    low, high = _checked_pair(name, bounds)
    if (
        low is not None
        and high is not None
        and low > high
        and is_negative(low) == is_negative(high)
    ):
        raise ValueError(
            f"{name} is {bounds!r}: the first is above the end: give the lower one first"
        )
    return low, high


def checked_plain_offsets(name: str, bounds: Any) -> Range:
    """Return a pair (first, end) of offsets or None as a Range; (None, None) for None. Raise
    ValueError, whose message names ``name``, if ``bounds`` is no pair of 64-bit integers or None,
    one is negative, or the first is above the end.
    """
    found = checked_offsets(name, bounds)
    if counts_from_end(found):
        raise ValueError(
            f"{name} is {bounds!r}: it counts from the end of a partition, which is not possible here; give offsets from 0 on"
        )
    return found


def is_negative(bound: int | None) -> bool:
    """Return whether a bound of an offset range counts from the end of a log."""
    return bound is not None and bound < 0


def counts_from_end(offsets: Range) -> bool:
    """Return whether a bound of an offset range counts from the end of a log."""
    return is_negative(offsets[0]) or is_negative(offsets[1])


def offsets_from(offsets: Range, start: int) -> Range:
    """Return a range of absolute offsets without the offsets below ``start``."""
    low, high = offsets
    low = start if low is None else max(low, start)
    return (low if high is None else min(low, high)), high


def offsets_before(offsets: Range, end: int) -> Range:
    """Return an offset range with each negative bound replaced by ``end`` plus that bound, at least
    0. ``end`` is the offset after the last record. The first bound is lowered to the second if it
    is above it.
    """
    low, high = (
        max(end + bound, 0) if bound is not None and bound < 0 else bound for bound in offsets
    )
    return low if low is None or high is None else min(low, high), high
