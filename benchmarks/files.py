"""Segments as files that are in the page cache, and the readers of files that the benchmarks use."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from benchmarks import peers
from kafka_log.segment.scanner import Scanner, header_scanner

__all__ = ["Scanner", "header_scanner", "repeated", "written"]


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / f"{name}.log"
    path.write_bytes(data)
    path.read_bytes()  # into the page cache
    return path


def repeated(path: Path, data: bytes, total: int, offset: int = 0) -> int:
    """Write batches again and again, with offsets that rise from ``offset`` on, until a file has ``total`` bytes. The offset after the
    last one.

    The checksum does not cover the first offset of a batch.
    """
    block = bytearray(data)
    heads = list(peers.sizes(data))
    counts = [struct.unpack_from(">i", data, start + 57)[0] for start, _ in heads]
    size = 0
    with path.open("wb") as file:
        while size < total:
            for (start, _), count in zip(heads, counts, strict=True):
                struct.pack_into(">q", block, start, offset)
                offset += count
            size += file.write(block)
        os.fsync(file.fileno())
    return offset
