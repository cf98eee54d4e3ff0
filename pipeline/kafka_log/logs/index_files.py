"""Where in a segment reading may begin, by the index files that brokers keep beside it.

They are runs of entries of a fixed size, whose layouts are in the schemas. Offsets are relative to the one in the file's
name. A file that was made longer in advance has zeros at its end.

Nothing in them is trusted that the batches do not bear out; where they do not, reading begins at the first byte. The
batch headers are trusted, as Kafka does when it looks for an offset or a time.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.structured_dtype import structured
from kafka_codecs import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY
from kafka_log.logs.header_rows import should_use_kernels
from kafka_log.logs.partitions import Segment
from kafka_log.segment.batch_headers import Columns
from kafka_log.segment.batch_headers import entries as batches
from kafka_log.segment.kernels import Engine
from kafka_log.segment.regular_files import open_regular
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.scanner import first_batch, header_scanner

OFFSET_ENTRY_DTYPE = structured(OFFSET_INDEX_ENTRY)
TIME_ENTRY_DTYPE = structured(TIME_INDEX_ENTRY)

MAX_BYTES = 16 << 20
"""Larger index files are not used. Kafka makes them 10 MiB unless told otherwise."""

CHUNK = 1 << 16
"""Bytes that are read at a time."""

_COLUMNS = ("position", "base_offset", "last_offset", "max_timestamp")


def read_index_entries(path: Path, kind: Any) -> Any:
    """The entries of an index file; none when it cannot be read, is too large, or is not in order. Brokers make those of the segment that
    they write to ten MiB long: what follows a run of zeros is not looked at."""
    none = np.empty(0, kind)
    data = bytearray()
    try:
        with open_regular(path) as file:
            while len(data) <= MAX_BYTES and (chunk := file.read(CHUNK)).strip(b"\0"):
                data += chunk
    except OSError:
        return none
    if len(data) > MAX_BYTES:
        return none
    found = np.frombuffer(data, kind, len(data) // kind.itemsize)
    key, other = (found[name].astype(np.int64) for name in kind.names)
    used = np.flatnonzero((key != 0) | (other != 0))
    count = int(used[-1]) + 1 if len(used) else 0
    key, other = key[:count], other[:count]
    if count and min(key[0], other[0]) < 0:
        return none
    # Positions rise with offsets; the offset of a later, larger timestamp is that of a later batch.
    rising = bool(np.all(key[1:] > key[:-1]) and np.all(other[1:] > other[:-1]))
    return found[:count] if rising else none


def find_position_by_index(
    segment: Segment, offset: int | None, timestamp: int | None, engine: Engine = "auto"
) -> int:
    """A position before which no record has this offset or a later one, or none this timestamp or a later one.

    It is the first byte of a batch, or where batches end.
    """
    if not segment.has_offset_in_name:
        return 0
    found = 0
    if offset is not None:
        found = _by_offset(segment, offset, engine)
    if timestamp is not None:
        found = max(found, _by_time(segment, timestamp, engine))
    return found


def find_start_position(
    segment: Segment, offset: int | None, timestamp: int | None, engine: Engine = "auto"
) -> int:
    """Return the position of the first batch that may hold a record with this offset or a later one and with this timestamp or a later one.

    All batch headers before it are read: an index does not say that a header which it was made of contradicts itself. Of a file in a store
    the indexes are believed, where each header would be a request. Without such a batch it is the position where the headers end.
    """
    if getattr(segment.path, "is_remote", False):
        return find_position_by_index(segment, offset, timestamp, engine)
    return first_batch(
        segment.path,
        RowSelection(offsets=(offset, None), timestamps=(timestamp, None)),
        size=segment.size,
        engine=engine if should_use_kernels(segment.size, engine) else "construct",
    ).position


class IndexedBatches:
    """Where batches of a segment begin, by its index."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        index = read_index_entries(segment.path.with_suffix(".index"), OFFSET_ENTRY_DTYPE)
        self._positions = index["position"].astype(np.int64)
        self._offsets = index["relative_offset"].astype(np.int64) + segment.base_offset
        self._columns = Columns(("base_offset", "last_offset"), os.fspath(segment.path))

    def at(self, position: int) -> int | None:
        """The first place at or after a position where the index says that a batch begins, if batches lead there from the entry before
        it. Raises CodecError where these cannot be read."""
        i = int(np.searchsorted(self._positions, position))
        if not 0 < i < len(self._positions):
            return None
        before, wanted = int(self._positions[i - 1]), int(self._positions[i])
        for entry in batches(self._segment.path, start=before):
            if entry.position >= wanted:
                first, last = self._columns.of(entry)
                low = last if first is None else first
                fits = self._segment.base_offset <= low <= last <= int(self._offsets[i])
                return wanted if fits and entry.position == wanted else None
        return None


def _by_offset(segment: Segment, offset: int, engine: Engine) -> int:
    """The batch that the last entry up to an offset names, if the one before it leads there."""
    index = read_index_entries(segment.path.with_suffix(".index"), OFFSET_ENTRY_DTYPE)
    relative = offset - segment.base_offset
    i = int(np.searchsorted(index["relative_offset"].astype(np.int64), relative, "right")) - 1
    if i < 0:
        return 0
    position = int(index["position"][i])
    before = int(index["position"][i - 1]) if i else 0
    if not before <= position < segment.size:
        return 0
    batches = deque(_headers(segment, before, position + 1, engine), maxlen=1)
    if not batches or batches[-1].position != position:
        return 0
    head = batches[-1]
    last = segment.base_offset + int(index["relative_offset"][i])
    fits = segment.base_offset <= head.first <= head.last <= last
    return position if fits else 0


def _by_time(segment: Segment, timestamp: int, engine: Engine) -> int:
    """The first batch with a timestamp, or a later one, after the batch that the last entry before it names."""
    index = read_index_entries(segment.path.with_suffix(".timeindex"), TIME_ENTRY_DTYPE)
    i = int(np.searchsorted(index["timestamp"].astype(np.int64), timestamp, "right")) - 1
    if i < 0:
        return 0
    offset = segment.base_offset + int(index["relative_offset"][i])
    batch_headers = _headers(segment, _by_offset(segment, offset, engine), None, engine)
    named = next((head for head in batch_headers if head.last >= offset), None)
    if named is None or named.first > offset or named.timestamp != int(index["timestamp"][i]):
        return 0
    # The entry does not say what follows it: it may be the last one, and be written before the last batches were.
    position = named.position
    head: _Header | None = named
    while head is not None:
        if head.timestamp >= timestamp:
            return head.position
        position = head.position
        head = next(batch_headers, None)
    return position


class _Header(NamedTuple):
    position: int
    first: int
    last: int
    timestamp: int


def _headers(segment: Segment, start: int, stop: int | None, engine: Engine) -> Iterator[_Header]:
    """The batch headers, as far as there are any. ``first`` is the last offset where there is no first one."""
    scanner = header_scanner(
        segment.path,
        _COLUMNS,
        on_damage="keep",
        engine=engine,
        start=start,
        stop=stop,
        size=segment.size,
    )
    for batch in scanner:
        columns = [batch.column(name) for name in _COLUMNS]
        columns[3] = columns[3].cast(pa.int64())
        for position, first, last, timestamp in zip(*(c.to_pylist() for c in columns), strict=True):
            yield _Header(position, last if first is None else first, last, timestamp)
