"""Detection of batches that were cut out of a segment, by offset index entries that point too far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kafka_codecs import LOG_ENTRY
from kafka_log.segment.header_arrays import Headers
from kafka_log.segment.versions import BATCH_VERSIONS

_LEAST = min(LOG_ENTRY.cases[version].leading_size for version in BATCH_VERSIONS)
"""Size of a batch without records, the minimum that can be cut out."""

_PROBES = 16
"""Entries that select candidates for a shift, and candidates that are tried with all entries. A segment may have
millions of batches."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Offsets ``first`` to ``last`` (included) that were cut out at ``position``, where the rest of the file begins."""

    first: int
    last: int
    position: int


def find_cuts(
    headers: Headers, base: int, end: int, next_base: int | None, offsets: Any, positions: Any
) -> list[Cut]:
    """Return where whole batches were cut out of a segment, in offset order. Return ``[]`` unless
    these cuts explain all wrong entries of its offset index (``offsets`` and ``positions``), also
    if no entry is wrong. A cut is a gap between offsets (or before ``next_base``) after which all
    entries point too far by the same number of bytes.

    After a cut, all entries point too far by the number of bytes that are missing. Entries for missing offsets point
    after the cut. Compaction leaves gaps too, but rebuilds the index. A single entry may be wrong by itself: it counts
    only if the segment has no other gap, or if it points beyond the end of the file for a missing offset.

    Args:
        headers: Batches of the segment in offset order.
        base: Base offset of the segment.
        end: Size of the segment in bytes.
        next_base: Base offset of the next segment; None if there is none.
        offsets: Absolute offsets of the index entries.
        positions: Positions of the same entries.
    """
    starts = np.append(base, headers.last + 1)
    firsts = np.append(headers.first, starts[-1] if next_base is None else next_base)
    after = np.flatnonzero(firsts > starts)  # the batches that follow gaps, or the next segment
    missing, behind = starts[after], firsts[after]
    places = np.append(headers.position, end)[after]
    gaps = np.searchsorted(missing, offsets, "right") - 1
    if (gaps[1:] < gaps[:-1]).any():
        return []
    entries = _Entries(headers, offsets, positions)
    is_wrong = ~entries.fit(slice(None), 0)
    with_entries, begins = np.unique(gaps, return_index=True)
    stops = np.append(begins[1:], len(gaps))
    # Up to the first wrong entry nothing was cut out.
    judged = np.flatnonzero(is_wrong.any() & (stops > is_wrong.argmax()))
    shift, is_known = 0, True
    cuts: list[Cut] = []
    for i in judged.tolist():
        gap, start, stop = int(with_entries[i]), int(begins[i]), int(stops[i])
        if gap < 0:
            return []
        middle = start + int(np.count_nonzero(offsets[start:stop] < behind[gap]))
        of_missing, later = slice(start, middle), slice(middle, stop)
        if (offsets[later] < behind[gap]).any():
            return []
        place = int(places[gap])
        fits = entries.fit(later, shift)
        if is_known and fits.all() and start == middle:
            continue
        if (positions[of_missing] < place + shift).any() or (is_known and fits.any()):
            return []  # behind a cut no entry is right
        if middle < stop:
            found = entries.find_shift(later, shift, place)
            if found is None or (positions[of_missing] >= place + found).any():
                return []
            is_cut_here, shift, is_known = is_known, found, True
        else:
            is_cut_here, is_known = True, False
        if is_cut_here:
            if stop - start < 2 and len(after) > 1 and place < end:
                return []
            if start == middle and gap and (not i or with_entries[i - 1] < gap - 1):
                return []  # it may be the gap before that was cut
            cuts.append(Cut(int(missing[gap]), int(behind[gap]) - 1, place))
    return cuts


class _Entries:
    """Entries of an offset index that are compared with the batches of its segment."""

    def __init__(self, headers: Headers, offsets: Any, positions: Any) -> None:
        self._headers = headers
        self._offsets = offsets
        self._positions = positions
        self._are_last = np.isin(offsets, headers.last)

    def fit(self, rows: slice | Any, shift: Any) -> Any:
        """Return a mask of the entries ``rows`` that are right if their batches moved forward in
        the file by ``shift`` bytes. For these a batch begins at their position less ``shift``, and
        their offset is its first one or the last one of it or of a later batch. For one index and
        several shifts the mask has one element per shift. All are False if there is no batch.
        """
        first, position = self._headers.first, self._headers.position
        offsets, positions = self._offsets[rows], self._positions[rows] - shift
        if not len(position):
            return np.zeros(np.shape(positions), np.bool_)
        at = np.minimum(np.searchsorted(position, positions), len(position) - 1)
        is_offset = (first[at] == offsets) | self._are_last[rows]
        return (position[at] == positions) & is_offset & (first[at] <= offsets)

    def find_shift(self, rows: slice, min_shift: int, start: int) -> int | None:
        """Return the smallest number of bytes by which all entries of ``rows`` point too far, None
        if no number fits all of them. It is at least ``min_shift`` plus the size of an empty batch.
        Only batches from byte ``start`` on are tried for the first entry, and at most _PROBES
        numbers with all.
        """
        shifts = self._positions[rows.start] - self._headers.position
        shifts = shifts[(self._headers.position >= start) & (shifts >= min_shift + _LEAST)]
        probes = np.linspace(rows.start, rows.stop - 1, _PROBES, dtype=np.int64)
        for i in np.unique(probes).tolist():
            shifts = shifts[self.fit(i, shifts)]
        for shift in np.sort(shifts)[:_PROBES].tolist():
            if self.fit(rows, shift).all():
                return int(shift)
        return None
