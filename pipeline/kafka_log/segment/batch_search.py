"""Where in a file the next batch lies that may hold selected records, by the batch headers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kafka_log.segment.columnar import BatchScanner
from kafka_log.segment.kernels import Engine
from kafka_log.segment.row_masks import HEADERS, RowMasks, numbers
from kafka_log.segment.row_selection import RowSelection


class Found(NamedTuple):
    """A position, and whether a batch begins there that may hold selected records. If not, the headers end there: at the end of the
    file, or at damage."""

    position: int
    is_batch: bool


class RangeEnd:
    """Finds where reading may end because no header from there on leaves open that its batch holds offsets below ``high``."""

    def __init__(self, path: Path, high: int, **options: Any) -> None:
        self._path = path
        self._below = RowSelection(offsets=(None, high))
        self._options = options
        self._next = 0

    def is_at(self, position: int) -> bool:
        """Return whether reading may end at a position, where a batch or nothing begins. Files in a store are not asked for their headers."""
        if getattr(self._path, "is_remote", False):
            return True
        if position <= self._next:
            return False
        found = first_batch(self._path, self._below, start=position, **self._options)
        if found.is_batch:
            self._next = found.position
        return not found.is_batch


def first_batch(
    path: Path,
    selection: RowSelection,
    *,
    start: int = 0,
    stop: int | None = None,
    size: int | None = None,
    engine: Engine = "auto",
) -> Found:
    """Find the first batch from byte ``start`` on, where one begins, that may hold selected records. No checksum is verified."""
    masks = RowMasks(selection)
    scanner = BatchScanner(
        path,
        HEADERS,
        on_damage="keep",
        start=start,
        stop=stop,
        size=size,
        engine=engine,
    )
    end = start
    for headers in scanner:
        positions = numbers(headers, "position")
        found = np.flatnonzero(masks.may_have(headers))
        if len(found):
            return Found(int(positions[found[0]]), True)
        end = int(positions[-1] + numbers(headers, "size")[-1])
    return Found(end, False)
