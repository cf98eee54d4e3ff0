"""The bytes of an example in rows, with the field that each belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from codecgen.targets.docs.hexdump import LONGEST, PER_LINE, Stream
from codecgen.targets.docs.hexdump_numbers import Bytes
from codecgen.targets.docs.linking import target
from codecgen.targets.docs.site import Site


@dataclass(frozen=True, slots=True)
class ByteRun:
    """Bytes side by side in a row that belong to the same piece."""

    piece: int
    hex: str


@dataclass(frozen=True, slots=True)
class ByteRow:
    """A row of bytes. ``left_out`` counts bytes before it that are not shown."""

    offset: int
    runs: tuple[ByteRun, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class PieceRow:
    """A piece: its number, the bytes that it takes, the field with where that is described, and what the bytes say."""

    piece: int
    bytes: str
    path: str
    href: str
    value: str


@dataclass(frozen=True, slots=True)
class Dump:
    rows: tuple[ByteRow, ...]
    pieces: tuple[PieceRow, ...]


def dump(site: Site, page: str, layout: str, stream: Stream) -> Dump:
    """The bytes of a stream of a layout's example."""
    pieces = tuple(
        PieceRow(
            i,
            str(piece.start) if piece.end - piece.start == 1 else f"{piece.start}–{piece.end - 1}",
            piece.path,
            _href(site, page, layout, piece.path),
            piece.value,
        )
        for i, piece in enumerate(stream.pieces)
    )
    return Dump(tuple(_rows(stream)), pieces)


def _href(site: Site, page: str, layout: str, path: str) -> str:
    """Where the field of a path (``records[0].key``) is described."""
    names = tuple(re.sub(r"\[\d+\]", "", path).split("."))
    found = target(site, layout, names) or (layout,)
    return site.href(page, found[0], *found[1:])


def _rows(stream: Stream) -> Iterator[ByteRow]:
    """Rows of as many bytes. Of a long piece only the first bytes are shown."""
    shown = [
        (at, i)
        for i, piece in enumerate(stream.pieces)
        for at in range(piece.start, min(piece.end, piece.start + LONGEST))
    ]
    begin, after = 0, 0
    while begin < len(shown):
        first = shown[begin][0]
        row = first - first % PER_LINE
        end = begin
        while end < len(shown) and shown[end][0] == first + end - begin < row + PER_LINE:
            end += 1
        yield ByteRow(first, tuple(_runs(stream.data, shown[begin:end])), first - after)
        begin, after = end, shown[end - 1][0] + 1


def _runs(data: Bytes, shown: list[tuple[int, int]]) -> Iterator[ByteRun]:
    begin = 0
    for end in range(1, len(shown) + 1):
        if end == len(shown) or shown[end][1] != shown[begin][1]:
            first, last = shown[begin][0], shown[end - 1][0]
            yield ByteRun(shown[begin][1], data[first : last + 1].hex(" "))
            begin = end
