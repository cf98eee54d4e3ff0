"""Bytes that brokers leave after the last complete batch of the active segment.

A preallocated file ends in zeros. A broker that is writing, or was killed, leaves the first bytes of a batch. After a power failure
there are zeros in place of bytes that did not reach the disk.
"""

from __future__ import annotations

from collections.abc import Callable

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun

CHUNK = 1 << 20
FIRST = 1 << 10
"""Bytes of the first read. Usually one of them is not zero."""

UNWRITTEN = 8
"""Minimum number of zeros at the end of an invalid batch, with only zeros after it, to count as not completely written.
Complete batches end in fewer zeros, unless their last value does."""

ZEROS = "zeros: nothing was written there yet"
TORN = "of a batch that was not written to its end"

Read = Callable[[int, int], bytes]
"""Position and number of bytes -> bytes."""


def all_zeros(read: Read, start: int, size: int) -> bool:
    """Return whether all bytes from ``start`` to ``size`` (excluded) are zeros; True if there are
    none.
    """
    position, step = start, FIRST
    while position < size:
        if read(position, min(step, size - position)).strip(b"\0"):
            return False
        position += step
        step = min(2 * step, CHUNK)
    return True


def written_end(read: Read, start: int, size: int) -> int:
    """Return the position after the last byte from ``start`` to ``size`` (excluded) that is not
    zero, or ``start`` if all are zeros. Return ``size`` if fewer than 8 zeros follow that byte: a
    complete batch may end in them.
    """
    found = start
    for position in range(start, size, CHUNK):
        chunk = read(position, min(CHUNK, size - position)).rstrip(b"\0")
        if chunk:
            found = position + len(chunk)
    return size if start < found and size - found < UNWRITTEN else found


def is_unwritten(read: Read, position: int, size: int) -> bool:
    """Return whether the invalid entry at ``position`` was never written to its end: the last 8
    bytes of its stated size, and all bytes after it up to ``size``, are zeros, or ``size`` is
    before them. An impossible or missing size counts as 17 bytes (HEADER_START).
    """
    from kafka_log.segment import framing  # the codecs: files that end well do not need them

    try:
        head = read(position, framing.HEADER_START)
        claimed = framing.frame_of(head, position, "").size
    except CodecError:
        claimed = framing.HEADER_START  # it has no length yet
    return all_zeros(read, max(position, position + claimed - UNWRITTEN), size)


def zeros_note(count: int) -> str:
    """Return the note on ``count`` zeros at the end of a file."""
    return f"{count_noun(count, 'byte at the end is', 'bytes at the end are')} {ZEROS}"


def torn_note(count: int) -> str:
    """Return the note on an incomplete batch of ``count`` bytes at the end of a file."""
    return f"{count_noun(count, 'byte at the end is', 'bytes at the end are')} {TORN}"
