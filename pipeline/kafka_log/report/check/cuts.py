"""Whole batches that were cut out of a segment: its offset index still leads to where the batches behind them lay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kafka_log.segment.header_arrays import Headers


@dataclass(frozen=True, slots=True)
class Cut:
    """Offsets ``first`` to ``last`` that were cut out of a file before the batch at ``position``."""

    first: int
    last: int
    position: int


def find_cuts(headers: Headers, base: int, offsets: Any, positions: Any) -> list[Cut]:
    """Return the cuts that explain all wrong entries of an offset index, none if some entry is wrong for another reason.

    Behind a cut all entries lead as many bytes too far as are missing. Entries for missing offsets lead behind the place. Compaction leaves
    gaps too, but makes the index anew. One entry alone may be wrong by itself: it counts only if no other gap is in the segment.

    Args:
        headers: The batches of a segment, in the order of their offsets.
        base: The first offset of the segment.
        offsets: Of the entries of its index, absolute.
        positions: Of the same entries.
    """
    ends = np.append(base - 1, headers.last[:-1])
    after = np.flatnonzero(headers.first > ends + 1)  # the batches that follow gaps
    missing, behind, places = ends[after] + 1, headers.first[after], headers.position[after]
    gaps = np.searchsorted(missing, offsets, "right") - 1
    shift, is_known = 0, True
    cuts: list[Cut] = []
    for gap in np.unique(gaps).tolist():
        rows = gaps == gap
        if gap < 0:
            if not _fits(headers, offsets[rows], positions[rows], 0).all():
                return []
            continue
        of_missing = rows & (offsets < behind[gap])
        later = rows & ~of_missing
        place = int(places[gap])
        fits = _fits(headers, offsets[later], positions[later], shift)
        if is_known and fits.all() and not of_missing.any():
            continue
        if (positions[of_missing] < place + shift).any() or (is_known and fits.any()):
            return []  # behind a cut no entry is right
        if later.any():
            found = _shift(headers, offsets[later], positions[later], shift, place)
            if found is None or (positions[of_missing] >= place + found).any():
                return []
            is_cut_here, shift, is_known = is_known, found, True
        else:
            is_cut_here, is_known = True, False
        if is_cut_here:
            if np.count_nonzero(rows) < 2 and len(after) > 1:
                return []
            cuts.append(Cut(int(missing[gap]), int(behind[gap]) - 1, place))
    return cuts


def _fits(headers: Headers, offsets: Any, positions: Any, shift: Any) -> Any:
    """Return which entries name batches that lie ``shift`` bytes before where the entries say."""
    at = np.minimum(np.searchsorted(headers.position, positions - shift), len(headers) - 1)
    is_start = headers.position[at] == positions - shift
    is_offset = (headers.first[at] == offsets) | np.isin(offsets, headers.last)
    return is_start & is_offset & (headers.first[at] <= offsets)


def _shift(headers: Headers, offsets: Any, positions: Any, least: int, place: int) -> int | None:
    """Return how many bytes too far entries lead, more than ``least``; None if they do not agree."""
    shifts = positions[0] - headers.position
    shifts = shifts[(headers.position >= place) & (shifts > least)]
    for offset, position in zip(offsets.tolist(), positions.tolist(), strict=True):
        every = np.full(len(shifts), offset), np.full(len(shifts), position)
        shifts = shifts[_fits(headers, *every, shifts)]
    return int(shifts.min()) if len(shifts) else None
