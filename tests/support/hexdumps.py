"""The files that hexdump knows, and the bytes that its rows cover."""

from __future__ import annotations

from kafka_log.inspect.hexdump.byte_fields import Stream

ALL = 1 << 20


def covered(stream: Stream) -> None:
    """Every byte is there, in order, once."""
    at = 0
    for piece in stream.pieces:
        assert piece.start == at
        assert piece.end > at
        at = piece.end
