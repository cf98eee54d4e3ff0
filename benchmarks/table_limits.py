"""What no export can do without: the codecs alone over the bytes of a log and its tables, and the writing of Parquet of rows that are in
memory. On all of two processors: a process for each, which read one of the partitions."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import peers
from codecgen.runtime.compression import decompress
from kafka_log import discover
from kafka_log.read.parquet import Compression, GroupedWriter
from kafka_log.read.plan import Split
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.task_reader import read_splits

PROCESSES = 2
PAGE = 1 << 20
"""Bytes that a writer of Parquet compresses at a time."""

HEAD = 61
"""Where the records of a batch begin."""

COLUMNS = ("key", "value", "partition", "offset", "timestamp", "timestampType")


class Limits:
    """Seconds for a log of some partitions of the same size. To be closed."""

    def __init__(self, log: Path, log_codec: str) -> None:
        self._segments = sorted(log.rglob("*.log"))
        self._log_codec = log_codec
        self._stack = ExitStack()
        context = multiprocessing.get_context("spawn")
        self._processes = [
            self._stack.enter_context(ProcessPoolExecutor(1, mp_context=context))
            for _ in range(PROCESSES)
        ]

    def of_codecs(self, codec: Compression) -> float:
        """To decompress the batches of the log, and to compress keys and values as pages."""
        return self._both(codecs_alone, self._log_codec, codec)

    def of_arrow(self, codec: Compression) -> float:
        """To write rows that are in memory, and decoded, as Parquet."""
        return self._both(arrow_alone, codec)

    def close(self) -> None:
        """End the processes."""
        self._stack.close()

    def _both(self, what: Callable[..., float], *given: str) -> float:
        begun = [
            process.submit(what, str(segment), *given)
            for process, segment in zip(self._processes, self._segments, strict=False)
        ]
        return max(one.result() for one in begun) * len(self._segments) / PROCESSES


@cache
def rows_of(segment: str) -> pa.Table:
    (partition,) = discover([Path(segment).parent])
    scan = Scan(COLUMNS, batch_rows=1 << 16, engine="arrow")
    return pa.Table.from_batches(read_splits([Split(partition.segments[0])], scan), scan.schema)


@cache
def sections_of(segment: str, codec: str) -> list[tuple[bytes, int]]:
    """The compressed records of batches, with what they hold."""
    if codec == "none":
        return []
    data = Path(segment).read_bytes()
    packed = [data[start + HEAD : end] for start, end in peers.sizes(data)]
    return [(one, len(decompress(codec, one, limit=PAGE).data)) for one in packed]


@cache
def pages_of(segment: str) -> list[bytes]:
    chunks = [chunk for name in ("key", "value") for chunk in rows_of(segment).column(name).chunks]
    whole = b"".join(map(_bytes_of, chunks))
    return [whole[at : at + PAGE] for at in range(0, len(whole), PAGE)]


def _bytes_of(chunk: pa.BinaryArray) -> bytes:
    """The values, without what else is in their buffer."""
    offsets = np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset :][: len(chunk) + 1]
    return bytes(chunk.buffers()[2][int(offsets[0]) : int(offsets[-1])])


def codecs_alone(segment: str, log_codec: str, codec: Compression) -> float:
    sections, pages = sections_of(segment, log_codec), pages_of(segment)
    out = None if codec == "none" else _codec(codec)
    into = None if log_codec == "none" else _codec(log_codec)
    begin = time.perf_counter()
    for data, size in sections:
        into.decompress(data, size)
    for page in pages if out is not None else ():
        out.compress(page)
    return time.perf_counter() - begin


def _codec(name: str) -> Any:
    raw = {"lz4": "lz4_raw"}.get(name, name)
    return pa.Codec(raw, compression_level=1) if name == "zstd" else pa.Codec(raw)


def arrow_alone(segment: str, codec: Compression) -> float:
    rows = rows_of(segment)
    with tempfile.TemporaryDirectory() as name, Path(name, "rows").open("xb") as file:
        begin = time.perf_counter()
        writer = GroupedWriter(file, rows.schema, codec)
        for batch in rows.to_batches():
            writer.hold(batch)
            if writer.bytes_held >= 128 << 20:
                writer.flush()
        writer.close()
        file.flush()
        os.fsync(file.fileno())
        return time.perf_counter() - begin
