"""What the rows of entries have to meet all together, for many entries at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codecgen.runtime.arrow.numpy_cases import Case
from codecgen.runtime.arrow.numpy_memory import Fields, Vector

_REDUCED: dict[str, Callable[[Vector, Vector, Vector], Vector]] = {
    "first": lambda values, first, last: values[first],
    "last": lambda values, first, last: values[last],
    "max": lambda values, first, last: np.maximum.reduceat(values, first),
    "min": lambda values, first, last: np.minimum.reduceat(values, first),
}


class RowRules:
    """Gathers the rows of entries to check rules about all rows of an entry. ``entry`` are the
    fields of the entries; entry i has ``counts[i]`` rows, from row ``first[i]`` on.
    """

    def __init__(self, entry: Fields, counts: Vector, first: Vector) -> None:
        self._entry = entry
        self._some = counts > 0
        self._first = first[:-1][self._some]
        self._last = first[1:][self._some] - 1
        self._items: list[Fields] = []

    def add(self, item: Fields) -> None:
        """Add the fields of the next rows, behind those added before."""
        self._items.append(item)

    def find_breaches(self, case: Case) -> Vector:
        """Return a mask of the entries whose rows break a row rule of ``case``, or whose fields
        ``ascending`` do not ascend strictly from row to row. Entries without rows break none. All
        rows must have been added.
        """
        bad = np.zeros(len(self._some), np.bool_)
        if not len(self._first):
            return bad
        broken = np.zeros(len(self._first), np.bool_)
        own = {name: value[self._some] for name, value in vars(self._entry).items()}
        ends = {name: _Reduced(self, reduced) for name, reduced in _REDUCED.items()}
        for holds in case.row_rules:
            broken |= ~holds(Fields(entry=Fields(**own), **ends))
        for name in case.ascending:
            values = self.values(name)
            descends = np.zeros(len(values), np.bool_)
            descends[1:] = values[1:] <= values[:-1]
            descends[self._first] = False
            broken |= np.logical_or.reduceat(descends, self._first)
        bad[self._some] = broken
        return bad

    def values(self, name: str) -> Vector:
        """Return the field ``name`` of all rows added so far, as one vector."""
        return np.concatenate([getattr(item, name) for item in self._items])

    def reduce(self, name: str, reduced: Callable[[Vector, Vector, Vector], Vector]) -> Vector:
        """Return one number of the field ``name`` for each entry that has rows: what ``reduced``
        computes from the field of all rows, and the first and last row of each entry.
        """
        return reduced(self.values(name), self._first, self._last)


class _Reduced:
    """Aggregates of fields, one number per entry, as attributes."""

    def __init__(self, rows: RowRules, reduced: Callable[[Vector, Vector, Vector], Vector]) -> None:
        self._rows = rows
        self._reduced = reduced

    def __getattr__(self, name: str) -> Any:
        return self._rows.reduce(name, self._reduced)
