"""Keys of a log that come again: where they do, no cleaner has been."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST = 1 << 18
"""Keys that are remembered, the first ones of the log. Some 200 bytes each."""

_NEVER = int(np.iinfo(np.int64).max)


class Repeats:
    """Pairs of records with one key. A cleaner that has looked at all up to the second one removes the first one, in the same pass as any
    record that it removes after it."""

    def __init__(self) -> None:
        self._first: dict[bytes, int] = {}
        self._pairs: list[tuple[int, int]] = []
        """Offsets of first and second records: of two pairs the later one begins earlier and ends later."""
        self._least = _NEVER

    def add(self, offsets: Any, codes: Any, hashes: Any) -> None:
        """Records in the order of their offsets; ``codes`` say which of the ``hashes`` is that of each one's key."""
        names = [one.tobytes() for one in hashes]
        for code, offset in zip(codes.tolist(), offsets.tolist(), strict=True):
            first = self._first.get(names[code])
            if first is not None and first < self._least:
                self._pairs.append((first, offset))
                self._least = first
            elif first is None and offset < self._least and len(self._first) < MOST:
                self._first[names[code]] = offset

    def earliest_second(self, before: Any) -> Any:
        """For each offset the lowest one of a second record whose first one lies before it."""
        first, second = np.array([(-1, _NEVER), *self._pairs], np.int64).T[:, 1:]
        at = np.searchsorted(-first, -before, side="right")
        return np.append(second, _NEVER)[at]
