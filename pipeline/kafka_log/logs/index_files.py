"""Start positions in segments, found with the index files that brokers keep beside them.

An index file is an array of entries of a fixed size, whose layouts are in the schemas. Offsets are relative to the base offset. A
preallocated file ends with zeros.

An index entry is used only if batch headers confirm it; otherwise reading starts at the first byte. Batch headers are trusted, as
Kafka trusts them when it looks up an offset or a timestamp.
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
from kafka_log.segment.batch_headers import entries as batches
from kafka_log.segment.framing import HeaderColumns
from kafka_log.segment.kernels import Engine
from kafka_log.segment.regular_files import open_regular
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.scanner import first_batch, header_scanner
from kafka_log.segment.urls import needs_several_requests

OFFSET_ENTRY_DTYPE = structured(OFFSET_INDEX_ENTRY)
TIME_ENTRY_DTYPE = structured(TIME_INDEX_ENTRY)

MAX_BYTES = 16 << 20
"""Maximum size of an index file that is used. Kafka preallocates 10 MiB by default."""

CHUNK = 1 << 16
"""Number of bytes that are read at once."""

_COLUMNS = ("position", "base_offset", "last_offset", "max_timestamp")


def read_index_entries(path: Path, kind: Any) -> Any:
    """Return the entries of an offset or time index (``kind``: OFFSET_ENTRY_DTYPE or
    TIME_ENTRY_DTYPE) as a NumPy structured array, without zeros and an incomplete entry at the end.
    Return an empty array if the file is missing or cannot be read, has more than 16 MiB before
    these zeros or negative values, or either of its columns does not ascend strictly. The segment
    is not read.

    Args:
        path: The index file. Reading stops at the first chunk of zeros, because brokers preallocate the file.
        kind: OFFSET_ENTRY_DTYPE or TIME_ENTRY_DTYPE.
    """
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
    # Positions and offsets ascend together, timestamps and offsets too.
    rising = bool(np.all(key[1:] > key[:-1]) and np.all(other[1:] > other[:-1]))
    return found[:count] if rising else none


def read_last_index_entry(segment: Segment) -> tuple[int, int] | None:
    """Return offset and byte position in the last complete entry of a segment's offset index.
    Return None if the index is missing or empty, cannot be read, or ends with zeros because it is
    preallocated. Nothing is verified.
    """
    entry_bytes = OFFSET_ENTRY_DTYPE.itemsize
    try:
        with open_regular(segment.path.with_suffix(".index")) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - size % entry_bytes - entry_bytes, 0))
            found = np.frombuffer(file.read(entry_bytes), OFFSET_ENTRY_DTYPE)
    except (OSError, ValueError):
        return None
    if not len(found) or not found["position"][0]:
        return None
    return segment.base_offset + int(found["relative_offset"][0]), int(found["position"][0])


def find_position_by_index(
    segment: Segment, offset: int | None, timestamp: int | None, engine: Engine = "auto"
) -> int:
    """Return the byte position of a batch before which no record has ``offset`` or a later one, or
    none has ``timestamp`` (milliseconds) or a later one; the higher position if both are given.
    Return 0 if both are None, the file name has no offset, the indexes are unusable, or batch
    headers contradict them.
    """
    if not segment.has_offset_in_name:
        return 0
    found = 0
    if offset is not None:
        found = _find_offset(segment, offset, engine)
    if timestamp is not None:
        found = max(found, _find_timestamp(segment, timestamp, engine))
    return found


def find_start_position(
    segment: Segment, offset: int | None, timestamp: int | None, engine: Engine = "auto"
) -> int:
    """Return the byte position of the first batch that may have a record with ``offset`` or later
    and with ``timestamp`` (milliseconds) or later (None: any), by all batch headers. If there is
    none, return the end of the batches, or where damage begins; 0 if the file cannot be read. For a
    file in an object store of more than 256 KiB return what its indexes say.

    All batch headers before it are read, because an index does not show that a header contradicts itself. For a large file in an object
    store the indexes are trusted, because reading its headers takes many requests.
    """
    if needs_several_requests(segment.path, segment.size):
        return find_position_by_index(segment, offset, timestamp, engine)
    return first_batch(
        segment.path,
        RowSelection(offsets=(offset, None), timestamps=(timestamp, None)),
        size=segment.size,
        engine=engine if should_use_kernels(segment.size, engine) else "construct",
    ).position


class IndexedBatches:
    """Positions of batches in a segment according to its offset index."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        index = read_index_entries(segment.path.with_suffix(".index"), OFFSET_ENTRY_DTYPE)
        self._positions = index["position"].astype(np.int64)
        self._offsets = index["relative_offset"].astype(np.int64) + segment.base_offset
        self._columns = HeaderColumns(("base_offset", "last_offset"), os.fspath(segment.path))

    def find_batch(self, position: int) -> int | None:
        """Return the first byte position at or after ``position`` that the offset index has, if the
        batches from the index entry before it lead there. Return None if they do not, or the index
        has no entry before or after ``position``. Raise CodecError if one of these batches is
        damaged, or the segment cannot be read.
        """
        i = int(np.searchsorted(self._positions, position))
        if not 0 < i < len(self._positions):
            return None
        before, wanted = int(self._positions[i - 1]), int(self._positions[i])
        for entry in batches(self._segment.path, start=before):
            if entry.position >= wanted:
                first, last = self._columns.read(entry)
                low = last if first is None else first
                fits = self._segment.base_offset <= low <= last <= int(self._offsets[i])
                return wanted if fits and entry.position == wanted else None
        return None


def _find_offset(segment: Segment, offset: int, engine: Engine) -> int:
    """Return the byte position in the last index entry at or below an offset. Return 0 if there is
    none, the position lies outside of the file, or the headers from the entry before it contradict
    it.
    """
    index = read_index_entries(segment.path.with_suffix(".index"), OFFSET_ENTRY_DTYPE)
    relative = offset - segment.base_offset
    i = int(np.searchsorted(index["relative_offset"].astype(np.int64), relative, "right")) - 1
    if i < 0:
        return 0
    position = int(index["position"][i])
    before = int(index["position"][i - 1]) if i else 0
    if not before <= position < segment.size:
        return 0
    batches = deque(_read_headers(segment, before, position + 1, engine), maxlen=1)
    if not batches or batches[-1].position != position:
        return 0
    head = batches[-1]
    last = segment.base_offset + int(index["relative_offset"][i])
    fits = segment.base_offset <= head.first <= head.last <= last
    return position if fits else 0


def _find_timestamp(segment: Segment, timestamp: int, engine: Engine) -> int:
    """Return the byte position of the first batch with ``timestamp`` or a later one as its largest,
    by the last time index entry at or below ``timestamp`` and the headers after it. If none has,
    return the position of the last batch before the end or damage. Return 0 without such an entry,
    if headers contradict it, or if a file cannot be read.
    """
    index = read_index_entries(segment.path.with_suffix(".timeindex"), TIME_ENTRY_DTYPE)
    i = int(np.searchsorted(index["timestamp"].astype(np.int64), timestamp, "right")) - 1
    if i < 0:
        return 0
    offset = segment.base_offset + int(index["relative_offset"][i])
    batch_headers = _read_headers(segment, _find_offset(segment, offset, engine), None, engine)
    named = next((head for head in batch_headers if head.last >= offset), None)
    if named is None or named.first > offset or named.timestamp != int(index["timestamp"][i]):
        return 0
    # The last entry may be older than the last batches: search the batches after it.
    position = named.position
    head: _Header | None = named
    while head is not None:
        if head.timestamp >= timestamp:
            return head.position
        position = head.position
        head = next(batch_headers, None)
    return position


class _Header(NamedTuple):
    """Position, offsets and largest timestamp of a batch."""

    position: int
    first: int
    last: int
    timestamp: int


def _read_headers(
    segment: Segment, start: int, stop: int | None, engine: Engine
) -> Iterator[_Header]:
    """Yield a _Header for each batch from byte ``start`` up to ``stop`` (None: to the end), until
    the first damage; nothing for an unreadable file. ``first`` is the last offset if the header has
    no first one.
    """
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
