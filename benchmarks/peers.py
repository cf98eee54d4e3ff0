"""Who reads segments in the benchmarks: the kernels, the peers, and the limits of the machine. All of them from memory.

Each is made from the bytes of a segment and is called once a round. The peers get all of the bytes that the kernels get, or
the first batches of them (:func:`part`) where they are slow.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from aiokafka.record._crecords import MemoryRecords as AioRecords
from crc32c import crc32c
from kafka.record.memory_records import MemoryRecords as PythonRecords

from benchmarks.measure import Candidate
from codecgen.runtime.arrow.decoder import Chunk, Decoder, Rows, choose, schema_of
from kafka_codecs import LOG_ENTRY
from kafka_codecs.arrow.records import RECORDS

STEP = 8 << 20
"""Bytes that are decoded, or copied, at a time."""

ROWS = 8192
"""Rows that are made into Arrow at a time from Python's objects."""

COLUMNS = choose(RECORDS, None)
SCHEMA = schema_of(COLUMNS)


def sizes(data: bytes) -> Iterator[tuple[int, int]]:
    """(start, end) of the batches."""
    at = 0
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        yield at, end
        at = end


def part(data: bytes, most: int) -> bytes:
    """The first batches, so many bytes of them or one batch."""
    end = 0
    for _, after in sizes(data):
        if end and after > most:
            break
        end = after
    return data[:end]


# ------------------------------------------------------------ the kernels


class Kernels:
    """Decodes a segment in steps into Arrow buffers: all default columns, checksums verified."""

    def __init__(self, data: bytes, allocate: Callable[[int], Any] = pa.allocate_buffer) -> None:
        self.decoder = Decoder(RECORDS, COLUMNS, allocate=allocate)
        self.size = len(data)
        self.whole = np.zeros(len(data) + 64, np.uint8)
        self.whole[: len(data)] = np.frombuffer(data, np.uint8)
        self.chunk = Chunk(0)

    def batches(self) -> Iterator[pa.RecordBatch]:
        at = 0
        while at < self.size:
            self.chunk.size = min(STEP, self.size - at)
            self.chunk.array = self.whole[at : at + self.chunk.size + 64]
            for item in self.decoder.decode(self.chunk, at):
                assert isinstance(item, Rows), item
                at = item.end
                yield item.batch

    def keep(self) -> list[pa.RecordBatch]:
        return list(self.batches())

    def drop(self) -> int:
        """Count the rows; each batch is gone before the next."""
        return sum(batch.num_rows for batch in self.batches())


def asked(data: bytes) -> list[int]:
    """The sizes of the buffers that decoding allocates."""
    found: list[int] = []

    def allocate(size: int) -> Any:
        found.append(size)
        return pa.allocate_buffer(size)

    Kernels(data, allocate).drop()
    return found


# ------------------------------------------------------------ the peers


def aiokafka(data: bytes) -> Callable[[], int]:
    """aiokafka's Cython reader: verifies checksums and iterates, and builds no table."""

    def run() -> int:
        count = 0
        records = AioRecords(data)
        while (batch := records.next_batch()) is not None:
            assert batch.validate_crc()
            for _ in batch:
                count += 1
        return count

    return run


def aiokafka_table(data: bytes) -> Callable[[], pa.Table]:
    return lambda: _table(AioRecords(data))


def kafka_python(data: bytes) -> Callable[[], int]:
    def run() -> int:
        count = 0
        records = PythonRecords(data)
        while (batch := records.next_batch()) is not None:
            assert batch.validate_crc()
            for record in batch:
                record.key, record.value  # noqa: B018 - made when it is asked for
                count += 1
        return count

    return run


def kafka_python_table(data: bytes) -> Callable[[], pa.Table]:
    return lambda: _table(PythonRecords(data))


def _table(records: Any) -> pa.Table:
    """The records of a reader of Python objects as a table in our columns, some thousand rows at a time."""
    batches = []
    rows: list[tuple[Any, ...]] = []

    def flush() -> None:
        columns = zip(*rows, strict=True)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(arrays, names=SCHEMA.names))
        rows.clear()

    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        for r in batch:
            headers = [{"key": k, "value": v} for k, v in r.headers] if r.headers else []
            rows.append((r.offset, r.timestamp, r.timestamp_type, r.key, r.value, headers))
        if len(rows) >= ROWS:
            flush()
    if rows:
        flush()
    return pa.Table.from_batches(batches)


def construct(data: bytes) -> Candidate:
    """The reference codecs."""
    entries = [data[start:end] for start, end in sizes(data)]
    return lambda: [LOG_ENTRY.parse(entry) for entry in entries]


# ------------------------------------------------------------ the limits


def memcpy_touched(data: bytes) -> Candidate:
    """Into memory that was written before."""
    source = np.frombuffer(data, np.uint8)
    target = np.ones(len(data), np.uint8)

    def run() -> None:
        for at in range(0, len(source), STEP):
            target[at : at + STEP] = source[at : at + STEP]

    return run


def memcpy_pool(data: bytes) -> Candidate:
    """Into buffers from Arrow's pool, one for each step, all kept until the round ends."""
    return _copies(data, [min(STEP, len(data) - at) for at in range(0, len(data), STEP)])


def memcpy_alike(data: bytes) -> Candidate:
    """Into as many buffers of the same sizes as decoding allocates, all kept until the round ends.

    This is what decoding cannot do without: the same bytes written, into memory that comes in the same way.
    """
    return _copies(data, asked(data))


def _copies(data: bytes, wanted: list[int]) -> Candidate:
    source = np.frombuffer(data * (1 + max(wanted) // len(data)), np.uint8)

    def run() -> list[Any]:
        kept = []
        at = 0
        for size in wanted:
            if at + size > len(source):
                at = 0
            buffer = pa.allocate_buffer(size)
            np.frombuffer(buffer, np.uint8)[:] = source[at : at + size]
            kept.append(buffer)
            at += size
        return kept

    return run


def memcpy_system(data: bytes) -> Candidate:
    """Into pages that come from the operating system as they are written, one by one."""
    source = np.frombuffer(data, np.uint8)

    def run() -> list[Any]:
        kept = []
        for at in range(0, len(source), STEP):
            piece = source[at : at + STEP]
            pages = mmap.mmap(-1, len(piece))
            np.frombuffer(pages, np.uint8)[:] = piece
            kept.append(pages)
        return kept

    return run


def checksum(data: bytes) -> Candidate:
    """CRC-32C of each batch."""
    view = memoryview(data)
    places = list(sizes(data)) if data[16] == 2 else [(at, at + STEP) for at in range(0, len(data), STEP)]  # fmt: skip
    return lambda: [crc32c(view[start:end]) for start, end in places]
