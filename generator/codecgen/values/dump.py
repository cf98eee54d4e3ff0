"""Format bytes next to their meaning, for a terminal of a given width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from codecgen.plan import Plan
from codecgen.runtime.nouns import count_noun
from codecgen.targets.docs.hexdump import MAX_FIELD_BYTES, Bytes, Piece, Stream, streams
from codecgen.values.named_codec import format_layout
from codecgen.values.reading import Input, Reading

_LONGEST_LEFT = 64
"""Bytes that no field has that are shown at most, in one place."""
_NARROW = 72
"""Columns below which there are fewer bytes in a line."""
_LEAST = 8
"""Columns that paths and values have at least."""


def dump(plan: Plan, reading: Reading, given: Input, end: int, width: int | None) -> Iterator[str]:
    """Yield the lines of a parsed input: its bytes, from the start of the reading on, with paths
    and values, then each decompressed section below a heading. ``end`` is the first byte that is
    not shown. ``width`` is that of the terminal; None wraps no text.
    """
    for stream, _, _ in list_streams(plan, reading, given, end):
        if stream.codec:
            heading = f"{stream.path}, decompressed with {stream.codec}, {count_noun(len(stream.data), 'byte')}"
            yield from ("", *_wrap(heading, width))
        yield from _dump_stream(stream, width)


def list_streams(
    plan: Plan, reading: Reading, given: Input, end: int
) -> Iterator[tuple[Stream, int, int]]:
    """Yield the input from the start of the reading to ``end``, then each decompressed section
    whole, outer sections first, as (stream, first byte, byte after the last). Sections that cannot
    be decompressed are left out. Pieces for bytes that no field has say ``not read`` after an
    error, else ``passed over``.
    """
    left = "not read" if reading.error is not None else "passed over"
    if reading.plan is None:
        found = [Stream("", "", given.data, ())]
    else:
        found = streams(plan, reading.plan, given.data, reading.value, reading.trace)
    for stream in found:
        first, last = (0, len(stream.data)) if stream.codec else (reading.start, end)
        yield _fill_gaps(stream, first, last, left), first, last


def format_heading(reading: Reading, index: int | None, width: int | None) -> list[str]:
    """Return the lines that say what was parsed and where: ``3: record_batch at byte 310, 97
    bytes``. The number is left out if ``index`` is None, and the size after an error. Without a
    known layout the name is ``nothing that is known``. Lines are wrapped to ``width`` unless it is
    None.
    """
    what = "nothing that is known" if reading.plan is None else format_layout(reading.plan)
    size = (
        "" if reading.error is not None else f", {count_noun(reading.end - reading.start, 'byte')}"
    )
    number = "" if index is None else f"{index}: "
    return _wrap(f"{number}{what} at byte {reading.start}{size}", width)


def _fill_gaps(stream: Stream, first: int, last: int, left: str) -> Stream:
    """Return the stream with additional pieces, labeled ``left``, for bytes from ``first`` to
    ``last`` (not included) that no piece covers.
    """
    pieces: list[Piece] = []
    at = first
    for piece in stream.pieces:
        if piece.start > at:
            pieces.append(Piece(at, piece.start, "", left))
        pieces.append(piece)
        at = max(at, piece.end)
    if last > at:
        pieces.append(Piece(at, last, "", left))
    return replace(stream, pieces=tuple(pieces))


def _dump_stream(stream: Stream, width: int | None) -> Iterator[str]:
    """Yield the lines of all pieces of a stream: 8 bytes a line, or 4 if ``width`` is less than 72,
    with columns for paths and values fitted to ``width``, but at least 8 wide. None does not limit
    them.
    """
    per_line = 8 if width is None or width >= _NARROW else 4
    digits = max([4, *(len(str(piece.end)) for piece in stream.pieces)])
    paths = max((len(piece.path) for piece in stream.pieces), default=0)
    words = None
    if width is not None:
        room = max(width - digits - 3 * per_line - 3, 2 * _LEAST + 2)
        longest = max((len(piece.value) for piece in stream.pieces), default=0)
        paths = max(min(paths, room - 2 - min(longest, room // 2 - 2)), _LEAST)
        words = max(room - paths - 2, _LEAST)
    for piece in stream.pieces:
        yield from _dump_piece(stream.data, piece, per_line, digits, paths, words)


def _dump_piece(
    data: Bytes, piece: Piece, per_line: int, digits: int, paths: int, words: int | None
) -> Iterator[str]:
    """Yield the lines of one piece: its first byte and bytes on the left, its path and value on the
    right. Only the first 256 bytes are shown, or 64 of a piece without path; a last line says how
    many are left. Long paths are cut at their start.
    """
    last = min(piece.end, piece.start + (MAX_FIELD_BYTES if piece.path else _LONGEST_LEFT))
    starts = range(piece.start, max(last, piece.start + 1), per_line)
    values = [piece.value]
    if words is not None:
        values = textwrap.wrap(piece.value, words, break_on_hyphens=False) or [""]
    path = piece.path if len(piece.path) <= paths else ".." + piece.path[2 - paths :]
    for start, value in zip_longest(starts, values):
        offset, part = "", ""
        if start is not None:
            offset, part = str(start), data[start : min(start + per_line, last)].hex(" ")
        note = f"{path:{paths}}  {value}" if value is not None else ""
        yield f"{offset:>{digits}}  {part:{per_line * 3 - 1}}  {note}".rstrip()
        path = ""
    if last < piece.end:
        yield f"{'':>{digits}}  .. {count_noun(piece.end - last, 'byte')} more"


def _wrap(text: str, width: int | None) -> list[str]:
    """Return ``text`` wrapped to ``width`` columns, or as one line if ``width`` is None."""
    return [text] if width is None else textwrap.wrap(text, max(width, _LEAST))
