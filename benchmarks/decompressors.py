"""The decompressors that Python has, for the runs of segments: one call for each batch (Snappy: each block of 32 KiB)."""

from __future__ import annotations

import importlib
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from benchmarks.measure import Candidate
from benchmarks.peers import sizes
from codecgen.runtime.compression import decompress

Decompress = Callable[[bytes, int], object]
_HEADS = {1: 34, 2: 61}
"""Bytes before a run, by the version of the format."""

_FIRST_BLOCK = 16
"""Bytes before the first block of a Snappy run."""


def runs(data: bytes, codec: str) -> list[tuple[bytes, int]]:
    """(the compressed bytes, how many they become) for each call."""
    found = []
    for start, end in sizes(data):
        run = data[start + _HEADS[data[start + 16]] : end]
        found += [
            (piece, _size(piece, codec)) for piece in (_blocks(run) if codec == "snappy" else [run])
        ]
    return found


def _size(piece: bytes, codec: str) -> int:
    return len(decompress(codec, piece, limit=1 << 30).data)


def _blocks(run: bytes) -> list[bytes]:
    found = []
    at = _FIRST_BLOCK
    while at < len(run):
        (size,) = struct.unpack_from(">i", run, at)
        found.append(run[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def _arrow(codec: str) -> Decompress:
    return lambda data, size: pa.decompress(data, size, codec=codec)


def _zlib_alike(name: str) -> Callable[[Any], Decompress]:
    return lambda module: lambda data, size: module.decompress(data, 31, size)


_FOUND: dict[str, list[tuple[str, str, Callable[[Any], Decompress]]]] = {
    "gzip": [
        ("cramjam", "cramjam", lambda m: lambda data, size: m.gzip.decompress(data, size)),
        ("isal", "isal.isal_zlib", _zlib_alike("isal")),
        ("zlib-ng", "zlib_ng.zlib_ng", _zlib_alike("zlib-ng")),
    ],
    "snappy": [
        ("cramjam", "cramjam", lambda m: lambda data, size: m.snappy.decompress_raw(data)),
        ("python-snappy", "snappy", lambda m: lambda data, size: m.uncompress(data)),
    ],
    "lz4": [
        ("lz4.frame", "lz4.frame", lambda m: lambda data, size: m.decompress(data)),
        ("cramjam", "cramjam", lambda m: lambda data, size: m.lz4.decompress(data, size)),
    ],
    "zstd": [
        ("zstandard", "zstandard", lambda m: _zstandard(m)),
        ("cramjam", "cramjam", lambda m: lambda data, size: m.zstd.decompress(data, size)),
    ],
}


def _zstandard(module: Any) -> Decompress:
    decompressor = module.ZstdDecompressor()
    return lambda data, size: decompressor.decompress(data, max_output_size=size)


def candidates(data: bytes, codec: str) -> dict[str, Candidate]:
    """A candidate for each library that is here; those that do not give the right bytes are left out."""
    pieces = runs(data, codec)
    libraries: dict[str, Decompress] = {"pyarrow": _arrow(codec)}
    if codec == "gzip":
        libraries["zlib"] = lambda data, size: zlib.decompress(data, 31, size)
    for name, module, make in _FOUND[codec]:
        try:
            libraries[name] = make(importlib.import_module(module))
        except ImportError:
            continue
    good = {name: f for name, f in libraries.items() if _works(f, pieces, codec)}
    return {name: _all(function, pieces) for name, function in good.items()}


def _all(function: Decompress, pieces: list[tuple[bytes, int]]) -> Candidate:
    def run() -> None:
        for piece, size in pieces:
            function(piece, size)

    return run


def _works(function: Decompress, pieces: list[tuple[bytes, int]], codec: str) -> bool:
    piece, size = pieces[0]
    try:
        got = bytes(memoryview(function(piece, size)))  # type: ignore[arg-type]
    except Exception as error:
        print(f"{codec}: {type(error).__name__}: {error}")
        return False
    return len(got) == size
