"""Order of the offsets in a file of batches: read_committed decides by offsets, which no checksum covers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from codecgen.runtime.errors import ValueRefused, Where
from kafka_log.segment.model import Batch
from kafka_log.segment.offsets_of_files import offsets_of
from kafka_log.segment.ranges import MAX_OFFSET

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("position", "base_offset", "last_offset")
"""Columns of the view batches that are compared."""


class _Offsets(NamedTuple):
    """Position of a batch, and its first and last offset."""

    position: int
    first: int
    last: int


class OffsetOrder:
    """Compares the offsets of the batches of a file with those of the batches before them, and with the names of segments.

    Batches are added in file order; ones that were added before are ignored. A file of which all offsets lie outside its name is only
    misnamed. But if a gap separates the first or the last batch from the others, and it alone lies outside, then its offsets are wrong.

    Args:
        path: The file.
        next_base: Base offset of the next segment. None: unknown.
        is_start: Whether the first batch to be added is the first one of the file.

    Attributes:
        error: The error of the first batch whose offsets cannot be right; None if there is none so far.
    """

    def __init__(
        self, path: str | os.PathLike[str], next_base: int | None = None, *, is_start: bool = True
    ) -> None:
        self.error: ValueRefused | None = None
        self._file = os.fspath(path)
        allowed = offsets_of(path)
        self._base = -1 if allowed is None else allowed.start
        self._end = MAX_OFFSET + 1 if next_base is None else next_base
        self._met = -1
        self._is_at_start = is_start
        self._before: _Offsets | None = None
        self._last: _Offsets | None = None

    def add_headers(self, headers: pa.RecordBatch) -> None:
        """Add batches, in file order, as rows with the :data:`COLUMNS` of the view batches."""
        import numpy as np  # not for logs that are read without it

        from kafka_log.segment.row_masks import numbers, numbers_of

        positions, last = numbers(headers, "position"), numbers(headers, "last_offset")
        bases = headers.column("base_offset")
        first = np.where(numbers_of(bases.is_null()), last, numbers_of(bases.fill_null(0)))
        new = positions > self._met
        batches = positions[new], first[new], np.maximum(first, last)[new]
        descents = np.flatnonzero(batches[1][1:] <= batches[2][:-1]) + 1
        end = int(descents[0]) + 1 if len(descents) else len(batches[0])
        # The batches between these ascend, and so change nothing.
        for i in sorted(i for i in {0, 1, end - 2, end - 1} if 0 <= i < end):
            self.add_batch(*(int(values[i]) for values in batches))

    def add_batch(self, position: int, first: int | None, last: int) -> None:
        """Add a batch by its position and its first and last offset (None: its header does not
        state the first one).
        """
        if position <= self._met:
            return
        self._met = position
        before = self._last
        first = last if first is None else first
        self._before, self._last = before, _Offsets(position, first, max(first, last))
        if before is None:
            return
        if first <= before.last:
            self._note(self._last, f"the batch before it ends with offset {before.last}")
        elif self._is_at_start and before.first < self._base <= first and first > before.last + 1:
            self._note(before, f"the segment begins at offset {self._base}")
        self._is_at_start = False

    def add(self, batch: Batch) -> None:
        """Add a batch that the reference codecs read."""
        self.add_batch(batch.position, batch.base_offset, batch.last_offset)

    def finish(self) -> None:
        """Note that no batch follows in the file: only then the last one can be compared with the
        name of the next segment, and a single one with the names.
        """
        last, before = self._last, self._before
        if last is None:
            return
        if before is None:
            if self._is_at_start and last.first < self._base:
                self._note(last, f"the segment begins at offset {self._base}")
            elif self._is_at_start and last.last >= self._end:
                self._note(last, f"the next segment begins at offset {self._end}")
        elif last.last >= self._end > before.last and last.first > before.last + 1:
            self._note(last, f"the next segment begins at offset {self._end}")

    def raise_error(self) -> None:
        """Raise the error as ValueRefused, if there is one."""
        if self.error is not None:
            raise self.error

    def _note(self, batch: _Offsets, reason: str) -> None:
        """Keep the error of a batch, unless there is one."""
        if self.error is not None:
            return
        _, first, last = batch
        offsets = f"offset {first}" if first == last else f"offsets {first} to {last}"
        self.error = ValueRefused(
            f"the batch states {offsets}, but {reason}: offsets decide which records are committed, so that cannot be known here."
            " kafka-log check names the batch that is wrong; read_uncommitted returns its records",
            Where(file=self._file, position=batch.position),
        )
