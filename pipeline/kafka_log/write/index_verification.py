"""Indexes that were written, read again and looked up in the segment that they belong to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from codecgen.runtime.arrow.structured_dtype import structured
from codecgen.runtime.errors import Where
from kafka_codecs import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY, TRANSACTION_INDEX
from kafka_log.logs.partitions import Segment
from kafka_log.segment.model import Lost
from kafka_log.segment.row_masks import numbers, numbers_of
from kafka_log.write.verification import WrittenError, read_headers

_OFFSETS = structured(OFFSET_INDEX_ENTRY)
_TIMES = structured(TIME_INDEX_ENTRY)
_ABORTED: Any = np.dtype(
    [(name, np.int64) for name in ("producer_id", "first_offset", "last_offset")]
)

_COLUMNS = ("base_offset", "position", "last_offset", "max_timestamp", "producer_id", "is_control")


def verify_indexes(segment: Segment, passed_over: Iterable[Lost], directory: Path) -> None:
    """Raise CodecError if an entry of an index of a segment does not lead to the batch that it describes.

    Args:
        segment: The segment. Its batch headers are read once, by other code than that which wrote the indexes.
        passed_over: The byte ranges of the segment that are in no index.
        directory: The directory with the indexes, named after the base offset of the segment.
    """
    batches = _Batches(segment, passed_over)
    path = directory / f"{segment.base_offset:020d}.index"
    _refuse(path, segment, _fixed_entries(path, _OFFSETS), batches.are_at)
    path = path.with_suffix(".timeindex")
    _refuse(path, segment, _fixed_entries(path, _TIMES), batches.are_latest)
    path = path.with_suffix(".txnindex")
    if path.exists():
        read = TRANSACTION_INDEX.parse(path.read_bytes(), file=os.fspath(path)).entries
        aborted = [tuple(getattr(entry, name) for name in _ABORTED.names) for entry in read]
        _refuse(path, segment, np.array(aborted, _ABORTED), batches.are_of_aborted)


def _fixed_entries(path: Path, kind: Any) -> Any:
    data = path.read_bytes()
    if len(data) % kind.itemsize:
        raise WrittenError(
            "the last entry is cut off", Where(position=len(data), file=os.fspath(path))
        )
    return np.frombuffer(data, kind)


def _refuse(path: Path, segment: Segment, entries: Any, leads: Callable[[Any], Any]) -> None:
    """Raise WrittenError for the first entry that does not lead to its batch."""
    if not len(entries):
        return
    wrong = np.flatnonzero(~leads(entries))
    if len(wrong):
        row = int(wrong[0])
        position = path.stat().st_size // len(entries) * row
        values = ", ".join(map("{} {}".format, entries.dtype.names, entries[row].item()))
        reason = f"entry {row} ({values}) leads to no such batch of {os.fspath(segment.path)}"
        raise WrittenError(reason, Where(position=position, file=os.fspath(path)))


class _Batches:
    """The headers of the batches of a segment as arrays, in file order. The methods return a mask of the entries that lead to a batch."""

    def __init__(self, segment: Segment, passed_over: Iterable[Lost]) -> None:
        found: list[list[Any]] = [[np.empty(0, np.int64)] * len(_COLUMNS)]
        start = 0
        for run in (*passed_over, Lost(segment.size, segment.size, "")):
            if start < run.start:
                for rows in read_headers(segment.path, _COLUMNS, start, run.start):
                    first = pc.coalesce(rows.column("base_offset"), rows.column("last_offset"))
                    others = (numbers(rows, name) for name in _COLUMNS[1:])
                    found.append([numbers_of(first), *others])
            start = run.end
        self._base = segment.base_offset
        self._first, self._position, self._last, self._time, self._producer, self._is_control = (
            np.concatenate(arrays) for arrays in zip(*found, strict=True)
        )
        self._is_control = self._is_control.astype(bool)

    def are_at(self, entries: Any) -> Any:
        """Return whether the batch at the position has the offset as its last one."""
        return self._have_offsets(entries, entries["position"], self._position)

    def are_latest(self, entries: Any) -> Any:
        """Return whether the batch with the offset is the first one with the largest timestamp up to it."""
        return self._have_offsets(entries, entries["timestamp"], np.maximum.accumulate(self._time))

    def _have_offsets(self, entries: Any, values: Any, column: Any) -> Any:
        """Return whether the first batch with a value in a column, which rises, has the offset of the entry as its last one."""
        if not len(column):
            return np.zeros(len(entries), bool)
        row = np.minimum(np.searchsorted(column, values.astype(np.int64)), len(column) - 1)
        offsets = entries["relative_offset"] + np.int64(self._base)
        return (column[row] == values) & (self._last[row] == offsets)

    def are_of_aborted(self, entries: Any) -> Any:
        """Return whether the producer has a marker at the last offset, and data at the first one, if that is in the segment."""
        start = self._first.min(initial=self._base)
        known = self._of_producers
        found = [
            (producer, last, True) in known and (first < start or (producer, first, False) in known)
            for producer, first, last in entries.tolist()
        ]
        return np.array(found, bool)

    @cached_property
    def _of_producers(self) -> set[tuple[int, int, bool]]:
        columns = (self._producer, self._first, self._is_control)
        return set(zip(*(column.tolist() for column in columns), strict=True))
