"""Bytes with their fields as lines of a given width."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.hexdump.byte_fields import Piece, Stream
from kafka_log.inspect.hexdump.segment_bytes import Part
from kafka_log.segment.printable import escape_unprintable
from kafka_log.text.folding import fold_cell

MAX_SHOWN_BYTES = 64
"""Maximum number of bytes shown of one field."""

_NARROW_WIDTH = 80
"""Width below which a line has 4 bytes instead of 8."""
_MIN_VALUE_WIDTH = 16
"""Minimum width of the column with values."""


def format_part(part: Part, width: int | None = None) -> Iterator[str]:
    """Yield the lines of a part: heading, bytes, notes (marked ``!``) and damage (``!!``). ``width`` None does not wrap."""
    yield from _wrap_text("", part.heading, width)
    for stream in part.streams:
        if stream.heading:
            yield ""
            yield from _wrap_text("", stream.heading, width)
        yield from _format_stream(stream, width)
    for note in part.notes:
        yield from _wrap_text("! ", note, width)
    for damage in part.damage:
        yield from _wrap_text("!! ", damage, width)


def _wrap_text(mark: str, text: str, width: int | None) -> Iterator[str]:
    """Yield text with its mark as lines of at most ``width`` characters, unprintable characters escaped."""
    text = mark + escape_unprintable(text)
    yield from [text] if width is None else _fold_lines(text, width)


def _fold_lines(text: str, width: int) -> list[str]:
    """Return text as lines of at most ``width`` characters, without spaces at their ends."""
    return [line.rstrip(" ") for line in fold_cell(text, width)]


def _format_stream(stream: Stream, width: int | None) -> Iterator[str]:
    """Yield the lines of all pieces in columns of equal widths: position, bytes, path and value. A
    line has 8 bytes, or 4 if ``width`` is below 80; None does not wrap.
    """
    per_line = 8 if width is None or width >= _NARROW_WIDTH else 4
    last = max((piece.end for piece in stream.pieces), default=0)
    digits = max(4, len(str(stream.origin + last)))
    paths = max((len(piece.path) for piece in stream.pieces), default=0)
    room = None
    if width is not None:
        left = width - digits - 3 * per_line - 3
        paths = min(paths, left - _MIN_VALUE_WIDTH - 2)
        room = left - paths - 2
    for piece in stream.pieces:
        yield from _format_piece(stream, piece, per_line, digits, paths, room)


def _format_piece(
    stream: Stream, piece: Piece, per_line: int, digits: int, paths: int, room: int | None
) -> Iterator[str]:
    """Yield the lines of one piece: position, at most ``per_line`` bytes, path (on the first line),
    value. ``digits`` and ``paths`` are the widths of position and path (a longer path loses its
    start). ``room`` is that of the value (None: no limit), which is folded over as many lines as it
    needs. After MAX_SHOWN_BYTES a last line gives the number of the remaining bytes. An omitted
    piece has ``..`` and the number of its bytes instead.
    """
    size = piece.end - piece.start
    end = piece.start if piece.omitted else min(piece.end, piece.start + MAX_SHOWN_BYTES)
    value = f"{piece.value}, {count_noun(size, 'byte')}" if piece.omitted else piece.value
    values = [value] if room is None else _fold_lines(value, room)
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
    if end < piece.end and not piece.omitted:
        yield f"{stream.origin + end:>{digits}}  .. {count_noun(piece.end - end, 'byte')} more"
