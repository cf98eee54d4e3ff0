"""What a reader passed over, told to whoever asks."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import ref

from codecgen.runtime.errors import CodecError
from kafka_log.segment.model import Batch, Lost
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.remote_errors import RemoteError

if TYPE_CHECKING:
    from kafka_log.read.splits import Split
    from kafka_log.segment.columnar import Scanner

OnLost = Callable[[Path, Lost], None]
"""Is called with a path and what of it is lost."""

OnRead = Callable[[int, int], None]
"""Is called with how many bytes of a file were read, and how many of its batches were skipped, when no more of it is read."""


def tell_lost(records: Scanner, on_lost: OnLost | None) -> None:
    """Tell what a scanner passed over, now that it is done."""
    end = records.end
    if on_lost is None or end is None:
        return
    for lost in end.lost:
        on_lost(records.reader.path, lost)
    if end.error is not None and records.keep:
        start = end.iterated_bytes
        on_lost(records.reader.path, Lost(start, start + end.trailing_bytes, str(end.error)))


def is_corrupt(error: CodecError) -> bool:
    """Whether an error says that a file is damaged; not that it is gone, may not be read, or that its store does not answer."""
    if not isinstance(error, UnreadableError):
        return True
    return error.errno in (None, errno.EIO) and not isinstance(error.__cause__, RemoteError)


class RestOfFile:
    """What a scanner that raises damage leaves of a file."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = ref(scanner)  # which holds this
        self._told: Batch | None = None
        scanner.on_batch = self._tell

    def _tell(self, batch: Batch) -> None:
        self._told = batch

    def lost(self, error: CodecError, stop: int) -> Lost:
        """From the batch on that the error is of, or the place where none could be read."""
        from kafka_log.segment.reader import damage

        scanner = self._scanner()
        assert scanner is not None, "it is asked while the scanner is there"
        begin, end = scanner.reader.start, scanner.end
        start = error.where.position
        if self._told is not None and any(error is wrong for wrong in damage(self._told)):
            start = self._told.position
        elif end is not None and end.error is error:
            start = end.iterated_bytes
        start = begin if start is None else min(max(start, begin), stop)
        after = _last_offset(scanner.reader.path, begin, start)
        return Lost(start, stop, f"the rest of a corrupt file: {error}", after)


def _last_offset(path: Path, start: int, end: int) -> int | None:
    """The last offset of the batches of a file between two places, which are whole; None without any."""
    from kafka_log.segment.batch_headers import Columns, entries

    last = None
    with suppress(CodecError):  # what begins at the end, or the file is gone by now
        for entry in entries(path, start=start):
            if entry.position >= end:
                break
            last = entry
    if last is None or last.position + last.frame.size != end:
        return None
    return int(Columns(("base_offset", "last_offset"), os.fspath(path)).of(last)[1])


def tell_dropped(records: Scanner, on_lost: OnLost) -> None:
    """Let a scanner that drops damaged batches tell each of them as it comes by."""
    from kafka_log.segment.reader import damage

    scanner = ref(records)  # which holds this

    def tell(batch: Batch) -> None:
        wrong, records = damage(batch), scanner()
        if wrong and records is not None:
            end = batch.position + batch.size
            reason = f"a batch that is left out: {wrong[0]}"
            around = records.offsets_around(batch)
            on_lost(records.reader.path, Lost(batch.position, end, reason, *around))

    records.on_batch = tell


def within_split(lost: Lost, part: Split) -> Lost:
    """What is lost of a split, of the offsets that are wanted of it. What lies before its first batch and after its last one the names of segments
    say."""
    after, before = lost.around or (lost.after_offset, lost.before_offset)
    segment = part.segment
    if after is None and lost.start == part.start == 0 and segment.has_canonical_name:
        after = segment.base_offset - 1
    if before is None and lost.end >= segment.size:
        before = part.next_offset
    # No checksum covers the offset of a batch: one that the names of segments contradict is none.
    if after is not None and segment.has_canonical_name and after < segment.base_offset - 1:
        after = None
    following = part.next_offset
    if before is not None and following is not None and before > following:
        before = None
    whole, (low, high) = (after, before), part.rows.offsets
    if low is not None and after is not None:
        after = max(after, low - 1)
    if high is not None and before is not None:
        before = max(min(before, high), (after or 0) + 1)
    read = lost.read if (after, before) == whole else 0  # which of them are wanted nobody knows
    return replace(lost, after_offset=after, before_offset=before, around=None, read=read)
