"""Entries of index files of a fixed size, for those that compare them with batches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kafka_log.report.check.bytes_of_files import only_zeros
from kafka_log.segment.regular_files import open_regular


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The entries of an index file up to its tail of zeros. Sizes are in bytes.

    ``zeros`` are the bytes of whole entries in the tail, ``odd`` those after the last whole entry. ``is_long`` is whether there are
    more entries than are read.
    """

    entries: Any
    zeros: int
    odd: int
    is_long: bool

    def with_first(self) -> IndexFile:
        """The same where the first entry of the zeros is one that counts."""
        first = np.zeros(1, self.entries.dtype)
        return IndexFile(first, self.zeros - first.nbytes, self.odd, self.is_long)


def read_index(path: Path, kind: Any, most: int) -> IndexFile | None:
    """Read at most ``most`` entries; None when there is no such file. Raises OSError."""
    try:
        with open_regular(path, -1) as file:
            size = file.seek(0, 2)
            file.seek(0)
            data = file.read(min(size, most * kind.itemsize))
            whole = size // kind.itemsize * kind.itemsize
            is_long = len(data) < whole and not only_zeros(file, len(data), whole)
    except FileNotFoundError:
        return None
    found = np.frombuffer(data, kind, len(data) // kind.itemsize)
    used = np.flatnonzero(np.any([found[name] != 0 for name in kind.names], axis=0))
    count = int(used[-1]) + 1 if len(used) else 0
    zeros = 0 if is_long else whole - count * kind.itemsize
    return IndexFile(found[:count], zeros, size - whole, is_long)
