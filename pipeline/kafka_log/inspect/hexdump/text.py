"""Bytes beside their fields, as lines of a given width."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from kafka_log.inspect.hexdump.byte_fields import Piece, Stream
from kafka_log.inspect.hexdump.segment_bytes import Part
from kafka_log.text.text_table import fold_cell
from kafka_log.text.values import escape_unprintable

LONGEST = 64
"""Bytes of one field that are shown at most."""

_NARROW = 80
"""Columns below which there are fewer bytes in a line."""
_LEAST = 16
"""Columns that values have at least."""


def lines(part: Part, width: int | None = None) -> Iterator[str]:
    """The lines of a part of a file: what it is, its bytes, then notes (``!``) and damage (``!!``)."""
    yield from _wrapped("", part.heading, width)
    for stream in part.streams:
        if stream.heading:
            yield ""
            yield from _wrapped("", stream.heading, width)
        yield from _stream(stream, width)
    for note in part.notes:
        yield from _wrapped("! ", note, width)
    for damage in part.damage:
        yield from _wrapped("!! ", damage, width)


def _wrapped(mark: str, text: str, width: int | None) -> Iterator[str]:
    text = mark + escape_unprintable(text)
    yield from [text] if width is None else _fold(text, width)


def _fold(text: str, width: int) -> list[str]:
    return [line.rstrip(" ") for line in fold_cell(text, width)]


def _stream(stream: Stream, width: int | None) -> Iterator[str]:
    per_line = 8 if width is None or width >= _NARROW else 4
    last = max((piece.end for piece in stream.pieces), default=0)
    digits = max(4, len(str(stream.origin + last)))
    paths = max((len(piece.path) for piece in stream.pieces), default=0)
    room = None
    if width is not None:
        left = width - digits - 3 * per_line - 3
        paths = min(paths, left - _LEAST - 2)
        room = left - paths - 2
    for piece in stream.pieces:
        yield from _piece(stream, piece, per_line, digits, paths, room)


def _piece(
    stream: Stream, piece: Piece, per_line: int, digits: int, paths: int, room: int | None
) -> Iterator[str]:
    """The lines of one piece: its bytes to the left, its path and its value to the right."""
    size = piece.end - piece.start
    end = piece.start if piece.left_out else min(piece.end, piece.start + LONGEST)
    value = f"{piece.value}, {size} bytes" if piece.left_out else piece.value
    values = [value] if room is None else _fold(value, room)
    path = piece.path if len(piece.path) <= paths else ".." + piece.path[2 - paths :]
    starts = range(piece.start, end, per_line) or [piece.start]
    for start, words in zip_longest(starts, values):
        offset, part = "", ""
        if start is not None:
            offset = str(stream.origin + start)
            part = stream.data[start : min(start + per_line, end)].hex(" ") or ".."
        note = "" if words is None else f"{path:{paths}}  {words}"
        yield f"{offset:>{digits}}  {part:{per_line * 3 - 1}}  {note}".rstrip()
        path = ""
    if end < piece.end and not piece.left_out:
        yield f"{stream.origin + end:>{digits}}  .. {piece.end - end} bytes more"
