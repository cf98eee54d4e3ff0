"""Whole batches into the segments of a partition, which are ended before they are too large."""

from __future__ import annotations

from collections.abc import Iterator
from io import FileIO

from kafka_log.segment import framing
from kafka_log.segment.framing import HEADER_BYTES, Entry, HeaderColumns
from kafka_log.segment.header_arrays import Headers
from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.segment.positioned_reads import read_exactly
from kafka_log.write.segments import LogWriter

BOUNDS = ("base_offset", "last_offset")
"""What is asked of each batch."""


class Out:
    """Where batches go: into the segment that was begun, or into another one where it would become too large."""

    def __init__(self, log: LogWriter, most: int) -> None:
        self.log = log
        self.most = most
        """Bytes that a segment has, unless one batch has more."""
        self.batches = self.bytes = 0

    def room(self, size: int, last: int) -> bool:
        """Whether so many bytes with offsets up to ``last`` fit into the segment."""
        base = self.log.base_offset or 0
        return self.log.size + size <= self.most and last - base <= MAX_RELATIVE

    def put(self, data: bytes | memoryview, first: int, last: int, batches: int = 1) -> None:
        if self.log.size and not self.room(len(data), last):
            self.log.begin(first)
        self.log.write(data)
        self.batches += batches
        self.bytes += len(data)

    def copy(self, file: FileIO, headers: Headers) -> None:
        """Batches that lie next to each other, as they are."""
        sizes, lasts = headers.size.tolist(), headers.last.tolist()
        start = int(headers.position[0])
        if self.room(sum(sizes), lasts[-1]):
            self.log.copy(file, start, start + sum(sizes))
            self.batches += len(sizes)
            self.bytes += sum(sizes)
            return
        for size, first, last in zip(sizes, headers.first.tolist(), lasts, strict=True):
            self.put(read_exactly(file, start, size), first, last)
            start += size

    def pieces(self, pieces: Iterator[memoryview], columns: HeaderColumns) -> None:
        """Whole batches."""
        for piece in pieces:
            entries = list(_entries(piece))
            first, last = columns.read(entries[0])[0], columns.read(entries[-1])[1]
            if self.room(len(piece), last):
                self.put(piece, first, last, len(entries))
                continue
            for entry in entries:
                data = piece[entry.position : entry.position + entry.frame.size]
                self.put(data, *columns.read(entry._replace(position=0)))


def _entries(piece: memoryview) -> Iterator[Entry]:
    position = 0
    while position < len(piece):
        data = bytes(piece[position : position + HEADER_BYTES])
        frame = framing.frame_of(data, position, "")
        yield Entry(position, frame, data)
        position += frame.size
